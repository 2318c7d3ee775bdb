"""A list with a cursor for the slash menu, pickers and questions.

One widget that draws its lines: a thousand sessions cost as much as the visible dozen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.tui.drawing.lines import fit, one_line, with_path

BAND = "on $foreground 5%"
"""The ground of the row at the cursor, and of the one under the mouse."""
HIGHLIGHT = "bold $accent"
"""A match of what was typed."""
LEAST_LABEL = 8
"""Minimum cells of a label next to the text before it."""
LEAST_DETAIL = 9
"""Minimum cells of a detail in a column of its own."""
READABLE_DETAIL = 40
"""Minimum cells of a detail after a value: with fewer, no detail of a list of settings says anything."""


class Choice(msgspec.Struct, frozen=True):
    """One row.

    Attributes:
        key: Identifies it.
        label: The main text.
        value: Text between the label and the detail, in a column of its own, where the detail is not on the right.
        detail: Muted text after it.
        path: A path after the detail, where that is on the right: its folders give way before the label does.
        heading: Rows with the same heading are adjacent; it is shown once, above them.
        mark: A key that picks it, shown before the label.
        lead: Muted text before the label: a sign, its place in a tree.
        badge: A word after the label; the label is truncated first. At the right edge if the detail is on the left.
        short: What stands for the label where all rows share one line; empty if it cannot be shorter.
        found: Places in the label that match what was typed, highlighted where the detail is on the right. The label
            is one line then.
    """

    key: str
    label: str
    detail: str = ""
    heading: str = ""
    mark: str = ""
    lead: str = ""
    badge: str = ""
    short: str = ""
    path: str = ""
    value: str = ""
    found: tuple[tuple[int, int], ...] = ()


class ChoiceList(Widget):
    """Rows with a cursor. The owner keeps the focus and calls `move`; a click picks."""

    DEFAULT_CSS = "ChoiceList { height: auto; width: 1fr; pointer: pointer; }"
    ALLOW_SELECT = False

    @dataclass
    class Picked(Message):
        """A row was clicked; `again` if it was at the cursor already."""

        choice: Choice
        again: bool

    def __init__(
        self, *, max_rows: int = 0, detail_right: bool = False, label_cells: int = 0, id: str | None = None
    ) -> None:
        """Create an empty list.

        Args:
            max_rows: Its greatest height; 0: all rows.
            detail_right: Whether details are at the right edge, not in a column after the labels.
            label_cells: Least cells of the labels' column.
        """
        super().__init__(id=id)
        self._rows: list[Choice] = []
        self._lines: list[int | str] = []
        self._cursor = 0
        self._label_width = 0
        self._value_width = 0
        self._label_cells = label_cells
        self._max_rows = max_rows
        self._detail_right = detail_right
        self._muted = False
        self._in_line = False
        self._hovered = -1
        """Row of the window that the mouse is over, -1 for none."""

    @property
    def rows(self) -> list[Choice]:
        return self._rows

    @property
    def chosen(self) -> Choice | None:
        return self._rows[self._cursor] if self._rows else None

    def show(self, rows: list[Choice], *, headings: bool = True, keep: bool = False) -> None:
        """Replace the rows; `keep` leaves the cursor on the same key, or at its place if that is gone."""
        key = self.chosen.key if keep and self.chosen else None
        kept = min(self._cursor, max(len(rows) - 1, 0)) if keep else 0
        self._rows = rows
        self._lines = []
        heading = ""
        for index, row in enumerate(rows):
            if headings and row.heading != heading:
                heading = row.heading
                self._lines.append(heading)
            self._lines.append(index)
        self._cursor = next((index for index, row in enumerate(rows) if row.key == key), kept)
        labels, values = map(_label_cells, rows), (cell_len(row.value) for row in rows)
        self._label_width = 0 if self._detail_right else max(self._label_cells - 1, *labels, 0) + 3
        self._value_width = max(values, default=0)
        self.refresh(layout=True)

    def line_up(self, in_line: bool) -> None:
        """Show all rows on one line, or each on its own."""
        if in_line != self._in_line:
            self._in_line = in_line
            self.refresh(layout=True)

    def mute(self, muted: bool) -> None:
        """Hide the cursor and dim the keys, while they go elsewhere."""
        if muted != self._muted:
            self._muted = muted
            self.refresh()

    @property
    def page(self) -> int:
        return max(self.size.height - 2, 1)

    def move(self, step: int, *, wrap: bool = False) -> None:
        if not self._rows:
            return
        target = self._cursor + step
        self._cursor = target % len(self._rows) if wrap else max(0, min(target, len(self._rows) - 1))
        self.refresh()

    def go_to(self, key: str) -> None:
        """Move the cursor to the row with a key, if there is one."""
        self._cursor = next((index for index, row in enumerate(self._rows) if row.key == key), self._cursor)
        self.refresh()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the number of lines, at most `max_rows`."""
        if self._in_line:
            return 1
        return min(len(self._lines), self._max_rows) if self._max_rows else len(self._lines)

    def _top(self) -> int:
        """Return the first visible line, which keeps the cursor in view."""
        height = max(self.size.height, 1)
        line = self._lines.index(self._cursor) if self._rows else 0
        return max(0, min(line - height // 2, len(self._lines) - height))

    def render(self) -> Content:
        """Return the visible lines."""
        width = self.size.width
        if self._in_line:
            return self._draw_line()
        top = self._top()
        lines = []
        for row, line in enumerate(self._lines[top : top + self.size.height]):
            if isinstance(line, str):
                lines.append(Content.styled(line, "dim"))
                continue
            selected = line == self._cursor and not self._muted
            drawn = self._draw(self._rows[line], selected, width)
            if self._muted:
                drawn = Content.styled(drawn.plain, "dim")  # Dimmed, the color of the keys would be hard to read.
            lines.append(banded(drawn, width) if selected or row == self._hovered else drawn)
        return Content("\n").join(lines)

    def _draw_line(self) -> Content:
        """Return the rows next to each other."""
        parts: list[Any] = []
        for index, row in enumerate(self._rows):
            selected = index == self._cursor and not self._muted
            key = "dim" if self._muted else "$primary bold" if selected else "$primary"
            shown = "dim" if self._muted else "bold" if selected else ""
            ground = f" {BAND}" if selected or index == self._hovered else ""
            cursor = ("▸ " if selected else "  ", "$text-primary")
            parts += [cursor, (f"{row.mark} ", key + ground), (one_line(row.short), shown + ground), " "]
        return Content.assemble(*parts)

    def _index_at(self, x: int, y: int) -> int:
        """Return the row at a place; -1 for none."""
        if not self._in_line:
            at = self._top() + y
            line = self._lines[at] if 0 <= at < len(self._lines) else ""
            return line if isinstance(line, int) else -1
        end = 0
        for index, row in enumerate(self._rows):
            end += line_cells([row])
            if x < end:
                return index
        return -1

    def _draw(self, row: Choice, selected: bool, width: int) -> Content:
        cursor = "▸ " if selected else "  "
        mark = f"{row.mark}  " if row.mark else ""
        label = one_line(row.label)
        detail = one_line(row.detail)
        room = max(width - 2 - cell_len(mark), 1)
        beside = "" if selected else "dim"  # Dim on the band of the row would be hard to read.
        parts: list[Any] = [(cursor, "$text-primary"), (mark, "$primary bold" if selected else "$primary")]
        label_width = self._label_width
        if self._detail_right:
            detail = with_path(detail, row.path, room - cell_len(row.lead) - cell_len(label) - 1)
            space = max(room - cell_len(detail) - 1, 1)
            parts += _labelled(row, label, space, selected)
            parts.append((f" {fit(detail, max(room - space - 1, 0))}", beside))
        else:
            badge = f" {one_line(row.badge)}" if row.badge else ""
            shown = fit(label, min(label_width, room))
            parts.append((shown, "bold" if selected else ""))
            if self._value_width and room > label_width:
                # The values get half of the room at most, so that the details stay in view; all of it if they do not.
                value_width = min(self._value_width, (room - label_width) // 2)
                if room - label_width - value_width - 2 < READABLE_DETAIL:
                    detail, value_width = "", min(self._value_width, room - label_width - cell_len(badge) - 2)
                parts += [(fit(one_line(row.value), value_width), "bold" if selected else ""), "  "]
                label_width += value_width + 2
            space = room - label_width - cell_len(badge)
            if space >= (LEAST_DETAIL if detail else 0):
                parts += [(fit(detail, space), beside), (badge, "$accent")]
        return Content.assemble(*parts)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        self._hover(self._index_at(event.x, 0) if self._in_line else event.y)

    def on_leave(self) -> None:
        self._hover(-1)

    def _hover(self, row: int) -> None:
        if row != self._hovered:
            self._hovered = row
            self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Pick the row under the mouse."""
        if (index := self._index_at(event.x, event.y)) >= 0:
            again = self._cursor == index
            self._cursor = index
            self.refresh()
            self.post_message(self.Picked(self._rows[index], again))


def banded(line: Content, width: int) -> Content:
    """Return a line on the ground of the row at the cursor, over its whole width."""
    return line.pad_right(width - line.cell_length).stylize(BAND)


def line_cells(rows: Sequence[Choice]) -> int:
    """Return the cells of rows that share one line."""
    return sum(cell_len(one_line(row.short)) + len(row.mark) + 4 for row in rows)


def _label_cells(row: Choice) -> int:
    return cell_len(row.mark) + cell_len(row.label)


def _labelled(row: Choice, label: str, space: int, selected: bool) -> list[tuple[str, str]]:
    """Return lead, label and badge in exactly `space` cells; the label is truncated first, then the lead."""
    badge = one_line(row.badge)
    badge = f" {badge}" if badge and cell_len(badge) + 1 <= space // 2 else ""
    lead = plain_text(row.lead).replace("\n", " ").replace("\t", " ")
    lead = lead if cell_len(lead) + LEAST_LABEL <= space - cell_len(badge) else ""
    room = space - cell_len(badge) - cell_len(lead)
    shown = fit(label, min(cell_len(label), room))
    gap = " " * (room - cell_len(shown))
    style = "bold" if selected else ""
    return [(lead, "dim"), *_highlighted(shown, row.found, style), (badge, "$accent"), (gap, "")]


def _highlighted(text: str, found: Sequence[tuple[int, int]], style: str) -> list[tuple[str, str]]:
    """Return a text in pieces, those that were found in their own style."""
    parts: list[tuple[str, str]] = []
    at = 0
    for start, end in found:
        parts += [(text[at:start], style), (text[start:end], HIGHLIGHT)]
        at = end
    return [*parts, (text[at:], style)]
