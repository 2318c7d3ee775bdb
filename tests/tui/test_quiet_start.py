"""The start in a terminal of its own: no typed key is lost, doubled or echoed, and the terminal is restored."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.pty_chat import LEAVE, TEXTUAL, Start, close

AGAIN = b"again quits"
PASTES = b"\x1b[?2004h"
"""Marks pastes in brackets: the last thing that Textual asks of the terminal at its start."""


@pytest.fixture
def chat(home: Path) -> Iterator[Start]:
    """A chat that is starting."""
    started = Start(home)
    yield started
    close(started)


def test_keys_of_the_whole_start_arrive_once_and_in_order(chat: Start) -> None:
    chat.wait_until(lambda: chat.raw)
    words: list[str] = []
    # Until well after Textual has the terminal, so that some keys fall into each moment of the change.
    while len(words) < 400 and not (TEXTUAL in chat.written and len(words) > 60):
        words.append(f"é{len(words)}")
        chat.type(f"{words[-1]} ")
        chat.read(0.004)
    assert "é0".encode() not in chat.written[: chat.written.find(TEXTUAL)]
    for number in range(40):
        words.append(f"ö{number}")
        chat.type(f"{words[-1]} ")
        chat.read(0.01)
    chat.type("end\r")
    chat.wait_until(chat.sent)
    assert chat.sent() == [" ".join([*words, "end"])]


def test_a_message_is_sent_while_the_chat_starts(chat: Start) -> None:
    chat.wait_until(lambda: chat.raw)
    chat.type("first mesage\x7f\x7f\x7f\x7fssage\r")
    chat.wait_until(chat.sent)
    assert chat.sent() == ["first message"]


def test_lines_that_come_at_once_while_the_chat_starts_are_one_draft(chat: Start) -> None:
    chat.wait_until(lambda: chat.raw)
    chat.type("one\rtwo\rthree")
    chat.wait_for_shown("three")
    assert chat.sent() == []
    chat.type("\r")
    chat.wait_until(chat.sent)
    assert chat.sent() == ["one\ntwo\nthree"]


def test_a_paste_with_escape_sequences_sends_nothing(chat: Start) -> None:
    chat.wait_for(PASTES)
    chat.type("\x1b[200~one \x1b[31mred\r\x1b[\r\x1b\r!touch \x1b]0;x\r\x07y\r\x1b[20\x1b]x\x071~z\r\x1b[201~ end\r")
    chat.wait_until(chat.sent)
    assert chat.sent() == ["one red\n\n\n!touch y\n1~z end"]


def test_late_answers_of_the_terminal_are_no_keys(chat: Start) -> None:
    chat.wait_until(lambda: chat.raw)
    chat.type("one \x1b]11;rgb:1e1e/1e1e/1e1e\x07\x1b[?62;22c\x1bP>|xte")
    wait(chat, 0.05)
    chat.type("rm(370)\x1b\\two \x1b_sent\r\x1b\\three\r")
    chat.wait_until(chat.sent)
    assert chat.sent() == ["one two three"]


@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.15, 0.3])
def test_ctrl_c_ends_the_start_and_restores_the_terminal(chat: Start, seconds: float) -> None:
    chat.wait_until(lambda: chat.raw)
    wait(chat, seconds)
    chat.type("\x03")
    status = chat.ended_before(AGAIN)
    if status is None:
        chat.type("\x03")  # Textual took over before the key.
        assert os.WEXITSTATUS(chat.end()) == 0
    else:
        assert os.WEXITSTATUS(status) == 130
    chat.assert_restored()


def test_a_hang_up_from_elsewhere_restores_the_terminal(chat: Start) -> None:
    # The whole start is written: another thread writes it, which the end does not wait for.
    chat.wait_until(lambda: PASTES in chat.written)
    os.kill(chat.pid, signal.SIGHUP)
    assert os.WEXITSTATUS(chat.end()) == 128 + signal.SIGHUP
    chat.assert_restored()
    assert LEAVE in chat.written


@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.15, 0.3, 2.0])
def test_a_terminated_chat_restores_the_terminal(chat: Start, seconds: float) -> None:
    chat.wait_until(lambda: chat.raw)
    chat.type("lost")
    wait(chat, seconds)
    os.kill(chat.pid, signal.SIGTERM)
    assert os.WTERMSIG(chat.end()) == signal.SIGTERM
    chat.assert_restored()


def test_an_error_in_the_settings_is_printed_on_the_screen_of_the_shell(home: Path) -> None:
    (home / "config.yaml").write_text("tui: {theme: [}\n", encoding="utf-8")
    started = Start(home)
    try:
        assert os.WEXITSTATUS(started.end()) == 1
        started.assert_restored()
        assert b"config.yaml" in started.written
    finally:
        close(started)


def test_a_chat_that_is_left_restores_the_terminal(chat: Start) -> None:
    chat.wait_for(TEXTUAL)
    chat.type("\x11")
    assert os.WEXITSTATUS(chat.end()) == 0
    chat.assert_restored()
    assert LEAVE in chat.written


@pytest.mark.parametrize("term", ["dumb", "linux"])
def test_a_terminal_without_an_alternate_screen_loses_no_key(home: Path, term: str) -> None:
    started = Start(home, term=term)
    try:
        started.wait_until(lambda: started.raw)
        started.type("typed\r")
        started.wait_until(started.sent)
        assert started.sent() == ["typed"]
    finally:
        close(started)


def wait(chat: Start, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        chat.read(0.01)
