"""The first message of a new conversation does not wait long for a graph that starts, and nothing of it is lost."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ragforge_tui.conversation import Conversation, ConversationAgent, current_model
from ragforge_tui.conversation.storage import token_counts
from ragforge_tui.conversation.storage.recorder import Recorder
from ragforge_tui.engine.handlers import EngineContext, answer
from ragforge_tui.graph import Graph, JournalFolders
from ragforge_tui.llm import ModelChoice
from ragforge_tui.memory.retrieval.recall import STILL_STARTING
from ragforge_tui.settings.schema import ExportSettings, Loaded
from ragforge_tui.shared.errors import GraphError, RagforgeError
from ragforge_tui.shared.events import Event, GraphChanged, Notice, TurnCompleted
from ragforge_tui.shared.limits import LIMITS
from ragforge_tui.shared.requests.memory import FetchSent
from tests.support.agents import with_memory
from tests.support.model_script import Script
from tests.support.starting_graph import StartingGraph, starting_graph
from tests.support.waiting import until

REFUSED = GraphError("The graph holds data of another program.", todo="Choose another.", kind="graph_foreign")


def all_events(queue: asyncio.Queue[Event]) -> list[Event]:
    found = []
    while not queue.empty():
        found.append(queue.get_nowait())
    return found


async def until_phase(agent: ConversationAgent, phase: str) -> None:
    await until(lambda: agent.graph_state.phase == phase, phase)


async def turns_of(loaded: Loaded, conversation: Conversation) -> list[list[str]]:
    """The texts of the messages by turn, as another process reads them."""
    async with ConversationAgent(loaded) as reader:
        history = await (await reader.load_conversation(conversation.id)).get_history()
    return [[message.content for message in turn.messages] for turn in history]


def waiting_in(loaded: Loaded) -> int:
    return sum(info.records for info in JournalFolders(Path(loaded.paths.state, "journal")).waiting())


@asynccontextmanager
async def starting_chat(loaded: Loaded) -> AsyncIterator[tuple[StartingGraph, ConversationAgent, Conversation]]:
    """A new conversation of a chat whose graph is still starting."""
    with starting_graph() as graph:
        async with ConversationAgent(loaded, interactive=True) as agent:
            yield graph, agent, await agent.create_conversation()


@pytest.mark.parametrize("known", [True, False])
async def test_the_first_message_is_answered_while_the_graph_starts(
    loaded: Loaded, server: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    monkeypatch.setattr(Recorder, "knows_graph", property(lambda _: known))
    missing = [STILL_STARTING] if known else []
    loaded = with_memory(loaded, export=ExportSettings(enabled=True, path=str(tmp_path / "exports")))
    read = {"name": "read_file", "arguments": {"path": "greeting.py"}}
    server.script([{"text": "I look.", "tool_calls": [read]}, {"text": "It greets."}, {"text": "A dolphin."}])
    with starting_graph() as graph:
        async with ConversationAgent(loaded, interactive=True) as agent, asyncio.timeout(120):
            with agent.subscribe() as queue:
                conversation = await agent.create_conversation()
                first = await conversation.send_message("What does greeting.py do?")
                assert (first.turn_index, first.content) == (1, "It greets.")
                assert first.context_used is not None
                assert first.context_used.missing == missing
                assert (STILL_STARTING in str(server.chats()[-1]["messages"])) == known, "the model is told"
                events = all_events(queue)
            states = [event for event in events if isinstance(event, GraphChanged)]
            assert {state.phase for state in states} == {"starting"}
            assert [state.error for state in states if state.error] == []
            told = [event.text for event in events if isinstance(event, Notice)]
            assert told == [f"{sentence} Ask again to search them." for sentence in missing]
            assert waiting_in(loaded) > 0

            graph.finish()
            await agent.store()
            assert agent.graph_state.journaled == waiting_in(loaded) == 0
            second = await conversation.send_message("Which animal swims?")
            assert second.turn_index == 2
            assert second.context_used is not None
            assert second.context_used.missing == []
            assert (await conversation.search_history("dolphin"))[0].turn.turn_index == 2
            assert [file.path for file in await conversation.get_recent_files()] == ["greeting.py"]
            looked_up = await answer(
                EngineContext.of(agent, loaded), FetchSent(conversation_id=conversation.id, turn_index=1)
            )
            assert (looked_up.record.verified, looked_up.record.missing) == (True, missing)
            branch = await conversation.branch(turn=1)
            assert len(await branch.get_history()) == 1
            assert await conversation.retry() == 2
            await conversation.wait_idle()
        assert "A dolphin." in (tmp_path / "exports" / f"conv-{conversation.id}.json").read_text("utf-8")
    assert [texts[0] for texts in await turns_of(loaded, conversation)] == [
        "What does greeting.py do?",
        "Which animal swims?",
    ]
    assert conversation.title == "What does greeting.py do?"


async def test_a_message_that_runs_while_the_graph_becomes_ready_is_stored_once(loaded: Loaded, server: Script) -> None:
    server.script([{"text": "word by word " * 40, "duration": 3.0}])
    async with starting_chat(loaded) as (graph, agent, conversation):
        running = asyncio.create_task(conversation.send_message("Talk."))
        await until(server.chats)
        graph.finish()
        await until_phase(agent, "ready")
        assert conversation.busy
        await running
    assert await turns_of(loaded, conversation) == [["Talk.", "word by word " * 40]]
    assert waiting_in(loaded) == 0


async def test_a_graph_that_starts_soon_is_waited_for(loaded: Loaded, server: Script) -> None:
    server.script([{"text": "answer"}])
    with starting_graph(wait=60) as graph:
        async with ConversationAgent(loaded, interactive=True) as agent:
            created = asyncio.create_task(agent.create_conversation())
            await asyncio.sleep(0.2)
            assert not created.done()
            graph.finish()
            first = await (await created).send_message("hello")
            assert waiting_in(loaded) == 0
            assert first.context_used is not None
            assert first.context_used.missing == []


async def test_a_program_waits_for_the_memory(loaded: Loaded, server: Script) -> None:
    server.script([{"text": "answer"}])
    with starting_graph() as graph:
        async with ConversationAgent(loaded) as agent:
            created = asyncio.create_task(agent.create_conversation())
            await asyncio.sleep(0.2)
            assert not created.done()
            graph.finish()
            first = await (await created).send_message("hello")
            assert first.context_used is not None
            assert first.context_used.missing == []


async def test_a_refused_graph_keeps_the_first_message_in_the_journal(loaded: Loaded, server: Script) -> None:
    server.script([{"text": "answer"}, {"text": "another"}])
    async with starting_chat(loaded) as (graph, agent, conversation):
        await conversation.send_message("said while it started")
        graph.finish(REFUSED)
        await until_phase(agent, "refused")
        assert (await conversation.send_message("said to nobody")).content == "another"
        assert agent.graph_state.error == REFUSED.info
        assert agent.graph_state.journaled == waiting_in(loaded) > 0
    assert [texts[0] for texts in await turns_of(loaded, conversation)] == ["said while it started", "said to nobody"]
    assert waiting_in(loaded) == 0


async def test_a_graph_that_was_replaced_gets_what_was_said_while_it_started(
    loaded: Loaded, graph: Graph, server: Script
) -> None:
    server.script([{"text": "answer"}])
    async with ConversationAgent(loaded) as agent:
        address = agent.services.graph.address
    folders = JournalFolders(Path(loaded.paths.state, "journal"))
    folders.remember(address, uuid.uuid4().hex)
    async with starting_chat(loaded) as (start, agent, conversation):
        await conversation.send_message("for whichever graph answers")
        start.finish()
        await until_phase(agent, "ready")
    assert await turns_of(loaded, conversation) == [["for whichever graph answers", "answer"]]
    assert folders.remembered(address) == graph.identity
    assert folders.waiting() == []


async def test_a_full_disk_returns_the_message_and_the_graph_takes_it_later(
    loaded: Loaded, server: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    server.script([{"text": "answer"}])
    async with starting_chat(loaded) as (graph, agent, conversation):
        with monkeypatch.context() as broken:
            broken.setattr(os, "fsync", full)
            with pytest.raises(RagforgeError, match=r"still starting.*disk is full"):
                await conversation.submit("hello", "the-id")
        graph.finish()
        await until_phase(agent, "ready")
        with agent.subscribe() as queue:
            assert await conversation.submit("hello", "the-id") == 1
            await conversation.wait_idle()
            assert any(isinstance(event, TurnCompleted) for event in all_events(queue))
    assert await turns_of(loaded, conversation) == [["hello", "answer"]]


async def test_tokens_counted_after_the_journal_was_drained_are_stored(
    loaded: Loaded, server: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = threading.Event()

    def slow(text: str) -> int:
        counting.wait(60)
        return 77 if text == "hello" else 1

    server.script([{"text": "answer"}])
    monkeypatch.setattr(token_counts, "count_tokens", slow)
    async with starting_chat(loaded) as (graph, agent, conversation):
        await conversation.submit("hello")
        graph.finish()
        await until_phase(agent, "ready")
        counting.set()
        await conversation.wait_idle()
        await agent.services.recorder.settle()
        (turn,) = await conversation.get_history()
        assert (turn.messages[0].content, turn.messages[0].token_count) == ("hello", 77)
    assert waiting_in(loaded) == 0


async def test_tokens_counted_while_the_graph_starts_are_stored(
    loaded: Loaded, server: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script([{"text": "answer"}])
    monkeypatch.setattr(LIMITS, "token_count", 0.0)
    async with starting_chat(loaded) as (graph, agent, conversation):
        await conversation.send_message("hello, hello, hello")
        await agent.services.recorder.settle()
        graph.finish()
        await until_phase(agent, "ready")
        (turn,) = await conversation.get_history()
        assert turn.messages[0].token_count == token_counts.count_tokens("hello, hello, hello")


async def test_background_work_waits_for_the_models_client(
    loaded: Loaded, server: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    loading = asyncio.Event()

    async def load(_: ModelChoice) -> None:
        await loading.wait()

    server.script([{"text": "answer"}])
    monkeypatch.setattr(current_model, "check_provider", load)
    async with ConversationAgent(loaded, interactive=True) as agent:
        await agent.store()
        conversation = await agent.create_conversation()
        asked = asyncio.create_task(conversation.send_message("hello"))
        background = asyncio.create_task(agent.services.memory.pace.clear())
        await asyncio.sleep(0.2)
        assert not background.done()
        loading.set()
        assert (await asked).content == "answer"
        await background


async def test_background_work_starts_without_a_model(
    loaded: Loaded, server: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: ModelChoice) -> None:
        raise RagforgeError("The client cannot be imported.")

    monkeypatch.setattr(current_model, "check_provider", fail)
    async with ConversationAgent(loaded, interactive=True) as agent, asyncio.timeout(60):
        while agent.model_state.phase != "failed":
            await asyncio.sleep(0.02)
        await agent.services.memory.pace.clear()
