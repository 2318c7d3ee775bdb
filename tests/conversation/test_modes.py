"""What the agent may do unasked: planning only reads, accepted edits do not ask, a change holds from the next call."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.graph import GraphTarget
from ragforge_tui.settings.schema import Loaded, Paths
from ragforge_tui.shared.errors import ToolError
from ragforge_tui.shared.events import ApprovalRequested, ApprovalResolved, ToolCallFinished
from ragforge_tui.shared.records import call_end
from ragforge_tui.shared.requests.work import Mode
from ragforge_tui.tools.registry import PreparedCall, RestrictedTools
from tests.conftest import EMBEDDED, ONE_BACKEND
from tests.support.model_script import Script


@pytest.fixture
def graph_target(embedded_paths: Paths) -> GraphTarget:
    """The embedded graph alone: no dialect can change what a mode allows."""
    return EMBEDDED


CREATE = {"name": "create_file", "arguments": {"path": "new.txt", "content": "x\n"}}
RUN = {"name": "run_command", "arguments": {"command": "touch made"}}
READ = {"name": "read_file", "arguments": {"path": "greeting.py"}}


@ONE_BACKEND
async def test_planning_allows_nothing_that_changes_and_keeps_the_prompt_cache(loaded: Loaded, server: Script) -> None:
    server.script([{"tool_calls": [READ, CREATE, RUN]}, {"text": "The plan."}, {"text": "Fine."}])
    async with ConversationAgent(loaded, approve_all=True) as agent:
        conversation = await agent.create_conversation()
        conversation.mode = "plan"
        answer = await conversation.send_message("change it")
        assert [call.success for call in answer.tool_calls] == [True, False, False]
        conversation.mode = "ask"
        await conversation.send_message("go on")
    first, second, third = server.chats()
    assert "not allowed while planning" in second["messages"][-1]["content"]
    assert "You are in planning mode" in first["messages"][-1]["content"]
    assert "ended planning mode" in third["messages"][-1]["content"]
    assert "ended planning mode" not in str(third["messages"][:-1])
    assert first["tools"] == third["tools"] and "run_command" in str(first["tools"])
    assert third["messages"][: len(second["messages"])] == second["messages"], "the requests only grow"
    assert not (Path(loaded.workspace) / "new.txt").exists()
    assert not (Path(loaded.workspace) / "made").exists()


@ONE_BACKEND
async def test_accepted_edits_run_unasked_but_commands_and_secrets_ask(loaded: Loaded, server: Script) -> None:
    secret = {"name": "create_file", "arguments": {"path": ".env", "content": "A=1\n"}}
    server.script([{"tool_calls": [CREATE, RUN, secret]}, {"text": "Done."}])
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        conversation.mode = "edits"
        seen = [event async for event in conversation.stream("do it")]
    assert [event.call.tool_name for event in seen if isinstance(event, ApprovalRequested)] == [
        "run_command",
        "create_file",
    ]
    assert (Path(loaded.workspace) / "new.txt").read_text(encoding="utf-8") == "x\n"
    assert not (Path(loaded.workspace) / ".env").exists()


@ONE_BACKEND
@pytest.mark.parametrize(
    ("before", "after", "told"), [("ask", "plan", "Planning mode is on"), ("plan", "ask", "ended")]
)
async def test_a_change_holds_from_the_next_call_on(
    loaded: Loaded, server: Script, before: Mode, after: Mode, told: str
) -> None:
    server.script([{"tool_calls": [READ, CREATE]}, {"text": "Done."}])
    async with ConversationAgent(loaded, approve_all=True) as agent:
        conversation = await agent.create_conversation()
        conversation.mode = before
        async for event in conversation.stream("do it"):
            if isinstance(event, ToolCallFinished) and event.call.tool_name == "read_file":
                conversation.mode = after
    last = server.chats()[-1]
    assert last["messages"][-1]["role"] == "user"
    assert told in last["messages"][-1]["content"]


@ONE_BACKEND
async def test_a_call_that_is_being_checked_when_planning_begins_is_refused(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    mode: Mode = "ask"

    async with ConversationAgent(loaded) as agent:
        prepare = agent.services.toolbox.prepare

        async def prepare_and_switch(name: str, arguments: str) -> PreparedCall:
            nonlocal mode
            prepared = await prepare(name, arguments)
            mode = "plan"
            return prepared

        monkeypatch.setattr(agent.services.toolbox, "prepare", prepare_and_switch)
        tools = RestrictedTools(agent.services.toolbox, None, "Nobody", lambda: mode, agent.services.approvals.judge)
        with pytest.raises(ToolError, match="not allowed while planning"):
            await tools.prepare("create_file", '{"path": "new.txt", "content": "x"}')


@ONE_BACKEND
async def test_a_yes_that_comes_after_planning_began_runs_nothing(loaded: Loaded, server: Script) -> None:
    server.script([{"tool_calls": [CREATE]}, {"text": "The plan."}])
    async with ConversationAgent(loaded, interactive=True) as agent:
        conversation = await agent.create_conversation()
        ended = None
        async for event in conversation.stream("do it"):
            if isinstance(event, ApprovalRequested):
                conversation.mode = "plan"
                agent.services.approvals.answer(event.approval_id, "once")
            if isinstance(event, ToolCallFinished):
                ended = event.call
    assert ended is not None and call_end(ended) == "refused"
    assert not (Path(loaded.workspace) / "new.txt").exists()
    told = [message["content"] for message in server.chats()[-1]["messages"] if message["role"] == "tool"]
    assert "not allowed while planning" in told[-1]


@ONE_BACKEND
async def test_accepting_edits_lets_the_write_through_that_waits(loaded: Loaded, server: Script) -> None:
    server.script([{"tool_calls": [CREATE, RUN]}, {"text": "Done."}])
    asked: list[str] = []
    decisions: list[str] = []
    async with ConversationAgent(loaded, interactive=True) as agent:
        conversation = await agent.create_conversation()
        other = await agent.create_conversation()
        async for event in conversation.stream("do it"):
            if isinstance(event, ApprovalResolved):
                decisions.append(event.decision)
            if isinstance(event, ApprovalRequested):
                asked.append(event.kind)
                other.mode = "edits"
                await asyncio.sleep(0)
                assert len(decisions) < len(asked)
                conversation.mode = "edits"
                if event.kind == "command":  # which accepted edits do not include
                    agent.services.approvals.answer(event.approval_id, "no")
    assert (asked, decisions) == (["write", "command"], ["once", "no"])
    assert (Path(loaded.workspace) / "new.txt").exists()
    assert not (Path(loaded.workspace) / "made").exists()
