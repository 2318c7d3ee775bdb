"""The key paths of a person who talks: send, queue, stop, leave, commands, pastes, a crash."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual._xterm_parser import XTermParser

from ragforge_tui.errors import ErrorInfo, GraphUnavailableError, ModelError, RagforgeError
from ragforge_tui.events import (
    Event,
    GraphChanged,
    MessageStarted,
    Notice,
    TextDelta,
    ToolCallStarted,
    TurnCancelled,
    TurnCompleted,
    TurnReset,
    TurnStarted,
)
from ragforge_tui.models import Conversation, ToolCall
from ragforge_tui.protocol import (
    CancelTurn,
    CreateConversation,
    FetchTurns,
    Hello,
    OpenConversation,
    RetryTurn,
    SendMessage,
    SetModel,
    Unqueue,
)
from ragforge_tui.tui.help import HelpScreen
from ragforge_tui.tui.history import Draft, Entry
from ragforge_tui.tui.menu import SlashMenu
from ragforge_tui.tui.picker import Picker
from tests.support.fake_engine import CLOCK, FakeEngine
from tests.tui.conftest import ChatRunner


async def endless(engine: FakeEngine, owner: Conversation, index: int, text: str) -> AsyncIterator[Event]:
    """An answer that does not end."""
    where: dict[str, Any] = {"conversation_id": owner.uuid, "turn_index": index}
    yield MessageStarted(message_id=f"m{index}", **where)
    yield TextDelta(message_id=f"m{index}", text="It goes on", **where)
    await asyncio.Event().wait()


async def test_send(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        assert not chat.engine.asked(CreateConversation), "no conversation before the first message"
        await chat.type("hello")
        await chat.until(lambda: chat.happened(TurnCompleted))
        assert [sent.text for sent in chat.engine.asked(SendMessage)] == ["hello"]
        assert chat.app.prompt.text == ""
        assert chat.app.controller.state.activity == "idle"
        assert chat.app.controller.state.spent.tokens == 120
        assert len(chat.app.controller.outbox) == 0


async def test_typed_before_the_engine_is_there(run_chat: ChatRunner) -> None:
    gate = asyncio.Event()
    async with run_chat(gate=gate) as chat:
        await chat.type("early")
        await chat.type("bird")
        assert [item.place for item in chat.app.controller.outbox.items] == ["waiting", "waiting"]
        assert chat.app.query_one("#queue").display
        gate.set()
        await chat.until(lambda: len(chat.engine.asked(SendMessage)) == 2)
        assert [sent.text for sent in chat.engine.asked(SendMessage)] == ["early", "bird"]
        assert len(chat.engine.asked(CreateConversation)) == 1
        await chat.until(lambda: not chat.app.query_one("#queue").display)


async def test_waits_for_the_graph(run_chat: ChatRunner) -> None:
    async with run_chat(FakeEngine(phase="starting")) as chat:
        await chat.until(lambda: chat.engine.asked(Hello))
        await chat.type("hello")
        await chat.pilot.pause(0.05)
        assert not chat.engine.asked(SendMessage)
        chat.engine.emit(GraphChanged(phase="ready", name="embedded"))
        await chat.until(lambda: chat.happened(TurnCompleted))


async def test_an_unreachable_graph_is_said_and_the_chat_goes_on(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        error = ErrorInfo(kind="graph_unreachable", what="No route to [bold]db[/x].", todo="Check the URI.")
        chat.engine.emit(GraphChanged(phase="unreachable", name="bolt://db", error=error))
        await chat.until(lambda: ("error", error.sentence()) in chat.notices)
        await chat.type("still here?")
        await chat.until(lambda: chat.happened(TurnCompleted))


async def test_a_refused_message_comes_back_into_the_prompt(run_chat: ChatRunner) -> None:
    engine = FakeEngine()
    engine.failures[CreateConversation] = GraphUnavailableError("The graph said no.", todo="Try again.")
    async with run_chat(engine) as chat:
        await chat.ready()
        await chat.type("precious words")
        await chat.until(lambda: chat.said("The graph said no. Try again."))
        assert chat.app.prompt.text == "precious words"


async def test_queue_and_take_back(run_chat: ChatRunner) -> None:
    async with run_chat(FakeEngine(script=endless)) as chat:
        await chat.ready()
        await chat.type("first")
        await chat.until(lambda: chat.app.controller.state.activity == "answering")
        await chat.type("second")
        await chat.type("third")
        await chat.until(lambda: [item.place for item in chat.app.controller.outbox.items] == ["queued"] * 2)
        await chat.press("up")
        await chat.until(lambda: chat.app.prompt.text == "second\n\nthird")
        assert len(chat.engine.asked(Unqueue)) == 1
        assert not chat.app.query_one("#queue").display


async def test_escape_with_queue_stops_and_sends_the_first(run_chat: ChatRunner) -> None:
    async with run_chat(FakeEngine(script=endless)) as chat:
        await chat.ready()
        await chat.type("first")
        await chat.until(lambda: chat.app.controller.state.busy)
        await chat.type("second")
        await chat.until(lambda: chat.app.controller.outbox.queued)
        await chat.press("escape")
        await chat.until(lambda: chat.app.controller.state.running.get(chat.app.controller.state.conversation_id) == 2)
        assert len(chat.engine.asked(CancelTurn)) == 1
        assert len(chat.app.controller.outbox) == 0


@pytest.mark.parametrize("key", ["escape", "ctrl+c"])
async def test_stop(run_chat: ChatRunner, key: str) -> None:
    async with run_chat(FakeEngine(script=endless)) as chat:
        await chat.ready()
        await chat.type("go on")
        await chat.until(lambda: chat.app.controller.state.activity == "answering")
        await chat.press(key)
        await chat.until(lambda: chat.happened(TurnCancelled))
        assert chat.app.controller.state.activity == "idle"
        await chat.press("escape")
        assert len(chat.engine.asked(CancelTurn)) == 1, "idle: nothing to stop"


async def test_ctrl_c_twice_quits(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.press("ctrl+c")
        assert "again quits" in chat.app.controller.state.hint
        assert not chat.engine.closed
        await chat.press("ctrl+c")
        await chat.until(lambda: chat.engine.closed)


async def test_ctrl_c_copies_a_selection(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        chat.app.prompt.insert("copy me")
        chat.app.prompt.select_all()
        await chat.press("ctrl+c")
        assert chat.app.clipboard == "copy me"
        assert "clipboard" in chat.app.controller.state.hint


async def test_quit_closes_the_engine_and_gives_the_id(run_chat: ChatRunner) -> None:
    async with run_chat(FakeEngine(script=endless)) as chat:
        await chat.ready()
        await chat.type("go on")
        await chat.until(lambda: chat.app.controller.state.busy)
        await chat.type("/quit")
        await chat.until(lambda: chat.engine.closed)
        await chat.until(lambda: chat.app.return_value)
        assert chat.app.return_value == next(iter(chat.engine.conversations))


async def test_slash_menu(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        menu = chat.app.query_one(SlashMenu)
        await chat.press("/")
        await chat.until(lambda: menu.chosen)
        first = menu.chosen
        await chat.press("down")
        assert menu.chosen is not first
        await chat.press("up")
        assert menu.chosen is first
        await chat.press("m", "o", "d")
        await chat.until(lambda: menu.chosen and menu.chosen.name == "model")
        await chat.press("tab")
        await chat.until(lambda: chat.app.prompt.text == "/model ")
        assert menu.chosen is None
        await chat.press("backspace", "escape")
        assert menu.chosen is None
        chat.app.prompt.empty()
        await chat.press("/", "h", "e", "l")
        await chat.until(lambda: menu.chosen and menu.chosen.name == "help")
        await chat.press("enter")
        await chat.until(lambda: isinstance(chat.app.screen, HelpScreen))
        await chat.press("escape")
        assert not isinstance(chat.app.screen, HelpScreen)


async def test_enter_right_after_typing_runs_what_was_typed(run_chat: ChatRunner) -> None:
    """The menu is one message behind the text; Enter must not run the entry an earlier text had highlighted."""
    async with run_chat() as chat:
        await chat.ready()
        menu = chat.app.query_one(SlashMenu)
        await chat.press("/")
        await chat.until(lambda: menu.chosen and menu.chosen.name == "help")
        chat.app.prompt.insert("sessions")
        chat.app.prompt._enter()
        await chat.until(lambda: isinstance(chat.app.screen, Picker))


async def test_unknown_command_is_not_sent(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.type("/modle x")
        await chat.until(lambda: chat.said("There is no command /modle. Did you mean /model?"))
        assert chat.app.prompt.text == "/modle x", "what was typed is not lost"
        assert not chat.engine.asked(SendMessage)


async def test_model(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.type("/model openai/gpt-5")
        await chat.until(lambda: chat.said("openai/gpt-5 (api.example.com) answers"))
        await chat.type("/model")
        await chat.until(lambda: isinstance(chat.app.screen, Picker))
        await chat.press("s", "o", "n", "n", "enter")
        await chat.until(lambda: len(chat.engine.asked(SetModel)) == 2)
        assert chat.engine.asked(SetModel)[1].name == "anthropic/claude-sonnet-4-5"


async def test_retry_and_its_error(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.type("/retry")
        await chat.until(lambda: chat.said("No conversation is open yet."))
        await chat.type("hello")
        await chat.until(lambda: chat.happened(TurnCompleted))
        await chat.type("/retry")
        await chat.until(lambda: len([e for e in chat.events if isinstance(e, TurnStarted)]) == 2)
        assert len(chat.engine.asked(RetryTurn)) == 1


async def test_an_error_of_a_request_is_shown_as_it_is(run_chat: ChatRunner) -> None:
    engine = FakeEngine()
    engine.failures[SendMessage] = ModelError("list[0] = [/x] is no markup.", kind="provider")
    async with run_chat(engine) as chat:
        await chat.ready()
        await chat.type("hello")
        await chat.until(lambda: chat.said("list[0] = [/x] is no markup."))
        chat.engine.emit(Notice(text="[red]plain[/nothing]"))
        await chat.until(lambda: chat.said("[red]plain[/nothing]"))
        await chat.pilot.pause(0.05)


async def test_a_paste_of_a_megabyte(run_chat: ChatRunner) -> None:
    text = "\n".join(f"line {number} of a long log" for number in range(45_000))
    assert len(text) > 1_000_000
    async with run_chat() as chat:
        await chat.ready()
        chat.app.prompt.insert("look: ")
        chat.app.prompt.post_message(events.Paste(text))
        await chat.until(lambda: chat.app.prompt.text == "look: [pasted 45 000 lines]")
        await chat.press("enter")
        await chat.until(lambda: chat.engine.asked(SendMessage))
        assert chat.engine.asked(SendMessage)[0].text == f"look: {text}"
        await chat.until(lambda: chat.happened(TurnCompleted))
        chat.app.prompt.post_message(events.Paste(text))
        await chat.until(lambda: chat.app.prompt.text)
        await chat.press("backspace")
        assert chat.app.prompt.text == "", "a label goes as a whole"


async def test_pasted_escapes_and_surrogates_are_cleaned(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        chat.app.prompt.post_message(events.Paste("a\x1b[31mred\x00\ud800b\r\nc"))
        await chat.until(lambda: chat.app.prompt.text)
        assert chat.app.prompt.text == "ared␀\ufffdb\nc"


@pytest.mark.parametrize("key", ["ctrl+j", "alt+enter", "shift+enter"])
async def test_new_line_and_growth(run_chat: ChatRunner, key: str) -> None:
    async with run_chat() as chat:
        await chat.press("a", key, "b")
        assert chat.app.prompt.text == "a\nb"
        await chat.until(lambda: chat.app.prompt.size.height == 2)
        chat.app.prompt.insert("\n" * 50)
        await chat.until(lambda: chat.app.prompt.size.height == 24 // 3)


async def test_history(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        for text in ("one", "two\nlines"):
            await chat.type(text)
            await chat.until(lambda: not chat.app.controller.outbox.items)
        await chat.press("d", "up")
        assert chat.app.prompt.text == "two\nlines"
        await chat.press("up", "up")
        assert chat.app.prompt.text == "one"
        await chat.press("down", "down", "down")
        assert chat.app.prompt.text == "d"


async def test_a_draft_survives_a_crash(run_chat: ChatRunner, tmp_path: Path) -> None:
    Draft(tmp_path, "/w", 4_194_305).save(Entry("half a thought"))
    async with run_chat() as chat:
        await chat.until(lambda: chat.app.prompt.text == "half a thought")
        chat.app.prompt.insert(" more")
        (kept,) = await _files(chat, tmp_path)
        assert b"half a thought more" in kept.read_bytes()


async def _files(chat: Any, folder: Path) -> list[Path]:
    await chat.until(lambda: list((folder / "drafts").glob("*.json")))
    return list((folder / "drafts").glob("*.json"))


async def test_engine_crash(run_chat: ChatRunner) -> None:
    engine = FakeEngine(script=endless)
    heir = engine.heir()
    async with run_chat(engine, heir) as chat:
        await chat.ready()
        await chat.type("first")
        await chat.until(lambda: chat.app.controller.state.activity == "answering")
        await chat.type("second")
        await chat.until(lambda: chat.app.controller.outbox.queued)
        heir.script = FakeEngine().script
        engine.crash()
        await chat.until(lambda: heir.asked(OpenConversation), "the conversation is opened again")
        await chat.until(lambda: chat.said("/retry asks for it again"))
        assert chat.said("The engine ended unexpectedly")
        await chat.until(lambda: [sent.text for sent in heir.asked(SendMessage)] == ["second"], "nothing is lost")
        await chat.type("/retry")
        await chat.until(lambda: heir.asked(RetryTurn))


async def test_an_engine_that_never_starts_is_given_up_then_tried_again(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        good = chat.app.controller._connect
        failures = 0

        async def broken() -> Any:
            nonlocal failures
            failures += 1
            raise RagforgeError("No Java here.", todo="Install it.")

        await chat.ready()
        chat.app.controller._connect = broken
        chat.engine.crash()
        await chat.until(lambda: chat.said("No Java here. Install it. Send a message to try again."))
        seen = failures
        chat.app.controller._connect = good
        fresh = FakeEngine()
        chat.app.controller._connect = _gives(fresh)
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
        uuid = chat.app.controller.state.conversation_id
        chat.engine.emit(TurnReset(conversation_id=uuid, turn_index=1))
        chat.engine.emit(TurnCompleted(conversation_id=uuid, turn_index=1, text=""))
        await chat.until(lambda: chat.engine.asked(FetchTurns))


async def test_tab_to_the_chat_and_letters_back(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.press("tab")
        assert chat.app.transcript.has_focus
        await chat.press("j")
        assert chat.app.transcript.has_focus and chat.app.prompt.text == ""
        await chat.press("z")
        assert chat.app.prompt.has_focus and chat.app.prompt.text == "z"


async def test_tools_show_as_running(run_chat: ChatRunner) -> None:
    async with run_chat(FakeEngine(script=endless)) as chat:
        await chat.ready()
        await chat.type("go")
        await chat.until(lambda: chat.app.controller.state.busy)
        uuid = chat.app.controller.state.conversation_id
        call = ToolCall(uuid="c", message_id="m", tool_name="grep_files", arguments="{}", timestamp=CLOCK)
        chat.engine.emit(ToolCallStarted(conversation_id=uuid, turn_index=1, call=call))
        await chat.until(lambda: chat.app.controller.state.activity == "running")


async def test_small_screen(run_chat: ChatRunner) -> None:
    async with run_chat(size=(60, 20)) as chat:
        await chat.ready()
        await chat.press("/")
        await chat.until(lambda: chat.app.query_one(SlashMenu).chosen)
        assert chat.app.prompt.region.bottom <= 20
        assert chat.app.query_one("#status").region.y == 19


async def test_alt_enter_of_a_legacy_terminal(run_chat: ChatRunner) -> None:
    """It sends ESC CR."""
    async with run_chat() as chat:
        for event in XTermParser().feed("a\x1b\rb"):
            if isinstance(event, events.Key):
                await chat.press(event.key)
        assert chat.app.prompt.text == "a\nb"


async def test_keys_that_come_at_once_keep_their_order(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        for key, character in (("a", "a"), ("ctrl+j", "\n"), ("b", "b")):
            chat.app.post_message(events.Key(key, character))
        await chat.until(lambda: chat.app.prompt.text == "a\nb")
