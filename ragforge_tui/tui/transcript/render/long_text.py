"""Plain text of any length whose lines are made when they are drawn.

For blocks whose unfolded body may be megabytes: line breaks are computed at once and take a few bytes per line.
"""

from __future__ import annotations

from abc import abstractmethod
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from typing import overload

from rich.cells import cell_len
from rich.style import Style

from ragforge_tui.tui.drawing.lines import Line, Run, line_of
from ragforge_tui.tui.drawing.wrapping import wrap_spans

LONG = 50_000
"""Characters from which making all lines at once would be noticeable."""
_JOINS = ("\n", " ", "")


class _MadeLines(Sequence[Line]):
    """A sequence of lines that are made one by one."""

    @overload
    def __getitem__(self, index: int) -> Line: ...

    @overload
    def __getitem__(self, index: slice) -> list[Line]: ...

    def __getitem__(self, index: int | slice) -> Line | list[Line]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        index = index + len(self) if index < 0 else index
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self._line(index)

    @abstractmethod
    def _line(self, index: int) -> Line: ...

    @abstractmethod
    def texts(self) -> Iterator[str]:
        """Yield the texts of the lines, as far as possible without making them."""


class LongText(_MadeLines):
    """A cleaned text in one style, wrapped behind a bar.

    Args:
        bar: Precedes each line and is not copied; empty for none.
    """

    def __init__(self, text: str, width: int, style: Style, *, bar: Run | None = None) -> None:
        self._text = text
        self._width = width
        self._style = style
        self._bar = [bar] if bar is not None else []
        self._gutter = len(bar[0]) if bar is not None else 0
        self._starts = array("q")
        self._ends = array("q")
        self._joins = bytearray()
        self._break(max(1, width - cell_len(bar[0] if bar is not None else "")))

    def _break(self, width: int) -> None:
        text, at = self._text, 0
        while at <= len(text):
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            for start, stop, join in wrap_spans(text[at:end], width):
                self._starts.append(at + start)
                self._ends.append(at + stop)
                self._joins.append(_JOINS.index(join))
            at = end + 1

    def __len__(self) -> int:
        return len(self._starts)

    def _line(self, index: int) -> Line:
        join = _JOINS[self._joins[index]]
        return line_of([*self._bar, (self._piece(index), self._style)], self._width, gutter=self._gutter, join=join)

    def _piece(self, index: int) -> str:
        return self._text[self._starts[index] : self._ends[index]]

    def texts(self) -> Iterator[str]:
        return map(self._piece, range(len(self)))


class _Stack(_MadeLines):
    """Lines of several parts as one sequence."""

    def __init__(self, parts: Sequence[Sequence[Line]]) -> None:
        self._parts = parts
        self._starts = [0, *accumulate(map(len, parts))]

    def __len__(self) -> int:
        return self._starts[-1]

    def _line(self, index: int) -> Line:
        part = bisect_right(self._starts, index) - 1
        return self._parts[part][index - self._starts[part]]

    def texts(self) -> Iterator[str]:
        return chain.from_iterable(map(texts_of, self._parts))


def stack(*parts: Sequence[Line]) -> Sequence[Line]:
    """Concatenate lines without making those of a long text."""
    if any(isinstance(part, _MadeLines) for part in parts):
        return _Stack([part for part in parts if len(part)])
    return list(chain.from_iterable(parts))


def texts_of(lines: Sequence[Line]) -> Iterator[str]:
    """Return the texts of lines without making those of a long text."""
    if isinstance(lines, _MadeLines):
        return lines.texts()
    return (line.strip.text for line in lines)
