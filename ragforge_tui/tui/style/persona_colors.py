"""Colors of personas as a theme can show them: their hue, the theme's lightness.

A file may name any color; drawn as it is, half of them would be unreadable on a dark screen and the other half on a
light one. Pure.
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
"""The lightest background of the dark themes behind a name, and the darkest of the light ones."""
_CONTRAST = 7.0
_STEP = 0.02
NAMES = tuple(_HUES)
"""The color names that users may choose."""


@lru_cache(256)
def ink(color: str, *, dark: bool) -> Color | None:
    """Return the color of a persona's name; None if it is empty or unknown.

    Args:
        color: A name or ``#rrggbb``.
        dark: Whether the theme is dark.
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
    """Return the color of a hue with enough contrast: equal lightness is not equally light to the eye."""
    color = Color.from_hsl(hue, saturation, lightness)
    while contrast(color, _PAPERS[dark]) < _CONTRAST and 0 < lightness < 1:
        lightness += _STEP if dark else -_STEP
        color = Color.from_hsl(hue, saturation, lightness)
    return color


def contrast(one: Color, other: Color) -> float:
    """Return the contrast of two colors, 1 to 21, as WCAG defines it."""
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(color: Color) -> float:
    red, green, blue = (
        part / 255 / 12.92 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in color.rgb
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
