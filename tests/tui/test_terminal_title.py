"""The terminal around the chat: its title says whether the chat works, waits or is done; ctrl+z gives it back."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest
from textual.events import AppBlur, AppFocus

from ragforge_tui.shared.events import TurnCompleted
from ragforge_tui.tui.terminal_title import RESTORE_TITLE, has_progress, has_title, title_sequence
from tests.support.fake_engine import FakeEngine, endless
from tests.support.pty_chat import ENTER, LEAVE, Start, close
from tests.tui.conftest import Chat, ChatRunner
from tests.tui.test_questions import approval


def titles(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that takes the titles from now on."""
    written: list[str] = []
    driver: Any = chat.app._driver
    real = driver.write

    def write(data: str) -> None:
        if data.startswith("\x1b]2;"):
            written.append(data.removeprefix("\x1b]2;").partition("\x07")[0])
        real(data)

    monkeypatch.setattr(driver, "write", write)
    return written


def test_foreign_words_stay_words() -> None:
    sequence = title_sequence("idle", "Fix\x07\x1b]52;c;eA==\x07 it\nnow", "/home/ada/courier/")
    assert sequence == "\x1b]2;● Fix it now · courier\x07"
    assert title_sequence("working", "", "") == "\x1b]2;◐ ragforge-chat\x07"


@pytest.mark.parametrize(
    ("environment", "title", "progress"),
    [
        ({"TERM": "xterm-256color"}, True, False),
        ({"TERM": "xterm-ghostty", "TERM_PROGRAM": "ghostty"}, True, True),
        ({"TERM": "xterm-256color", "WT_SESSION": "1"}, True, True),
        ({"TERM": "tmux-256color", "WT_SESSION": "1", "TMUX": "/tmp/x"}, True, False),
        ({"TERM": "linux"}, False, False),
        ({"TERM": "dumb"}, False, False),
    ],
)
def test_only_terminals_that_know_them_get_the_sequences(
    environment: dict[str, str], title: bool, progress: bool
) -> None:
    assert (has_title(environment), has_progress(environment)) == (title, progress)


async def test_the_title_follows_the_chat(run_chat: ChatRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    async with run_chat(FakeEngine(script=endless)) as chat:
        await chat.ready()
        written = titles(chat, monkeypatch)
        await chat.type("Hello")
        await chat.press("enter")
        await chat.until(lambda: written and written[-1].startswith("◐"))
        chat.engine.emit(approval("a1"))
        await chat.until(lambda: written[-1].startswith("?"))
        chat.app.chat.questions.focus()
        await chat.press("y")
        await chat.until(lambda: written[-1].startswith("◐"))
        chat.app.post_message(AppBlur())
        await chat.until(lambda: not chat.app.app_focus)
        state = chat.app.chat.session.state
        chat.engine.emit(
            TurnCompleted(conversation_id=state.conversation_id, turn_index=state.followed or 1, text="Done.")
        )
        await chat.until(lambda: written[-1].startswith("✓"))
        chat.app.post_message(AppFocus())
        await chat.until(lambda: written[-1].startswith("●"))


def test_the_chat_stops_for_the_shell_and_is_drawn_again(home: Path) -> None:
    chat = Start(home)
    try:
        chat.wait_for(b"sk, type")
        chat.type("\x1a")
        chat.wait_until(lambda: psutil.Process(chat.pid).status() == psutil.STATUS_STOPPED)
        # What it wrote before it stopped may still be in the terminal.
        chat.wait_until(lambda: LEAVE in chat.written and RESTORE_TITLE.encode() in chat.written)
        before = len(chat.written)
        os.kill(chat.pid, signal.SIGCONT)
        chat.wait_until(lambda: b"sk, type" in chat.written[before:])
        assert ENTER in chat.written[before:]
    finally:
        close(chat)
