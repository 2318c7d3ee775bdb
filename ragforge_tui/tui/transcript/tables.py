"""Tables: columns as wide as their words need, and rows that stay apart where their cells wrap. Pure.

Where the words of the cells do not fit next to each other, each row is a list of its cells instead: a name that is cut
in two can neither be read nor searched for.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Literal, NamedTuple

from rich.cells import cell_len
from textual.strip import Strip

from ragforge_tui.tui.drawing.lines import NOT_COPIED, Line, Run, line_of, wrap
from ragforge_tui.tui.drawing.palette import Palette

Align = Literal["left", "center", "right"]


class Cell(list[Run]):
    """The runs of a cell and its alignment in the column."""

    align: Align = "left"


Row = Sequence[Cell]
_GAP = 3
_NARROWEST = 4
_FOLDED = 8
"""Cells from which on a word of a script without blanks is broken."""


class Table:
    """The lines of a table whose rows may still come.

    A row that changes the widths of the columns, or is the first one to wrap, renders all rows again, which is rare
    after the first few.

    Attributes:
        lines: The lines of all rows so far.
    """

    def __init__(self, width: int, palette: Palette) -> None:
        self._width = width
        self._palette = palette
        self._rows: list[Row] = []
        self._needs = _Needs([], [], [])
        self._columns: list[int] | None = None
        self._apart = False
        self._drawn = 0
        self.lines: list[Line] = []

    def add(self, rows: Sequence[Row]) -> None:
        """Add rows; the first one of all is the head."""
        before = len(self._rows)
        self._rows.extend(rows)
        self._needs = _needs(rows, self._needs, head=not before)
        columns = _fitted(self._needs, self._width)
        if columns is None:
            self._stack(rows if self._columns is None and before > 1 else self._rows[1:])
            return
        same = columns == self._columns
        self._columns = columns
        drawn = [self._row(row, columns) for row in (rows if same else self._rows)]
        wraps = any(len(lines) > 1 for at, lines in enumerate(drawn) if at or same)
        if same and wraps and not self._apart:
            same, drawn = False, [self._row(row, columns) for row in self._rows]
        if not same:
            self.lines, self._drawn, self._apart = [], 0, wraps
        for lines in drawn:
            self._append(lines, columns)

    def _stack(self, rows: Sequence[Row]) -> None:
        """Show rows, all or those that have come, as lists; before them the head alone is one."""
        self._columns = None
        if not rows:
            self.lines = self.lines or _stacked(self._rows, self._width, self._palette)
            return
        fresh = _stacked([self._rows[0], *rows], self._width, self._palette)
        if len(rows) < len(self._rows) - 1:
            fresh = [*self.lines, line_of([("─" * self._width, self._palette.faint)], self._width), *fresh]
        self.lines = fresh

    def _append(self, row: list[Line], columns: Sequence[int]) -> None:
        if self._drawn > 1 and self._apart:
            self.lines.append(self._rule(columns)._replace(sides=NOT_COPIED))
        self.lines.extend(row)
        if not self._drawn:
            self.lines.append(self._rule(columns))
        self._drawn += 1

    def _rule(self, columns: Sequence[int]) -> Line:
        rule = "─┼─".join("─" * cells for cells in columns)
        return line_of([(rule, self._palette.faint)], self._width)

    def _row(self, row: Row, columns: Sequence[int]) -> list[Line]:
        palette = self._palette
        cells = [wrap(row[at], columns[at]) if at < len(row) else [] for at in range(len(columns))]
        lines = []
        for level in range(max(1, *(len(cell) for cell in cells))):
            runs: list[Run] = []
            for at, cell in enumerate(cells):
                if at:
                    runs.append((" │ ", palette.faint))
                strip = cell[level].strip if level < len(cell) else Strip.blank(0)
                left, right = _sides(row[at].align if at < len(row) else "left", columns[at] - strip.cell_length)
                runs.append((" " * left, palette.text))
                runs.extend((segment.text, segment.style or palette.text) for segment in strip)
                if at < len(cells) - 1:
                    runs.append((" " * right, palette.text))
            lines.append(line_of(runs, self._width))
        return lines


def table_lines(rows: Sequence[Row], width: int, palette: Palette) -> list[Line]:
    """Render a whole table."""
    table = Table(width, palette)
    table.add(rows)
    return table.lines


class _Needs(NamedTuple):
    """Cells of the longest text of each column, of its longest word, and of the longest one below the head."""

    texts: list[int]
    words: list[int]
    names: list[int]


def _needs(rows: Sequence[Row], before: _Needs, *, head: bool) -> _Needs:
    """Return what the columns need, with the needs of earlier rows.

    Args:
        head: Whether the first row is the head.
    """
    missing = max((len(row) for row in rows), default=0) - len(before.texts)
    needs = _Needs(*([*known, *([1] * missing)] for known in before))
    for number, row in enumerate(rows):
        for at, cell in enumerate(row):
            text = "".join(part for part, _ in cell)
            needs.texts[at] = max(needs.texts[at], cell_len(text))
            needs.words[at] = max(needs.words[at], *map(_unbroken, text.split()), 1)
            if number or not head:
                needs.names[at] = max(needs.names[at], *map(_unbroken, text.split()), 1)
    return needs


def _unbroken(word: str) -> int:
    """Return how many cells of a word stay on one line."""
    cells = cell_len(word)
    return min(cells, _FOLDED) if cells > len(word) else cells


def _fitted(needs: _Needs, width: int) -> list[int] | None:
    """Return the width of each column; None if they do not fit next to each other, also with all that may come."""
    count = len(needs.texts)
    if not count:
        return None
    room = width - _GAP * (count - 1)
    if sum(needs.texts) <= room:
        return needs.texts
    if room < _NARROWEST * count:
        return None
    # Words stay whole, except one that would leave less than a third to the other columns, and those of the head.
    words, names = ([min(cells, room * 2 // 3) for cells in kind] for kind in (needs.words, needs.names))
    if sum(names) > room:
        return None
    if sum(words) > room:
        words = _shrunk(words, room, names)
    return _shrunk(needs.texts, room, words)


def _shrunk(wanted: Sequence[int], room: int, floors: Sequence[int]) -> list[int]:
    """Return widths that fill the room: the widest ones give way first, down to one common width or their floors."""

    def at_most(top: int) -> list[int]:
        return [max(floor, min(cells, top)) for cells, floor in zip(wanted, floors, strict=True)]

    top = bisect_right(range(max(wanted) + 1), room, key=lambda top: sum(at_most(top))) - 1
    given = at_most(top)
    left = room - sum(given)
    for at, cells in enumerate(wanted):
        if left and given[at] == top < cells:
            given[at] += 1
            left -= 1
    return given


def _sides(align: Align, room: int) -> tuple[int, int]:
    """Return the blanks before and after a text with `room` spare cells."""
    left = {"left": 0, "center": room // 2, "right": room}[align]
    return left, room - left


def _stacked(rows: Sequence[Row], width: int, palette: Palette) -> list[Line]:
    """Render each row as `head: value` lines."""
    if not rows:
        return []
    head, *body = rows
    lines: list[Line] = []
    for row in body or [head]:
        for at, cell in enumerate(row):
            label = [*head[at], (": ", palette.muted)] if body and at < len(head) else []
            lines.extend(wrap([*label, *cell], width, quiet_first=False))
        lines.append(line_of([("─" * width, palette.faint)], width))
    return lines[:-1]
