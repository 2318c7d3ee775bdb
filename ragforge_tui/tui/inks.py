"""Colours of personas as a theme can show them: the hue is theirs, the lightness the theme's.

A file may say any colour; drawn as it is, half of them could not be read on a dark screen and the other half on a
light one. Pure; used by the transcript, the header and the pickers.
"""

from __future__ import annotations

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
NAMES = tuple(_HUES)
"""The names a person may choose from."""


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
        return Color.from_hsl(hue, saturation, lightness)
    if len(color) != 7 or not color.startswith("#"):
        return None
    try:
        hue, saturation, _ = Color.parse(color).hsl
    except ValueError:
        return None
    return Color.from_hsl(hue, saturation, lightness)
