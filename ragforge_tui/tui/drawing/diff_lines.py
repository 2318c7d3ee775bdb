"""Diffs as lines: file and counts, line numbers, tinted rows with syntax colors, changed words brighter.

The only painter of diffs. Its lines are made when they are looked at: ten thousand of them cost a look at their
lengths. From `SIDE_BY_SIDE` cells on the old lines are next to the new ones.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import accumulate, pairwise, zip_longest
from typing import NamedTuple

from rich.cells import cell_len
from rich.style import Style

from ragforge_tui.tui.drawing.code import GrowingCode, by_line, hunk_runs, language_of
from ragforge_tui.tui.drawing.code_breaks import code_spans
from ragforge_tui.tui.drawing.diff_parser import DiffRow, FileChange, count_changes, parse_diff
from ragforge_tui.tui.drawing.lines import NOT_COPIED, Line, MadeLines, Part, Run, Sides, clip, line_of, slices
from ragforge_tui.tui.drawing.palette import Palette, on_ground

SIDE_BY_SIDE = 140
"""Cells from which both sides have room; a terminal of 160 columns leaves so many."""
_PIECE = 64
_LONGEST_PIECE = 20_000
"""Lines highlighted at once, and the characters from which they stay plain."""
_MOST_KEPT = 2_000
"""Rows whose lines are kept."""
_LONGEST_COMPARED = 1_000
_MOST_CHANGED = 0.5
"""Share of a line; if more of it changed, its changed words are not highlighted."""
_CLOSE = 2
"""Characters between changed words that are marked with them."""
_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_SIGNS = frozenset({"+", "-", " "})
"""Signs of rows that hold a line of the file."""
_WORDS = {"+": "added", "-": "removed", " ": "line"}


@lru_cache(256)
def changed_words(old: str, new: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the changed spans of a line and of the one that replaced it; none if the lines have little in common."""
    if max(len(old), len(new)) > _LONGEST_COMPARED:
        return [], []
    before, after = _TOKEN.findall(old), _TOKEN.findall(new)
    starts = [list(accumulate(map(len, tokens), initial=0)) for tokens in (before, after)]
    spans: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    for tag, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            for found, at, first, last in ((spans[0], starts[0], i, j), (spans[1], starts[1], k, m)):
                if first < last:
                    found.append((at[first], at[last]))
    old_spans, new_spans = (_joined_spans(text, found) for text, found in zip((old, new), spans, strict=True))
    for text, found in ((old, old_spans), (new, new_spans)):
        if sum(end - start for start, end in found) > _MOST_CHANGED * len(text.strip()):
            return [], []
    return old_spans, new_spans


def _joined_spans(text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans without blanks at their ends, those next to each other as one."""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        piece = text[start:end]
        start, end = end - len(piece.lstrip()), start + len(piece.rstrip())
        if start >= end:
            continue
        if joined and start - joined[-1][1] <= _CLOSE:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


class _Syntax:
    """One side of a file in syntax colors, made in pieces and kept."""

    def __init__(self, lines: Sequence[str], starts: Sequence[int], language: str, palette: Palette) -> None:
        self._lines = lines
        self._language = language
        self._palette = palette
        self._hunks = frozenset(starts)
        ends = [*starts[1:], len(lines)]
        self._starts = [at for start, end in zip(starts, ends, strict=True) for at in range(start, end, _PIECE)]
        self._made: dict[int, list[list[Run]]] = {}
        self._states: dict[int, GrowingCode] = {}

    def runs(self, at: int) -> list[Run]:
        """Return a line."""
        if not self._language:
            return [(self._lines[at], self._palette.text)]
        piece = bisect_right(self._starts, at) - 1
        if piece not in self._made:
            self._make(piece)
        return self._made[piece][at - self._starts[piece]]

    def _make(self, piece: int) -> None:
        start = self._starts[piece]
        end = self._starts[piece + 1] if piece + 1 < len(self._starts) else len(self._lines)
        lines = self._lines[start:end]
        if sum(map(len, lines)) > _LONGEST_PIECE:
            self._made[piece] = [[(line, self._palette.text)] for line in lines]
            return
        before = self._states.get(piece - 1) if start not in self._hunks else None
        if before is None:
            colored, code = hunk_runs(lines, self._language, self._palette)
        else:
            code = before.following()
            colored = by_line(code.add("".join(f"{line}\n" for line in lines)))
        self._states[piece] = code
        # A lexer may change what it does not understand; the text of a diff is shown as it is.
        self._made[piece] = [
            runs if "".join(text for text, _ in runs) == line else [(line, self._palette.text)]
            for line, runs in zip(lines, [*colored, *([] for _ in lines)], strict=False)
        ]


class _Row(NamedTuple):
    """A line of one side.

    Attributes:
        gutter: Number of characters before its text.
        length: Number of characters of its text.
        join: What follows the text in the file.
    """

    runs: list[Run]
    gutter: int
    length: int
    join: str

    def part(self, offset: int) -> Part:
        """Return what is copied of it, behind some characters."""
        start = offset + self.gutter
        return Part(start, start + self.length, self.join)


class _Item(NamedTuple):
    """Unit of one or more lines: the head of a file, a row, or with two sides a pair of rows; -1 for none."""

    file: int
    row: int = -1
    right: int = -1


class DiffLines(MadeLines):
    """Lines of a diff.

    Args:
        header: Put path and counts before the changes of each file.
        prefix: Precedes each line.
    """

    def __init__(
        self,
        files: Sequence[FileChange],
        width: int,
        palette: Palette,
        *,
        header: bool = True,
        prefix: Sequence[Run] = (),
    ) -> None:
        self._files = files
        self._palette = palette
        self._prefix = list(prefix)
        self._prefix_length = sum(len(text) for text, _ in prefix)
        self._whole = width
        self._width = max(1, width - sum(cell_len(text) for text, _ in prefix))
        self._two_sides = self._width >= SIDE_BY_SIDE and not palette.plain
        self._number = max(3, *(len(str(file.last_line)) for file in files)) if files else 3
        self._half = (self._width - 1) // 2
        self._syntax: dict[int, tuple[_Syntax, _Syntax]] = {}
        self._kept: dict[int, list[Line]] = {}
        self._items = list(self._list_items(header=header))
        self._starts = [0, *accumulate(map(self._height, self._items))]

    def __len__(self) -> int:
        return self._starts[-1]

    def texts(self) -> Iterator[str]:
        for item in self._items:
            yield from self._item_texts(item)

    # Layout

    def _list_items(self, *, header: bool) -> Iterator[_Item]:
        for number, file in enumerate(self._files):
            if header and file.path:
                yield _Item(number)
            if self._is_split(number):
                yield from self._pairs(number, file)
            else:
                yield from (_Item(number, row) for row in range(len(file.rows)))

    def _is_split(self, number: int) -> bool:
        """Return whether a file has two sides; where nothing was removed, or nothing added, one would be empty."""
        return self._two_sides and all(self._files[number].counts)

    def _pairs(self, number: int, file: FileChange) -> Iterator[_Item]:
        removed: list[int] = []
        added: list[int] = []
        for at, row in enumerate(file.rows):
            if row.sign == "-" and not added:
                removed.append(at)
            elif row.sign == "+":
                added.append(at)
            else:
                yield from _joined(number, removed, added)
                removed, added = ([at] if row.sign == "-" else []), []
                if row.sign != "-":
                    yield _Item(number, at, at if row.sign == " " else -1)
        yield from _joined(number, removed, added)

    def _height(self, item: _Item) -> int:
        height = 1
        for at in (item.row, item.right) if item.row != item.right else (item.row,):
            if at >= 0 and (row := self._files[item.file].rows[at]).sign in _SIGNS:
                width = self._width_of(item.file, row)
                if len(row.text) > width or not row.text.isascii():
                    height = max(height, len(code_spans(row.text, width)[0]))
        return height

    def _width_of(self, number: int, row: DiffRow) -> int:
        """Return the cells for the text of a row."""
        if self._palette.plain:
            return max(1, self._width - len(_spoken(row)))
        # number, blank, sign, blank
        return max(1, (self._half if self._is_split(number) else self._width) - self._number - 3)

    def _item_texts(self, item: _Item) -> Iterator[str]:
        rows = self._files[item.file].rows
        shown = [rows[at] for at in dict.fromkeys((item.row, item.right)) if at >= 0]
        parts = [
            [row.text[start:end] for start, end, _ in code_spans(row.text, self._width_of(item.file, row))[0]]
            if row.sign in _SIGNS
            else [row.text]
            for row in shown
        ] or [[self._files[item.file].path]]
        yield from map("   ".join, zip_longest(*parts, fillvalue=""))

    # Painting

    def _line(self, index: int) -> Line:
        at = bisect_right(self._starts, index) - 1
        lines = self._kept.get(at)
        if lines is None:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            lines = self._kept[at] = self._paint(self._items[at])
        return lines[index - self._starts[at]]

    def _paint(self, item: _Item) -> list[Line]:
        file, palette = self._files[item.file], self._palette
        if item.row < 0 and item.right < 0:
            runs = header_runs(file, self._width, palette)
            return [self._framed(runs, gutter=0 if palette.plain else 1, length=len(runs[0][0].strip()))]
        at = item.row if item.row >= 0 else item.right
        row = file.rows[at]
        if row.sign not in _SIGNS:
            return [self._framed(self._remark(row))._replace(sides=NOT_COPIED)]
        if not self._is_split(item.file):
            rows = self._side(item.file, at, old=row.sign == "-")
            return [self._framed(one.runs, gutter=one.gutter, length=one.length, join=one.join) for one in rows]
        left = self._side(item.file, item.row, old=True) if item.row >= 0 else []
        right = self._side(item.file, item.right, old=False) if item.right >= 0 else []
        return [self._pair(old, new) for old, new in zip_longest(left, right)]

    def _pair(self, old: _Row | None, new: _Row | None) -> Line:
        """Return a line of both sides, either of which may be over already."""
        left = old.runs if old is not None else [(" " * self._half, self._palette.text)]
        middle = self._prefix_length + sum(len(text) for text, _ in left) + 1
        line = self._framed([*left, (" ", self._palette.text), *(new.runs if new is not None else [])])
        parts = old and old.part(self._prefix_length), new and new.part(middle)
        return line._replace(sides=Sides(middle, *parts))

    def _framed(self, runs: Sequence[Run], *, gutter: int = 0, length: int | None = None, join: str = "\n") -> Line:
        """Return a line of which `length` characters behind the gutter are copied; None for all."""
        filler = 0 if length is None else max(0, sum(len(text) for text, _ in runs) - gutter - length)
        gutter += self._prefix_length
        return line_of([*self._prefix, *runs], self._whole, gutter=gutter, join=join, filler=filler)

    def _remark(self, row: DiffRow) -> list[Run]:
        palette = self._palette
        if palette.plain:
            return [(clip(row.text, self._width), palette.muted)]
        sign = "⋯" if row.sign == "fold" else " "
        text = clip(row.text, self._width - self._number - 3)
        return [(f"{sign:>{self._number}}   ", palette.muted), (text, palette.muted)]

    def _side(self, number: int, at: int, *, old: bool) -> list[_Row]:
        """Return the lines of a row on one side."""
        row = self._files[number].rows[at]
        palette, width = self._palette, self._width_of(number, row)
        ground, words, mark = {
            "+": (palette.added_row, palette.added_word, palette.added),
            "-": (palette.removed_row, palette.removed_word, palette.removed),
        }.get(row.sign, (Style(), Style(), palette.muted))
        runs = self._colored(number, at, ground, words, mark, old=old)
        gray = on_ground(palette.muted, ground, palette)
        spans, indent = code_spans(row.text, width)
        lines: list[_Row] = []
        for (start, end, join), piece in zip(spans, slices(runs, spans), strict=True):
            spoken, label, sign = _spoken(row), self._label(number, row, old=old), row.sign
            if start:
                spoken, label, sign = " " * len(spoken), "↪", " "
            first: list[Run] = [(f"{label:>{self._number}} ", gray), (f"{sign} ", on_ground(mark, ground, palette))]
            if palette.plain:
                first = [(spoken, palette.muted)]
            first += [(" " * indent, ground)] if start else []
            gutter = sum(len(text) for text, _ in first)
            cells = sum(cell_len(text) for text, _ in piece) + (indent if start else 0)
            # Without colors behind it, a row needs no cells after its text.
            filled = not palette.plain and (self._is_split(number) or ground.bgcolor is not None)
            rest = (" " * (width - cells) if filled else "", ground)
            lines.append(_Row([*first, *piece, rest], gutter, end - start, join))
        return lines

    def _label(self, number: int, row: DiffRow, *, old: bool) -> str:
        """Return a row's number: in one column that of the new file, so that no number is there twice."""
        if not old:
            return str(row.new)
        return str(row.old) if self._is_split(number) or not self._files[number].new_lines else ""

    def _colored(self, number: int, at: int, ground: Style, words: Style, mark: Style, *, old: bool) -> list[Run]:
        palette, row = self._palette, self._files[number].rows[at]
        if palette.ansi and row.sign != " ":
            # The sixteen colors have no tints: the color says what a line is, so there is none left for its syntax.
            runs: list[Run] = [(row.text, mark)]
        else:
            sides = self._syntax_of(number)
            runs = sides[0].runs(row.old_at) if old else sides[1].runs(row.new_at)
            runs = [(text, on_ground(style, ground, palette)) for text, style in runs] if row.sign != " " else runs
        spans = self._changed(number, at, row)
        return _emphasized(runs, spans, words, palette) if spans else runs

    def _syntax_of(self, number: int) -> tuple[_Syntax, _Syntax]:
        if number not in self._syntax:
            file = self._files[number]
            language = language_of(file.path)
            self._syntax[number] = (
                _Syntax(file.old_lines, file.old_starts, language, self._palette),
                _Syntax(file.new_lines, file.new_starts, language, self._palette),
            )
        return self._syntax[number]

    def _changed(self, number: int, at: int, row: DiffRow) -> list[tuple[int, int]]:
        partner = self._files[number].partner(at)
        if partner is None:
            return []
        other = self._files[number].rows[partner].text
        return changed_words(row.text, other)[0] if row.sign == "-" else changed_words(other, row.text)[1]


def _joined(number: int, removed: list[int], added: list[int]) -> Iterator[_Item]:
    for left, right in zip_longest(removed, added, fillvalue=-1):
        yield _Item(number, left, right)


def _spoken(row: DiffRow) -> str:
    """Return the words before a line that is read aloud."""
    return f"{_WORDS[row.sign]} {row.old if row.sign == '-' else row.new}: "


def _emphasized(runs: list[Run], spans: Sequence[tuple[int, int]], words: Style, palette: Palette) -> list[Run]:
    """Return runs with spans of their text in the style of changed words."""
    edges = [0, *(edge for span in spans for edge in span), sum(len(text) for text, _ in runs)]
    cuts = [(start, end, "") for start, end in pairwise(edges)]
    pieces = slices(runs, cuts)
    return [
        (text, on_ground(style, words, palette) if at % 2 else style)
        for at, piece in enumerate(pieces)
        for text, style in piece
        if text
    ]


def header_runs(file: FileChange, width: int, palette: Palette) -> list[Run]:
    """Return path and counts of a file over a whole line."""
    band = palette.band
    state = {"new": "new file", "deleted": "deleted", "changed": ""}[file.state]
    counts: list[Run] = [("  ", band), *count_runs(*file.counts, palette)]
    room = max(1, width // 2)
    for remark, style in ((state, palette.muted), (file.note, palette.running)):
        if remark:
            counts.append((clip(f", {remark}" if palette.plain else f"  {remark}", room), style))
    taken = sum(cell_len(text) for text, _ in counts)
    path = clip(file.path, max(1, width - taken - 1))
    left: list[Run] = [(path if palette.plain else f" {path}", palette.heading), *counts]
    runs = [(text, on_ground(style, band, palette)) for text, style in left]
    used = sum(cell_len(text) for text, _ in runs)
    return runs if palette.plain else [*runs, (" " * max(0, width - used), band)]


def count_runs(added: int, removed: int, palette: Palette) -> list[Run]:
    """Return numbers of added and removed lines; nothing where no line changed, as in a file that is no text."""
    if not added and not removed:
        return []
    if palette.plain:
        return [(f"{added} added, ", palette.added), (f"{removed} removed", palette.removed)]
    return [(f"+{added} ", palette.added), (f"−{removed}", palette.removed)]


class Diff:
    """A diff, parsed once.

    Args:
        note: Remark on its first file.
    """

    def __init__(self, text: str, note: str = "") -> None:
        self.text = text
        self.files = parse_diff(text)
        for file in self.files[:1]:
            file.note = note
        self.added, self.removed = count_changes(self.files)
        self._made: tuple[tuple[int, bool, tuple[Run, ...]], Palette, DiffLines] | None = None

    def lines(self, width: int, palette: Palette, *, header: bool = True, prefix: Sequence[Run] = ()) -> Sequence[Line]:
        """Return the lines for a width; the last ones are kept."""
        key = (width, header, tuple(prefix))
        if self._made is None or self._made[0] != key or self._made[1] is not palette:
            self._made = key, palette, DiffLines(self.files, width, palette, header=header, prefix=prefix)
        return self._made[2]
