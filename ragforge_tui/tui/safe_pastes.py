"""Pastes without control characters, before the parser of keys reads them.

Inside a paste Textual's parser takes an escape sequence that it does not know for keys, carriage returns included: such
a paste would send messages and run commands. So a paste reaches the parser whole and as plain text. This runs before
answers of the terminal are dropped, because what is left around one could form an end mark.
"""

from __future__ import annotations

from ragforge_tui.shared.sanitize import plain_text

START, END = b"\x1b[200~", b"\x1b[201~"


class SafePastes:
    """Filter of one terminal's input."""

    def __init__(self) -> None:
        self._passed_on = b""
        """The end of the keys, if it may begin a start mark."""
        self._pasted: bytearray | None = None
        """The paste so far, without its marks; None outside one."""

    def feed(self, typed: bytes) -> bytes:
        """Return what the parser may read now: keys, and complete pastes as plain text between their marks."""
        safe = bytearray()
        while True:
            if self._pasted is None:
                known, typed = len(self._passed_on), self._passed_on + typed
                start = typed.find(START)
                if start < 0:
                    self._passed_on = _start_of_mark(typed)
                    return bytes(safe + typed[known:])
                rest = start + len(START)
                safe += typed[known:rest]
                self._passed_on, self._pasted, typed = b"", bytearray(), typed[rest:]
            searched = max(0, len(self._pasted) + 1 - len(END))
            self._pasted += typed
            end = self._pasted.find(END, searched)
            if end < 0:
                return bytes(safe)
            safe += plain_text(self._pasted[:end].decode("utf-8", "replace")).encode() + END
            typed, self._pasted = bytes(self._pasted[end + len(END) :]), None


def _start_of_mark(typed: bytes) -> bytes:
    """Return the longest end of some bytes that begins a start mark."""
    return next((START[:size] for size in range(len(START) - 1, 0, -1) if typed.endswith(START[:size])), b"")
