"""Placeholder blocks for turns that are not loaded.

A conversation is opened at its end and can be read from anywhere: each range of turns between loaded ones is a gap of
one line. The widget requests the turns when their gap comes into view.
"""

from __future__ import annotations

from ragforge_tui.tui.drawing.lines import Line, line_of
from ragforge_tui.tui.style.palette import Palette
from ragforge_tui.tui.transcript.model.blocks import Block

ROOM = 1 << 60
"""Serials reserved on each side of a gap: its turns take them, so that no other block has to change its serial."""


class GapBlock(Block):
    """The turns `first` to `last`, inclusive."""

    kind = "gap"

    def __init__(self, first: int, last: int) -> None:
        super().__init__(0)
        self.first = first
        self.last = last

    def __contains__(self, turn_index: int) -> bool:
        return self.first <= turn_index <= self.last

    def draw(self, width: int, palette: Palette) -> list[Line]:
        which = f"turn {self.first}" if self.first == self.last else f"turns {self.first} to {self.last}"
        return [line_of([("┄┄ ", palette.faint), (f"{which}, loading …", palette.muted)], width)]
