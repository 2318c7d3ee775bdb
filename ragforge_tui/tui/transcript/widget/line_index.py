"""Running sums of block heights, to find the block of a line by bisection.

A binary indexed tree: correcting the height of one block among many thousands costs a handful of additions. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable


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
