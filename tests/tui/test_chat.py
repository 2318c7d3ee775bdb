"""The key paths of a person who talks: send, queue, stop, leave, commands."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
from textual.containers import Vertical
from textual.screen import ModalScreen

from ragforge_tui.shared.errors import GraphUnavailableError, ModelError
from ragforge_tui.shared.events import (
    Notice,
    Steered,
    ToolCallStarted,
    TurnCancelled,
    TurnCompleted,
    TurnsCondensed,
    TurnStarted,
)
from ragforge_tui.shared.records import Message, ToolCall
from ragforge_tui.shared.requests.turns import CancelTurn, CreateConversation, RetryTurn, SendMessage, Unqueue
from ragforge_tui.shared.requests.work import RunShell, SetModel
from ragforge_tui.shared.wire import Hello, Request
from ragforge_tui.tui.prompt.completion import SlashMenu
from ragforge_tui.tui.prompt.history import Entry
from ragforge_tui.tui.transcript.blocks import UserBlock
from ragforge_tui.tui.widgets.choice_list import ChoiceList
from ragforge_tui.tui.widgets.list_screen import Picker
from tests.support.fake_engine import CLOCK, FakeEngine, R, conversation, endless, turn
from tests.tui.conftest import ChatRunner


class SlowEngine(FakeEngine):
    """An engine that is closed before it has answered the first request."""

    def __init__(self) -> None:
        super().__init__()
        self.greeted = asyncio.Event()

    async def request(self, request: Request[R]) -> R:
        answer = await super().request(request)
        if isinstance(request, Hello):
            await self.greeted.wait()
        return answer

    async def close(self) -> None:
        """Answer the first request while the engine is ending."""
        self.greeted.set()
        await asyncio.sleep(0.05)
        await super().close()
        await asyncio.sleep(0.05)


async def test_send(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        assert not chat.engine.asked(CreateConversation), "no conversation before the first message"
        await chat.type("hello")
        await chat.until(lambda: chat.happened(TurnCompleted))
        assert [sent.text for sent in chat.engine.asked(SendMessage)] == ["hello"]
        assert chat.app.chat.prompt.text == ""
        assert chat.app.chat.session.state.activity == "idle"
        assert chat.app.chat.session.state.spent.tokens == 120
        assert len(chat.app.chat.session.message_queue) == 0


async def test_a_refused_message_returns_into_the_prompt(run_chat: ChatRunner) -> None:
    engine = FakeEngine()
    engine.failures[CreateConversation] = GraphUnavailableError("The graph said no.", todo="Try again.")
    async with run_chat(engine) as chat:
        await chat.ready()
        await chat.type("precious words")
        await chat.until(lambda: chat.noticed("The graph said no. Try again."))
        assert chat.app.chat.prompt.text == "precious words"


async def test_queue_and_take_back(run_chat: ChatRunner) -> None:
    async with run_chat(FakeEngine(script=endless)) as chat:
        await chat.ready()
        await chat.type("first")
        await chat.until(lambda: chat.app.chat.session.state.activity == "answering")
        box = chat.app.chat.session.message_queue
        for text in ("second", "!ls", "third"):
            await chat.type(text)
        await chat.until(lambda: [item.place for item in box.items] == ["queued"] * 3)
        await chat.press("up")
        await chat.until(lambda: chat.app.chat.prompt.text == "third")
        assert [item.text for item in box.items] == ["second", "!ls"]
        await chat.press("ctrl+u", "up")
        await chat.until(lambda: chat.app.chat.prompt.text == "!ls")
        await chat.press("space", ".", "enter")
        await chat.until(lambda: [(item.text, item.place) for item in box.items][1:] == [("!ls .", "queued")])
        assert [item.text for item in box.items] == ["second", "!ls ."]
        assert [shell.command for shell in chat.engine.asked(RunShell)] == ["ls", "ls ."]
        await chat.press("up")
        await chat.until(lambda: chat.app.chat.prompt.text == "!ls .")
        await chat.press("ctrl+u", "up")
        await chat.until(lambda: chat.app.chat.prompt.text == "second")
        assert len(chat.engine.asked(Unqueue)) == 4
        assert not chat.app.query_one("#queue").display


async def test_a_message_that_begins_is_not_taken_back(run_chat: ChatRunner) -> None:
    async with run_chat(FakeEngine(script=endless)) as chat:
        await chat.ready()
        await chat.type("first")
        await chat.until(lambda: chat.app.chat.session.state.activity == "answering")
        await chat.type("second")
        await chat.until(lambda: chat.app.chat.session.message_queue.queued)
        chat.engine.queue.clear()  # the engine is just beginning with it
        await chat.press("up")
        await chat.until(lambda: bool(chat.engine.asked(Unqueue)))
        await chat.press("x")
        await chat.until(lambda: chat.app.chat.prompt.text == "x")
        assert [item.text for item in chat.app.chat.session.message_queue.items] == ["second"]


async def test_escape_with_queue_stops_and_sends_the_first(run_chat: ChatRunner) -> None:
    async with run_chat(FakeEngine(script=endless)) as chat:
        await chat.ready()
        await chat.type("first")
        await chat.until(lambda: chat.app.chat.session.state.busy)
        await chat.type("second")
        await chat.until(lambda: chat.app.chat.session.message_queue.queued)
        await chat.press("escape")
        await chat.until(
            lambda: chat.app.chat.session.state.running.get(chat.app.chat.session.state.conversation_id) == 2
        )
        assert len(chat.engine.asked(CancelTurn)) == 1
        assert len(chat.app.chat.session.message_queue) == 0


@pytest.mark.parametrize("key", ["escape", "ctrl+c"])
async def test_stop(run_chat: ChatRunner, key: str) -> None:
    async with run_chat(FakeEngine(script=endless)) as chat:
        await chat.ready()
        await chat.type("go on")
        await chat.until(lambda: chat.app.chat.session.state.activity == "answering")
        await chat.press(key)
        await chat.until(lambda: chat.happened(TurnCancelled))
        assert chat.app.chat.session.state.activity == "idle"
        await chat.press("escape")
        assert len(chat.engine.asked(CancelTurn)) == 1, "idle: nothing to stop"


async def test_escape_leads_from_the_chat_back_to_the_prompt_before_it_stops(run_chat: ChatRunner) -> None:
    async with run_chat(FakeEngine(script=endless)) as chat:
        await chat.ready()
        await chat.type("go on")
        await chat.until(lambda: chat.app.chat.session.state.activity == "answering")
        await chat.press("tab")
        await chat.until(lambda: "esc back to prompt, again: stop" in chat.app.chat.status_line.render().plain)
        await chat.press("pageup", "escape")
        await chat.until(lambda: chat.app.chat.prompt.has_focus)
        assert not chat.engine.asked(CancelTurn), "it is still being read"
        await chat.until(lambda: "esc stop" in chat.app.chat.status_line.render().plain)
        await chat.press("escape")
        await chat.until(lambda: chat.happened(TurnCancelled))


async def test_ctrl_c_twice_quits(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.press("ctrl+c")
        assert "again quits" in chat.app.chat.status_line.hint
        assert not chat.engine.closed
        await chat.press("ctrl+c")
        await chat.until(lambda: chat.engine.closed)


async def test_commands_copy_the_last_answer_and_its_code(run_chat: ChatRunner) -> None:
    engine, text = FakeEngine(), "First:\n\n```python\none\n```\n\nthen:\n\n```sh\ntwo\n```\n"
    owner = conversation(1, "Code")
    engine.store(owner, turn(owner, 1, "how?", text))
    async with run_chat(engine, continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        await chat.type("/copy")
        await chat.until(lambda: chat.app.clipboard == text)
        for code in ("one\n", "two\n"):
            await chat.type("/copy-code")
            await chat.until(lambda code=code: chat.app.clipboard == code)


async def test_ctrl_c_copies_a_selection(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        chat.app.chat.prompt.insert("copy me")
        chat.app.chat.prompt.select_all()
        await chat.press("ctrl+c")
        assert chat.app.clipboard == "copy me"
        assert "clipboard" in chat.app.chat.status_line.hint
        await chat.press("ctrl+c")
        assert "again quits" in chat.app.chat.status_line.hint, "the selection is gone"


async def test_ctrl_c_closes_a_screen_like_escape(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        chat.app.chat.prompt.insert("a draft")
        chat.app.chat.prompt.select_all()
        closed: list[object] = []
        chat.app.push_screen(ModalScreen(), closed.append)
        await chat.until(lambda: len(chat.app.screen_stack) == 2)
        await chat.press("ctrl+c")
        await chat.until(lambda: len(chat.app.screen_stack) == 1)
        assert closed == [None]
        assert chat.app.clipboard == ""


@pytest.mark.parametrize("keys", [["ctrl+r"], ["ctrl+f"], ["slash", "h"]], ids=["history", "find", "menu"])
async def test_ctrl_c_closes_what_is_open_over_the_prompt(run_chat: ChatRunner, keys: list[str]) -> None:
    async with run_chat(FakeEngine(script=endless)) as chat:
        await chat.ready()
        await chat.type("go on")
        await chat.until(lambda: chat.app.chat.session.state.activity == "answering")
        await chat.press(*keys)
        prompt = chat.app.chat.prompt
        await chat.until(lambda: not prompt.has_focus or prompt.completing.open)
        await chat.press("ctrl+c")
        await chat.until(lambda: prompt.has_focus and not prompt.completing.open)
        assert not chat.app.chat.status_line.hint
        await chat.press("ctrl+c")
        await chat.until(lambda: chat.happened(TurnCancelled))
        assert len(chat.engine.asked(CancelTurn)) == 1


async def test_quit_closes_the_engine_and_gives_the_id(run_chat: ChatRunner) -> None:
    async with run_chat(FakeEngine(script=endless)) as chat:
        await chat.ready()
        await chat.type("go on")
        await chat.until(lambda: chat.app.chat.session.state.busy)
        await chat.type("/quit")
        await chat.until(lambda: chat.engine.closed)
        await chat.until(lambda: chat.app.return_value)
        assert chat.app.return_value == next(iter(chat.engine.conversations))


async def test_messages_not_sent_when_the_chat_ends_become_a_draft(run_chat: ChatRunner, tmp_path: Path) -> None:
    async with run_chat(FakeEngine(script=endless)) as chat:
        await chat.ready()
        await chat.type("first")
        await chat.until(lambda: chat.app.chat.session.state.activity == "answering")
        for text in ("second", "third"):
            await chat.type(text)
        await chat.until(lambda: [item.place for item in chat.app.chat.session.message_queue.items] == ["queued"] * 2)
        chat.app.chat.prompt.insert("half a thought")
        await chat.press("ctrl+q")
        await chat.until(lambda: chat.engine.closed)
    (kept,) = (tmp_path / "drafts").glob("*.json")
    assert msgspec.json.decode(kept.read_bytes(), type=Entry).text == "second\n\nthird\n\nhalf a thought"


async def test_a_waiting_message_survives_a_crash(run_chat: ChatRunner, tmp_path: Path) -> None:
    async with run_chat(FakeEngine(script=endless)) as chat:
        await chat.ready()
        await chat.type("first")
        await chat.until(lambda: chat.app.chat.session.state.activity == "answering")
        await chat.type("second")
        await chat.until(lambda: [b"second" in file.read_bytes() for file in (tmp_path / "drafts").glob("*.json")])
        await chat.press("up", "ctrl+u")
        await chat.until(lambda: not list((tmp_path / "drafts").glob("*.json")))


async def test_quitting_before_the_engine_has_answered(run_chat: ChatRunner) -> None:
    engine = SlowEngine()
    async with run_chat(engine) as chat:
        await chat.until(lambda: chat.engine.asked(Hello))
        await chat.press("ctrl+q")
        await chat.until(lambda: engine.closed)
    assert chat.app.chat.session.state.closing
    assert not chat.notices


async def test_model(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.type("/model openai/gpt-5")
        await chat.until(lambda: chat.noticed("openai/gpt-5 (api.example.com) answers"))
        await chat.type("/model")
        await chat.until(lambda: isinstance(chat.app.screen, Picker))
        rows = len(chat.app.screen.query_one(ChoiceList).rows)
        # As tall as its rows: frame, title, field and keys take 8 lines with their margins.
        await chat.until(lambda: chat.app.screen.query(Vertical).first().outer_size.height == rows + 8)
        await chat.press("s", "o", "n", "n", "enter")
        await chat.until(lambda: len(chat.engine.asked(SetModel)) == 2)
        assert chat.engine.asked(SetModel)[1].name == "anthropic/claude-sonnet-4-5"


async def test_retry_and_its_error(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.type("/retry")
        await chat.until(lambda: chat.noticed("No conversation is open yet."))
        await chat.type("hello")
        await chat.until(lambda: chat.happened(TurnCompleted))
        await chat.type("/retry")
        await chat.until(lambda: len([e for e in chat.events if isinstance(e, TurnStarted)]) == 2)
        assert len(chat.engine.asked(RetryTurn)) == 1


async def test_older_turns_that_become_summaries_are_announced(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.type("hello")
        await chat.until(lambda: chat.happened(TurnCompleted))
        uuid = chat.app.chat.session.state.conversation_id
        chat.engine.emit(TurnsCondensed(conversation_id="another", last_turn=3, summaries=1))
        chat.engine.emit(TurnsCondensed(conversation_id=uuid, last_turn=12, summaries=2))
        await chat.until(lambda: chat.noticed("Turns 1–12 are now 2 summaries in the request"))
        assert chat.noticed("turns from 13 on are sent as they are. F3 opens the summaries")
        assert not chat.noticed("Turns 1–3")


async def test_an_error_of_a_request_is_shown_as_it_is(run_chat: ChatRunner) -> None:
    engine = FakeEngine()
    engine.failures[SendMessage] = ModelError("list[0] = [/x] is no markup.", kind="provider")
    async with run_chat(engine) as chat:
        await chat.ready()
        await chat.type("hello")
        await chat.until(lambda: chat.noticed("list[0] = [/x] is no markup."))
        chat.engine.emit(Notice(text="[red]plain[/nothing]"))
        await chat.until(lambda: chat.noticed("[red]plain[/nothing]"))
        await chat.pilot.pause(0.05)


async def test_tab_to_the_chat_and_letters_back(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.press("tab")
        assert chat.app.chat.transcript.has_focus
        await chat.press("j")
        assert chat.app.chat.transcript.has_focus and chat.app.chat.prompt.text == ""
        await chat.press("z")
        assert chat.app.chat.prompt.has_focus and chat.app.chat.prompt.text == "z"


async def test_tools_show_as_running(run_chat: ChatRunner) -> None:
    async with run_chat(FakeEngine(script=endless)) as chat:
        await chat.ready()
        await chat.type("go")
        await chat.until(lambda: chat.app.chat.session.state.busy)
        uuid = chat.app.chat.session.state.conversation_id
        call = ToolCall(uuid="c", message_id="m", tool_name="grep_files", arguments="{}", timestamp=CLOCK)
        chat.engine.emit(ToolCallStarted(conversation_id=uuid, turn_index=1, call=call))
        await chat.until(lambda: chat.app.chat.session.state.activity == "running")


async def test_small_screen(run_chat: ChatRunner) -> None:
    async with run_chat(size=(60, 20)) as chat:
        await chat.ready()
        await chat.press("/")
        await chat.until(lambda: chat.app.query_one(SlashMenu).chosen)
        assert chat.app.chat.prompt.region.bottom <= 20
        assert chat.app.query_one("#status").region.y == 19


async def test_model_without_any_says_how_to_get_one(run_chat: ChatRunner) -> None:
    engine = FakeEngine()
    engine.models = ["offline"]
    async with run_chat(engine) as chat:
        await chat.ready()
        await chat.type("/model")
        await chat.until(lambda: chat.noticed("No language model was found. To get one: /connect"))
        assert not isinstance(chat.app.screen, Picker)


async def test_page_keys_scroll_the_chat_from_the_prompt(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.type("long\n" * 80)
        await chat.until(lambda: chat.happened(TurnCompleted))
        transcript = chat.app.chat.transcript
        await chat.until(lambda: transcript.max_scroll_y > 0 and transcript.scroll_y == transcript.max_scroll_y)
        await chat.press("pageup")
        await chat.until(lambda: transcript.scroll_y < transcript.max_scroll_y)
        assert chat.app.chat.prompt.has_focus
        await chat.press("pagedown")
        await chat.until(lambda: transcript.scroll_y == transcript.max_scroll_y)


async def test_enter_steers_tab_queues_and_each_queued_message_can_be_chosen(run_chat: ChatRunner) -> None:
    async with run_chat(FakeEngine(script=endless)) as chat:
        await chat.ready()
        await chat.type("first")
        await chat.until(lambda: chat.app.chat.session.state.activity == "answering")
        session = chat.app.chat.session
        for text in ("then commit", "and push", "and rest"):
            chat.app.chat.prompt.insert(text)
            await chat.press("tab")
        await chat.type("use Decimal")
        await chat.until(lambda: [item.place for item in session.message_queue.items] == ["queued"] * 4)
        assert [sent.steer for sent in chat.engine.asked(SendMessage)] == [False, False, False, False, True]
        await chat.press("alt+up")
        await chat.until(lambda: chat.app.chat.queue.has_focus)
        await chat.press("up", "d")
        await chat.until(lambda: len(session.message_queue) == 3)
        assert chat.engine.asked(Unqueue)[-1].message_id == chat.engine.asked(SendMessage)[3].message_id
        await chat.press("up", "up", "s")
        await chat.until(lambda: len(chat.engine.asked(SendMessage)) == 6)
        now = chat.engine.asked(SendMessage)[-1]
        assert (now.text, now.steer) == ("then commit", True)
        await chat.until(lambda: all(item.place == "queued" for item in session.message_queue.items))
        await chat.press("down", "enter")
        await chat.until(lambda: chat.app.chat.prompt.text == "and push")
        assert chat.app.chat.prompt.has_focus
        joined = Message(
            uuid=now.message_id,
            conversation_id=now.conversation_id,
            turn_index=1,
            position=2,
            role="user",
            content=now.text,
            timestamp=CLOCK,
        )
        chat.engine.emit(Steered(conversation_id=now.conversation_id, turn_index=1, message=joined))
        await chat.until(lambda: [item.text for item in session.message_queue.items] == ["use Decimal"])
        shown = [block.text for block in chat.app.chat.transcript.document.blocks if isinstance(block, UserBlock)]
        assert shown == ["first", "then commit"]
