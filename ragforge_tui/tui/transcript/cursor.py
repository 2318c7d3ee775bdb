"""The block of a transcript that the keyboard is at, and the turns that are marked for a moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ragforge_tui.tui.drawing.lines import texts_of
from ragforge_tui.tui.transcript.block_view import BlockView
from ragforge_tui.tui.transcript.blocks import Block, HeadBlock, TextBlock, UserBlock
from ragforge_tui.tui.transcript.failure_block import failure_at
from ragforge_tui.tui.transcript.fences import Fence
from ragforge_tui.tui.transcript.links import Link

_GO_BACK = "go back here"


class Cursor:
    """Moves from block to block in one view.

    Attributes:
        block: The block at the cursor, None for none.
        turns: The marked turns.

    Args:
        moved: Called when the cursor is at another block.
    """

    def __init__(self, view: BlockView, moved: Callable[[], None]) -> None:
        self._view = view
        self._moved = moved
        self._block: Block | None = None
        self.turns = range(0)

    @property
    def block(self) -> Block | None:
        return self._block

    @block.setter
    def block(self, block: Block | None) -> None:
        if block is not self._block:
            self._block = block
            self._moved()

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys for the block with their effects, the most useful first."""
        block = self._block
        failed = failure_at(block, self._view.document.blocks)
        cures = tuple(f"{one.key} {one.word}" for one in failed.remedies) if failed is not None else ()
        if block is None:
            return (*cures, "y copy answer", "c copy code", "j k choose")
        mine = isinstance(block, UserBlock)
        # A message of the user shows at its own line that `b` goes back to it.
        back = ("e edit it",) if mine else (f"b {_GO_BACK}", "e edit the question")
        turn = back if block.turn_index else ()
        fold = () if block.folded is None else ("enter unfold" if block.folded else "enter fold",)
        view = () if mine else ("v view",)
        copy = ("y copy", "c code") if isinstance(block, TextBlock) and _may_hold_code(block.source) else ("y copy",)
        return (*cures, *((*turn, *copy, *fold) if mine else (*fold, *copy, *view, *turn)))

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
            position = view.document.position(self.block) + by
        while 0 <= position < len(blocks) and not _is_stop(blocks[position]):
            position += by
        if 0 <= position < len(blocks):
            self.block = blocks[position]
        if self.block is not None:
            view.scroll_into_view(self.block)
        view.repaint()

    def links(self, *, near: bool = True) -> list[Link]:
        """Return the links of the block at the cursor; if it has none and `near` is set, those of its turn."""
        if self.block is None:
            return []
        if not near:
            return _links([self.block])
        turn = [block for block in self._view.document.blocks if block.turn_index == self.block.turn_index]
        return _links([self.block]) or _links(turn)

    def copyable(self) -> Block | None:
        """Return the block at the cursor, or the last answer if there is no cursor."""
        answers = (block for block in reversed(self._view.document.blocks) if isinstance(block, TextBlock))
        return self.block or next(answers, None)

    def code(self) -> tuple[str, list[Fence]]:
        """Return the code at the cursor with the text it is in: of the block, else of its turn, else of the last answer
        with any."""
        if self.block is None:
            return next(_with_code(self._view.document.blocks[::-1]), ("", []))
        turn = [block for block in self._view.document.blocks if block.turn_index == self.block.turn_index]
        return next(_with_code([self.block, *(turn if self.block.turn_index else [])]), ("", []))


def _with_code(blocks: Sequence[Block]) -> Iterator[tuple[str, list[Fence]]]:
    """Yield the answers that hold code."""
    from ragforge_tui.tui.transcript.markdown import fences_of

    for block in blocks:
        if isinstance(block, TextBlock) and (fences := fences_of(block.source)):
            yield block.source, fences


def _may_hold_code(text: str) -> bool:
    """Return whether a text may hold code, without parsing it."""
    return "```" in text or "~~~" in text or "\n    " in text


def _is_stop(block: Block) -> bool:
    """Return whether the cursor stops at a block: not at the bare name of who speaks."""
    return not isinstance(block, HeadBlock) or bool(block.source)


def _links(blocks: Sequence[Block]) -> list[Link]:
    """Return the links in messages, each target once."""
    from ragforge_tui.tui.transcript.markdown import links_of

    messages = [block for block in blocks if isinstance(block, TextBlock | UserBlock)]
    found = [link for block in messages for link in links_of(block.source, markdown=isinstance(block, TextBlock))]
    return list({link.target: link for link in found}.values())


class Offers:
    """The offer to go back, on the user's message at the cursor and on the one under the mouse."""

    def __init__(self, view: BlockView, cursor: Cursor) -> None:
        self._view = view
        self._cursor = cursor
        self._hovered: UserBlock | None = None
        self._offering: set[UserBlock] = set()

    def hover(self, block: Block | None) -> None:
        """Note the block under the mouse, None for none."""
        hovered = block if isinstance(block, UserBlock) else None
        if hovered is not self._hovered:
            self._hovered = hovered
            self.update()

    def update(self) -> None:
        """Show the offers, and withdraw those that no longer hold."""
        offers: dict[UserBlock, str] = {}
        if self._hovered is not None:
            offers[self._hovered] = _GO_BACK
        if self._view.has_focus and isinstance(at := self._cursor.block, UserBlock):
            offers[at] = f"b {_GO_BACK}"
        offers = {block: text for block, text in offers.items() if block.turn_index}
        for block in self._offering | offers.keys():
            block.make_offer(offers.get(block, ""))
        if offers or self._offering:
            self._offering = set(offers)
            self._view.repaint()


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
        self.last_text = ""
        """The text searched for last; `n` searches for it again."""

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
