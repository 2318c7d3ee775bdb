"""Output of a command, bounded in memory while it arrives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ragforge_tui.shared.sanitize import plain_text, storable

_CHUNK = 65_536
_TAIL_BYTES = 4_000
_SHOWN_LINES = 3


class Output:
    """Head and tail of a command's output; the middle is counted and dropped as it arrives."""

    def __init__(self, limit: int) -> None:
        # A character in UTF-8 has at most four bytes.
        self._head_limit = limit * 4 * 2 // 3
        self._tail_limit = limit * 4 - self._head_limit
        self._head = bytearray()
        self._tail = bytearray()
        self._limit = limit
        self.size = 0

    def add(self, chunk: bytes) -> None:
        """Add a piece of the output."""
        self.size += len(chunk)
        free = self._head_limit - len(self._head)
        self._head += chunk[:free] if free > 0 else b""
        self._tail += chunk[max(free, 0) :]
        if len(self._tail) > 2 * self._tail_limit:
            del self._tail[: -self._tail_limit]

    def last_lines(self) -> list[str]:
        """Return the last lines that are not empty, also one that is not complete."""
        end = (self._head[-_TAIL_BYTES:] + self._tail[-_TAIL_BYTES:])[-_TAIL_BYTES:]
        # A line that is cut at its beginning is left out: it may begin within a secret, which is not known there.
        lines = _plain(bytes(end)).split("\n")[self.size > len(end) :]
        return [line for line in lines if line.strip()][-_SHOWN_LINES:]

    def text(self) -> tuple[str, bool]:
        """Return the output as plain text, and whether it was cut."""
        tail = bytes(self._tail[-self._tail_limit :])
        if len(self._head) + len(tail) == self.size:
            whole = _plain(bytes(self._head) + tail)
            if len(whole) <= self._limit:
                return whole, False
            head_text, tail_text = whole, whole
        else:
            head_text, tail_text = _plain(bytes(self._head)), _plain(tail)
        head_chars = self._limit * 2 // 3
        tail_chars = self._limit - head_chars
        note = f"\n[… output cut: {self.size} bytes in total, the middle is left out …]\n"
        return head_text[:head_chars] + note + tail_text[-tail_chars:], True


def _plain(content: bytes) -> str:
    text = content.decode("utf-8", "replace").replace("\0", "")
    # A progress bar rewrites its line with carriage returns: keep the text that a terminal would finally show.
    lines = (line.rstrip("\r").rsplit("\r", 1)[-1] for line in text.split("\n"))
    return storable(plain_text("\n".join(lines)))


async def collect(pipe: asyncio.StreamReader, add: Callable[[bytes], None]) -> None:
    """Pass on all of a pipe, piece by piece."""
    while chunk := await pipe.read(_CHUNK):
        add(chunk)
