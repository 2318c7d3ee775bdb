"""The plain mode, for screen readers and slow links: words instead of glyphs, few updates, no motion.

Renderers use words where the palette is plain; this is what applies to the whole screen.
"""

from __future__ import annotations

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

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
