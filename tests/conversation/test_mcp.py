"""MCP servers: held conversations with a real server, consent for a project's file, and a server that dies."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.settings.schema import Loaded, McpServer, McpSettings
from ragforge_tui.shared.events import ApprovalRequested, Event, Notice, TrustRequested
from ragforge_tui.tools.mcp.config import expanded, project_servers
from ragforge_tui.tools.mcp.tool import NAME_CHARS, valid_name
from tests.support.model_script import Script
from tests.support.waiting import until

PROBE = Path(__file__).parents[1] / "support" / "mcp_server.py"
KEY = "sk-" + "a1B2" * 8


def probe(**changes: Any) -> McpServer:
    return McpServer(command=sys.executable, args=[str(PROBE)], **changes)


def with_servers(loaded: Loaded, **servers: McpServer) -> Loaded:
    settings = msgspec.structs.replace(loaded.settings, mcp=McpSettings(servers=servers))
    return msgspec.structs.replace(loaded, settings=settings)


def calling(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": tool, "arguments": {**arguments, "reason": "to see"}}]}


def answering(agent: ConversationAgent, seen: list[Event], *, trust: bool = True) -> None:
    """Answer every question: calls for the session, texts of the project as given."""

    def on_event(event: Event) -> None:
        seen.append(event)
        if isinstance(event, ApprovalRequested):
            agent.services.approvals.answer(event.approval_id, "session")
        elif isinstance(event, TrustRequested):
            asyncio.get_running_loop().call_soon(agent.services.project.answer, event.root, trust)

    agent.services.events.listen(on_event)


@pytest.fixture
async def address() -> AsyncIterator[str]:
    """The address of the server over streamable HTTP."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(PROBE), str(port), stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )

    def listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        await until(listens)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        await process.wait()


async def test_a_conversation_uses_a_server_and_is_resumed(
    loaded: Loaded, server: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROBE_TOKEN", "of-the-probe")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    settings = with_servers(loaded, probe=probe(env={"TOKEN": "${PROBE_TOKEN}"}))
    server.script(
        [
            calling("probe__add", first=2, second=3),
            calling("probe__add", first=4, second=3),
            calling("probe__environment_of", name="TOKEN"),
            calling("probe__environment_of", name="OPENAI_API_KEY"),
            calling("probe__picture"),
            calling("probe__noise"),
            {"text": "done"},
            calling("probe__add", first=5, second=5),
            {"text": "ten"},
        ]
    )
    seen: list[Event] = []
    async with ConversationAgent(settings, interactive=True) as agent:
        answering(agent, seen)
        conversation = await agent.create_conversation()
        answer = await conversation.send_message("Add 2 and 3.")
        await conversation.memory.settle()
    assert answer.content == "done"
    results = [message["content"] for message in server.chats()[6]["messages"] if message["role"] == "tool"]
    assert results[:4] == ["5", "7", "of-the-probe", "not set"]
    assert "image/png, 6 B" in results[4] and "cannot be shown" in results[4]
    assert results[5].startswith("red ") and "\x1b" not in results[5] and KEY not in results[5]
    assert len(results[5]) < 35_000
    asked = [event.call.tool_name for event in seen if isinstance(event, ApprovalRequested)]
    assert asked == ["probe__add", "probe__environment_of", "probe__picture", "probe__noise"], "once for each tool"
    tools = {tool["function"]["name"]: tool["function"] for tool in server.chats()[0]["tools"]}
    assert tools["probe__add"]["parameters"]["required"] == ["first", "second"]
    seen.clear()
    async with ConversationAgent(settings, interactive=True) as agent:
        answering(agent, seen)
        resumed = await agent.load_conversation(conversation.record.uuid)
        assert (await resumed.send_message("And 5 and 5?")).content == "ten"
        await resumed.memory.settle()
    assert any(isinstance(event, ApprovalRequested) for event in seen), "another session asks again"
    last = server.chats()[-1]["messages"]
    assert [message["content"] for message in last if message["role"] == "tool"][-1] == "10"


async def test_streamable_http_and_a_refusal(loaded: Loaded, server: Script, address: str) -> None:
    settings = with_servers(loaded, far=McpServer(url=address, headers={"X-Token": "${NO_SUCH:-none}"}))
    server.script([calling("far__add", first=2, second=3), {"text": "refused"}])
    async with ConversationAgent(settings) as agent:
        conversation = await agent.create_conversation()
        await conversation.send_message("Add 2 and 3.")
        assert [state.state for state in agent.services.mcp.states()] == ["ready"]
    (result,) = [one["content"] for one in server.chats()[1]["messages"] if one["role"] == "tool"]
    assert "refused" in result, "no one was there to allow it"


@pytest.mark.slow
async def test_a_server_that_dies_is_started_again_a_few_times(loaded: Loaded, server: Script, tmp_path: Path) -> None:
    deaths = tmp_path / "deaths"
    dying = [calling("probe__die", file=str(deaths)), calling("probe__add", first=1, second=1)]
    more = [calling("probe__die", file=f"{tmp_path}/./{'./' * number}deaths") for number in range(4)]
    server.script([*dying, *more, {"text": "gave up"}, calling("probe__add", first=2, second=2), {"text": "mended"}])
    async with ConversationAgent(with_servers(loaded, probe=probe()), approve="all") as agent:
        conversation = await agent.create_conversation()
        assert (await conversation.send_message("Let it die.")).content == "gave up"
        (state,) = agent.services.mcp.states()
        assert state.state == "failed" and state.error == "the disk is on fire"
        assert deaths.read_text() == "x" * 4, "once, and three times in a row"
        await agent.services.mcp.restart("probe")
        assert (await conversation.send_message("Again.")).content == "mended"
        await agent.services.mcp.switch_off("probe")
        assert "probe__add" not in agent.services.toolbox.names()
    results = [one["content"] for one in server.chats()[6]["messages"] if one["role"] == "tool"]
    assert "is unknown" in results[0] and results[1] == "2" and "does not run" in results[5]


async def test_a_projects_servers_start_only_with_consent(loaded: Loaded, server: Script) -> None:
    entry = {"command": sys.executable, "args": [str(PROBE)], "alwaysAllow": ["add"]}
    file = Path(loaded.workspace, ".mcp.json")
    _write(file, {"team": entry})
    server.script([{"text": "one"}, {"text": "two"}, {"text": "three"}])

    async def names_after_a_turn(*, trust: bool | None) -> tuple[list[str], list[Event]]:
        seen: list[Event] = []
        async with ConversationAgent(loaded, interactive=trust is not None) as agent:
            answering(agent, seen, trust=bool(trust))
            await (await agent.create_conversation()).send_message("Hello.")
            return agent.services.toolbox.names(), seen

    names, seen = await names_after_a_turn(trust=None)
    assert not any("__" in name for name in names)
    assert any(isinstance(event, Notice) and ".mcp.json" in event.text for event in seen)
    names, seen = await names_after_a_turn(trust=True)
    assert "team__add" in names
    (question,) = [event for event in seen if isinstance(event, TrustRequested)]
    assert question.files == [".mcp.json"] and str(PROBE) in question.text
    _write(file, {"team": {**entry, "env": {"A": "b"}}})
    names, seen = await names_after_a_turn(trust=False)
    assert not any("__" in name for name in names)
    assert [type(event) for event in seen].count(TrustRequested) == 1, "another text is asked about again"


def _write(file: Path, servers: dict[str, Any]) -> None:
    file.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")


def test_names_and_references() -> None:
    taken: set[str] = set()
    for tool in ("a b", "a.b", "x" * 200, "x" * 201):
        name = valid_name("my server", tool, taken)
        assert name.isascii() and " " not in name and "." not in name and len(name) <= NAME_CHARS
        assert name not in taken
        taken.add(name)
    assert expanded("Bearer ${TOKEN} ${OTHER:-none}", {"TOKEN": "t"}) == "Bearer t none"
    assert project_servers('{"mcpServers": {"a": {"url": "http://x", "disabled": true}}}')["a"].url == "http://x"
