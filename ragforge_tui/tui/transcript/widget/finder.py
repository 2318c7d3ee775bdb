"""Finds a text in the loaded turns of a transcript and brings a match into view.

`dialogs/find_bar.py` asks the engine about turns that are not loaded.
"""

from __future__ import annotations

from typing import NamedTuple

from ragforge_tui.tui.transcript.model.blocks import Block
from ragforge_tui.tui.transcript.render.long_text import texts_of
from ragforge_tui.tui.transcript.widget.block_view import BlockView
from ragforge_tui.tui.transcript.widget.cursor import Cursor

_SEARCHED = frozenset({"user", "head", "text", "tool"})
"""Kinds of blocks made from records; notices of the program are not searched."""
_ABOVE = 3
"""A match is shown a third of the window's height below its top."""


class Spot(NamedTuple):
    """A line of a block that contains the text; 0 if the text is broken between lines."""

    block: Block
    line: int


class Finder:
    """Searches the blocks of one view."""

    def __init__(self, view: BlockView, cursor: Cursor) -> None:
        self._view = view
        self._cursor = cursor

    def turns_with(self, text: str) -> set[int]:
        """Return the loaded turns that contain a text."""
        needle = text.lower()
        return {block.turn_index for block in self._view.document.blocks if _contains(block, needle)}

    def spots(self, turn_index: int, text: str) -> list[Spot]:
        """Return the matches in a loaded turn, in order.

        A folded block counts once if none of its visible lines contains the text.
        """
        needle = text.lower()
        found: list[Spot] = []
        for block in self._view.document.blocks:
            if block.turn_index == turn_index and _contains(block, needle):
                found += [Spot(block, line) for line in self._matching_lines(block, needle)] or [Spot(block, 0)]
        return found

    def show_spot(self, spot: Spot, text: str) -> Spot:
        """Scroll to a match and move the cursor there; a folded block that hides the text is unfolded.

        Returns:
            The match, its line corrected if the block was unfolded.
        """
        view, block, needle = self._view, spot.block, text.lower()
        lines = self._matching_lines(block, needle)
        if not lines and block.folded:
            block.toggle()
            lines = self._matching_lines(block, needle)
        line = spot.line if spot.line in lines else next(iter(lines), 0)
        view.follow = False
        self._cursor.block = block
        view.correct(block)
        view.viewport.hold(block, line - view.scrollable_content_region.height // _ABOVE)
        view.settle()
        return Spot(block, line)

    def _matching_lines(self, block: Block, needle: str) -> list[int]:
        lines = block.lines(self._view.text_width, self._view.palette)
        return [number for number, text in enumerate(texts_of(lines)) if needle in text.lower()]


def _contains(block: Block, needle: str) -> bool:
    return block.kind in _SEARCHED and needle in block.source.lower()
