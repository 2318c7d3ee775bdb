"""The prompt before the framework: it takes keys, and shows them, while Textual is still being imported.

`EarlyPrompt` puts the terminal into raw mode and draws header, prompt and status line as Textual drew them at the last
start in a terminal like this one; without such a frame it draws nothing and only takes the keys. A thread reads and
shows them. `chat_driver.py` takes over: it stops the thread, gets every byte that was read, and reads on.

Imports the standard library only. What it reads is never interpreted, except to show it: Textual's parser gets the very
bytes. The terminal is restored on every way out but SIGKILL.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import termios
import threading
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any, TypedDict

MAX_FRAMES = 8
"""Terminals of this many sizes and kinds are remembered."""
NO_SCREEN = frozenset({"", "dumb", "linux", "unknown"})
"""Values of TERM without an alternate screen: the frame would stay there after an error."""
ENVIRONMENT = ("TERM", "COLORTERM", "COLORFGBG", "NO_COLOR", "FORCE_COLOR", "TERM_PROGRAM", "TEXTUAL_THEME", "LANG")
"""Variables that change how a frame looks."""
ENDING = (signal.SIGINT, signal.SIGTERM)
INTERRUPTED = 130
"""Exit status after ctrl+c."""
ALTERNATE_SCREEN = "\x1b[?1049h"
_ENTER = f"{ALTERNATE_SCREEN}\x1b[?25l\x1b[?2004h"
_LEAVE = "\x1b[?2004l\x1b[0m\x1b[?1049l\x1b[?25h"
_LEAVE_TEXTUAL = "\x1b[<u\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l\x1b[?1004l\x1b[?2048l\x1b[?7h"
"""Ends the modes that Textual adds; it does not do so itself when it is terminated."""


class Frame(TypedDict):
    """What Textual drew first in a terminal, without the middle of the screen.

    Attributes:
        key: Everything the frame depends on, compared as a whole.
        place: What the header depends on.
        header: The first line, with its escape sequences, as the other lines are.
        lines: The lines from the prompt to the bottom.
        row, column: Where the text of the prompt begins, from 1.
        room: Cells for the text and the cursor after it.
        text, cursor: Sequences that set the style of the text and of the cursor.
    """

    key: list[str]
    place: list[str]
    header: str
    lines: list[str]
    row: int
    column: int
    room: int
    text: str
    cursor: str


class EarlyPrompt:
    """The terminal from the first milliseconds until Textual takes it over; a context manager that restores it.

    Args:
        file: Where the frames are kept.
        settings_files: Files whose change may change the frame.
        look: What else a frame depends on, besides the terminal.
        place: What the header depends on.
    """

    def __init__(self, file: Path, *, settings_files: list[Path], look: list[str], place: list[str]) -> None:
        self._file = file
        self._settings_files = settings_files
        self._look = look
        self._place = place
        self._key: list[str] = []
        self._attributes: list[Any] | None = None
        self._frame: Frame | None = None
        self._typed = b""
        self._thread: threading.Thread | None = None
        self._stop_reader, self._stop_writer = -1, -1
        self._handed_over = False

    def __enter__(self) -> EarlyPrompt:
        if is_usable(os.environ):
            self._key = self._current_key()
            self._frame = next((frame for frame in _load(self._file) if frame["key"] == self._key), None)
            # Before anything is changed, so that even an interrupt in the next line leaves no raw terminal.
            atexit.register(self.restore)
            self._attributes = termios.tcgetattr(0)
            for number in ENDING:
                signal.signal(number, self._end)
            termios.tcsetattr(0, termios.TCSANOW, _raw(self._attributes))
            if self._frame is not None:
                self._write(_ENTER + _whole(self._frame, self._place))
            self._stop_reader, self._stop_writer = os.pipe()
            self._thread = threading.Thread(target=self._read, name="early-prompt", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.restore()

    @property
    def attributes(self) -> list[Any] | None:
        """Attributes of the terminal before the start; None if it was left alone."""
        return self._attributes

    @property
    def on_screen(self) -> bool:
        """Whether a frame is shown, on the alternate screen."""
        return self._frame is not None

    def hand_over(self) -> bytes:
        """Stop reading and drawing; return everything that was read, once.

        What is typed from now on waits in the terminal.
        """
        self._end_reading()
        self._handed_over = True
        typed, self._typed = self._typed, b""
        return typed

    def restore(self) -> None:
        """Restore the terminal, if Textual has not taken it over: then it has done so itself."""
        atexit.unregister(self.restore)
        self._end_reading()
        if self._attributes is not None:
            if self._frame is not None and not self._handed_over:
                self._write(_LEAVE)
            self._set_back(self._attributes)
            self._attributes = None
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def save(self, drawn: str, *, row: int, column: int, room: int, text: str, cursor: str) -> None:
        """Keep a frame for the next start in such a terminal; a disk that cannot be written costs only that.

        Args:
            drawn: The whole screen as Textual drew it: one line of the terminal each.
            row: Row of the prompt's text, from 1; its box begins in the row before it.
        """
        lines = drawn.split("\n")
        if self._current_key() != self._key or len(lines) != os.get_terminal_size(2).lines:
            return  # Resized meanwhile, or a setting was changed.
        frame = Frame(
            key=self._key,
            place=self._place,
            header=lines[0],
            lines=lines[max(row - 2, 0) :],
            row=row,
            column=column,
            room=room,
            text=text,
            cursor=cursor,
        )
        kept = _load(self._file)
        if frame in kept:
            return
        from ragforge_tui.shared.files import atomic_write

        others = [other for other in kept if other["key"] != frame["key"]]
        try:
            atomic_write(self._file, json.dumps([frame, *others][:MAX_FRAMES]).encode(), sync=False)
        except OSError:
            return

    def _current_key(self) -> list[str]:
        terminal = [f"{name}={os.environ.get(name)}" for name in ENVIRONMENT]
        return [_size(), *self._look, *terminal, *map(_stamp, self._settings_files)]

    def _end_reading(self) -> None:
        if self._thread is not None:
            os.write(self._stop_writer, b"\n")
            self._thread.join()
            self._thread = None
            os.close(self._stop_reader)
            os.close(self._stop_writer)

    def _read(self) -> None:
        """Read keys and show them, until told to stop or the terminal is gone."""
        try:
            while self._stop_reader not in select.select([0, self._stop_reader], [], [])[0]:
                read = os.read(0, 4096)
                if not read:
                    return
                self._typed += read
                self._draw()
        except OSError:
            return

    def _draw(self) -> None:
        frame = self._frame
        if frame is None:
            return
        if _size() != frame["key"][0]:
            return  # Resized: Textual will know where things belong.
        text = fitting(shown(self._typed), frame["room"] - 1)
        start = f"\x1b[{frame['row']};{frame['column']}H"
        if text:
            # Blanks first: a terminal that counts the cells of a letter differently must not push the frame away.
            blank = f"{start}{frame['text']}{' ' * frame['room']}"
            self._write(f"{blank}{start}{text}\x1b[0m{frame['cursor']} \x1b[0m")
        else:
            self._write(_whole(frame, self._place))

    def _write(self, text: str) -> None:
        data = text.encode()
        try:
            while data:
                data = data[os.write(2, data) :]
        except OSError:
            self._frame = None

    def _end(self, number: int, _: FrameType | None) -> None:
        """Restore the terminal, whoever has it, and end at once.

        Not by KeyboardInterrupt: half-imported modules would have to deal with it.
        """
        frame, self._frame = self._frame, None  # Nothing is drawn any more.
        if self._attributes is not None:
            if self._handed_over or frame is not None:
                self._write((_LEAVE_TEXTUAL if self._handed_over else "") + _LEAVE)
            self._set_back(self._attributes)
        if number == signal.SIGINT:
            os._exit(INTERRUPTED)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def _set_back(self, attributes: list[Any]) -> None:
        try:
            termios.tcsetattr(0, termios.TCSANOW, attributes)
        except termios.error:
            return  # The terminal is gone.


def is_usable(env: Mapping[str, str]) -> bool:
    """Return whether this process may draw on its terminal, and whether the terminal has an alternate screen."""
    if env.get("TERM", "") in NO_SCREEN or env.get("TEXTUAL_DRIVER"):
        return False
    try:
        return all(map(os.isatty, (0, 1, 2))) and os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def shown(typed: bytes) -> str:
    """Return what the prompt holds after these keys, in one line.

    A guess that Textual's parser and the prompt correct in a moment: letters, pastes, backspace and Enter are
    understood; of other keys only what would be drawn matters, nothing.
    """
    import re

    text = typed.decode("utf-8", "ignore")
    text = re.sub(
        r"\x1b\[200~(.*?)(?:\x1b\[201~|\Z)", lambda paste: re.sub(r"[\r\n]+", " ", paste[1]), text, flags=re.S
    )
    text = re.sub(r"\x1b(?:\[[0-?]*[ -/]*[@-~]?|O?.?)", "", text, flags=re.S)
    held: list[str] = []
    for letter in text:
        if letter == "\r":
            held.clear()
        elif letter == "\x7f":
            del held[-1:]
        elif letter.isprintable():
            held.append(letter)
    return "".join(held)


def fitting(text: str, room: int) -> str:
    """Return the beginning of a text that fits into `room` cells."""
    if text.isascii():
        return text[:room]
    import unicodedata

    cells = 0
    for index, letter in enumerate(text):
        cells += 0 if unicodedata.combining(letter) else 1 + (unicodedata.east_asian_width(letter) in "WF")
        if cells > room:
            return text[:index]
    return text


def _raw(attributes: list[Any]) -> list[Any]:
    """Return the attributes that Textual sets, but ctrl+c still interrupts; ctrl+z and ctrl+\\ are keys, as there."""
    iflag, oflag, cflag, lflag, ispeed, ospeed, characters = attributes
    iflag &= ~(termios.IXON | termios.IXOFF | termios.ICRNL | termios.INLCR | termios.IGNCR)
    lflag &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN)
    lflag |= termios.ISIG
    characters = list(characters)
    characters[termios.VMIN], characters[termios.VTIME] = 1, 0
    characters[termios.VSUSP] = characters[termios.VQUIT] = os.fpathconf(0, "PC_VDISABLE").to_bytes(1, "big")
    return [iflag, oflag, cflag, lflag, ispeed, ospeed, characters]


def _whole(frame: Frame, place: list[str]) -> str:
    header = frame["header"] if frame["place"] == place else ""
    return f"{frame['text']}\x1b[2J{header}{''.join(frame['lines'])}\x1b[0m"


def _size() -> str:
    return "{}x{}".format(*os.get_terminal_size(2))


def _stamp(file: Path) -> str:
    try:
        return str(file.stat().st_mtime_ns)
    except OSError:
        return ""


def _load(file: Path) -> list[Frame]:
    try:
        frames: list[Frame] = json.loads(file.read_bytes())
        return frames
    except (OSError, ValueError):
        return []
