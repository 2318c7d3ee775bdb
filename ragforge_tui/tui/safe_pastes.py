"""Pastes without control characters, also unmarked ones, before the parser of keys reads them.

Inside a paste Textual's parser takes an escape sequence that it does not know for keys, carriage returns included: such
a paste would send messages and run commands. So a paste reaches the parser whole and as plain text. This runs before
answers of the terminal are dropped, because what is left around one could form an end mark.

A terminal without marks, or tmux, sends the lines of a paste as keys. Lines that come faster than a person types become
a paste as well, so that none of them is sent or answers a question. The Enter after a single line waits for the next.
"""

from __future__ import annotations

import math
import re
from codecs import getincrementaldecoder
from collections.abc import Callable
from time import monotonic

from ragforge_tui.shared.sanitize import plain_text

START, END = b"\x1b[200~", b"\x1b[201~"
FAST_SECONDS = 0.02
"""Longest time between two reads of one burst."""
_PIECES = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]?|[]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|.)?|[\t\n\r -~\x80-\xff]+|.", re.S
)
_LINE_END = re.compile(rb"\r\n?|\n")


class SafePastes:
    """Filter of one terminal's input.

    Args:
        clock: Returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._read_at = -math.inf
        self._letters = False
        """Whether the burst has any."""
        self._drafting = False
        """Whether the burst has several lines."""
        self._waiting = b""
        """The end of the burst: an Enter, or a part of a letter."""
        self._passed_on = b""
        """The end of the keys, if it may begin a start mark."""
        self._pasted: bytearray | None = None
        """The paste so far, without its marks; None outside one."""

    def feed(self, typed: bytes) -> bytes:
        """Return the bytes for the parser: keys, and complete pastes as plain text between their marks.

        Args:
            typed: Nothing when none was typed for a while.
        """
        if self._pasted is None and (not typed or self._clock() - self._read_at > FAST_SECONDS):
            waiting = self._waiting.strip(b"\r\n") if self._drafting else self._waiting
            safe = bytearray(_as_paste(waiting) if self._drafting and waiting else waiting)
            self._waiting, self._letters, self._drafting = b"", False, False
        else:
            safe = bytearray()
        self._read_at = self._clock() if typed else -math.inf
        while True:
            if self._pasted is None:
                known, typed = len(self._passed_on), self._passed_on + typed
                start = typed.find(START)
                if start < 0:
                    self._passed_on = _start_of_mark(typed)
                    return bytes(safe + self._keys(typed[known:]))
                rest = start + len(START)
                safe += self._keys(typed[known:start]) + typed[max(known, start) : rest]
                self._passed_on, self._pasted, typed = b"", bytearray(), typed[rest:]
                self._letters = False
            searched = max(0, len(self._pasted) + 1 - len(END))
            self._pasted += typed
            end = self._pasted.find(END, searched)
            if end < 0:
                return bytes(safe)
            safe += _as_paste(bytes(self._pasted[:end])).removeprefix(START)
            typed, self._pasted = bytes(self._pasted[end + len(END) :]), None

    def _keys(self, keys: bytes) -> bytes:
        """Return keys, the lines of a burst as a paste."""
        if not keys:
            return b""
        self._drafting = self._drafting or bool(_LINE_END.match(self._waiting))
        keys, self._waiting = self._waiting + keys, b""
        given = bytearray()
        for match in _PIECES.finditer(keys):
            piece = match[0]
            if piece[0] < 32 and piece[0] not in b"\t\n\r":
                given += piece
                continue
            line = piece.strip(b"\r\n")
            ends = len(_LINE_END.findall(piece))
            self._letters = self._letters or bool(line)
            one_line = not ends or (ends == 1 and _LINE_END.fullmatch(piece, len(line)) is not None)
            self._drafting = self._drafting or (bool(line) and not one_line)
            last = match.end() == len(keys)
            if self._drafting:
                whole = len(piece) - (_unfinished(piece) if last else 0)
                self._waiting = piece[whole:]
                given += _as_paste(piece[:whole])
            elif ends and last and self._letters:
                given += line
                self._waiting = piece[len(line) :]
            else:
                given += piece
        return bytes(given)


def _as_paste(typed: bytes) -> bytes:
    return START + plain_text(typed.decode("utf-8", "replace")).encode() + END


def _unfinished(piece: bytes) -> int:
    """Return the number of last bytes that begin a letter of UTF-8 or a line end."""
    if piece.endswith(b"\r"):
        return 1
    decoder = getincrementaldecoder("utf-8")("replace")
    decoder.decode(piece[-3:])
    return len(decoder.getstate()[0])


def _start_of_mark(typed: bytes) -> bytes:
    """Return the longest end of some bytes that begins a start mark."""
    return next((START[:size] for size in range(len(START) - 1, 0, -1) if typed.endswith(START[:size])), b"")
