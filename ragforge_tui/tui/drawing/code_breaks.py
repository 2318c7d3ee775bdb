"""Where a line of code is broken: at blanks, else behind a comma, a bracket or an operator, else where it is full.

Used wherever code is drawn: fences, diffs, files. Nothing is lost: the pieces and what is between them are the line.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from itertools import accumulate

from rich.cells import cell_len, split_graphemes

from ragforge_tui.tui.drawing.lines import NARROW, Span

_BLANKS = re.compile(r"(?<=[^ ]) +(?=[^ ])")
_MARKS = re.compile(r"(?:[,;]+|[(\[{]+|(?<=[\w)\]}\"'])(?:[-+*/%=<>|&^!~:]+|\.(?=[^\W\d])))(?=[^\s,;.:)\]}])")
"""Signs that a line may be broken behind. What closes, and what belongs to the word before it, begins no line."""
_INDENT = 2
"""Cells by which the rest of a line is indented more than its beginning."""
_DEEPEST = 3
"""The rest is indented by at most this part of the width."""


def code_spans(text: str, width: int, first: int = 0) -> tuple[list[Span], int]:
    """Break one line of code so that no piece is wider than `width`.

    Args:
        first: Cells for the first piece, if it has fewer.

    Returns:
        The pieces, and the cells by which all but the first are indented and therefore narrower.
    """
    room = min(first or width, width)
    if len(text) <= room and (text.isascii() or cell_len(text) <= room):
        return [(0, len(text), "\n")], 0
    line = _Breakable(text)
    indent = min(line.own + _INDENT, width // _DEEPEST)
    end = max(len(text.rstrip(" ")), 1)
    spans: list[Span] = []
    at = 0
    while (full := line.reach(at, room)) < end:
        stop, after = line.cut(at, full, room, width - indent)
        spans.append((at, stop, text[stop:after]))
        at, room = after, width - indent
    return [*spans, (at, end, f"{text[end:]}\n")], indent


class _Breakable:
    """One line with its cells and the places where it may be broken.

    Attributes:
        own: The blanks before its first word.
    """

    def __init__(self, text: str) -> None:
        self.own = len(text) - len(text.lstrip(" "))
        self._length = len(text)
        self._edges: list[int] = []
        breaks = {match.end(): match.end() for match in _MARKS.finditer(text, self.own)}
        breaks.update(match.span() for match in _BLANKS.finditer(text))
        if not NARROW.fullmatch(text):
            parts = split_graphemes(text)[0]
            self._edges = [*(start for start, _, _ in parts), len(text)]
            self._cells = list(accumulate((cells for _, _, cells in parts), initial=0))
            whole = set(self._edges)
            breaks = {start: after for start, after in breaks.items() if start in whole and after in whole}
        self._breaks = sorted(breaks.items())
        self._stops = [start for start, _ in self._breaks]

    def _measure(self, start: int, end: int) -> int:
        if not self._edges:
            return end - start
        return self._cells[bisect_left(self._edges, end)] - self._cells[bisect_left(self._edges, start)]

    def reach(self, at: int, room: int) -> int:
        """Return the end of the longest piece that fits; it has at least one letter."""
        if not self._edges:
            return min(at + max(room, 1), self._length)
        first = bisect_left(self._edges, at)
        last = bisect_right(self._cells, self._cells[first] + room) - 1
        return self._edges[min(max(last, first + 1), len(self._edges) - 1)]

    def cut(self, at: int, full: int, room: int, rest: int) -> tuple[int, int]:
        """Return the end of a piece and the start of the next one.

        Args:
            at: Where the piece starts; it is full at `full`.
            room: Its cells; the next piece has `rest`.
        """
        first, after = bisect_right(self._stops, max(at, self.own)), bisect_right(self._stops, full)
        if first == after:
            return full, full
        begin = max(at, self.own)
        half = self._measure(at, begin) + (room - self._measure(at, begin)) // 2
        fair = [one for one in self._breaks[first:after] if self._measure(at, one[0]) >= half]
        if fair:
            return next((one for one in reversed(fair) if one[0] < one[1]), fair[-1])
        last = self._breaks[after - 1]
        following = self._stops[after] if after < len(self._stops) else self._length
        # A word that has no room on a line of its own begins on this one.
        return last if self._measure(last[1], following) <= rest else (full, full)
