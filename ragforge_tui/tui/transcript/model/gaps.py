"""Turns that exist but are not loaded, as a block of one line among those that are.

A conversation is opened at its end and read from anywhere: between what is loaded stands a gap for each row of turns
that is not. Made by `document`; the widget asks for its turns when it comes into view.
"""

from __future__ import annotations

from ragforge_tui.tui.drawing.lines import Line, line_of
from ragforge_tui.tui.style.palette import Palette
from ragforge_tui.tui.transcript.model.blocks import Block

ROOM = 1 << 60
"""Serials kept free on each side of a gap: its turns take theirs from there, so that no other block's ever changes."""


class GapBlock(Block):
    """Turns `first` to `last`, inclusive, which are not loaded."""

    kind = "gap"

    def __init__(self, first: int, last: int) -> None:
        super().__init__(0)
        self.first = first
        self.last = last

    def __contains__(self, turn_index: int) -> bool:
        return self.first <= turn_index <= self.last

    def draw(self, width: int, palette: Palette) -> list[Line]:
        which = f"turn {self.first}" if self.first == self.last else f"turns {self.first} to {self.last}"
        return [line_of([("┄┄ ", palette.faint), (f"{which}, on their way", palette.muted)], width)]
