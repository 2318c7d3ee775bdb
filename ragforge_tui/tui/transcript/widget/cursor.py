"""The block of a transcript that the keyboard is at, and the turns that are marked for a moment."""

from __future__ import annotations

from collections.abc import Sequence

from ragforge_tui.tui.transcript.model.blocks import Block, TextBlock, UserBlock
from ragforge_tui.tui.transcript.render.links import Link, links_of
from ragforge_tui.tui.transcript.widget.block_view import BlockView
from ragforge_tui.tui.transcript.widget.copying import code_of


class Cursor:
    """Moves from block to block in one view.

    Attributes:
        block: The block at the cursor, None for none.
        turns: The marked turns.
    """

    def __init__(self, view: BlockView) -> None:
        self._view = view
        self.block: Block | None = None
        self.turns = range(0)

    def marks(self, block: Block) -> bool:
        """Return whether a block is drawn with a mark in the margin."""
        return block is self.block or block.turn_index in self.turns

    def clear(self) -> None:
        """Leave the blocks and remove all marks."""
        self.block = None
        self.turns = range(0)

    def follow_document(self) -> None:
        """Move to the successor of a block that was dropped, if its turn was replaced."""
        if self.block is not None and self._view.document.position(self.block) < 0:
            self.block = self._successor(self.block)

    def _successor(self, dropped: Block) -> Block | None:
        place, blocks = self._view.document.place(dropped), self._view.document.blocks
        there = blocks[place] if place < len(blocks) else None
        same = there is not None and (there.turn_index, there.kind) == (dropped.turn_index, dropped.kind)
        return there if same else None

    def move(self, by: int) -> None:
        """Go to the next (1) or previous (-1) block, from no block to the first or last one in view."""
        view, blocks = self._view, self._view.document.blocks
        if not blocks:
            return
        if self.block is None:
            bottom = view.top + view.scrollable_content_region.height - 1
            position = view.viewport.index.find(min(bottom, view.viewport.index.total - 1) if by < 0 else view.top)[0]
        else:
            position = min(len(blocks) - 1, max(0, view.document.position(self.block) + by))
        self.block = blocks[position]
        view.scroll_into_view(self.block)
        view.repaint()

    def links(self) -> list[Link]:
        """Return the links of the block at the cursor, or of its turn if it has none."""
        if self.block is None:
            return []
        near = [block for block in self._view.document.blocks if block.turn_index == self.block.turn_index]
        return _links([self.block]) or _links(near)

    def copyable(self) -> Block | None:
        """Return the block at the cursor, or the last answer if there is no cursor."""
        answers = (block for block in reversed(self._view.document.blocks) if isinstance(block, TextBlock))
        return self.block or next(answers, None)

    def code(self) -> str:
        """Return the last code of the block at the cursor, or of the transcript if there is no cursor."""
        candidates = [self.block] if self.block is not None else self._view.document.blocks[::-1]
        for block in candidates:
            if isinstance(block, TextBlock) and (code := code_of(block.source)):
                return code[-1]
        return ""


def _links(blocks: Sequence[Block]) -> list[Link]:
    """Return the links in messages, each target once."""
    messages = [block for block in blocks if isinstance(block, TextBlock | UserBlock)]
    found = [link for block in messages for link in links_of(block.source, markdown=isinstance(block, TextBlock))]
    return list({link.target: link for link in found}.values())
