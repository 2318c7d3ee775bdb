"""Colours of personas as a theme can show them: the hue is theirs, the lightness the theme's.

A file may say any colour; drawn as it is, half of them could not be read on a dark screen and the other half on a
light one. Pure; used by the transcript, the header and the pickers.
"""

from __future__ import annotations

from functools import lru_cache

from textual.color import Color

_HUES: dict[str, tuple[float, float]] = {
    "red": (0.99, 0.75),
    "orange": (0.08, 0.85),
    "yellow": (0.14, 0.80),
    "green": (0.36, 0.55),
    "cyan": (0.50, 0.60),
    "blue": (0.58, 0.75),
    "violet": (0.75, 0.75),
    "magenta": (0.84, 0.65),
    "pink": (0.92, 0.75),
    "white": (0.0, 0.0),
    "gray": (0.0, 0.0),
}
_PLAIN_LIGHTNESS = {"white": (0.93, 0.20), "gray": (0.66, 0.45)}
_PAPERS = {True: Color.parse("#21262d"), False: Color.parse("#eaeef2")}
"""The lightest ground of the dark themes a name stands on, and the darkest of the light ones."""
_CONTRAST = 7.0
_STEP = 0.02
NAMES = tuple(_HUES)
"""The names a person may choose from."""


@lru_cache(256)
def ink(color: str, *, dark: bool) -> Color | None:
    """A colour to draw a persona's name with; None for one that is empty or unknown.

    Args:
        color: A name or ``#rrggbb``.
        dark: Whether the theme is a dark one.
    """
    lightness = 0.76 if dark else 0.38
    if color in _HUES:
        hue, saturation = _HUES[color]
        if color in _PLAIN_LIGHTNESS:
            lightness = _PLAIN_LIGHTNESS[color][0 if dark else 1]
        return _readable(hue, saturation, lightness, dark=dark)
    if len(color) != 7 or not color.startswith("#"):
        return None
    try:
        hue, saturation, _ = Color.parse(color).hsl
    except ValueError:
        return None
    return _readable(hue, saturation, lightness, dark=dark)


def _readable(hue: float, saturation: float, lightness: float, *, dark: bool) -> Color:
    """The colour of that hue that stands out from the paper: equal lightness is not equally light to the eye."""
    color = Color.from_hsl(hue, saturation, lightness)
    while contrast(color, _PAPERS[dark]) < _CONTRAST and 0 < lightness < 1:
        lightness += _STEP if dark else -_STEP
        color = Color.from_hsl(hue, saturation, lightness)
    return color


def contrast(one: Color, other: Color) -> float:
    """How far two colours stand apart, 1 to 21, as WCAG counts it."""
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(color: Color) -> float:
    red, green, blue = (
        part / 255 / 12.92 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in color.rgb
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
