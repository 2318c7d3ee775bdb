"""Two engines on one graph with the same conversation open: each says what the other does, once."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.conversation.limits import CONVERSATION
from ragforge_tui.engine import connect_in_process, other_processes
from ragforge_tui.engine.in_process import InProcessEngine
from ragforge_tui.engine.other_processes import ConversationWatcher
from ragforge_tui.graph import Graph, Store
from ragforge_tui.graph.store.turns import Turns
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.errors import GraphError
from ragforge_tui.shared.events import (
    ConversationChanged,
    Event,
    Notice,
    SummaryCreated,
    TurnElsewhere,
    TurnEnd,
    TurnStarted,
)
from ragforge_tui.shared.records import Summary, Turn, now
from ragforge_tui.shared.requests.sessions import (
    ArchiveConversation,
    DeleteConversation,
    LeaveConversation,
    RestoreConversation,
    UpdateConversation,
)
from ragforge_tui.shared.requests.turns import CreateConversation, FetchTurns, OpenConversation, RetryTurn, SendMessage
from tests.support.openai_server import OpenAIServer
from tests.support.waiting import until

POLL_SECONDS = 0.1
SILENT_SECONDS = 5 * POLL_SECONDS
"""Time in which what must not be reported would have been: several polls."""
_looks: WeakKeyDictionary[ConversationAgent, int] = WeakKeyDictionary()
_looking_away: WeakSet[ConversationAgent] = WeakSet()
_polling: WeakSet[other_processes._Watch] = WeakSet()
"""Polls that have begun and not ended."""


@pytest.fixture(autouse=True)
def counted_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Poll often, and count the polls that came to their end."""
    poll = other_processes._Watch._poll

    async def counted(self: other_processes._Watch, store: Store) -> None:
        if self._agent in _looking_away:
            return
        _polling.add(self)
        try:
            await poll(self, store)
        finally:
            _polling.discard(self)
        _looks[self._agent] = _looks.get(self._agent, 0) + 1

    monkeypatch.setattr(other_processes._Watch, "_poll", counted)
    monkeypatch.setattr(CONVERSATION, "look", POLL_SECONDS)


class Terminal:
    """An engine and everything it said."""

    def __init__(self, engine: InProcessEngine) -> None:
        self.engine = engine
        self.said: list[Event] = []

    async def listen(self) -> None:
        async for event in self.engine.events():
            self.said.append(event)

    async def send(self, conversation_id: str, text: str) -> None:
        await self.engine.request(SendMessage(conversation_id=conversation_id, message_id=uuid.uuid4().hex, text=text))

    async def looked(self) -> None:
        """Wait for a poll that begins after this call."""
        agent = self.engine.agent
        before = _looks.get(agent, 0)
        await until(lambda: _looks.get(agent, 0) >= before + 2)

    async def looked_last(self) -> None:
        """Wait for the end of a poll that may have begun before this call."""
        await asyncio.sleep(2 * POLL_SECONDS)
        await until(lambda: all(watch._agent is not self.engine.agent for watch in _polling))

    def elsewhere(self) -> list[TurnElsewhere]:
        return [event for event in self.said if isinstance(event, TurnElsewhere)]

    def ended(self) -> int:
        return sum(isinstance(event, TurnEnd) for event in self.said)


@asynccontextmanager
async def terminal(loaded: Loaded) -> AsyncIterator[Terminal]:
    engine = await connect_in_process(loaded, interactive=True)
    there = Terminal(engine)
    listening = asyncio.create_task(there.listen())
    try:
        yield there
    finally:
        await engine.close()
        await listening


async def test_turns_of_the_other_stream_in_and_title_and_summaries_follow(
    loaded: Loaded, server: OpenAIServer, graph: Graph
) -> None:
    server.script([{"text": "short"}, {"text": "words " * 60, "delay": 0.05}, *[{"text": "more"}] * 9])
    async with terminal(loaded) as one, terminal(loaded) as two:
        uuid_ = (await one.engine.request(CreateConversation())).conversation.uuid
        await one.send(uuid_, "first")
        await until(one.ended)
        await two.engine.request(OpenConversation(ref=uuid_))
        await one.send(uuid_, "second")
        await until(lambda: two.elsewhere() and not two.elsewhere()[-1].active)
        told = two.elsewhere()
        assert {event.turn_index for event in told} == {2}
        lengths = [len(event.turn.messages[-1].content) for event in told if len(event.turn.messages) > 1]
        assert len([event for event in told if event.active]) >= 1 and lengths == sorted(lengths)
        assert told[-1].turn.messages[-1].content == ("words " * 60)
        await one.engine.request(UpdateConversation(conversation_id=uuid_, title="Their title"))
        await until(
            lambda: [
                e for e in two.said if isinstance(e, ConversationChanged) and e.conversation.title == "Their title"
            ]
        )
        made = Summary(
            uuid="s1",
            conversation_id=uuid_,
            level=1,
            conversation_summary="What was said.",
            start_turn_index=1,
            end_turn_index=2,
            turn_count=2,
            created_at=now(),
        )
        await Store(graph).summaries.store(made, [])
        await until(lambda: [e for e in two.said if isinstance(e, SummaryCreated) and e.summary.uuid == "s1"])
        assert not one.elsewhere()


async def test_both_send_at_once_and_each_turn_is_there_once(loaded: Loaded, server: OpenAIServer) -> None:
    server.script([{"text": "start"}, *[{"text": "an answer", "delay": 0.01}] * 9])
    async with terminal(loaded) as one, terminal(loaded) as two:
        uuid_ = (await one.engine.request(CreateConversation())).conversation.uuid
        await one.send(uuid_, "first")
        await until(one.ended)
        await two.engine.request(OpenConversation(ref=uuid_))
        await asyncio.gather(one.send(uuid_, "from one"), two.send(uuid_, "from two"))
        for there in (one, two):
            await until(lambda there=there: there.elsewhere() and not there.elsewhere()[-1].active)
        page = await one.engine.request(FetchTurns(conversation_id=uuid_, start=1, end=10))
        assert [turn.turn_index for turn in page.turns] == [1, 2, 3]
        for there in (one, two):
            own = {event.turn_index for event in there.said if isinstance(event, TurnStarted)} - {1}
            assert len(own) == 1
            assert {event.turn_index for event in there.elsewhere()} == {2, 3} - own


async def test_a_turn_begun_here_and_asked_for_again_elsewhere_is_followed(
    loaded: Loaded, server: OpenAIServer
) -> None:
    server.script([{"text": "first try"}, {"text": "second try " * 20, "delay": 0.05}, *[{"text": "more"}] * 9])
    async with terminal(loaded) as one, terminal(loaded) as two:
        uuid_ = (await one.engine.request(CreateConversation())).conversation.uuid
        await one.send(uuid_, "first")
        await until(one.ended)
        await two.engine.request(OpenConversation(ref=uuid_))
        await one.looked()
        assert not one.elsewhere(), "what was said here is not told"
        await two.engine.request(RetryTurn(conversation_id=uuid_))
        await until(lambda: one.elsewhere() and not one.elsewhere()[-1].active)
        assert {event.turn_index for event in one.elsewhere()} == {1}
        assert one.elsewhere()[-1].turn.messages[-1].content == "second try " * 20
        assert any(event.active for event in one.elsewhere())
        told = len(one.elsewhere())
        await one.send(uuid_, "second")
        await until(lambda: one.ended() == 2)
        await one.looked()
        assert len(one.elsewhere()) == told, "an answer that was told is not told again"


async def test_a_retry_and_the_turn_after_it_are_both_reported(loaded: Loaded, server: OpenAIServer) -> None:
    server.script([{"text": "first try"}, {"text": "second try"}, *[{"text": "more"}] * 9])
    async with terminal(loaded) as one, terminal(loaded) as two:
        uuid_ = (await one.engine.request(CreateConversation())).conversation.uuid
        await one.send(uuid_, "first")
        await until(one.ended)
        await two.engine.request(OpenConversation(ref=uuid_))
        await one.looked()
        await two.engine.request(RetryTurn(conversation_id=uuid_))
        await until(two.ended)
        await two.send(uuid_, "and then")
        await until(lambda: two.ended() == 2)
        await until(lambda: {event.turn_index for event in one.elsewhere()} == {1, 2})


async def test_changes_to_the_conversation_in_other_processes_are_reported(
    loaded: Loaded, server: OpenAIServer
) -> None:
    server.script([{"text": "an answer"}] * 9)
    async with terminal(loaded) as one, terminal(loaded) as two:
        uuid_ = (await one.engine.request(CreateConversation())).conversation.uuid
        await one.send(uuid_, "first")
        await until(one.ended)
        await one.looked()

        def said(words: str) -> bool:
            return any(isinstance(event, Notice) and words in event.text for event in one.said)

        await two.engine.request(ArchiveConversation(conversation_id=uuid_))
        await until(lambda: said("Another terminal archived"))
        await one.engine.request(ArchiveConversation(conversation_id=uuid_, archived=False))
        await two.engine.request(DeleteConversation(conversation_id=uuid_))
        await until(lambda: said("/undo-delete restores it"))
        await one.engine.request(RestoreConversation(conversation_id=uuid_))
        await two.engine.request(DeleteConversation(conversation_id=uuid_, immediately=True))
        await until(lambda: said("permanently"))
        assert not said("Another terminal restored"), "changes by this process are not reported"


@pytest.mark.parametrize("immediately", [False, True])
async def test_a_conversation_that_is_deleted_here_was_not_deleted_in_another_terminal(
    loaded: Loaded, server: OpenAIServer, immediately: bool
) -> None:
    server.script([{"text": "an answer"}] * 9)
    async with terminal(loaded) as one:
        uuid_ = (await one.engine.request(CreateConversation())).conversation.uuid
        await one.send(uuid_, "first")
        await until(one.ended)
        await one.looked()
        await one.engine.request(DeleteConversation(conversation_id=uuid_, immediately=immediately))
        await asyncio.sleep(SILENT_SECONDS)
        assert not [event.text for event in one.said if isinstance(event, Notice) and "terminal" in event.text]


async def test_nothing_is_asked_once_no_conversation_is_looked_at(loaded: Loaded, server: OpenAIServer) -> None:
    server.script([{"text": "an answer"}] * 9)
    async with terminal(loaded) as one, terminal(loaded) as two:
        uuid_ = (await one.engine.request(CreateConversation())).conversation.uuid
        await one.send(uuid_, "first")
        await until(one.ended)
        await two.engine.request(OpenConversation(ref=uuid_))
        await two.engine.request(LeaveConversation())
        await one.send(uuid_, "second")
        await until(lambda: one.ended() == 2)
        await asyncio.sleep(SILENT_SECONDS)
        assert not two.elsewhere()


async def test_a_turn_whose_reading_failed_is_reported_at_the_next_look(
    loaded: Loaded, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script([{"text": "an answer"}] * 9)
    async with terminal(loaded) as one, terminal(loaded) as two:
        uuid_ = (await one.engine.request(CreateConversation())).conversation.uuid
        await one.send(uuid_, "first")
        await until(one.ended)
        await two.engine.request(OpenConversation(ref=uuid_))
        _looking_away.update([one.engine.agent, two.engine.agent])
        await one.send(uuid_, "second")
        await until(lambda: one.ended() == 2)
        failing, read = [1], Turns.between

        async def turns(self: Turns, *args: Any, **places: Any) -> list[Turn]:
            if failing:
                failing.pop()
                raise GraphError("The graph is away for a moment.")
            return await read(self, *args, **places)

        monkeypatch.setattr(Turns, "between", turns)
        _looking_away.remove(two.engine.agent)
        await until(two.elsewhere)
        assert not failing
        assert [(event.turn_index, event.active) for event in two.elsewhere()] == [(2, False)]


async def test_changes_before_the_first_poll_are_kept(loaded: Loaded, server: OpenAIServer, graph: Graph) -> None:
    """It may be on its way to the graph still."""
    server.script([{"text": "an answer"}] * 9)
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation(title="stored")
        watcher = ConversationWatcher(agent)
        watcher.start(conversation, [], 0)
        conversation.record.title = "chosen here"
        await Store(graph).conversations.update(conversation.record.uuid, tags=["elsewhere"])
        await until(lambda: conversation.record.tags == ["elsewhere"])
        watcher.stop()
        assert conversation.record.title == "chosen here"


async def test_a_conversation_that_stays_quiet_is_polled_rarely(
    loaded: Loaded, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script([{"text": "an answer"}] * 9)
    async with terminal(loaded) as one:
        uuid_ = (await one.engine.request(CreateConversation())).conversation.uuid
        await one.send(uuid_, "first")
        await until(one.ended)
        await one.looked()
        monkeypatch.setattr(CONVERSATION, "quiet", -1.0)
        monkeypatch.setattr(CONVERSATION, "quiet_look", 3600.0)
        await one.looked_last()
        before = _looks[one.engine.agent]
        await asyncio.sleep(SILENT_SECONDS)
        assert _looks[one.engine.agent] == before
