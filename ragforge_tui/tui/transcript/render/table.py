"""Tables as lines: columns as wide as they need, shrunk and wrapped if there is not enough room.

Separate from the Markdown renderer, since the widths of a growing table are computed beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from rich.cells import cell_len
from textual.strip import Strip

from ragforge_tui.tui.drawing.lines import Line, Run, line_of, wrap
from ragforge_tui.tui.style.palette import Palette

Align = Literal["left", "center", "right"]


class Cell(list[Run]):
    """The runs of a cell and its alignment in the column."""

    align: Align = "left"


Row = Sequence[Cell]
_GAP = 3
_NARROWEST = 4


def _cells(cell: Sequence[Run]) -> int:
    return cell_len("".join(text for text, _ in cell))


def wanted_widths(rows: Sequence[Row], before: Sequence[int] = ()) -> list[int]:
    """Return the preferred width of each column; `before` holds the widths of earlier rows."""
    count = max((len(row) for row in rows), default=0)
    wanted = [*before, *([1] * (count - len(before)))]
    for row in rows:
        for at, cell in enumerate(row):
            wanted[at] = max(wanted[at], _cells(cell))
    return wanted


def fitted_widths(wanted: Sequence[int], width: int) -> list[int] | None:
    """Return the width of each column; None if the columns do not fit next to each other."""
    count = len(wanted)
    if not count:
        return None
    room = width - _GAP * (count - 1)
    if sum(wanted) <= room:
        return list(wanted)
    if room < _NARROWEST * count:
        return None
    # The widest columns give way first, down to one common width.
    given = list(wanted)
    while sum(given) > room:
        widest = max(given)
        others = [cells for cells in given if cells < widest]
        tops = given.count(widest)
        floor = max(others, default=_NARROWEST)
        excess = sum(given) - room
        step = min(widest - floor, max(1, excess // tops)) or 1
        for at, cells in enumerate(given):
            if cells == widest and excess > 0:
                cut = min(step, excess)
                given[at] -= cut
                excess -= cut
    return given


def table_lines(
    rows: Sequence[Row], width: int, palette: Palette, *, widths: Sequence[int] | None = None, head: bool = True
) -> list[Line]:
    """Render a table.

    Args:
        widths: Column widths to use instead of the preferred ones.
        head: Whether the first row is the head, followed by a rule.
    """
    columns = widths if widths is not None else fitted_widths(wanted_widths(rows), width)
    if columns is None:
        return _stacked(rows, width, palette)
    lines: list[Line] = []
    for number, row in enumerate(rows):
        lines.extend(_row_lines(row, columns, width, palette))
        if head and number == 0:
            rule = "─┼─".join("─" * cells for cells in columns)
            lines.append(line_of([(rule, palette.faint)], width))
    return lines


def _row_lines(row: Row, columns: Sequence[int], width: int, palette: Palette) -> list[Line]:
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
        lines.append(line_of(runs, width))
    return lines


def _sides(align: Align, room: int) -> tuple[int, int]:
    """Return the blanks before and after a text with `room` spare cells."""
    left = {"left": 0, "center": room // 2, "right": room}[align]
    return left, room - left


def _stacked(rows: Sequence[Row], width: int, palette: Palette) -> list[Line]:
    """Render each row as `head: value` lines, for tables with too many columns."""
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
