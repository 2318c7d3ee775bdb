"""The agent without async: results, streams, interruption, closing, and the event loops it must not block."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ragforge_tui.conversation.loop_thread import LoopThread
from ragforge_tui.conversation.sync import SyncConversationAgent
from ragforge_tui.graph import GraphTarget
from ragforge_tui.settings.schema import Loaded, Paths
from ragforge_tui.shared.errors import NotFoundError, RagforgeError
from ragforge_tui.shared.events import TextDelta, TurnCompleted
from ragforge_tui.shared.past_records import PastChoice
from ragforge_tui.shared.records import now
from tests.conftest import EMBEDDED
from tests.support.agents import with_code


def echo(messages: list[dict[str, Any]]) -> str:
    return f"Noted: {str(messages[-1]['content']).splitlines()[-1]}"


@pytest.fixture
def graph_target(embedded_paths: Paths) -> GraphTarget:
    """The embedded graph alone: what is stored is tested with the async agent."""
    return EMBEDDED


async def test_every_method_gives_its_result(loaded: Loaded) -> None:
    def use() -> None:
        with SyncConversationAgent(loaded, model=echo) as agent:
            conversation = agent.create_conversation("Notes", tags=["a"])
            assert conversation.send_message("One").content == "Noted: One"
            events = list(conversation.stream("Two"))
            assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Noted: Two"
            assert isinstance(events[-1], TurnCompleted)
            assert [turn.messages[0].content for turn in conversation.get_history()] == ["One", "Two"]
            assert conversation.get_tool_calls() == [] and conversation.get_recent_files() == []
            assert conversation.search_history("Two", limit=1)[0].turn.turn_index == 2
            assert conversation.build_context("Three", recent_messages=1).sections[0].name == "system"
            assert conversation.summarize() == conversation.record.summary
            branch = conversation.branch(turn=1, title="Branch")
            assert (branch.title, len(branch.get_history())) == ("Branch", 1)
            branch.archive()
            branch.delete()
            assert agent.restore_conversation(branch.id[:8]).status == "active"
            assert [record.title for record in agent.list_conversations(tags=["a"], order="created")] == [
                "Branch",
                "Notes",
            ]
            assert agent.load_conversation(conversation.id[:8]).id == conversation.id
            assert agent.search("Noted", limit=1)[0].title == "Notes"
            assert not agent.import_conversation(conversation.export()).created
            assert agent.import_conversation(conversation.get_full_data()).conversation.title == "Notes"
            assert not agent.import_conversation(json.loads(conversation.export())).created
            agent.initialize()
            assert conversation.get_uuid() == conversation.id and conversation.get_recently_accessed_files() == []
            first = conversation.get_history()[0].messages[0].uuid
            assert len(conversation.branch(from_message_id=first).get_history()) == 1
            assert agent.past.recall("What is two?", PastChoice(status="any"), limit=1).quotes[0].turn_index == 2
            assert {work.title for work in agent.past.standup(now() - timedelta(hours=1))} >= {"Notes"}
            assert agent.past.insights.make(most=5).made >= 1
            assert agent.past.insights.entries(PastChoice(refs=[conversation.id]))[0].title == "Notes"
            assert agent.past.findings() == []
            assert agent.past.usage("model").rows[0].requests >= 2
            assert agent.set_model("offline").name == "offline"
            agent.archive_conversation(branch.id)
            agent.delete_conversation(branch.id, immediately=True)
            with pytest.raises(NotFoundError):
                agent.load_conversation(branch.id)

    await asyncio.to_thread(use)


async def test_code_is_asked_without_async(loaded: Loaded) -> None:
    def use() -> None:
        with SyncConversationAgent(with_code(loaded), model=echo) as agent:
            assert agent.index_code() == ""
            (scope,) = [one for one in agent.code.search("greet", kind="function") if one.name == "greet"]
            assert [one.uuid for one in agent.code.named("greet")] == [scope.uuid]
            assert scope.uuid in [one.uuid for one in agent.code.in_file("greeting.py")]
            assert "hello" in agent.code.code(scope).text and agent.code.view(scope).callers == []
            assert agent.code.dependents(scope) == [] and agent.code.dependencies(scope) == ([], [])
            assert any(hit.kind == "code" for hit in agent.code.brain_search("greet"))
        with SyncConversationAgent(loaded, model=echo) as without, pytest.raises(RagforgeError, match="not indexed"):
            without.code.search("greet")

    await asyncio.to_thread(use)


async def test_it_works_next_to_a_running_loop_and_ends_with_its_thread(loaded: Loaded) -> None:
    """As in a notebook: the caller's own loop runs, and stands still while a call waits."""
    agent = SyncConversationAgent(loaded, model=echo)
    conversation = agent.create_conversation()
    assert conversation.send_message("Hello").content == "Noted: Hello"
    agent.close()
    agent.close()
    with pytest.raises(RuntimeError, match="closed"):
        conversation.send_message("Again")
    assert "ragforge-agent" not in {thread.name for thread in threading.enumerate()}


async def test_leaving_a_stream_early_stops_the_turn(loaded: Loaded) -> None:
    async def endless(messages: list[dict[str, Any]]) -> Any:
        while True:
            yield "more "
            await asyncio.sleep(0)

    with SyncConversationAgent(loaded, model=endless) as agent:
        conversation = agent.create_conversation("Endless")
        for event in conversation.stream("Go on."):
            if isinstance(event, TextDelta):
                break
        (turn,) = conversation.get_history()
    assert turn.messages[-1].state == "interrupted"


async def test_ctrl_c_stops_the_turn_and_stores_it(loaded: Loaded) -> None:
    async def stuck(messages: list[dict[str, Any]]) -> str:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()
        return ""

    # pytest's loop, or its runner, would take the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with SyncConversationAgent(loaded, model=stuck) as agent:
            conversation = agent.create_conversation("Stuck")
            with pytest.raises(KeyboardInterrupt):
                conversation.send_message("Wait.")
            (turn,) = conversation.get_history()
    finally:
        signal.signal(signal.SIGINT, before)
    assert turn.messages[-1].state == "interrupted"


async def test_an_async_tool_cannot_wait_for_its_own_agent(loaded: Loaded) -> None:
    agents: list[SyncConversationAgent] = []

    async def look_up(text: str) -> str:
        return agents[0].search(text)[0].snippet

    def model(messages: list[dict[str, Any]]) -> dict[str, Any] | str:
        if messages[-1]["role"] == "tool":
            return str(messages[-1]["content"])
        return {"tool_calls": [{"function": {"name": "look_up", "arguments": {"text": "x"}}}]}

    with SyncConversationAgent(loaded, model=model, tools=[look_up]) as agent:
        agents.append(agent)
        answer = agent.create_conversation("Own").send_message("Look.")
    assert "use ConversationAgent there" in answer.content


FORGETFUL = """
from ragforge_tui import SyncConversationAgent

agent = SyncConversationAgent(model=lambda messages: "Still here.")
print(agent.create_conversation("Forgotten").send_message("Hello").content)
"""


@pytest.mark.slow
async def test_an_agent_that_is_not_closed_is_closed_at_the_end_of_the_program(loaded: Loaded) -> None:
    environment = {**os.environ, "RAGFORGE_HOME": str(Path(loaded.paths.data).parent)}
    program = [sys.executable, "-c", FORGETFUL]
    run = await asyncio.to_thread(
        subprocess.run, program, env=environment, cwd=loaded.workspace, capture_output=True, text=True, timeout=300
    )
    assert (run.returncode, run.stdout) == (0, "Still here.\n"), run.stderr


def test_a_thread_ends_when_the_agent_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="settings must be"):
        SyncConversationAgent(3)  # type: ignore[arg-type]
    assert "ragforge-agent" not in {thread.name for thread in threading.enumerate()}


def test_errors_are_raised_to_the_caller() -> None:
    async def broken() -> None:
        raise ValueError("broken")

    thread = LoopThread()
    try:
        with pytest.raises(ValueError, match="broken"):
            thread.run(broken())
    finally:
        thread.close()
