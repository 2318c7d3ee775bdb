"""Geometry of the visible lines: heights of blocks, and the line that must not move.

A block that was never drawn has an estimated height. When it comes into view it is drawn and its height corrected, in
such a way that the lines being read stay where they are. No widget: `BlockView` draws what this finds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from textual.selection import Selection

from ragforge_tui.tui.drawing.lines import Line, Sides
from ragforge_tui.tui.drawing.palette import Palette
from ragforge_tui.tui.transcript.blocks import Block
from ragforge_tui.tui.transcript.document import Document

LINES_PER_BLOCK = 1 << 24


def text_between(blocks: Sequence[Block], selection: Selection, width: int, palette: Palette, *, margin: int) -> str:
    """Return the text of a selection without soft line breaks, gutters and margins."""
    if not blocks:
        return ""
    first = 0
    if selection.start is not None:
        serial = selection.start.y // LINES_PER_BLOCK
        first = bisect_left(blocks, serial, key=lambda block: block.serial)
    last = blocks[-1].serial if selection.end is None else selection.end.y // LINES_PER_BLOCK
    parts: list[str] = []
    join = ""
    left: bool | None = None
    for block in blocks[first:]:
        if block.serial > last:
            break
        lines, top = block.lines(width, palette), block.serial * LINES_PER_BLOCK
        # Only selected lines are touched, since that makes the lines of a long text.
        begin = 0 if selection.start is None else max(0, selection.start.y - top)
        stop = len(lines) if selection.end is None else min(len(lines), selection.end.y - top + 1)
        for offset in range(begin, stop):
            span = selection.get_span(top + offset)
            if span is None:
                continue
            line = lines[offset]
            if left is None and line.sides is not None:
                left = on_left_side(blocks, selection, width, palette, margin=margin)
            if (part := line.part(left=bool(left))) is None:
                continue
            start, end = span[0] - margin, part.end if span[1] == -1 else min(part.end, span[1] - margin)
            # A soft line break is replaced by its join.
            parts += [join, line.strip.text[max(part.start, start) : max(end, 0)]]
            join = part.join
    return "".join(parts).strip("\n")


def on_left_side(blocks: Sequence[Block], selection: Selection, width: int, palette: Palette, *, margin: int) -> bool:
    """Return whether a selection is within the left one of two sides, so that only that is copied."""
    ends = []
    for place in (selection.start, selection.end):
        if place is not None and (sides := _sides_at(blocks, place.y, width, palette)) is not None:
            ends.append(place.x - margin <= sides.middle)
    return bool(ends) and all(ends)


def _sides_at(blocks: Sequence[Block], at: int, width: int, palette: Palette) -> Sides | None:
    """Return the two sides of a line, as it is identified in a selection; None if it has only one."""
    serial, offset = divmod(at, LINES_PER_BLOCK)
    position = bisect_left(blocks, serial, key=lambda block: block.serial)
    if position >= len(blocks) or blocks[position].serial != serial:
        return None
    lines = blocks[position].lines(width, palette)
    sides = lines[offset].sides if offset < len(lines) else None
    return sides if sides is not None and sides.middle else None


class LineIndex:
    """Heights of blocks, in order, and the line each starts at."""

    def __init__(self, heights: Iterable[int] = ()) -> None:
        self._heights: list[int] = []
        self._tree: list[int] = [0]
        for height in heights:
            self.append(height)

    def __len__(self) -> int:
        return len(self._heights)

    @property
    def total(self) -> int:
        return self.start(len(self._heights))

    def height(self, position: int) -> int:
        return self._heights[position]

    def append(self, height: int) -> None:
        """Add a block at the end."""
        self._heights.append(height)
        node = len(self._heights)
        covered = node & -node
        total = height
        step = 1
        while step < covered:
            total += self._tree[node - step]
            step <<= 1
        self._tree.append(total)

    def set(self, position: int, height: int) -> int:
        """Correct the height of a block; return by how much it grew."""
        delta = height - self._heights[position]
        if delta:
            self._heights[position] = height
            node = position + 1
            while node < len(self._tree):
                self._tree[node] += delta
                node += node & -node
        return delta

    def truncate(self, length: int) -> None:
        """Drop the blocks from position `length` on."""
        del self._heights[length:]
        del self._tree[length + 1 :]

    def start(self, position: int) -> int:
        """Return the first line of a block: the sum of the heights before it."""
        total = 0
        node = position
        while node:
            total += self._tree[node]
            node -= node & -node
        return total

    def find(self, line: int) -> tuple[int, int]:
        """Return the block of a line and the offset in it; the last block for lines past the end."""
        position = 0
        left = line
        step = 1 << len(self._heights).bit_length()
        while step:
            after = position + step
            if after < len(self._tree) and self._tree[after] <= left:
                position = after
                left -= self._tree[after]
            step >>= 1
        if position >= len(self._heights):
            position = len(self._heights) - 1
            left = line - self.start(position) if position >= 0 else 0
        return position, left


class Frame(NamedTuple):
    """Size of the window in cells, without its margins, and the styles to draw with."""

    width: int
    height: int
    palette: Palette


class Row(NamedTuple):
    """One row of the window.

    Attributes:
        line: A line of a block, None below the last block.
        at: Identifies the line in a selection.
        marked: Whether the row is drawn with a mark in the margin.
    """

    line: Line | None
    at: int = -1
    marked: bool = False


class Viewport:
    """Positions of the blocks of a document, in lines.

    Attributes:
        index: Heights of all blocks, estimated or measured.
    """

    def __init__(self, document: Document) -> None:
        self._document = document
        self.index = LineIndex()
        self._held: tuple[Block, int] | None = None

    def clear(self) -> None:
        """Forget all heights and the held line."""
        self.index = LineIndex()
        self._held = None

    def sync(self, width: int) -> None:
        """Take in blocks that were added to or removed from the document."""
        document, index = self._document, self.index
        if document.stable < len(index):
            index.truncate(document.stable)
        for block in document.blocks[len(index) :]:
            index.append(block.height or block.estimate(width))
        document.settled()

    def correct(self, block: Block, frame: Frame) -> None:
        """Measure a block that has grown, in view or not."""
        position = self._document.position(block)
        if 0 <= position < len(self.index):
            self.index.set(position, len(block.lines(frame.width, frame.palette)))

    def start(self, block: Block) -> int:
        return self.index.start(self._document.position(block))

    def block_at(self, line: int) -> tuple[Block, int] | None:
        """Return the block at a line and the offset in it, None past the end."""
        if not 0 <= line < self.index.total:
            return None
        position, offset = self.index.find(line)
        return self._document.blocks[position], offset

    def hold(self, block: Block, offset: int) -> None:
        """Keep the top of the window `offset` lines below the first line of a block."""
        self._held = (block, offset)

    @property
    def held_block(self) -> Block | None:
        return self._held[0] if self._held is not None else None

    def place(self, frame: Frame, *, at_end: bool) -> int:
        """Draw the blocks in view, correct their heights and return the line at the top of the window.

        Args:
            at_end: Whether the window shows the end instead of the held line.
        """
        index, blocks = self.index, self._document.blocks
        position, offset = self._held_position()
        top = 0
        for _ in range(len(blocks) + 1):
            top = max(0, index.total - frame.height) if at_end else max(0, index.start(position) + offset)
            if not self._measure(top, frame):
                break
        return min(top, max(0, index.total - frame.height))

    def _held_position(self) -> tuple[int, int]:
        """Return the position of the held block, and the offset of the window's top from its first line."""
        if self._held is None or not len(self.index):
            return 0, 0
        block, offset = self._held
        position = min(self._document.place(block), len(self.index) - 1)
        if self._document.blocks[position] is not block:
            # It was dropped: its turn was replaced, or a notice disappeared.
            offset = min(offset, self.index.height(position) - 1)
        return position, offset

    def _measure(self, top: int, frame: Frame) -> bool:
        """Draw the blocks in view; return whether a height was corrected."""
        if not len(self.index):
            return False
        position, offset = self.index.find(top)
        line = top - offset
        corrected = False
        while line < top + frame.height and position < len(self.index):
            lines = self._document.blocks[position].lines(frame.width, frame.palette)
            corrected = bool(self.index.set(position, len(lines))) or corrected
            line += len(lines)
            position += 1
        return corrected

    def hold_at(self, top: int, frame: Frame) -> None:
        """Hold the first block in view that has been drawn, so that its height is known."""
        index, blocks = self.index, self._document.blocks
        if not len(index):
            self._held = None
            return
        position, offset = index.find(top)
        first = position
        bottom = top + frame.height
        if top > 0:
            while not blocks[position].drawn_for(frame.width, frame.palette):
                position += 1
                if position >= len(blocks) or index.start(position) >= bottom:
                    position = first
                    break
        self._held = (blocks[position], offset if position == first else top - index.start(position))

    def rows(self, top: int, frame: Frame, marked: Callable[[Block], bool]) -> list[Row]:
        """Return the rows of the window from a line on, blank ones at the end included."""
        rows: list[Row] = []
        if len(self.index):
            blocks = self._document.blocks
            position, offset = self.index.find(top)
            while len(rows) < frame.height and position < len(self.index):
                block = blocks[position]
                at, mark = block.serial * LINES_PER_BLOCK, marked(block)
                lines = block.lines(frame.width, frame.palette)
                for number in range(offset, min(len(lines), offset + frame.height - len(rows))):
                    rows.append(Row(lines[number], at + number, mark and number >= block.gap))
                position, offset = position + 1, 0
        return rows + [Row(None)] * (frame.height - len(rows))
