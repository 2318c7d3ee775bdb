"""The plain mode: for screen readers and slow links. Words instead of signs, few updates, nothing that moves.

What is drawn with signs of the program says the same in words when the palette is plain; here is what holds for the
whole screen: the letters that reach the terminal, and how often.
"""

from __future__ import annotations

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

PLAIN = "-plain"
"""The app's CSS class in the plain mode."""
UPDATE_SECONDS = 0.7
"""Text that streams is shown this often."""

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
    }
)


class PlainSigns(LineFilter):
    """Signs that only decorate become letters every reader knows; each keeps its one cell."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Translate one line."""
        return [
            segment
            if segment.text.isascii()
            else Segment(segment.text.translate(_SIGNS), segment.style, segment.control)
            for segment in segments
        ]
