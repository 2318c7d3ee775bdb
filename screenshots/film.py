"""A film of the running chat: an SVG that plays by itself in a browser, without a script.

The screen is sampled; each different line is drawn once per row and shown and hidden at its times, so that a film of a
hundred frames is hardly larger than some pictures.
"""

from __future__ import annotations

import html
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from rich.cells import cell_len
from rich.color import blend_rgb
from rich.color_triplet import ColorTriplet
from rich.style import Style
from textual.app import App
from textual.color import Color
from textual.strip import Strip

FONT = "DejaVu Sans Mono"
SAMPLE_SECONDS = 0.12
SHORTEST, LONGEST = 0.06, 1.6
"""Seconds that a frame stays, unless it is held: waiting for a graph or a model is cut, typing can be followed."""
END_SECONDS = 4.0
CELL, LINE, SIZE = 12.04, 24.0, 20
"""Width and height of a cell and size of the font, in units of the picture."""
EDGE = 14
DIM = 0.5


class Piece(NamedTuple):
    """Text in one style, at a column."""

    column: int
    text: str
    color: str
    background: str
    classes: str


Row = tuple[Piece, ...]
Frame = tuple[Row, ...]


@dataclass
class Film:
    """The frames of an app, each from its time on.

    Attributes:
        hidden: Text that is shown as ``~``.
    """

    app: App[Any]
    hidden: str
    frames: list[tuple[float, Frame]] = field(default_factory=list)
    _held: dict[int, float] = field(default_factory=dict)

    def start(self) -> None:
        """Sample the screen from now on."""
        self.app.set_interval(SAMPLE_SECONDS, self.sample)

    def sample(self) -> None:
        """Add the screen as it is, if it has changed."""
        frame = frame_of(self.app, self.hidden)
        if not self.frames or self.frames[-1][1] != frame:
            self.frames.append((time.monotonic(), frame))

    def hold(self, seconds: float) -> None:
        """Let the newest frame stay longer, to be read."""
        self.sample()
        self._held[len(self.frames) - 1] = seconds

    @property
    def lengths(self) -> list[float]:
        """Return the seconds that each frame stays."""
        times = [at for at, _ in self.frames]
        found = [
            self._held.get(index, min(max(after - at, SHORTEST), LONGEST))
            for index, (at, after) in enumerate(zip(times, [*times[1:], times[-1]], strict=True))
        ]
        found[-1] = max(found[-1], END_SECONDS)
        return found

    def picture(self, fonts: Path) -> str:
        """Return the film as SVG with its font embedded."""
        from screenshots.svg import with_font  # Needs packages that the tests of films do without.

        background = Color.parse(self.app.theme_variables["background"]).hex
        return with_font(animated([frame for _, frame in self.frames], self.lengths, background), fonts)


def frame_of(app: App[Any], hidden: str) -> Frame:
    """Return the rows of the screen."""
    variables = app.theme_variables
    colors = Color.parse(variables["foreground"]).rich_color, Color.parse(variables["background"]).rich_color
    usual = Style(color=colors[0], bgcolor=colors[1])
    ground = _triplet(usual.bgcolor).hex
    return tuple(
        tuple(piece for piece in pieces(strip, usual, hidden) if piece.text.strip() or piece.background != ground)
        for strip in app.screen._compositor.render_strips()
    )


def pieces(strip: Strip, usual: Style, hidden: str) -> Iterable[Piece]:
    """Yield the pieces of a line, neighbours of one look as one."""
    column = 0
    before: Piece | None = None
    for text, style, _ in strip:
        cells = cell_len(text)
        full = usual + (style or Style())
        color, background = _triplet(full.color), _triplet(full.bgcolor)
        if full.reverse:
            color, background = background, color
        if full.dim:
            color = blend_rgb(color, background, DIM)
        shown = text.replace(hidden, "~").ljust(cells) if hidden else text
        marks = (("b", full.bold), ("i", full.italic), ("u", full.underline))
        piece = Piece(column, shown, color.hex, background.hex, " ".join(name for name, on in marks if on))
        if before is not None and before._replace(column=0, text="") == piece._replace(column=0, text=""):
            piece = before._replace(text=before.text + shown)
        elif before is not None:
            yield before
        before = piece
        column += cells
    if before is not None:
        yield before


def _triplet(color: Any) -> ColorTriplet:
    triplet: ColorTriplet = color.get_truecolor()
    return triplet


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
            text = piece.text.rstrip()
            indent = len(text) - len(text.lstrip())
            if not (text := text.lstrip()):
                continue
            left = EDGE + (piece.column + indent) * CELL
            names = f"{_ink(piece.color)} {piece.classes}".rstrip()
            yield (
                f'<text x="{left:g}" y="{top + SIZE * 0.92:g}" class="{names}" '
                f'textLength="{cell_len(text) * CELL:g}">{html.escape(text)}</text>'
            )


def _ink(color: str) -> str:
    """Return the name of the class that has a color."""
    return f"c{color[1:]}"
