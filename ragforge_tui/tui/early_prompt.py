"""The prompt that accepts and shows typed text while Textual is still being imported.

`EarlyPrompt` puts the terminal into raw mode and draws header, prompt and status line as Textual drew them at the last
start in a terminal like this one. Without such a frame it draws nothing and only accepts keys, which a thread reads.
`chat_driver.py` takes over: it stops the thread, takes the bytes it has read, and continues to read.

Imports the standard library only. The bytes are interpreted only to display them; Textual's parser gets them
unchanged. The terminal is restored however the process ends, except by SIGKILL.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import select
import signal
import termios
import threading
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any, TypedDict

MAX_FRAMES = 8
"""Number of terminals, by size and kind, whose frames are kept."""
MAX_BYTES = 64 * 1024
"""Limit of the file of the frames."""
MAX_CELLS = 1_000
"""Limit of a frame's positions."""
MAX_SHOWN_BYTES = 4_096
"""Typed bytes that are shown; each key draws all of them again."""
NO_SCREEN = frozenset({"", "dumb", "linux", "unknown"})
"""Values of TERM without an alternate screen: the frame would stay on the screen after an error."""
ENVIRONMENT = ("TERM", "COLORTERM", "COLORFGBG", "NO_COLOR", "FORCE_COLOR", "TERM_PROGRAM", "TEXTUAL_THEME", "LANG")
"""Variables that change how a frame looks."""
END_SIGNALS = (signal.SIGINT, signal.SIGTERM)
WRITE_SECONDS = 1.0
"""Longest wait for a terminal that takes nothing, such as one that is stopped; SIGTERM must end the chat there too."""
INTERRUPTED = 130
"""Exit status after ctrl+c."""
ALTERNATE_SCREEN = "\x1b[?1049h"
_DRAWN = re.compile(r"(?:\x1b\[[0-9;:]*[mH]|[^\x00-\x1f\x7f-\x9f])*")
_ENTER = f"{ALTERNATE_SCREEN}\x1b[?25l\x1b[?2004h"
_LEAVE = "\x1b[?2004l\x1b[0m\x1b[?1049l\x1b[?25h"
_LEAVE_TEXTUAL = "\x1b[<u\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l\x1b[?1004l\x1b[?2048l\x1b[?7h"
"""Ends the modes that Textual sets, which it does not do itself when a signal ends the process."""


class Frame(TypedDict):
    """First screen that Textual drew in a terminal, without its middle.

    Attributes:
        key: Everything the frame depends on; it is used only if all of it is equal.
        header_key: Everything the header depends on in addition.
        header: The first line, with its escape sequences.
        lines: The lines from the prompt to the bottom, with their escape sequences.
        row, column: Position of the first letter in the prompt, from 1.
        room: Cells for the text and the cursor after it.
        text, cursor: Sequences that set the style of the text and of the cursor.
    """

    key: list[str]
    header_key: list[str]
    header: str
    lines: list[str]
    row: int
    column: int
    room: int
    text: str
    cursor: str


class EarlyPrompt:
    """Owner of the terminal from the first milliseconds until Textual takes over; a context manager that restores it.

    Args:
        file: File that keeps the frames.
        settings_files: A frame is not used any more once one of these files has changed.
        look: Further values that a frame depends on, in addition to the terminal.
        header_key: Values that the header depends on.
    """

    def __init__(self, file: Path, *, settings_files: list[Path], look: list[str], header_key: list[str]) -> None:
        self._file = file
        self._settings_files = settings_files
        self._look = look
        self._header_key = header_key
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
            # Registered first, so that an interrupt at any later line cannot leave the terminal in raw mode.
            atexit.register(self.restore)
            self._attributes = termios.tcgetattr(0)
            for number in END_SIGNALS:
                signal.signal(number, self._end)
            termios.tcsetattr(0, termios.TCSANOW, _raw(self._attributes))
            if self._frame is not None:
                self._write(_ENTER + _screen(self._frame, self._header_key))
            self._stop_reader, self._stop_writer = os.pipe()
            self._thread = threading.Thread(target=self._read, name="early-prompt", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.restore()

    @property
    def attributes(self) -> list[Any] | None:
        """Attributes of the terminal before the start; None if they were not changed."""
        return self._attributes

    @property
    def on_screen(self) -> bool:
        """Whether a frame is displayed, on the alternate screen."""
        return self._frame is not None

    def hand_over(self) -> bytes:
        """Stop reading and drawing; return the bytes read so far, once.

        Later keys wait in the terminal.
        """
        self._end_reading()
        self._handed_over = True
        typed, self._typed = self._typed, b""
        return typed

    def restore(self) -> None:
        """Restore the attributes of the terminal, and the screen unless Textual has taken over and restored it."""
        atexit.unregister(self.restore)
        self._end_reading()
        if self._attributes is not None:
            if self._frame is not None and not self._handed_over:
                self._write(_LEAVE)
            self._reset(self._attributes)
            self._attributes = None
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def save(self, drawn: str, *, row: int, column: int, room: int, text: str, cursor: str) -> None:
        """Keep a frame for the next start in such a terminal; if the disk cannot be written, the next start has none.

        Args:
            drawn: The whole screen as Textual drew it, line by line.
            row: Row of the prompt's text, from 1; the prompt's border is in the row above.
        """
        lines = drawn.split("\n")
        if self._current_key() != self._key or len(lines) != os.get_terminal_size(2).lines:
            return  # The terminal was resized, or a setting changed, while the chat started.
        frame = Frame(
            key=self._key,
            header_key=self._header_key,
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

        frames = [frame, *(other for other in kept if other["key"] != frame["key"])][:MAX_FRAMES]
        while len(encoded := json.dumps(frames).encode()) > MAX_BYTES:
            frames.pop()
        try:
            atomic_write(self._file, encoded, sync=False)
        except OSError:
            return

    def _current_key(self) -> list[str]:
        terminal = [f"{name}={os.environ.get(name)}" for name in ENVIRONMENT]
        return [_size(), *self._look, *terminal, *map(_modified, self._settings_files)]

    def _end_reading(self) -> None:
        if self._thread is not None:
            os.write(self._stop_writer, b"\n")
            self._thread.join()
            self._thread = None
            os.close(self._stop_reader)
            os.close(self._stop_writer)

    def _read(self) -> None:
        """Read keys and show them until `_end_reading`, or until the terminal is gone."""
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
        if frame is None or len(self._typed) > MAX_SHOWN_BYTES:
            return
        if _size() != frame["key"][0]:
            return  # The terminal was resized, so the positions are wrong; Textual will draw everything again.
        text = clipped(visible_text(self._typed), frame["room"] - 1)
        start = f"\x1b[{frame['row']};{frame['column']}H"
        if text:
            # Blanks first: they remove earlier text without knowing how many cells the terminal gave it.
            blank = f"{start}{frame['text']}{' ' * frame['room']}"
            self._write(f"{blank}{start}{text}\x1b[0m{frame['cursor']} \x1b[0m")
        else:
            self._write(_screen(frame, self._header_key))

    def _write(self, text: str) -> None:
        data = text.encode()
        try:
            while data:
                if not select.select([], [2], [], WRITE_SECONDS)[1]:
                    raise BlockingIOError
                data = data[os.write(2, data) :]
        except OSError:
            self._frame = None

    def _end(self, number: int, _: FrameType | None) -> None:
        """Restore the terminal, even if Textual has taken it over, and end the process at once.

        A KeyboardInterrupt instead would be raised inside half-imported modules.
        """
        frame, self._frame = self._frame, None  # so that the thread draws nothing more
        if self._attributes is not None:
            if self._handed_over or frame is not None:
                self._write((_LEAVE_TEXTUAL if self._handed_over else "") + _LEAVE)
            self._reset(self._attributes)
        if number == signal.SIGINT:
            os._exit(INTERRUPTED)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def _reset(self, attributes: list[Any]) -> None:
        try:
            termios.tcsetattr(0, termios.TCSANOW, attributes)
        except termios.error:
            return  # The terminal is gone.


def is_usable(env: Mapping[str, str]) -> bool:
    """Return whether this process may draw on its terminal and the terminal has an alternate screen."""
    if env.get("TERM", "") in NO_SCREEN or env.get("TEXTUAL_DRIVER"):
        return False
    try:
        return all(map(os.isatty, (0, 1, 2))) and os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def visible_text(typed: bytes) -> str:
    """Return the text of the prompt after these keys, on one line.

    An approximation that Textual's parser and the prompt correct in a moment: it understands letters, pastes, backspace
    and Enter, and ignores all other keys.
    """
    from ragforge_tui.tui.terminal_answers import without_answers

    text = without_answers(typed).decode("utf-8", "ignore")
    text = re.sub(
        r"\x1b\[200~(.*?)(?:\x1b\[201~|\Z)", lambda paste: re.sub(r"[\r\n]+", " ", paste[1]), text, flags=re.S
    )
    text = re.sub(r"\x1b(?:\[[0-?]*[ -/]*[@-~]?|O?.?)", "", text, flags=re.S)
    visible: list[str] = []
    for letter in text:
        if letter == "\r":
            visible.clear()
        elif letter == "\x7f":
            del visible[-1:]
        elif letter.isprintable():
            visible.append(letter)
    return "".join(visible)


def clipped(text: str, room: int) -> str:
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
    """Return the attributes that Textual sets, except that ctrl+c still interrupts."""
    iflag, oflag, cflag, lflag, ispeed, ospeed, characters = attributes
    iflag &= ~(termios.IXON | termios.IXOFF | termios.ICRNL | termios.INLCR | termios.IGNCR)
    lflag &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN)
    lflag |= termios.ISIG
    characters = list(characters)
    characters[termios.VMIN], characters[termios.VTIME] = 1, 0
    characters[termios.VSUSP] = characters[termios.VQUIT] = os.fpathconf(0, "PC_VDISABLE").to_bytes(1, "big")
    return [iflag, oflag, cflag, lflag, ispeed, ospeed, characters]


def _screen(frame: Frame, header_key: list[str]) -> str:
    """Return the sequences that draw a frame; the header stays empty if it is that of another folder."""
    header = frame["header"] if frame["header_key"] == header_key else ""
    return f"{frame['text']}\x1b[2J{header}{''.join(frame['lines'])}\x1b[0m"


def _size() -> str:
    return "{}x{}".format(*os.get_terminal_size(2))


def _modified(file: Path) -> str:
    try:
        return str(file.stat().st_mtime_ns)
    except OSError:
        return ""


def _load(file: Path) -> list[Frame]:
    """Return the frames in a file, without those that are damaged, of another version, or do more than draw."""
    from ragforge_tui.shared.files import read_regular

    try:
        return [frame for frame in json.loads(read_regular(file, MAX_BYTES)) if _is_frame(frame)]
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return []


def _is_frame(frame: Any) -> bool:
    """Return whether a frame is complete and only draws: colours, positions and text."""
    return (
        frame.keys() == Frame.__annotations__.keys()
        and all(_DRAWN.fullmatch(text) for text in (frame["header"], *frame["lines"], frame["text"], frame["cursor"]))
        and all(type(frame[name]) is int and 0 < frame[name] < MAX_CELLS for name in ("row", "column", "room"))
    )
