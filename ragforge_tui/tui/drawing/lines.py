"""Lines of terminal cells: styled text in, wrapped lines out.

The lowest layer of drawing. All text is sanitized here, so that no renderer can forget it.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, pairwise
from typing import NamedTuple, overload

from rich.cells import cell_len, set_cell_size, split_graphemes
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from ragforge_tui.shared.sanitize import plain_text

Span = tuple[int, int, str]
"""Start and end of a piece, and the text between it and the next piece."""

_WORD = re.compile(r"\S+")
NARROW = re.compile("[ -~\xa1-\xac\xae-\u02ff\u0370-\u0482\u2010-\u2027]*")
"""Letters of one cell that join with no neighbor; the only blank among them is the space."""


def wrap_spans(text: str, width: int) -> list[Span]:
    """Break one line of text between words, so that no piece is wider than `width`.

    Blanks at a break belong to neither piece. Words wider than a whole line, and long ones of a script without
    blanks, are broken where the line is full.
    """
    narrow = NARROW.fullmatch(text) is not None
    if (len(text) if narrow else cell_len(text)) <= width:
        return [(0, len(text), "\n")]
    pieces = _wrap_narrow(text, width) if narrow else _wrap_measured(text, width)
    spans = [(start, end, text[end:following]) for (start, end), (following, _) in pairwise(pieces)]
    return [*spans, (*pieces[-1], f"{text[pieces[-1][1] :]}\n")]


def _wrap_narrow(text: str, width: int) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    start, length = 0, len(text.rstrip(" "))
    if text.startswith(" "):
        word = length - len(text[:length].lstrip(" "))
        end = text.find(" ", word, word + width + 1)
        end = end if end >= 0 else length
        # Leading blanks stay with the first word if it fits after them, or must be broken anyway.
        start = 0 if end <= width or (end - word > width > word) else word
    while length - start > width:
        blank = text.rfind(" ", start, start + width + 1)
        word = blank + 1
        if blank >= start and text[start:blank].strip(" "):
            # After several blanks the next word starts later than after the first one.
            while text[word] == " ":
                word += 1
        else:
            blank = -1
        if blank < 0 or (word < start + width and _is_long(text, word, length, width)):
            spans.append((start, start + width))
            start += width
            continue
        while text[blank - 1] == " ":
            blank -= 1
        spans.append((start, blank))
        start = word
    return [*spans, (start, length)]


def _is_long(text: str, word: int, length: int, width: int) -> bool:
    """Return whether the word that starts here is wider than a line."""
    return length - word > width and text.find(" ", word, word + width + 1) < 0


def _wrap_measured(text: str, width: int) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    start = end = used = 0
    for match in _WORD.finditer(text):
        word_start, word_end = match.span()
        word = match[0]
        gap = cell_len(text[end:word_start])
        cells = cell_len(word)
        if used + gap + cells <= width:
            end, used = word_end, used + gap + cells
            continue
        # A word that fits on a line of its own is not broken, except in a script without blanks.
        folds = cells > width or (cells > len(word) and cells > 8)
        if not folds or used + gap >= width:
            if end > start:
                spans.append((start, end))
            start, used, gap = word_start, 0, 0
            if cells <= width:
                end, used = word_end, cells
                continue
        breaks = _fold(word, width - used - gap, width)
        for at in breaks:
            cut = word_start + at
            if at == 0:
                if end > start:
                    spans.append((start, end))
            else:
                spans.append((start, cut))
            start = cut
        end = word_end
        used = cell_len(text[start:end])
    if end > start or not spans:
        spans.append((start, end))
    return spans


def _fold(word: str, first: int, width: int) -> list[int]:
    """Break a word without blanks: `first` cells are free on its first line, `width` on later ones."""
    breaks: list[int] = []
    room = first
    for start, _, cells in split_graphemes(word)[0]:
        if cells > room and (start or first < width):
            breaks.append(start)
            room = width
        room -= cells
    return breaks


Run = tuple[str, Style]
"""A piece of text in one style."""

_TAB = 4


NO_BACKGROUND = Style()


class Part(NamedTuple):
    """The characters of a line that are copied, and what follows them in the source."""

    start: int
    end: int
    join: str


class Sides(NamedTuple):
    """What is copied of a line that shows two texts next to each other; None where one has no line here.

    Attributes:
        middle: Number of characters up to the right side.
    """

    middle: int
    left: Part | None
    right: Part | None


NOT_COPIED = Sides(0, None, None)


class Line(NamedTuple):
    """One line as it is drawn.

    Attributes:
        strip: The cells, no wider than requested.
        gutter: Number of characters at its start that are decoration and not copied.
        join: The text between this line and the next in the source.
        background: Behind the line and the rest of its row.
        filler: Number of characters at its end that are decoration and not copied.
        sides: Its two texts, if it has more than one or none; instead of gutter, join and filler.
    """

    strip: Strip
    gutter: int = 0
    join: str = "\n"
    background: Style = NO_BACKGROUND
    filler: int = 0
    sides: Sides | None = None

    @property
    def text(self) -> str:
        """The text that copying the whole line gives."""
        part = self.part()
        return self.strip.text[part.start : part.end].rstrip() if part is not None else ""

    def part(self, *, left: bool = False) -> Part | None:
        """Return what is copied of the line; of two sides the right one, unless the left one is asked for."""
        if self.sides is not None:
            return self.sides.left if left else self.sides.right
        end = len(self.strip.text) - self.filler
        return Part(min(self.gutter, end), end, self.join)


BLANK = Line(Strip([], 0))


def clean(text: str) -> str:
    """Sanitize text for drawing: no control characters, tabs expanded; line breaks stay."""
    text = plain_text(text)
    return text.expandtabs(_TAB) if "\t" in text else text


def one_line(text: str) -> str:
    """Replace line breaks and runs of blanks by single blanks."""
    return " ".join(clean(text).split())


def slices(runs: Sequence[Run], spans: Iterable[Span]) -> list[list[Run]]:
    """Cut runs at ascending spans of their joined text."""
    result: list[list[Run]] = []
    index = offset = 0
    for start, end, _ in spans:
        piece: list[Run] = []
        while index < len(runs):
            text, style = runs[index]
            stop = offset + len(text)
            if stop > start and offset < end:
                piece.append((text[max(0, start - offset) : end - offset], style))
            if stop > end:
                break
            offset = stop
            index += 1
        result.append(piece)
    return result


def _hard_lines(runs: Iterable[Run]) -> list[list[Run]]:
    """Split runs at their line breaks."""
    lines: list[list[Run]] = [[]]
    for text, style in runs:
        first, *rest = text.split("\n")
        if first:
            lines[-1].append((first, style))
        for part in rest:
            lines.append([(part, style)] if part else [])
    return lines


def line_of(runs: Iterable[Run], width: int, *, gutter: int = 0, join: str = "\n", filler: int = 0) -> Line:
    """Return one line; what does not fit is cut off."""
    segments = [Segment(text, style) for text, style in runs if text]
    cells = cell_len("".join(segment.text for segment in segments))
    if cells <= width:
        return Line(Strip(segments, cells), gutter, join, filler=filler)
    kept: list[Segment] = []
    room = width
    for segment in segments:
        cells = cell_len(segment.text)
        if cells > room:
            kept.append(Segment(set_cell_size(segment.text, room), segment.style))
            room = 0
            break
        kept.append(segment)
        room -= cells
    return Line(Strip(kept, width - room), min(gutter, sum(len(segment.text) for segment in kept)), join)


def wrap(
    runs: Iterable[Run],
    width: int,
    *,
    first: Sequence[Run] = (),
    rest: Sequence[Run] = (),
    quiet_first: bool = True,
) -> list[Line]:
    """Wrap runs, which may contain line breaks, into lines no wider than `width`.

    Args:
        first: Decoration before the first line.
        rest: Decoration before all others; as wide as `first`.
        quiet_first: Whether `first` is omitted when copied, as `rest` always is.
    """
    inner = max(1, width - cell_len("".join(text for text, _ in first)))
    rest_length = sum(len(text) for text, _ in rest)
    lines: list[Line] = []
    for hard_line in _hard_lines(runs):
        text = "".join(part for part, _ in hard_line)
        spans = wrap_spans(text, inner)
        if lines and (dropped := text[: spans[0][0]]):
            lines[-1] = lines[-1]._replace(join=f"{lines[-1].join}{dropped}")
        for (_, _, join), piece in zip(spans, slices(hard_line, spans), strict=True):
            if lines:
                lines.append(line_of([*rest, *piece], width, gutter=rest_length, join=join))
            else:
                gutter = sum(len(part) for part, _ in first) if quiet_first else 0
                lines.append(line_of([*first, *piece], width, gutter=gutter, join=join))
    return lines


class WrappedLines:
    """Growing plain text, wrapped: complete lines only once."""

    def __init__(self) -> None:
        self._key: tuple[int, Run, Style] | None = None
        self._text = ""
        self._lines: list[Line] = []

    def lines(self, text: str, width: int, *, bar: Run, style: Style) -> list[Line]:
        """Return the cleaned text in one style behind a bar."""
        key = (width, bar, style)
        if key != self._key or not text.startswith(self._text):
            self._key, self._text, self._lines = key, "", []
        end = text.rfind("\n") + 1
        if fresh := text[len(self._text) : end]:
            self._lines = _continued(self._lines, (fresh[:-1], style), width, bar)
            self._text = text[:end]
        return _continued(self._lines, (text[end:], style), width, bar)


def _continued(lines: list[Line], run: Run, width: int, bar: Run) -> list[Line]:
    """Return lines and those of a text after their line break, whose first blanks belong to the line before."""
    if not lines:
        return wrap([run], width, first=[bar], rest=[bar])
    text, style = run
    before, *more = wrap([("\n" + text, style)], width, first=[bar], rest=[bar])
    last = lines[-1]._replace(join=lines[-1].join + before.join.removeprefix("\n"))
    return [*lines[:-1], last, *more]


def indent(lines: Iterable[Line], prefix: Sequence[Run], width: int) -> list[Line]:
    """Return lines with a decoration before each; they must leave room for it."""
    segments = [Segment(text, style) for text, style in prefix]
    cells = cell_len("".join(text for text, _ in prefix))
    length = sum(len(text) for text, _ in prefix)
    result = []
    for line in lines:
        strip = Strip([*segments, *line.strip], cells + line.strip.cell_length)
        gutter, filler = line.gutter + length, line.filler
        if strip.cell_length > width:
            lost = len(strip.text)
            strip = strip.crop(0, width)
            lost -= len(strip.text)
            gutter, filler = min(gutter, len(strip.text)), max(0, filler - lost)
        result.append(line._replace(strip=strip, gutter=gutter, filler=filler))
    return result


def clip(text: str, width: int) -> str:
    """Truncate text to `width` cells, with an ellipsis."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(0, width - 1)).rstrip() + "…" if width > 0 else ""


def fit(text: str, width: int) -> str:
    """Pad or truncate text to exactly `width` cells."""
    if cell_len(text) <= width:
        return text + " " * (width - cell_len(text))
    return set_cell_size(text, max(width - 1, 0)) + "…" if width else ""


def short_path(path: str, width: int, telling: str = "") -> str:
    """Shorten a path to so many cells: its end matters more than its beginning.

    Args:
        telling: The end that tells it from others; its first folder and its name stay, and what is between them gives
            way.
    """
    if cell_len(path) <= width:
        return path
    first, _, inner = telling.partition("/")
    if "/" in inner and cell_len(telling) + 2 > width:
        short = f"…/{first}/…/{path.rpartition('/')[2]}"
        if cell_len(short) <= width:
            return short
    name = path
    while "/" in name:
        name = name.partition("/")[2]
        if cell_len(name) + 2 <= width:
            return f"…/{name}"
    return set_cell_size(name, max(0, width - 1)) + "…" if width > 0 else ""


LEAST_PATH = 12
"""Cells that a path keeps next to a long name."""


def with_path(detail: str, path: str, room: int) -> str:
    """Return a detail and a path, without those folders for which a name leaves no room."""
    if not path:
        return detail
    before = f"{detail}  " if detail else ""
    return before + short_path(one_line(path), max(room - cell_len(before), LEAST_PATH))


LONG = 50_000
"""Characters from which making all lines at once would be noticeable."""


class MadeLines(Sequence[Line]):
    """Base of sequences whose lines are made one by one."""

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


class LongText(MadeLines):
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
        self._break(max(1, width - cell_len(bar[0] if bar is not None else "")))

    def _break(self, width: int) -> None:
        text, at = self._text, 0
        while at <= len(text):
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            for start, stop, _ in wrap_spans(text[at:end], width):
                self._starts.append(at + start)
                self._ends.append(at + stop)
            at = end + 1

    def __len__(self) -> int:
        return len(self._starts)

    def _line(self, index: int) -> Line:
        last = index + 1 == len(self)
        join = f"{self._text[self._ends[-1] :]}\n" if last else self._text[self._ends[index] : self._starts[index + 1]]
        return line_of([*self._bar, (self._piece(index), self._style)], self._width, gutter=self._gutter, join=join)

    def _piece(self, index: int) -> str:
        return self._text[self._starts[index] : self._ends[index]]

    def texts(self) -> Iterator[str]:
        return map(self._piece, range(len(self)))


class _Band(MadeLines):
    """Lines on a background of their own."""

    def __init__(self, lines: Sequence[Line], background: Style) -> None:
        self._lines = lines
        self._background = background

    def __len__(self) -> int:
        return len(self._lines)

    def _line(self, index: int) -> Line:
        return self._lines[index]._replace(background=self._background)

    def texts(self) -> Iterator[str]:
        return texts_of(self._lines)


def on_band(lines: Sequence[Line], background: Style) -> Sequence[Line]:
    """Return lines on a background of their own."""
    band = _Band(lines, background)
    return band if isinstance(lines, MadeLines) else list(band)


class _Stack(MadeLines):
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
    if any(isinstance(part, MadeLines) for part in parts):
        return _Stack([part for part in parts if len(part)])
    return list(chain.from_iterable(parts))


def texts_of(lines: Sequence[Line]) -> Iterator[str]:
    """Return the texts of lines without making those of a long text."""
    if isinstance(lines, MadeLines):
        return lines.texts()
    return (line.strip.text for line in lines)
