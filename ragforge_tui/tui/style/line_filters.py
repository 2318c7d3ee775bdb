"""Filters between the screen and the terminal: no control characters, only emoji of undisputed width, plain signs.

Texts are sanitized where they come in; this catches what got through. Joined emoji, skin tones and emoji presentation
are counted as two cells here and as one to six by terminals, which shifts everything after them. Only the drawing
changes: copies and messages keep the text.
"""

from __future__ import annotations

import re

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
"""Zero-width characters; some would move the cursor or reverse the line."""
_TROUBLE = re.compile("[\u200d\ufe0f\u20e3\U0001f3fb-\U0001f3ff]")
_CLUSTER = re.compile("(?P<base>[^\\s\u200d\ufe0f\u20e3])(?:[\ufe0f\u20e3\U0001f3fb-\U0001f3ff]|\u200d[^\\s\u200d])+")


def agreed(text: str) -> str:
    """Return the text with each such emoji reduced to its first sign, padded to the counted cells."""
    if _TROUBLE.search(text) is None:
        return text
    return _CLUSTER.sub(_first_sign, text)


def _first_sign(cluster: re.Match[str]) -> str:
    base = cluster["base"]
    return base + " " * max(cell_len(cluster[0]) - cell_len(base), 0)


class AgreedWidths(LineFilter):
    """Filters everything that reaches the terminal."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            segment if _harmless(segment) else Segment(agreed(_CONTROLS.sub("", segment.text)), segment.style)
            for segment in segments
        ]


def _harmless(segment: Segment) -> bool:
    text = segment.text
    return segment.control is not None or (text.isascii() and text.isprintable())


PLAIN = "-plain"
"""The app's CSS class in the plain mode."""
UPDATE_SECONDS = 0.7
"""Minimum seconds between updates of streaming text."""

_SIGNS = str.maketrans(
    {
        **dict.fromkeys("●◐○▎▌▐█✶⎇", " "),
        **dict.fromkeys("│┃║╎┆", "|"),
        **dict.fromkeys("─━═╌┄▔▁", "-"),
        **dict.fromkeys("╭╮╰╯┌┐└┘├┤┬┴┼", "+"),
        "▸": ">",
        "▾": ">",
        "▶": ">",
        "▼": ">",
        "✓": "v",
        "✗": "x",
        "⊘": "/",
        "■": "#",
        "☐": "o",
        "☑": "x",
        "⇄": "=",
        "↻": "@",
        "↪": ">",
        "⋮": ":",
        "⟨": "<",
        "⟩": ">",
    }
)


class PlainSigns(LineFilter):
    """Replaces decoration by characters that every reader knows; each keeps its one cell."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            segment
            if segment.text.isascii()
            else Segment(segment.text.translate(_SIGNS), segment.style, segment.control)
            for segment in segments
        ]
