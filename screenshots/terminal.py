"""A terminal window with a shell in it, whose cells can be read: keys go in, what was drawn comes out."""

from __future__ import annotations

import asyncio
import copy
import fcntl
import os
import pty
import re
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyte

from screenshots.film import Frame, Piece, Row

COLUMNS, ROWS = 100, 30
QUIET_SECONDS = 0.05
"""Seconds without output after which the screen counts as drawn."""
FOREGROUND, BACKGROUND = "#e6edf3", "#0d1117"
COLORS = {
    "black": "#484f58",
    "red": "#ff7b72",
    "green": "#7ee787",
    "brown": "#e3b341",
    "blue": "#79c0ff",
    "magenta": "#d2a8ff",
    "cyan": "#56d4bc",
    "white": "#e6edf3",
}
"""Colors of a terminal by the names that pyte gives them."""

_OTHER_SCREEN = 1049
_FOREIGN = re.compile(rb"\x1b\[[<>=][0-9;]*[a-z]|\x1b\[\?[0-9;]*\$p|\x1bP.*?\x1b\\", re.DOTALL)
"""Questions and modes of newer terminals, which pyte would draw as text."""
_UNFINISHED = re.compile(rb"\x1b(\[[0-9;:?<>=$]*|[P\]][^\x07\x1b]*)?$")


class _Screen(pyte.Screen):
    """A screen with a second one, which full-screen programs use and leave as they found the first."""

    def set_mode(self, *modes: int, **kwargs: Any) -> None:
        if kwargs.get("private") and _OTHER_SCREEN in modes:
            self._first = copy.deepcopy(self.buffer), copy.copy(self.cursor)
            self.erase_in_display(2)
        super().set_mode(*modes, **kwargs)

    def reset_mode(self, *modes: int, **kwargs: Any) -> None:
        super().reset_mode(*modes, **kwargs)
        if kwargs.get("private") and _OTHER_SCREEN in modes:
            buffer, cursor = self._first
            self.buffer.clear()
            self.buffer.update(buffer)
            self.cursor = cursor
            self.dirty.update(range(self.lines))


class Terminal:
    """A window with a shell; the shell and what runs in it get a hang-up when it is closed.

    Args:
        patience: Seconds after which what has not been drawn never will.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], *, patience: float) -> None:
        self._screen = _Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)
        self._patience = patience
        self._rest = b""
        self._drawn_at = time.monotonic()
        self._pid, self._window = pty.fork()
        if self._pid == 0:
            os.chdir(folder)
            os.execvpe("bash", ["bash", "--noprofile", "--norc", "-i"], dict(environment))
        fcntl.ioctl(self._window, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        asyncio.get_running_loop().add_reader(self._window, self._read)

    def _read(self) -> None:
        try:
            written = os.read(self._window, 1 << 20)
        except OSError:
            written = b""
        if not written:
            asyncio.get_running_loop().remove_reader(self._window)
            return
        written = _FOREIGN.sub(b"", self._rest + written)
        unfinished = _UNFINISHED.search(written)
        self._rest = written[unfinished.start() :] if unfinished else b""
        self._stream.feed(written[: len(written) - len(self._rest)])
        self._drawn_at = time.monotonic()

    @property
    def quiet(self) -> float:
        """Return the seconds since something was drawn."""
        return time.monotonic() - self._drawn_at

    @property
    def text(self) -> str:
        """Return the lines of the screen."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    def frame(self) -> Frame:
        """Return the screen as pieces of text in one style."""
        cursor = None if self._screen.cursor.hidden else (self._screen.cursor.y, self._screen.cursor.x)
        return tuple(self._row(y, cursor[1] if cursor and cursor[0] == y else -1) for y in range(ROWS))

    def _row(self, y: int, cursor: int) -> Row:
        pieces: list[Piece] = []
        for x in range(COLUMNS):
            cell = self._screen.buffer[y][x]
            color, background = _color(cell.fg, FOREGROUND), _color(cell.bg, BACKGROUND)
            if cell.reverse != (x == cursor):
                color, background = background, color
            marks = (("b", cell.bold), ("i", cell.italics), ("u", cell.underscore))
            classes = " ".join(name for name, on in marks if on)
            last = pieces[-1] if pieces else None
            if last is not None and (last.color, last.background, last.classes) == (color, background, classes):
                pieces[-1] = last._replace(text=last.text + cell.data)
            else:
                pieces.append(Piece(x, cell.data, color, background, classes))
        return tuple(piece for piece in pieces if piece.text.strip() or piece.background != BACKGROUND)

    def press(self, keys: str) -> None:
        """Send keys, as a terminal encodes them."""
        os.write(self._window, keys.encode())

    async def wait_until(self, holds: Callable[[str], object], what: str) -> None:
        """Wait until something holds of the text of the screen, and the screen is drawn.

        Raises:
            TimeoutError: It did not within the patience of the terminal; the screen is quoted.
        """
        end = time.monotonic() + self._patience
        while not holds(self.text) or self.quiet < QUIET_SECONDS:
            if time.monotonic() > end:
                raise TimeoutError(f"never drawn: {what}; what was:\n{self.text}")
            await asyncio.sleep(0.02)

    def close(self) -> None:
        """Close the window."""
        asyncio.get_running_loop().remove_reader(self._window)
        with suppress(OSError):
            os.close(self._window)
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGHUP)

    async def ended(self) -> None:
        """Wait for the end of the shell."""
        await asyncio.to_thread(os.waitpid, self._pid, 0)


def _color(name: str, usual: str) -> str:
    if name == "default":
        return usual
    return COLORS.get(name.removeprefix("bright"), f"#{name}")
