"""The line index against a plain list of heights."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragforge_tui.tui.transcript.viewport import LineIndex

_HEIGHTS = st.lists(st.integers(0, 9), min_size=1, max_size=40)


@given(_HEIGHTS, st.lists(st.tuples(st.integers(0, 39), st.integers(0, 9)), max_size=10))
def test_starts_and_lines_are_those_of_the_heights(heights: list[int], corrections: list[tuple[int, int]]) -> None:
    index = LineIndex(heights)
    for position, height in corrections:
        if position < len(heights):
            assert index.set(position, height) == height - heights[position]
            heights[position] = height
    owners = [(position, offset) for position, height in enumerate(heights) for offset in range(height)]
    assert index.total == len(owners)
    assert [index.start(position) for position in range(len(heights))] == [
        sum(heights[:position]) for position in range(len(heights))
    ]
    assert [index.find(line) for line in range(len(owners))] == owners


@given(_HEIGHTS, _HEIGHTS, st.integers(0, 40))
def test_cutting_and_appending(heights: list[int], more: list[int], at: int) -> None:
    index = LineIndex(heights)
    index.truncate(at)
    for height in more:
        index.append(height)
    expected = heights[:at] + more
    assert index.total == sum(expected)
    assert [index.height(position) for position in range(len(index))] == expected
