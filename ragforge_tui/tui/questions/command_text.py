"""A command as the rows of a question: its beginning and its end are always among them.

Users must see the command they approve. The terminal's own wrapping lets a second command pass for the rest of a long
comment, and a scrolling pane hides its end. So a command is wrapped here, each row behind a gutter that its text cannot
reach; a row between beginning and end gives the size of the omitted part.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from rich.cells import cell_len, chop_cells
from textual.content import Content

from ragforge_tui.shared.formatting import counted
from ragforge_tui.shared.sanitize import plain_text

MIN_ROWS = 3
"""Beginning, size of the omitted part, end."""
_TAB = 4
_MOST_BLANKS = 40
"""Cells; longer runs inside a line are replaced by their length. Indentation is shorter than that."""
_BLANK = " \u00a0\u115f\u1160\u1680\u2000-\u200a\u202f\u205f\u2800\u3000\u3164\uffa0"
_BLANKS = re.compile(f"[{_BLANK}]{{{_MOST_BLANKS},}}")
_EMPTY = re.compile(f"[{_BLANK}]*")
_WRAPPED = "↪ "


class Row(NamedTuple):
    """One row.

    Attributes:
        gutter: The number of its line or the mark of a wrapped one, in cells that hold nothing of the command.
        text: A part of the command, or with `note` a remark about it.
        start: First character of its text in the command; it ends at `end`.
    """

    gutter: str
    text: str
    start: int
    end: int
    note: bool = False


class CommandText:
    """Command that can be drawn at any width.

    Args:
        command: As it would run, with controls already made visible.
    """

    def __init__(self, command: str) -> None:
        text = plain_text(command).expandtabs(_TAB)
        self._lines = [
            _BLANKS.sub(lambda run: f"⟨{len(run[0])} blanks⟩", line) for line in text.rstrip("\n").split("\n")
        ]
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)
        self._gutter = max(len(str(len(self._lines))) if len(self._lines) > 1 else 1, 1) + 1

    @property
    def line_count(self) -> int:
        return len(self._lines)

    def numbered(self) -> str:
        """Return the whole command with line numbers, as a `Section` with `numbered` takes it."""
        return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(self._lines, 1))

    def rows(self, width: int, room: int) -> tuple[list[Row], bool]:
        """Return the rows, and whether the middle is omitted.

        Args:
            width: Cells of a row.
            room: Maximum number of rows, at least `MIN_ROWS`.
        """
        room = max(room, MIN_ROWS)
        inner = max(width - self._gutter, 2)
        shown: list[Row] = []
        for row in self._forward(inner):
            shown.append(row)
            if len(shown) > room:
                return self._folded(shown, inner, room), True
        return shown, False

    def _folded(self, head: list[Row], inner: int, room: int) -> list[Row]:
        tail_rows = (room - 1) // 2
        head = head[: room - 1 - tail_rows]
        tail: list[Row] = []
        for row in self._backward(inner, tail_rows):
            if row.start < head[-1].end or len(tail) == tail_rows:
                break
            tail.insert(0, row)
        first, last = head[-1], tail[0]
        lines = bisect_left(self._starts, last.start) - bisect_right(self._starts, first.end)
        more = f"{counted(lines, 'more line')}, " if lines > 0 else ""
        between = f"{more}{counted(last.start - first.end)} characters between"
        note = Row(self._mark("⋮"), between, first.end, last.start, note=True)
        return [*head, note, *tail]

    def _forward(self, inner: int) -> Iterator[Row]:
        index = 0
        while index < len(self._lines):
            after = self._after_blanks(index)
            if after - index > 1:
                yield self._blank_row(index, after)
                index = after
            else:
                yield from self._wrapped(index, inner, 0)
                index += 1

    def _backward(self, inner: int, most: int) -> Iterator[Row]:
        """Yield the rows from the last one up; only the end of a long line is wrapped."""
        index = len(self._lines) - 1
        while index >= 0:
            first = index
            while first > 0 and _EMPTY.fullmatch(self._lines[index]) and _EMPTY.fullmatch(self._lines[first - 1]):
                first -= 1
            if first < index:
                yield self._blank_row(first, index + 1)
            else:
                line = self._lines[index]
                # Whole rows from the beginning of the line would differ from these only by where they are cut.
                begin = max(0, len(line) - inner * most)
                yield from reversed(list(self._wrapped(index, inner, begin)))
            index = first - 1

    def _after_blanks(self, index: int) -> int:
        while index < len(self._lines) and _EMPTY.fullmatch(self._lines[index]):
            index += 1
        return index

    def _blank_row(self, first: int, after: int) -> Row:
        start, end = self._starts[first], self._starts[after] - 1
        return Row(self._mark("⋮"), f"{after - first} blank lines", start, end, note=True)

    def _wrapped(self, index: int, inner: int, begin: int) -> Iterator[Row]:
        line, start = self._lines[index], self._starts[index]
        number = "$" if index == 0 else str(index + 1)
        at = begin
        while True:
            piece = _first_cells(line[at : at + inner], inner)
            if line[at + len(piece) : at + len(piece) + 1].strip():
                piece = _before_cut_word(piece, line[at : at + 2 * inner + 1], inner)
            mark = self._mark(number) if at == 0 else self._mark(_WRAPPED.strip())
            yield Row(mark, piece, start + at, start + at + len(piece))
            at += len(piece)
            if at >= len(line):
                return

    def _mark(self, text: str) -> str:
        return text.rjust(self._gutter - 1) + " "


def _first_cells(text: str, width: int) -> str:
    """Return as much of the beginning as fits, at least one character."""
    if cell_len(text) <= width:
        return text
    pieces = chop_cells(text, width)
    return next((piece for piece in pieces if piece), text[:1])


def _before_cut_word(piece: str, text: str, width: int) -> str:
    """Return a row up to a blank in its second half, if the word that it cuts fits on a row: an option stays whole.

    The blank ends the row, so nothing is hidden.
    """
    blank = piece.rfind(" ", len(piece) // 2)
    word = text[blank + 1 :].split(" ", 1)[0]
    return piece[: blank + 1] if blank >= 0 and cell_len(word) <= width else piece


def drawn(rows: list[Row]) -> Content:
    """Return rows as content that must not be wrapped again."""
    lines = [
        Content.assemble((row.gutter, "dim"), (row.text, "dim italic" if row.note else "$warning")) for row in rows
    ]
    return Content("\n").join(lines)
