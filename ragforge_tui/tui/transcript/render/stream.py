"""A text that is still being written: what is finished is drawn once, only the open end again and again.

`add` is called for every piece that comes and only keeps it; `advance` does the work and may run in a thread.
A fence, table or long paragraph, which would make the open end long, is drawn in pieces as it comes and once more as
a whole when it closes. Pure; held by the text block of a reply under way.
"""

from __future__ import annotations

import threading

from ragforge_tui.text import plain_length
from ragforge_tui.tui.drawing.lines import BLANK, Line
from ragforge_tui.tui.style.palette import Palette
from ragforge_tui.tui.transcript.render.markdown import render_unit
from ragforge_tui.tui.transcript.render.markdown_parser import OpenList, Unit, clean_source, parse
from ragforge_tui.tui.transcript.render.open_blocks import OpenBlock, open_block

_ENDED_BY_BLANK_LINE = frozenset({"paragraph_open", "heading_open", "hr", "table_open"})
_LIGHT = 1_500
"""Characters that are drawn so quickly that a thread for it would cost more."""
_LIGHT_BLOCK = 4_000


class StreamedText:
    """Markdown that arrives in pieces, drawn for one width and palette."""

    def __init__(self, width: int, palette: Palette) -> None:
        self.width = width
        self.palette = palette
        self._pending: list[str] = []
        self._raw = ""
        self._line = ""
        self._tail = ""
        self._grown = False
        self._list: OpenList | None = None
        self._block: OpenBlock | None = None
        self._closed: list[Line] = []
        self._lock = threading.Lock()
        self.lines: list[Line] = []
        """All of the text as drawn last; replaced, never changed."""

    def add(self, text: str) -> None:
        """Take in a piece."""
        self._pending.append(text)

    @property
    def light(self) -> bool:
        """Whether the next `advance` is quick; not to be asked while another thread is at it."""
        came = sum(map(len, self._pending))
        size = len(self._tail) + len(self._line)
        block = self._block
        if block is None:
            return came + size <= _LIGHT
        if size > _LIGHT_BLOCK and any(mark in piece for piece in self._pending for mark in block.ends_at):
            return False
        return came <= _LIGHT

    def advance(self) -> None:
        """Draw what came since the last call."""
        with self._lock:
            self._take()
            partial = self._line + clean_source(self._raw.removesuffix("\r"))
            opened = self._open_end(partial)
            self.lines = [*self._closed, *opened]

    def finish(self) -> None:
        """Draw all that is left, as final."""
        with self._lock:
            self._take()
            self._tail += self._line + clean_source(self._raw)
            self._line = self._raw = ""
            self.lines = [*self._closed, *self._draw(parse(self._tail, self._list).units)]

    def _take(self) -> None:
        """Clean what came: an escape sequence may be cut in two by the end of a piece, so from one on it waits."""
        count = len(self._pending)
        raw = self._raw + "".join(self._pending[:count])
        del self._pending[:count]
        at = raw.rfind("\n") + 1
        if at:
            self._tail += self._line + clean_source(raw[:at])
            self._line, raw = "", raw[at:]
            self._grown = True
        plain = plain_length(raw)
        self._line += raw[:plain]
        self._raw = raw[plain:]

    def _draw(self, units: list[Unit]) -> list[Line]:
        lines: list[Line] = []
        for unit in units:
            lines.extend(render_unit(unit, self.width, self.palette, first=not self._closed and not lines))
        return lines

    def _commit(self, *, last: bool = False) -> None:
        """Draw all units of the complete lines and cut them off; the last one, which may go on, only when told."""
        units, starts, lists = parse(self._tail, self._list)
        # A paragraph with a blank line behind it cannot go on, a list can.
        ended = bool(units) and self._tail.endswith("\n\n") and units[-1].tokens[0].type in _ENDED_BY_BLANK_LINE
        if ended or (last and len(units) == 1):
            self._closed.extend(self._draw(units))
            self._tail, self._list = "", None
        elif len(units) > 1:
            self._closed.extend(self._draw(units[:-1]))
            offset = 0
            for _ in range(starts[-1]):
                offset = self._tail.index("\n", offset) + 1
            self._tail, self._list = self._tail[offset:], lists[-1]

    def _open_end(self, partial: str) -> list[Line]:
        """Commit what is complete, and draw what may go on."""
        block = self._block
        lines = block.extend(self._tail, partial) if block is not None else None
        if lines is None:
            if self._grown:
                self._commit(last=block is not None and block.closed)
                self._grown = False
            block = self._block = open_block(self._tail, partial, self.width, self.palette)
            lines = block.extend(self._tail, partial) if block is not None else None
        if lines is None:
            if block is not None and block.closed:
                self._commit(last=True)
            self._block = None
            return self._draw(parse(self._tail + partial, self._list).units)
        return [BLANK, *lines] if self._closed and lines else lines
