"""Colours of personas by name, for their files and for the question about them."""

from __future__ import annotations

import re

COLORS: dict[str, tuple[str, ...]] = {
    "red": ("rouge", "crimson", "scarlet"),
    "orange": ("amber", "ambre"),
    "yellow": ("jaune", "gold", "or", "doré"),
    "green": ("vert", "verte", "emerald"),
    "cyan": ("teal", "turquoise"),
    "blue": ("bleu", "bleue", "azure"),
    "violet": ("purple", "pourpre", "mauve", "lavender"),
    "magenta": ("fuchsia",),
    "pink": ("rose",),
    "white": ("blanc", "blanche", "silver", "argent"),
    "gray": ("grey", "gris", "grise", "black", "noir", "noire"),
}
"""Colours by name, each with its synonyms."""
_BY_WORD = {word: color for color, others in COLORS.items() for word in (color, *others)}
_HEX = re.compile(r"#(?:[0-9a-f]{3}|[0-9a-f]{6})")


def color_of(text: str) -> str:
    """Return the stored form of a colour: a name of `COLORS` or ``#rrggbb``; empty if it is not a colour."""
    word = text.strip().casefold()
    if _HEX.fullmatch(word):
        return word if len(word) == 7 else "#" + "".join(digit * 2 for digit in word[1:])
    return _BY_WORD.get(word, "")
