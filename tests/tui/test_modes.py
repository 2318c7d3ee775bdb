"""shift+tab and /mode: always shown, sent to the engine before anything else, kept when the engine ends."""

from __future__ import annotations

import asyncio

import pytest
from textual.content import Content

from ragforge_tui.shared.events import TurnCompleted
from ragforge_tui.shared.requests.turns import SendMessage
from ragforge_tui.shared.requests.work import SetMode
from ragforge_tui.tui.commands import work_commands
from tests.support.fake_engine import FakeEngine
from tests.tui.conftest import Chat, ChatRunner
from tests.tui.test_chat import endless
from tests.tui.test_questions import approval


def shown(chat: Chat) -> str:
    content = chat.app.query_one("#status").render()
    assert isinstance(content, Content)
    return content.plain


async def test_shift_tab_goes_round(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.type("hello")
        await chat.until(lambda: chat.happened(TurnCompleted))
        assert " ask" in shown(chat)
        for mode, word in (("edits", " accept edits"), ("plan", " plan"), ("ask", " ask")):
            await chat.press("shift+tab")
            await chat.until(lambda mode=mode: chat.engine.work.modes[chat.app.session.state.conversation_id] == mode)
            assert word in shown(chat)
            assert chat.app.prompt.has_focus


@pytest.mark.parametrize(("presses", "sent"), [(1, ["edits"]), (2, ["plan"]), (3, ["plan", "ask"])])
async def test_accepted_edits_that_are_only_passed_let_nothing_through(
    run_chat: ChatRunner, presses: int, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work_commands, "STAY_SECONDS", 0.3)
    async with run_chat(FakeEngine(script=endless)) as chat:
        await chat.ready()
        await chat.type("hello")
        await chat.until(lambda: chat.app.session.state.busy)
        chat.engine.emit(approval("a"))
        await chat.until(lambda: chat.app.questions.waiting)
        await chat.press(*["shift+tab"] * presses)
        await chat.until(lambda: [one.mode for one in chat.engine.asked(SetMode)] == sent)
        await chat.pilot.pause(0.5)
        assert [one.mode for one in chat.engine.asked(SetMode)] == sent


async def test_the_mode_is_sent_before_the_first_message(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.type("/mode plan")
        await chat.until(lambda: chat.app.session.state.mode == "plan")
        await chat.type("hello")
        await chat.until(lambda: chat.happened(TurnCompleted))
        order = [type(request) for request in chat.engine.requests if isinstance(request, SetMode | SendMessage)]
        assert order == [SetMode, SendMessage]
        await chat.type("/new")
        await chat.until(lambda: chat.app.session.state.mode == "ask")


async def test_the_mode_outlives_the_engine(run_chat: ChatRunner) -> None:
    first = FakeEngine()
    gate = asyncio.Event()
    gate.set()
    async with run_chat(first, heir := first.heir(), gate=gate) as chat:
        await chat.ready()
        await chat.type("hello")
        await chat.until(lambda: chat.happened(TurnCompleted))
        await chat.type("/mode edits")
        await chat.until(lambda: "edits" in first.work.modes.values())
        first.crash()
        await chat.until(lambda: chat.noticed("was restarted"))
        assert " accept edits" in shown(chat)
        await chat.type("more")
        await chat.until(lambda: heir.asked(SendMessage))
        assert list(heir.work.modes.values()) == ["edits"]


async def test_a_mode_that_is_none(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.type("/mode bold")
        await chat.until(lambda: chat.noticed("There is no mode"))


async def test_shift_tab_over_the_chat_moves_the_focus(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.press("f1")
        await chat.until(lambda: len(chat.app.screen_stack) > 1)
        await chat.press("shift+tab")
        assert chat.app.session.state.mode == "ask"
        await chat.press("escape", "shift+tab")
        await chat.until(lambda: chat.app.session.state.mode == "edits")
