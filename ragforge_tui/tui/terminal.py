"""The terminal: filters of what reaches it, and sequences for the clipboard (OSC 52), bell and notifications."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.color import Color
from textual.constants import DIM_FACTOR
from textual.filter import LineFilter

from ragforge_tui.tui.drawing.lines import one_line
from ragforge_tui.tui.drawing.palette import contrast

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
    """Filters everything that reaches the terminal: no control characters, only emoji of undisputed width.

    Texts are sanitized where they come in; this catches what got through. Joined emoji, skin tones and emoji
    presentation are counted as two cells here and as one to six by terminals, which shifts everything after them. Only
    the drawing changes: copies and messages keep the text.
    """

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
        **dict.fromkeys("●◐○▎▌▐█✶", " "),
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


TEXT_CONTRAST = 4.5
"""Least contrast of text, as WCAG 1.4.3 asks."""
_NOT_DIM = Style(dim=False)


class ReadableDim(LineFilter):
    """Dims text by its color, but no further than it can be read.

    The framework dims by a fixed share, which in a theme of little contrast (Solarized) leaves 2.5:1.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            Segment(segment.text, _dimmed(segment.style, background), segment.control)
            if segment.style is not None and segment.style.dim
            else segment
            for segment in segments
        ]


@lru_cache(1024)
def _dimmed(style: Style, background: Color) -> Style:
    """Return the style with a dimmed color; unchanged where only the terminal knows the color."""
    if style.color is None or style.color.triplet is None:
        return style
    color = Color.from_rich_color(style.color)
    own = style.bgcolor is not None and style.bgcolor.triplet is not None
    ground = Color.from_rich_color(style.bgcolor) if own else background
    share = DIM_FACTOR
    while share < 1 and contrast(ground.blend(color, share), ground) < TEXT_CONTRAST:
        share = min(share + 0.05, 1.0)
    return style + Style(color=ground.blend(color, share).rich_color) + _NOT_DIM


_UPRIGHT = Style(italic=False)


class NoItalics(LineFilter):
    """Draws italics upright, for GNU Screen, which shows them as reverse video."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            Segment(segment.text, segment.style + _UPRIGHT, segment.control)
            if segment.style is not None and segment.style.italic
            else segment
            for segment in segments
        ]


def in_gnu_screen(env: Mapping[str, str]) -> bool:
    """Return whether the terminal is GNU Screen; tmux, whose name for it may be the same, has italics."""
    return not env.get("TMUX") and (bool(env.get("STY")) or env.get("TERM", "").startswith("screen"))


LONG_SECONDS = 20.0
"""After a turn this long the user may have left."""
BELL = "\x07"
_TITLE = "ragforge-chat"
_MAX_CHARS = 200
_OSC_9 = frozenset({"iTerm.app", "WezTerm", "ghostty", "kitty"})
_OSC_777 = ("foot", "rxvt")

Notify = Literal["auto", "bell", "off"]


def copy_sequence(text: str, env: Mapping[str, str]) -> str:
    """Return OSC 52 for `text`, also in tmux's pass-through: tmux swallows a bare sequence unless configured."""
    payload = base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")
    sequence = f"\x1b]52;c;{payload}\x07"
    if not env.get("TMUX"):
        return sequence
    # Both forms: the bare one serves `set-clipboard on`, the wrapped one `allow-passthrough on`.
    escaped = sequence.replace("\x1b", "\x1b\x1b")
    return f"{sequence}\x1bPtmux;{escaped}\x1b\\"


def call_sequence(text: str, notify: Notify, env: Mapping[str, str]) -> str:
    """Return the sequence that notifies the user with a text; empty for none.

    Inside a multiplexer it is the bell, which marks the window; a notification would be swallowed.
    """
    if notify == "off":
        return ""
    line = one_line(text)[:_MAX_CHARS]
    if notify == "bell" or env.get("TMUX") or env.get("STY"):
        return BELL
    term, program = env.get("TERM", ""), env.get("TERM_PROGRAM", "")
    if program in _OSC_9 or "kitty" in term or "ghostty" in term:
        # A leading number would be another command of some terminals.
        return f"\x1b]9;{_TITLE}: {line}{BELL}"
    if term.startswith(_OSC_777):
        return f"\x1b]777;notify;{_TITLE};{line.replace(';', ',')}{BELL}"
    return BELL


class Attention:
    """Notifies a user whose terminal reports that it lost the focus; a terminal that never reports stays silent."""

    def __init__(self, app: App[Any], notify: Notify) -> None:
        self._app = app
        self.notify = notify

    def call(self, text: str) -> None:
        """Notify the user, unless the terminal has the focus."""
        sequence = "" if self._app.app_focus else call_sequence(text, self.notify, os.environ)
        driver = self._app._driver
        if sequence and driver is not None:
            driver.write(sequence)

    def answer_finished(self, seconds: float) -> None:
        """Notify the user of an answer that took long."""
        if seconds > LONG_SECONDS:
            self.call("The answer is ready.")
