"""Lines of the transcript: styled text in, wrapped lines of terminal cells out.

The bottom of this package: Markdown, tool calls and everything else end here. All text is made safe here too,
so that no renderer can forget it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from ragforge_tui.text import plain_text
from ragforge_tui.tui.drawing.wrapping import Span, fold_spans, wrap_spans

Run = tuple[str, Style]
"""A piece of text in one style."""

_TAB = 4


class Line(NamedTuple):
    """One line as it is drawn.

    Attributes:
        strip: What is drawn, no wider than asked for.
        gutter: How many characters at its start are decoration, left out when it is copied.
        join: What stands between this line and the next in the text they were made from.
    """

    strip: Strip
    gutter: int = 0
    join: str = "\n"

    @property
    def text(self) -> str:
        """What copying the whole line gives."""
        return self.strip.text[self.gutter :].rstrip()


BLANK = Line(Strip([], 0))


def clean(text: str) -> str:
    """Text that may be drawn: no controls, tabs expanded; line ends stay."""
    text = plain_text(text)
    return text.expandtabs(_TAB) if "\t" in text else text


def one_line(text: str) -> str:
    """Text with its line ends and runs of blanks made single blanks."""
    return " ".join(clean(text).split())


def _slices(runs: Sequence[Run], spans: Iterable[Span]) -> list[list[Run]]:
    """The runs cut at ascending spans of their joined text."""
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
    """Runs split at their line ends."""
    lines: list[list[Run]] = [[]]
    for text, style in runs:
        first, *rest = text.split("\n")
        if first:
            lines[-1].append((first, style))
        for part in rest:
            lines.append([(part, style)] if part else [])
    return lines


def line_of(runs: Iterable[Run], width: int, *, gutter: int = 0, join: str = "\n") -> Line:
    """One line; what does not fit is cut off."""
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
    """Wrap runs, which may hold line ends, into lines no wider than `width`.

    Args:
        first: What stands before the first line.
        rest: What stands before all others; as wide as `first`.
        quiet_first: Whether `first` is decoration, left out when copied, as `rest` always is.
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
    """Plain text that grows, wrapped: its complete lines only once."""

    def __init__(self) -> None:
        self._key: tuple[int, Run, Style] | None = None
        self._text = ""
        self._lines: list[Line] = []

    def lines(self, text: str, width: int, *, bar: Run, style: Style) -> list[Line]:
        """The text, cleaned before, in one style behind a bar."""
        key = (width, bar, style)
        if key != self._key or not text.startswith(self._text):
            self._key, self._text, self._lines = key, "", []
        end = text.rfind("\n") + 1
        if fresh := text[len(self._text) : end]:
            self._lines.extend(wrap([(fresh[:-1], style)], width, first=[bar], rest=[bar]))
            self._text = text[:end]
        return [*self._lines, *wrap([(text[end:], style)], width, first=[bar], rest=[bar])]


def indent(lines: Iterable[Line], prefix: Sequence[Run], width: int) -> list[Line]:
    """Lines with a decoration put before each; they must leave it room."""
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
    """Text cut to `width` cells, with an ellipsis when something is missing."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(0, width - 1)).rstrip() + "…" if width > 0 else ""
