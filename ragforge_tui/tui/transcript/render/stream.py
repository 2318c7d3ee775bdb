"""Streaming Markdown: finished units are rendered once, only the open end again and again.

`add` only stores a piece; `advance` does the work and may run in a thread. A fence, table or long paragraph would make
the open end long, so it is rendered incrementally and once more as a whole when it closes. Pure.
"""

from __future__ import annotations

import threading

from ragforge_tui.shared.sanitize import plain_length
from ragforge_tui.tui.drawing.lines import BLANK, Line
from ragforge_tui.tui.style.palette import Palette
from ragforge_tui.tui.transcript.render.markdown import render_unit
from ragforge_tui.tui.transcript.render.markdown_parser import OpenList, Unit, clean_source, parse
from ragforge_tui.tui.transcript.render.open_blocks import OpenBlock, open_block

_ENDED_BY_BLANK_LINE = frozenset({"paragraph_open", "heading_open", "hr", "table_open"})
_LIGHT = 1_500
"""Characters that render faster than a thread would start."""
_LIGHT_BLOCK = 4_000


class StreamedText:
    """Markdown that arrives in pieces, rendered for one width and palette."""

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
        """The lines of the last rendering; replaced, never changed."""

    def add(self, text: str) -> None:
        self._pending.append(text)

    @property
    def light(self) -> bool:
        """Whether the next `advance` is fast; not valid while another thread runs it."""
        came = sum(map(len, self._pending))
        size = len(self._tail) + len(self._line)
        block = self._block
        if block is None:
            return came + size <= _LIGHT
        if size > _LIGHT_BLOCK and any(mark in piece for piece in self._pending for mark in block.ends_at):
            return False
        return came <= _LIGHT

    def advance(self) -> None:
        """Render what has arrived since the last call."""
        with self._lock:
            self._take()
            partial = self._line + clean_source(self._raw.removesuffix("\r"))
            opened = self._open_end(partial)
            self.lines = [*self._closed, *opened]

    def finish(self) -> None:
        """Render the rest as final."""
        with self._lock:
            self._take()
            self._tail += self._line + clean_source(self._raw)
            self._line = self._raw = ""
            self.lines = [*self._closed, *self._draw(parse(self._tail, self._list).units)]

    def _take(self) -> None:
        """Clean what has arrived; an incomplete escape sequence at its end waits for the rest."""
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
        """Render and cut off the units of the complete lines; the last one may continue, so only if `last` is set."""
        units, starts, lists = parse(self._tail, self._list)
        # A paragraph followed by a blank line is complete, a list may continue.
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
        """Commit what is complete and render the rest."""
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
