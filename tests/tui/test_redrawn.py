"""The real chat on a terminal in memory: what the sent differences add up to is what a whole drawing shows."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import psutil
import pyte
import pytest

from tests.support.pty_chat import ENTER, SIZE, Start, close

QUIET_SECONDS = 0.7
BETWEEN_KEYS = 0.1
TOUR = (
    ["\x1bOP", "\x1b[6~", "\x1b[6~", "\x1b[5~", "\x1b"],  # Help, which scrolls
    ["\x10", "the", "\x1b"],  # The palette
    ["日本 e\u0301 and words", "\x0a", "second line"],  # The prompt grows
    ["\x15", "\x1b[200~" + "long line of text " * 30 + "\x1b[201~"],
    ["\x7f" * 40, "\x1b[D" * 9, "new"],
)
"""Keys between two comparisons."""


class Shown:
    """A chat and the screen that everything it writes has been drawn on."""

    def __init__(self, chat: Start) -> None:
        self.chat = chat
        self._taken = 0
        self._new_screen(*SIZE)

    def _new_screen(self, rows: int, columns: int) -> None:
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)

    def take(self) -> None:
        """Draw what was written since."""
        self._stream.feed(self.chat.written[self._taken :])
        self._taken = len(self.chat.written)

    def settle(self) -> None:
        """Wait until nothing more is written."""
        before, quiet = -1, time.monotonic()
        while time.monotonic() - quiet < QUIET_SECONDS:
            self.chat.read(0.05)
            if before != (before := len(self.chat.written)):
                quiet = time.monotonic()
        self.take()

    def resize(self, rows: int, columns: int) -> None:
        self.take()
        self._screen.resize(rows, columns)
        self.chat.resize(rows, columns)

    def lines(self) -> list[list[pyte.screens.Char]]:
        """What a user sees: the ink of a blank is not seen."""
        screen = self._screen
        return [
            [
                cell._replace(fg="default") if (cell := screen.buffer[y][x]).data == " " else cell
                for x in range(screen.columns)
            ]
            for y in range(screen.lines)
        ]

    def drawn_again(self) -> list[list[pyte.screens.Char]]:
        """Return the lines of a new screen on which the chat has drawn everything, as it does after it was stopped."""
        self.chat.type("\x1a")
        self.chat.wait_until(lambda: psutil.Process(self.chat.pid).status() == psutil.STATUS_STOPPED)
        while self.chat.read(0.2) and self._taken < len(self.chat.written):
            self.take()
        self._new_screen(self._screen.lines, self._screen.columns)
        before = len(self.chat.written)
        os.kill(self.chat.pid, signal.SIGCONT)
        self.chat.wait_until(lambda: ENTER in self.chat.written[before:])
        self.settle()
        return self.lines()


@pytest.mark.parametrize("flags", [(), pytest.param(("--plain",), marks=pytest.mark.slow)], ids=["usual", "plain"])
def test_the_differences_add_up_to_the_whole_screen(home: Path, flags: tuple[str, ...]) -> None:
    (home / "config.yaml").write_text("tui: {reduced_motion: true}\n", encoding="utf-8")  # No cursor blinks.
    chat = Start(home, *flags)
    try:
        shown = Shown(chat)
        chat.wait_for(b"127.0.0.1:9")  # No graph: it comes to rest.
        shown.settle()
        for number, keys in enumerate(TOUR):
            for key in keys:
                chat.type(key)
                chat.read(BETWEEN_KEYS)
            shown.settle()
            for rows, columns in ((20, 70), SIZE) if number == 2 else ():
                shown.resize(rows, columns)
                shown.settle()
            lines = shown.lines()
            assert lines == shown.drawn_again()
    finally:
        close(chat)
