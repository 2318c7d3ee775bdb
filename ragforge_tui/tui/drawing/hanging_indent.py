"""Wraps lines with a hanging indent: continuation lines are indented below the text, not below a number or sign.

Textual wraps a text as a whole, which would put the rest of a line below its number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from textual import events
from textual.content import Content
from textual.widgets import Static

NARROWEST = 12
"""If a head leaves fewer cells than this, its line is wrapped below it."""


class Hung(msgspec.Struct, frozen=True):
    """A line: `head` precedes its first row only, `body` takes as many rows as it needs."""

    head: Content
    body: Content


def indented(head: Content, body: Content) -> Hung:
    """Return a line with the hanging indent of its own leading spaces."""
    spaces = len(body.plain) - len(body.plain.lstrip(" "))
    return Hung(Content.assemble(head, " " * spaces), body[spaces:])


def hang(lines: Iterable[Hung], width: int) -> Content:
    """Return the lines wrapped to a width; a width of 0 wraps nothing."""
    rows: list[Content] = []
    for line in lines:
        whole = Content.assemble(line.head, line.body)
        room = width - line.head.cell_length
        if not width or whole.cell_length <= width or room < NARROWEST:
            rows.append(whole)
            continue
        first, *others = line.body.wrap(room)
        rows.append(Content.assemble(line.head, first))
        rows += [row.pad_left(line.head.cell_length) for row in others]
    return Content("\n").join(rows)


class HangingText(Static):
    """Shows such lines, wrapped again when its width changes."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id, markup=False)
        self._lines: Sequence[Hung] = ()
        self._width = 0

    def show(self, lines: Sequence[Hung]) -> None:
        self._lines = lines
        self.update(hang(lines, self._width))

    def on_resize(self, event: events.Resize) -> None:
        if event.size.width != self._width:
            self._width = event.size.width
            self.update(hang(self._lines, self._width))
