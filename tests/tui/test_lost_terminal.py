"""A closed terminal ends the chat and its engine, whenever it closes and whoever ignores SIGHUP."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.support.pty_chat import TEXTUAL, Start, close
from tests.support.waiting import PATIENCE

with_and_without_hang_up = pytest.mark.parametrize("ignore_hang_up", [False, True], ids=["default", "ignored"])


def children(chat: Start) -> list[psutil.Process]:
    """Return the chat and the processes that it has started."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(chat.pid)
        return [process, *process.children(recursive=True)]
    return []


def wait_until(met: Callable[[], object]) -> None:
    until = time.monotonic() + PATIENCE
    while not met():
        assert time.monotonic() < until
        time.sleep(0.02)


def assert_all_end(chat: Start) -> None:
    """Close the terminal, and wait until everything the chat had started has ended."""
    processes = children(chat)
    os.close(chat.terminal)
    try:
        wait_until(lambda: os.waitpid(chat.pid, os.WNOHANG)[0])
    finally:
        _, alive = psutil.wait_procs(processes, PATIENCE)
        for process in alive:
            process.kill()
    assert not alive


@with_and_without_hang_up
@pytest.mark.parametrize(
    "seconds", [0.6, *(pytest.param(s, marks=pytest.mark.slow) for s in (0.0, 0.1, 0.3, 1.2, 3.0))]
)
def test_a_closed_terminal_ends_everything(home: Path, seconds: float, ignore_hang_up: bool) -> None:
    chat = Start(home, ignore_hang_up=ignore_hang_up)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        chat.read(0.01)
    assert_all_end(chat)


@with_and_without_hang_up
def test_a_closed_terminal_ends_the_engine_and_keeps_what_was_just_typed(home: Path, ignore_hang_up: bool) -> None:
    chat = Start(home, ignore_hang_up=ignore_hang_up)
    chat.wait_for(TEXTUAL)
    chat.wait_until(lambda: len(children(chat)) > 1)
    chat.type("not sent")
    chat.wait_for_shown("not sent")
    assert_all_end(chat)
    (draft,) = home.glob("state/drafts/*.json")
    assert json.loads(draft.read_bytes())["text"] == "not sent"


@with_and_without_hang_up
def test_a_terminal_that_shows_nothing_any_more_and_closes_ends_the_chat(home: Path, ignore_hang_up: bool) -> None:
    chat = Start(home, ignore_hang_up=ignore_hang_up)
    chat.wait_for(TEXTUAL)
    fill(chat)
    assert_all_end(chat)


def test_a_chat_whose_terminal_shows_nothing_any_more_can_be_terminated(home: Path) -> None:
    chat = Start(home)
    try:
        chat.wait_for(TEXTUAL)
        fill(chat)
        os.kill(chat.pid, signal.SIGTERM)
        wait_until(lambda: os.waitpid(chat.pid, os.WNOHANG)[0])
    finally:
        close(chat)


def fill(chat: Start) -> None:
    """Let the chat draw, without reading it, until its writes block."""
    for size in range(60, 100):
        chat.resize(20, size)
        time.sleep(0.05)


def test_lines_without_marks_of_a_paste_are_one_draft(home: Path) -> None:
    chat = Start(home)
    try:
        chat.wait_for(TEXTUAL)
        chat.type("".join(f"line {number}\r" for number in range(1, 5)))
        chat.wait_for_shown("line 4")
        assert chat.sent() == []
    finally:
        close(chat)
