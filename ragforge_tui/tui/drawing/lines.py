"""Lines of terminal cells: styled text in, wrapped lines out.

The lowest layer of drawing. All text is sanitized here, so that no renderer can forget it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.tui.drawing.wrapping import Span, fold_spans, wrap_spans

Run = tuple[str, Style]
"""A piece of text in one style."""

_TAB = 4


class Line(NamedTuple):
    """One line as it is drawn.

    Attributes:
        strip: The cells, no wider than requested.
        gutter: Number of characters at its start that are decoration and not copied.
        join: The text between this line and the next in the source.
    """

    strip: Strip
    gutter: int = 0
    join: str = "\n"

    @property
    def text(self) -> str:
        """The text that copying the whole line gives."""
        return self.strip.text[self.gutter :].rstrip()


BLANK = Line(Strip([], 0))


def clean(text: str) -> str:
    """Sanitize text for drawing: no control characters, tabs expanded; line breaks stay."""
    text = plain_text(text)
    return text.expandtabs(_TAB) if "\t" in text else text


def one_line(text: str) -> str:
    """Replace line breaks and runs of blanks by single blanks."""
    return " ".join(clean(text).split())


def _slices(runs: Sequence[Run], spans: Iterable[Span]) -> list[list[Run]]:
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


def line_of(runs: Iterable[Run], width: int, *, gutter: int = 0, join: str = "\n") -> Line:
    """Return one line; what does not fit is cut off."""
    segments = [Segment(text, style) for text, style in runs if text]
    cells = cell_len("".join(segment.text for segment in segments))
    if cells <= width:
        return Line(Strip(segments, cells), gutter, join)
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
    hard: bool = False,
) -> list[Line]:
    """Wrap runs, which may contain line breaks, into lines no wider than `width`.

    Args:
        first: Decoration before the first line.
        rest: Decoration before all others; as wide as `first`.
        quiet_first: Whether `first` is omitted when copied, as `rest` always is.
        hard: Break at the last cell instead of between words, as for code.
    """
    inner = max(1, width - cell_len("".join(text for text, _ in first)))
    rest_length = sum(len(text) for text, _ in rest)
    lines: list[Line] = []
    for hard_line in _hard_lines(runs):
        text = "".join(part for part, _ in hard_line)
        spans = fold_spans(text, inner) if hard else wrap_spans(text, inner)
        for (_, _, join), piece in zip(spans, _slices(hard_line, spans), strict=True):
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
            self._lines.extend(wrap([(fresh[:-1], style)], width, first=[bar], rest=[bar]))
            self._text = text[:end]
        return [*self._lines, *wrap([(text[end:], style)], width, first=[bar], rest=[bar])]


def indent(lines: Iterable[Line], prefix: Sequence[Run], width: int) -> list[Line]:
    """Return lines with a decoration before each; they must leave room for it."""
    segments = [Segment(text, style) for text, style in prefix]
    cells = cell_len("".join(text for text, _ in prefix))
    length = sum(len(text) for text, _ in prefix)
    result = []
    for line in lines:
        strip = Strip([*segments, *line.strip], cells + line.strip.cell_length)
        gutter = line.gutter + length
        if strip.cell_length > width:
            strip = strip.crop(0, width)
            gutter = min(gutter, len(strip.text))
        result.append(Line(strip, gutter, line.join))
    return result


def clip(text: str, width: int) -> str:
    """Truncate text to `width` cells, with an ellipsis."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(0, width - 1)).rstrip() + "…" if width > 0 else ""
