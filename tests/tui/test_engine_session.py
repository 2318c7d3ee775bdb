"""The chat and its engine: not there yet, gone, without a graph, too fast."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from ragforge_tui.settings.schema import TuiSettings
from ragforge_tui.shared.errors import (
    STORED_ALREADY,
    EngineGoneError,
    ErrorInfo,
    GraphUnavailableError,
    RagforgeError,
)
from ragforge_tui.shared.events import (
    Event,
    GraphChanged,
    MessageStarted,
    ReasoningDelta,
    ToolCallStarted,
    TurnCompleted,
    TurnReset,
    TurnsMoved,
)
from ragforge_tui.shared.records import Conversation
from ragforge_tui.shared.requests.turns import CreateConversation, FetchTurns, OpenConversation, RetryTurn, SendMessage
from ragforge_tui.shared.wire import Hello
from ragforge_tui.tui.sidebar.trace_pane import TracePane
from ragforge_tui.tui.transcript.tool_block import ToolBlock
from tests.support.chat_scene import tool_call
from tests.support.fake_engine import FakeEngine, conversation, endless
from tests.support.turns import turn_of
from tests.tui.conftest import ChatRunner


async def test_typed_before_the_engine_is_there(run_chat: ChatRunner) -> None:
    gate = asyncio.Event()
    async with run_chat(gate=gate) as chat:
        await chat.type("early")
        await chat.type("bird")
        assert [item.place for item in chat.app.chat.session.message_queue.items] == ["waiting", "waiting"]
        assert chat.app.query_one("#queue").display
        gate.set()
        await chat.until(lambda: len(chat.engine.asked(SendMessage)) == 2)
        assert [sent.text for sent in chat.engine.asked(SendMessage)] == ["early", "bird"]
        assert len(chat.engine.asked(CreateConversation)) == 1
        await chat.until(lambda: not chat.app.query_one("#queue").display)


async def test_a_new_conversation_does_not_wait_for_the_graph(run_chat: ChatRunner) -> None:
    async with run_chat(FakeEngine(phase="starting")) as chat:
        await chat.until(lambda: chat.engine.asked(Hello))
        await chat.type("hello")
        await chat.until(lambda: chat.happened(TurnCompleted))
        chat.engine.emit(GraphChanged(phase="starting", name="embedded", journaled=5))
        await chat.pilot.pause()
        assert chat.notices == []


async def test_a_stored_conversation_waits_for_the_graph(run_chat: ChatRunner) -> None:
    engine = FakeEngine(phase="starting")
    engine.conversations[conversation(1).uuid] = conversation(1, "Stored")
    engine.turns[conversation(1).uuid] = []
    async with run_chat(engine, continue_last=True) as chat:
        await chat.until(lambda: chat.engine.asked(Hello))
        await chat.type("hello")
        await chat.pilot.pause(0.05)
        assert not chat.engine.asked(SendMessage) and not chat.engine.asked(OpenConversation)
        chat.engine.emit(GraphChanged(phase="ready", name="embedded"))
        await chat.until(lambda: chat.happened(TurnCompleted))
        assert [sent.conversation_id for sent in chat.engine.asked(SendMessage)] == [conversation(1).uuid]


async def test_an_unreachable_graph_is_reported_and_the_chat_continues(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        error = ErrorInfo(kind="graph_unreachable", what="No route to [bold]db[/x].", todo="Check the URI.")
        chat.engine.emit(GraphChanged(phase="unreachable", name="bolt://db", error=error))
        await chat.until(lambda: ("error", error.sentence()) in chat.notices)
        await chat.type("still here?")
        await chat.until(lambda: chat.happened(TurnCompleted))


async def test_engine_crash(run_chat: ChatRunner) -> None:
    engine = FakeEngine(script=endless)
    heir = engine.heir()
    async with run_chat(engine, heir) as chat:
        await chat.ready()
        await chat.type("first")
        await chat.until(lambda: chat.app.chat.session.state.activity == "answering")
        await chat.type("second")
        await chat.until(lambda: chat.app.chat.session.message_queue.queued)
        heir.script = FakeEngine().script
        engine.crash()
        await chat.until(lambda: heir.asked(OpenConversation), "the conversation is opened again")
        await chat.until(lambda: chat.noticed("/retry asks for it again"))
        assert chat.noticed("The engine ended unexpectedly")
        await chat.until(lambda: [sent.text for sent in heir.asked(SendMessage)] == ["second"], "nothing is lost")
        await chat.type("/retry")
        await chat.until(lambda: heir.asked(RetryTurn))


async def test_a_message_that_a_lost_engine_may_have_stored_waits_for_its_conversation(run_chat: ChatRunner) -> None:
    engine = FakeEngine()
    heir = engine.heir()
    heir.failures[OpenConversation] = GraphUnavailableError("The graph is away.")
    async with run_chat(engine, heir) as chat:
        await chat.ready()
        await chat.type("first")
        await chat.until(lambda: chat.happened(TurnCompleted))
        engine.failures[SendMessage] = EngineGoneError("gone")
        await chat.type("second")
        await chat.until(lambda: len(engine.asked(SendMessage)) == 2)
        engine.crash()
        await chat.until(lambda: heir.asked(OpenConversation))
        await chat.pilot.pause()
        assert chat.app.chat.prompt.text == ""
        assert [item.text for item in chat.app.chat.session.message_queue.items] == ["second"]
        assert not heir.asked(SendMessage)
        heir.emit(GraphChanged(phase="ready", name="embedded"))
        await chat.until(lambda: heir.asked(SendMessage))
        assert heir.asked(SendMessage)[0].message_id == engine.asked(SendMessage)[-1].message_id


async def test_turns_that_moved_are_shown_at_their_places(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.type("first")
        await chat.until(lambda: chat.happened(TurnCompleted))
        uuid = chat.app.chat.session.state.conversation_id
        moved = [turn_of(uuid, 1, "from elsewhere", "an answer"), turn_of(uuid, 2, "first", "its answer")]
        chat.engine.turns[uuid] = moved
        chat.engine.emit(TurnsMoved(conversation_id=uuid, moved={1: 2}))
        await chat.until(lambda: chat.noticed("new numbers"))
        shown = chat.app.chat.transcript.document.blocks
        assert [block.turn_index for block in shown if block.kind == "user"] == [1, 2]


async def test_a_returned_message_stays_the_same_message(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.type("first")
        await chat.until(lambda: chat.happened(TurnCompleted))
        chat.engine.failures[SendMessage] = GraphUnavailableError("The graph is away.")
        await chat.type("second")
        await chat.until(lambda: chat.app.chat.prompt.text == "second")
        await chat.pilot.press("enter")
        await chat.until(lambda: len(chat.engine.asked(SendMessage)) == 3)
        _, given, again = chat.engine.asked(SendMessage)
        assert (again.text, again.message_id) == (given.text, given.message_id)


async def test_a_message_that_is_stored_already_does_not_return_to_the_prompt(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        chat.engine.failures[SendMessage] = RagforgeError("Turn 1 had already started.", kind=STORED_ALREADY)
        await chat.type("once")
        await chat.until(lambda: chat.noticed("had already started"))
        assert chat.app.chat.prompt.text == ""
        assert chat.app.chat.session.message_queue.items == []


async def reasons_and_calls(engine: FakeEngine, owner: Conversation, index: int, text: str) -> AsyncIterator[Event]:
    """A turn that thinks and runs a call, and never ends."""
    where: dict[str, Any] = {"conversation_id": owner.uuid, "turn_index": index}
    call = tool_call(owner, 1, "run_command", {"command": "make"}, "", 0)
    call.result = call.success = call.duration_ms = None
    call.message_id = "first"
    yield MessageStarted(message_id="first", persona=owner.persona, model="fake", **where)
    yield ToolCallStarted(call=call, **where)
    yield MessageStarted(message_id="second", persona=owner.persona, model="fake", **where)
    yield ReasoningDelta(message_id="second", text="let me see", **where)
    await asyncio.Event().wait()


async def test_nothing_looks_running_while_the_engine_is_away(run_chat: ChatRunner) -> None:
    gate = asyncio.Event()
    async with run_chat(FakeEngine(script=reasons_and_calls), size=(140, 40), tui=TuiSettings()) as chat:
        good = chat.app.chat.session.connect

        async def later() -> Any:
            await gate.wait()
            return await good()

        await chat.ready()
        chat.app.chat.session.connect = later
        await chat.type("go")
        document = chat.app.chat.transcript.document
        await chat.until(lambda: any(getattr(block, "thinking", False) for block in document.blocks))
        pane = chat.app.chat.sidebar.pane("trace")
        assert isinstance(pane, TracePane)
        await chat.until(lambda: pane.trace.rows)
        chat.engine.crash()
        await chat.until(lambda: chat.noticed("It is restarting"))
        assert not any(getattr(block, "thinking", False) for block in document.blocks)
        assert [str(block.state) for block in document.blocks if isinstance(block, ToolBlock)] == ["unknown"]
        assert [block.source for block in document.blocks if block.kind == "state"] == ["interrupted"]
        assert [row.state for row in pane.trace.rows] == ["unknown"]
        assert not chat.app.chat.session.state.busy
        gate.set()


async def test_an_offer_to_retry_goes_when_that_succeeded(run_chat: ChatRunner) -> None:
    engine = FakeEngine(script=endless)
    heir = engine.heir()
    async with run_chat(engine, heir) as chat:
        await chat.ready()
        await chat.type("first")
        await chat.until(lambda: chat.app.chat.session.state.activity == "answering")
        heir.script = FakeEngine().script
        engine.crash()
        await chat.until(lambda: chat.noticed("/retry asks for it again"))
        await chat.type("/retry")
        await chat.until(lambda: chat.happened(TurnCompleted))
        shown = [block.source for block in chat.app.chat.transcript.document.blocks]
        assert not any("/retry" in text for text in shown)
        assert any("was restarted" in text for text in shown)


async def test_an_engine_that_never_starts_is_given_up_then_tried_again(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        good = chat.app.chat.session.connect
        failures = 0

        async def broken() -> Any:
            nonlocal failures
            failures += 1
            raise RagforgeError("No Java here.", todo="Install it.")

        await chat.ready()
        chat.app.chat.session.connect = broken
        chat.engine.crash()
        await chat.until(lambda: chat.noticed("No Java here. Install it. Send a message to try again."))
        seen = failures
        chat.app.chat.session.connect = good
        fresh = FakeEngine()
        chat.app.chat.session.connect = _gives(fresh)
        await chat.type("now?")
        await chat.until(lambda: fresh.asked(SendMessage))
        assert failures == seen


def _gives(engine: FakeEngine) -> Any:
    async def connect() -> FakeEngine:
        return engine

    return connect


async def test_missed_events_are_read_again(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.type("hello")
        await chat.until(lambda: chat.happened(TurnCompleted))
        uuid = chat.app.chat.session.state.conversation_id
        chat.engine.emit(TurnReset(conversation_id=uuid, turn_index=1))
        chat.engine.emit(TurnCompleted(conversation_id=uuid, turn_index=1, text=""))
        await chat.until(lambda: chat.engine.asked(FetchTurns))
