"""A text that is still being written: what is finished is drawn once, only the open end again and again.

`add` is called for every piece that comes and only keeps it; `advance` does the work and may run in a thread.
A long fence, which would make the open end long, is drawn in pieces as it comes and once more as a whole when it
closes. Pure; held by the text block of a reply under way.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field

from ragforge_tui.tui.transcript.code import code_lines
from ragforge_tui.tui.transcript.lines import BLANK, Line
from ragforge_tui.tui.transcript.markdown import OpenList, Unit, clean_source, parse, render_unit
from ragforge_tui.tui.transcript.palette import Palette

_FENCE = re.compile(r" {0,3}(`{3,})([^`\n]*)\n| {0,3}(~{3,})([^\n]*)\n")
_CHUNK = 40
"""Lines of an open fence that are highlighted together: enough for context, few enough to be cheap."""


@dataclass(slots=True)
class _OpenFence:
    """A fence that has not closed: which lines of it are drawn already."""

    closing: re.Pattern[str]
    language: str
    drawn: list[Line] = field(default_factory=list)
    code: list[str] = field(default_factory=list)
    taken: int = 0
    """Characters of the open text that are in `drawn` or `code`."""


class StreamedText:
    """Markdown that arrives in pieces, drawn for one width and palette."""

    def __init__(self, width: int, palette: Palette) -> None:
        self.width = width
        self.palette = palette
        self._pending: list[str] = []
        self._raw = ""
        self._tail = ""
        self._list: OpenList | None = None
        self._fence: _OpenFence | None = None
        self._closed: list[Line] = []
        self._lock = threading.Lock()
        self.lines: list[Line] = []
        """All of the text as drawn last; replaced, never changed."""

    def add(self, text: str) -> None:
        """Take in a piece."""
        self._pending.append(text)

    def advance(self) -> None:
        """Draw what came since the last call."""
        with self._lock:
            self._take()
            if not self._in_fence():
                self._commit()
            if self._fence is None:
                self._fence = self._fence_at_start()
            partial = clean_source(self._raw.removesuffix("\r"))
            if self._in_fence() and self._fence is not None:
                opened = self._fence_lines(self._fence, partial)
            else:
                opened = self._draw(parse(self._tail + partial, self._list).units)
            self.lines = [*self._closed, *opened]

    def finish(self) -> None:
        """Draw all that is left, as final."""
        with self._lock:
            self._take()
            self._tail += clean_source(self._raw)
            self._raw = ""
            self.lines = [*self._closed, *self._draw(parse(self._tail, self._list).units)]

    def _take(self) -> None:
        """Clean the lines that are complete: an escape sequence may be cut in two by the end of a piece."""
        count = len(self._pending)
        raw = self._raw + "".join(self._pending[:count])
        del self._pending[:count]
        at = raw.rfind("\n") + 1
        self._tail += clean_source(raw[:at])
        self._raw = raw[at:]

    def _draw(self, units: list[Unit]) -> list[Line]:
        lines: list[Line] = []
        for unit in units:
            lines.extend(render_unit(unit, self.width, self.palette, first=not self._closed and not lines))
        return lines

    def _commit(self) -> None:
        """Draw all units of the complete lines but the last, which may go on, and cut them off."""
        units, starts, lists = parse(self._tail, self._list)
        if len(units) < 2:
            return
        self._closed.extend(self._draw(units[:-1]))
        offset = 0
        for _ in range(starts[-1]):
            offset = self._tail.index("\n", offset) + 1
        self._tail = self._tail[offset:]
        self._list = lists[-1]

    def _fence_at_start(self) -> _OpenFence | None:
        match = _FENCE.match(self._tail)
        if match is None:
            return None
        mark = match[1] or match[3]
        info = (match[2] if match[1] else match[4]).strip()
        closing = re.compile(rf"^ {{0,3}}{re.escape(mark[0])}{{{len(mark)},}}[ \t]*$", re.MULTILINE)
        return _OpenFence(closing, info.split(maxsplit=1)[0] if info else "", taken=match.end())

    def _in_fence(self) -> bool:
        """Whether the open end is a fence that goes on; forgets the fence when it has closed."""
        if self._fence is None:
            return False
        if self._fence.closing.search(self._tail, self._fence.taken):
            self._fence = None
            return False
        return True

    def _fence_lines(self, fence: _OpenFence, partial: str) -> list[Line]:
        fresh = self._tail[fence.taken :]
        fence.taken = len(self._tail)
        fence.code.extend(fresh.split("\n")[:-1])
        while len(fence.code) >= _CHUNK:
            chunk, fence.code = fence.code[:_CHUNK], fence.code[_CHUNK:]
            fence.drawn.extend(self._code(fence, chunk))
        rest = [*fence.code, *([partial] if partial else [])]
        lines = [*fence.drawn, *(self._code(fence, rest) if rest else [])]
        return [BLANK, *lines] if self._closed and lines else lines

    def _code(self, fence: _OpenFence, lines: list[str]) -> list[Line]:
        return code_lines("\n".join(lines) + "\n", fence.language, self.width, self.palette)
