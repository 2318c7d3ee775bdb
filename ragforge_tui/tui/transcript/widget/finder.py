"""Where in the loaded turns a text stands, and the same text made visible wherever it is drawn.

A base of `widget.py`; what is looked for, and the turns that are not loaded, are the business of `tui/find.py`.
"""

from __future__ import annotations

from typing import NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from ragforge_tui.tui.transcript.model.blocks import Block
from ragforge_tui.tui.transcript.render.long_text import texts_of
from ragforge_tui.tui.transcript.widget.viewport import BlockWindow, Painted, Row

_SEARCHED = frozenset({"user", "head", "text", "tool"})
"""Kinds of blocks that come from records; what the program itself says is not looked through."""
_ABOVE = 3
"""A match is shown a third of the window's height below its top."""


class Spot(NamedTuple):
    """A line of a block in which a text stands; 0 where the text is broken between lines."""

    block: Block
    line: int


class SearchedWindow(BlockWindow):
    """A window that shows where a text stands."""

    _needle = ""

    def highlight(self, text: str) -> None:
        """Make a text visible wherever it stands; an empty one ends that."""
        self._needle = text.lower()
        self._painted_for = ()
        self.refresh()

    def turns_with(self, text: str) -> set[int]:
        """The loaded turns that hold a text."""
        wanted = text.lower()
        return {block.turn_index for block in self.document.blocks if _holds(block, wanted)}

    def spots(self, turn_index: int, text: str) -> list[Spot]:
        """Where a text stands in a loaded turn, from its beginning to its end.

        A block that is folded counts once when nothing of what it shows holds the text.
        """
        wanted = text.lower()
        found: list[Spot] = []
        for block in self.document.blocks:
            if block.turn_index == turn_index and _holds(block, wanted):
                found += [Spot(block, line) for line in self._lines_with(block, wanted)] or [Spot(block, 0)]
        return found

    def _lines_with(self, block: Block, wanted: str) -> list[int]:
        lines = block.lines(self._text_width, self.palette)
        return [number for number, text in enumerate(texts_of(lines)) if wanted in text.lower()]

    def show_spot(self, spot: Spot, text: str) -> Spot:
        """Bring a place into view and put the keyboard's mark there; a folded block is opened when it hides the text.

        Returns:
            The place, its line corrected when the block was opened.
        """
        block, wanted = spot.block, text.lower()
        lines = self._lines_with(block, wanted)
        if not lines and block.folded:
            block.toggle()
            lines = self._lines_with(block, wanted)
        line = spot.line if spot.line in lines else next(iter(lines), 0)
        self.follow = False
        self._cursor = block
        self._correct(block)
        self._hold = (block, line - self.scrollable_content_region.height // _ABOVE)
        self._settle()
        return Spot(block, line)

    def _paint(self, row: Row, known: dict[int, Painted], base: Style, width: int) -> Strip:
        strip = super()._paint(row, known, base, width)
        return _highlighted(strip, self._needle, Style(reverse=True)) if self._needle else strip


def _holds(block: Block, wanted: str) -> bool:
    return block.kind in _SEARCHED and wanted in block.source.lower()


def _highlighted(strip: Strip, wanted: str, style: Style) -> Strip:
    """The strip with each place of a text in another style."""
    text = strip.text.lower()
    at = text.find(wanted)
    if at < 0 or len(text) != len(strip.text):
        return strip
    parts: list[Strip] = []
    done = 0
    while at >= 0:
        start, end = cell_len(strip.text[:at]), cell_len(strip.text[: at + len(wanted)])
        found = strip.crop(start, end)
        parts += [
            strip.crop(done, start),
            Strip([Segment(piece, (own or style) + style, control) for piece, own, control in found], end - start),
        ]
        done = end
        at = text.find(wanted, at + len(wanted))
    return Strip.join([*parts, strip.crop(done, strip.cell_length)])
