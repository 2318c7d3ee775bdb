"""Text pictures of the screen: every cell and its style, in a file that reads well in a diff.

A picture file has three parts: the text of each row, the style of each row as runs (`12a 3b` is twelve cells of style
`a`, then three of `b`), and what each style is in each theme. A theme changes colours only, so one file holds all of
them; a test fails when a theme changes the text.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from string import ascii_lowercase
from typing import Any

from rich.cells import cell_len
from rich.color import Color
from rich.style import Style
from textual.screen import Screen

from tests.conftest import UPDATE

Cells = list[list[str]]
ATTRIBUTES = ("bold", "dim", "italic", "underline", "reverse", "strike")


class Capture:
    """The text and the cell styles of a screen at one moment."""

    def __init__(self, screen: Screen[Any]) -> None:
        strips = screen._compositor.render_strips()
        self.rows = [strip.text.rstrip() for strip in strips]
        self.styles: Cells = [
            [
                described
                for segment in strip
                for described in [describe(segment.style)] * cell_len(segment.text)
                if not segment.control
            ]
            for strip in strips
        ]


def describe(style: Style | None) -> str:
    """Return a style as words, such as ``#e6edf3 on #0d1117 bold``."""
    if style is None:
        return "default"
    colors = [_color(style.color), *(["on", _color(style.bgcolor)] if style.bgcolor else [])]
    flags = [name for name in ATTRIBUTES if getattr(style, name)]
    return " ".join([*colors, *flags, *(["link"] if style.link else [])])


def _color(color: Color | None) -> str:
    if color is None or color.is_default:
        return "default"
    return color.name if color.triplet is None else color.triplet.hex


def render(captures: Mapping[str, Capture]) -> str:
    """Return the picture file of one state, captured in one or more themes.

    Raises:
        AssertionError: The text differs between themes.
    """
    first = next(iter(captures.values()))
    for theme, capture in captures.items():
        assert capture.rows == first.rows, f"theme {theme} changes the text:\n" + "\n".join(
            difflib.unified_diff(first.rows, capture.rows, lineterm="")
        )
    names: dict[tuple[str, ...], str] = {}
    runs = []
    for styles in zip(*(capture.styles for capture in captures.values()), strict=True):
        row = []
        for combined, cells in groupby(zip(*styles, strict=True)):
            row.append(f"{len(list(cells))}{names.setdefault(combined, _name(len(names)))}")
        runs.append(" ".join(row))
    lines = [f"{number:>3} {row}".rstrip() for number, row in enumerate(first.rows, 1)]
    lines += ["", *_folded(runs), ""]
    for combined, name in names.items():
        by_theme = zip(captures, combined, strict=True)
        lines.append(f"{name:>2}  " + " | ".join(f"{theme} {described}" for theme, described in by_theme))
    return "\n".join(lines) + "\n"


def _name(index: int) -> str:
    letters = len(ascii_lowercase)
    return (ascii_lowercase[index // letters - 1] if index >= letters else "") + ascii_lowercase[index % letters]


def _folded(runs: Sequence[str]) -> Iterator[str]:
    """Join the numbers of neighbouring rows that have the same styles."""
    for run, rows in groupby(enumerate(runs, 1), key=lambda numbered: numbered[1]):
        numbers = [number for number, _ in rows]
        yield f"{numbers[0]:>3}-{numbers[-1]} {run}" if len(numbers) > 1 else f"{numbers[0]:>3} {run}"


def check(path: Path, actual: str, *, update: bool) -> None:
    """Compare a picture with its file, or write the file.

    Raises:
        AssertionError: They differ; the message is the difference.
    """
    if update:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(actual, encoding="utf-8")
        return
    expected = path.read_text(encoding="utf-8") if path.exists() else ""
    if actual != expected:
        changed = "\n".join(
            difflib.unified_diff(expected.splitlines(), actual.splitlines(), "expected", "now", "", "", 1)
        )
        raise AssertionError(f"{path.name} differs; {UPDATE} accepts what is shown now:\n{changed}")
