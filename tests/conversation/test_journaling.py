"""While the graph is away the chat goes on, and what was said is written in once when it is back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.conversation.storage.graph_connection import GraphConnection
from ragforge_tui.conversation.storage.recorder import Recorder
from ragforge_tui.graph import Graph, Journal, Store
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.errors import ErrorInfo
from ragforge_tui.shared.events import GraphChanged, TurnsMoved
from ragforge_tui.shared.records import Conversation, Message, now
from tests.support.agents import contents
from tests.support.model_script import Script
from tests.support.unreachable_graph import Away, with_graph
from tests.support.waiting import until


def without_graph(loaded: Loaded) -> Loaded:
    """The same settings with a graph at a port where nobody listens."""
    return with_graph(loaded, "bolt://127.0.0.1:9")


@pytest.fixture
async def away(loaded: Loaded, tmp_path: Path) -> AsyncIterator[Away]:
    """The graph of the test, away until it is opened."""
    made = Away(loaded, tmp_path)
    yield made
    await made.shut()


async def test_turns_go_to_the_journal_and_from_there_into_the_graph(away: Away, server: Script) -> None:
    write = {"name": "read_file", "arguments": {"path": "greeting.py"}}
    server.script([{"text": "I look.", "tool_calls": [write]}, {"text": "It greets."}, {"text": "Yes, again."}])
    async with ConversationAgent(away.gone) as agent:
        with agent.subscribe() as events:
            conversation = await agent.create_conversation()
            answer = await conversation.send_message("What does it do?")
            assert (answer.turn_index, answer.content) == (1, "It greets.")
            assert (await conversation.send_message("Really?")).turn_index == 2
            states = []
            while not events.empty():
                event = events.get_nowait()
                if isinstance(event, GraphChanged):
                    states.append(event)
        assert states[-1].phase == "unreachable"
        assert states[-1].journaled > 0
        assert states[-1].error is not None
    sent = contents(server.chats()[-1], "user", "assistant")
    assert sent == ["What does it do?", "I look.\n\nIt greets.", "Really?"]

    await away.open()
    async with ConversationAgent(away.back) as back:
        resumed = await back.load_conversation(conversation.record.uuid)
        turns = await resumed.get_history()
        assert resumed.record.title == "What does it do?"
        assert [[m.content for m in turn.messages] for turn in turns] == [
            ["What does it do?", "I look.", "It greets."],
            ["Really?", "Yes, again."],
        ]
        assert [m.state for turn in turns for m in turn.messages] == ["complete"] * 5
        (call,) = turns[0].messages[1].tool_calls
        assert call.success is True
        assert call.result is not None
        # The words of the answer are looked through soon after, in the background.
        store = await back.store()
        hits = await until(lambda: store.search.turns("again"))
        assert [hit.turn_index for hit in hits] == [2]
    async with ConversationAgent(away.back) as again:
        assert len(await (await again.load_conversation(conversation.record.uuid)).get_history()) == 2


async def test_drained_turns_are_found_from_a_conversation_opened_read_only(
    away: Away, server: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script([{"text": "Yes, again."}])
    async with ConversationAgent(away.gone) as agent:
        conversation = await agent.create_conversation()
        await conversation.send_message("Really?")
    await away.open()
    opened = threading.Event()
    monkeypatch.setattr(Recorder, "left_behind", lambda self: [] if opened.wait(60) else ["not opened"])
    async with ConversationAgent(away.back) as back:
        await back.load_conversation(conversation.record.uuid)
        opened.set()
        store = await back.store()
        await until(lambda: store.search.turns("again"))


async def test_a_wrong_address_is_reported_in_seconds_and_the_chat_stays_usable(loaded: Loaded, server: Script) -> None:
    server.script([{"text": "still here"}])
    async with ConversationAgent(without_graph(loaded)) as agent, asyncio.timeout(60):
        conversation = await agent.create_conversation()
        assert (await conversation.send_message("hello")).content == "still here"
        error = agent.graph_state.error
        assert error is not None
        assert "127.0.0.1:9" in error.what
        assert error.todo


class SlowJournal(Journal):
    """A journal that is written to while it is drained."""

    def __init__(self, folder: Path, during: Callable[[], Awaitable[object]]) -> None:
        super().__init__(folder, "a")
        self._during = [during]
        self.drained = 0

    async def drain(self, store: Store) -> int:
        if self._during:
            await self._during.pop()()
        self.drained += 1
        return await super().drain(store)


async def test_records_that_arrive_during_a_drain_are_drained_too(graph: Graph, tmp_path: Path) -> None:
    async def another() -> None:
        await recorder.begin_turn(question("two", "second"))

    journal = SlowJournal(tmp_path / "journal", another)
    recorder = Recorder(journal)
    store = Store(graph)
    await store.conversations.create(Conversation(uuid="c" * 8, created_at=now(), updated_at=now()))
    await recorder.begin_turn(question("one", "first"))
    await recorder.drain(store)
    assert journal.drained >= 2
    assert journal.pending() == 0
    turns = await store.turns.between("c" * 8, start=1, end=3)
    assert [turn.messages[0].content for turn in turns] == ["first", "second"]


def question(uuid: str, text: str) -> Message:
    return Message(uuid=uuid, conversation_id="c" * 8, role="user", content=text, timestamp=now())


async def test_a_running_turn_moves_with_its_answer_when_another_program_was_first(
    loaded: Loaded, server: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    reachable = asyncio.Event()
    reachable.set()
    opened = GraphConnection._open

    async def held(connection: GraphConnection) -> None:
        await reachable.wait()
        await opened(connection)

    monkeypatch.setattr(GraphConnection, "_open", held)
    read = {"name": "read_file", "arguments": {"path": "greeting.py"}}
    server.script(
        [
            {"text": "I look.", "tool_calls": [read], "match": "from A"},
            {"text": "answer to A", "match": "from A", "gate": "back"},
            {"text": "answer to B", "match": "from B"},
            {"text": "later", "match": "and then"},
        ]
    )
    async with ConversationAgent(loaded) as here, ConversationAgent(loaded) as there:
        conversation = await here.create_conversation("t")
        other = await there.load_conversation(conversation.record.uuid)
        reachable.clear()
        here.services.graph.lost(ErrorInfo(kind="graph_unreachable", what="The graph is away."))
        with here.subscribe() as events:
            sent = asyncio.create_task(conversation.send_message("from A"))
            await until(lambda: here.services.recorder.journaling and len(server.chats()) == 2)
            assert conversation.active_turn == 1, "a guess"
            assert (await other.send_message("from B")).turn_index == 1
            reachable.set()
            await until(lambda: not here.services.recorder.journaling)
            server.release("back")
            answer = await sent
            assert (answer.content, answer.turn_index) == ("answer to A", 2)
            assert answer.context_used is not None
            seen = [events.get_nowait() for _ in range(events.qsize())]
        assert [event.moved for event in seen if isinstance(event, TurnsMoved)] == [{1: 2}]
        turns = await conversation.get_history()
        assert [[m.content for m in turn.messages] for turn in turns] == [
            ["from B", "answer to B"],
            ["from A", "I look.", "answer to A"],
        ]
        assert (await conversation.send_message("and then")).turn_index == 3
        said = " ".join(contents(server.chats()[-1], "user", "assistant"))
        assert said.index("answer to B") < said.index("answer to A")
