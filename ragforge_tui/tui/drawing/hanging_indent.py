"""Lines whose continuation stands beside what they begin with: a number, a sign, an indentation.

Textual wraps a text as a whole, so what does not fit goes under the line numbers; here each line is wrapped in what
its head leaves. Used by the previews of personas.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from textual import events
from textual.content import Content
from textual.widgets import Static

NARROWEST = 12
"""Where a head leaves less than this, its line is wrapped under it after all."""


class Hung(msgspec.Struct, frozen=True):
    """A line: `head` stands before its first row only, `body` beside it on as many as it takes."""

    head: Content
    body: Content


def indented(head: Content, body: Content) -> Hung:
    """A line that hangs from where its text begins, spaces before it being part of the head."""
    spaces = len(body.plain) - len(body.plain.lstrip(" "))
    return Hung(Content.assemble(head, " " * spaces), body[spaces:])


def hang(lines: Iterable[Hung], width: int) -> Content:
    """The lines at a width, one below the other; a width of 0 wraps nothing."""
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
    """Shows such lines, wrapped anew when its width changes."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id, markup=False)
        self._lines: Sequence[Hung] = ()
        self._width = 0

    def show(self, lines: Sequence[Hung]) -> None:
        """Show these."""
        self._lines = lines
        self.update(hang(lines, self._width))

    def on_resize(self, event: events.Resize) -> None:
        """Wrap where the place to write has another width than before."""
        if event.size.width != self._width:
            self._width = event.size.width
            self.update(hang(self._lines, self._width))
