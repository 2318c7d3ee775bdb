"""A diff as a block, for everything that scrolls through one: questions, /diff, files, drafts of personas."""

from __future__ import annotations

from collections.abc import Sequence

from ragforge_tui.tui.drawing.diff_lines import Diff
from ragforge_tui.tui.drawing.lines import Line
from ragforge_tui.tui.drawing.palette import Palette
from ragforge_tui.tui.transcript.blocks import Block

WIDEST = 240
"""Cells of two sides; code is narrower."""


class DiffBlock(Block):
    """Files of a diff, each below its path and counts."""

    kind = "text"
    measure = WIDEST

    def __init__(self, diff: Diff, *, gap: int = 0) -> None:
        super().__init__(0, gap=gap)
        self.diff = diff

    @property
    def source(self) -> str:
        return self.diff.text

    def draw(self, width: int, palette: Palette) -> Sequence[Line]:
        return self.diff.lines(width, palette)

    def estimate(self, width: int) -> int:
        return self.gap + sum(1 + len(file.rows) for file in self.diff.files)
