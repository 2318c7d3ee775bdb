"""A film of a terminal: an SVG that plays by itself in a browser, without a script.

Each different line is drawn once per row and shown and hidden at its times, so that a film of hundreds of frames is
hardly larger than some pictures. A picture is a film of one frame.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from rich.cells import cell_len

FONT = "DejaVu Sans Mono"
CELL, LINE, SIZE = 12.04, 24.0, 20
"""Width and height of a cell and size of the font, in units of the picture."""
EDGE = 14
_WORDS = re.compile(r"\S+(?: \S+)*")


class Piece(NamedTuple):
    """Text in one style, at a column."""

    column: int
    text: str
    color: str
    background: str
    classes: str


Row = tuple[Piece, ...]
Frame = tuple[Row, ...]


def animated(frames: Sequence[Frame], lengths: Sequence[float], background: str) -> str:
    """Return frames as one SVG.

    Args:
        lengths: Seconds that each frame stays.
        background: Color of cells without one.
    """
    ends: list[float] = []
    for length in lengths:
        ends.append((ends[-1] if ends else 0.0) + length)
    starts = [0.0, *ends[:-1]]
    rows = max(map(len, frames))
    columns = max(
        (piece.column + cell_len(piece.text) for frame in frames for row in frame for piece in row), default=1
    )
    width, height = columns * CELL + 2 * EDGE, rows * LINE + 2 * EDGE
    colors = sorted({piece.color for frame in frames for row in frame for piece in row})
    inks = " ".join(f".{_ink(color)} {{ fill: {color}; }}" for color in colors)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}">',
        f'<style>text {{ font-family: "{FONT}"; font-size: {SIZE}px; white-space: pre; }} '
        f"{inks} "
        ".b { font-weight: 700; } .i { font-style: italic; } .u { text-decoration: underline; }</style>",
        f'<rect width="100%" height="100%" rx="10" fill="{background}"/>',
    ]
    for y in range(rows):
        shown: dict[Row, list[tuple[float, float]]] = {}
        lines = zip((frame[y] if y < len(frame) else () for frame in frames), starts, ends, strict=True)
        for row, same in groupby(lines, key=lambda line: line[0]):
            spans = list(same)
            shown.setdefault(row, []).append((spans[0][1], spans[-1][2]))
        for row, times in shown.items():
            if row:
                drawn = "".join(_drawn(row, EDGE + y * LINE, background))
                parts.append(f"<g>{_timing(times, ends[-1])}{drawn}</g>")
    return "\n".join([*parts, "</svg>"])


def _timing(times: Sequence[tuple[float, float]], total: float) -> str:
    """Return the animation that shows a group at its times; empty if it is always shown."""
    if times == [(0.0, total)]:
        return ""
    steps = [] if times[0][0] == 0 else [(0.0, "none")]
    for begin, end in times:
        steps.append((begin, "inline"))
        if end < total:
            steps.append((end, "none"))
    values = ";".join(value for _, value in steps)
    keys = ";".join(f"{at / total:.5f}".rstrip("0").rstrip(".") or "0" for at, _ in steps)
    return (
        f'<animate attributeName="display" values="{values}" keyTimes="{keys}" dur="{total:.2f}s" '
        'calcMode="discrete" repeatCount="indefinite"/>'
    )


def _drawn(row: Row, top: float, usual: str) -> Iterable[str]:
    for background, same in groupby(row, key=attrgetter("background")):
        run = list(same)
        if background != usual:
            for piece in run:
                left, cells = EDGE + piece.column * CELL, cell_len(piece.text) * CELL
                yield f'<rect x="{left:g}" y="{top:g}" width="{cells:g}" height="{LINE:g}" fill="{background}"/>'
        for piece in run:
            names = f"{_ink(piece.color)} {piece.classes}".rstrip()
            # Not every viewer keeps several blanks.
            for found in _WORDS.finditer(piece.text):
                left = EDGE + (piece.column + cell_len(piece.text[: found.start()])) * CELL
                yield (
                    f'<text x="{left:g}" y="{top + SIZE * 0.92:g}" class="{names}" '
                    f'textLength="{cell_len(found[0]) * CELL:g}">{html.escape(found[0])}</text>'
                )


def _ink(color: str) -> str:
    """Return the name of the class that has a color."""
    return f"c{color[1:]}"
