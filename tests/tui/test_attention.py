"""Calling the person back: only while the terminal is not focused, in the form the terminal knows."""

from __future__ import annotations

from typing import Any

import pytest
from textual.events import AppBlur, AppFocus

from ragforge_tui.settings.schema import TuiSettings
from ragforge_tui.shared.events import CostLimitReached, TurnCompleted
from ragforge_tui.shared.requests.work import AnswerApproval
from ragforge_tui.tui.terminal import Notify, call_sequence
from tests.support.fake_engine import FakeEngine, endless
from tests.tui.conftest import Chat, ChatRunner
from tests.tui.test_questions import approval

SAID = "Edit a;b?\x1b[31m\nnow"


@pytest.mark.parametrize(
    ("notify", "env", "sequence"),
    [
        ("off", {"TERM_PROGRAM": "kitty"}, ""),
        ("bell", {"TERM_PROGRAM": "kitty"}, "\x07"),
        ("auto", {}, "\x07"),
        ("auto", {"TERM": "xterm-256color", "TERM_PROGRAM": "Apple_Terminal"}, "\x07"),
        ("auto", {"TERM_PROGRAM": "WezTerm"}, "\x1b]9;ragforge-chat: Edit a;b? now\x07"),
        ("auto", {"TERM": "xterm-kitty"}, "\x1b]9;ragforge-chat: Edit a;b? now\x07"),
        ("auto", {"TERM": "foot"}, "\x1b]777;notify;ragforge-chat;Edit a,b? now\x07"),
        ("auto", {"TERM_PROGRAM": "WezTerm", "TMUX": "/tmp/x"}, "\x07"),
    ],
)
def test_sequences_written_to_the_terminal(notify: Notify, env: dict[str, str], sequence: str) -> None:
    assert call_sequence(SAID, notify, env) == sequence


def listen(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    rung: list[str] = []
    driver: Any = chat.app._driver
    real = driver.write
    monkeypatch.setattr(driver, "write", lambda data: rung.append(data) if data == "\x07" else real(data))
    return rung


async def test_a_question_calls_who_is_elsewhere(run_chat: ChatRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    async with run_chat(tui=TuiSettings(reduced_motion=True, sidebar=False, notify="bell")) as chat:
        await chat.ready()
        rung = listen(chat, monkeypatch)
        chat.engine.emit(approval("a1"))
        await chat.until(lambda: chat.app.chat.questions.waiting)
        assert rung == []
        chat.app.post_message(AppBlur())
        await chat.until(lambda: not chat.app.app_focus)
        chat.engine.emit(approval("a2"))
        await chat.until(lambda: len(chat.app.chat.questions.waiting) == 2)
        assert rung == ["\x07"]
        chat.app.post_message(AppFocus())
        await chat.until(lambda: chat.app.app_focus)
        chat.engine.emit(approval("a3"))
        await chat.until(lambda: len(chat.app.chat.questions.waiting) == 3)
        assert rung == ["\x07"]


@pytest.mark.parametrize(("seconds", "calls"), [(5.0, 0), (60.0, 1)])
async def test_the_end_of_a_long_turn_calls(
    run_chat: ChatRunner, monkeypatch: pytest.MonkeyPatch, seconds: float, calls: int
) -> None:
    tui = TuiSettings(reduced_motion=True, sidebar=False, notify="bell")
    async with run_chat(FakeEngine(script=endless), tui=tui) as chat:
        await chat.ready()
        rung = listen(chat, monkeypatch)
        await chat.type("hello")
        state = chat.app.chat.session.state
        await chat.until(lambda: state.activity == "answering")
        chat.app.chat.clock = lambda: seconds
        chat.app.post_message(AppBlur())
        await chat.until(lambda: not chat.app.app_focus)
        chat.engine.emit(TurnCompleted(conversation_id=state.conversation_id, turn_index=1, text=""))
        await chat.until(lambda: state.turn_started is None)
        assert len(rung) == calls


async def test_a_limit_on_cost_is_asked_about(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        event = CostLimitReached(
            conversation_id="x", turn_index=1, approval_id="c1", scope="turn", limit=1.0, spent=0.0123, raised=2.0
        )
        chat.engine.emit(event)
        await chat.until(lambda: chat.app.chat.questions.has_focus)
        question = chat.app.chat.questions.waiting[0]
        assert "$0.0123" in question.title and "$1.00" in question.title
        assert [choice.key for choice in question.answers] == ["once", "session", "no"]
        assert "$2.00" in question.answers[1].label
        await chat.press("s")
        await chat.until(lambda: chat.engine.asked(AnswerApproval))
        assert chat.engine.asked(AnswerApproval)[0].decision == "session"
