"""Sanitizing of names, glyphs and colours from foreign files for display on one line of a terminal.

A persona's file may contain anything. Text shown from it has no control characters, no direction marks, no stacks of
combining accents, and is short. Used wherever fields are read.
"""

from __future__ import annotations

import html
import re
import unicodedata

from ragforge_tui.shared.sanitize import plain_text, storable

NAME_CHARS = 60
_JOINER = "\u200d"
_MAX_MARKS = 2
_MAX_SIGN = 8
_DROPPED = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})

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


def one_line(text: str) -> str:
    """Return a text on one line, with entities decoded and without anything a terminal would act on."""
    return " ".join(plain_text(storable(html.unescape(text))).split())


def clean_name(text: str) -> str:
    """Return a name as shown and looked up; empty if it has no visible characters."""
    visible: list[str] = []
    marks = 0
    for character in unicodedata.normalize("NFC", one_line(text)):
        category = unicodedata.category(character)
        joins = character == _JOINER and bool(visible) and not visible[-1].isalnum()
        if category in _DROPPED and not joins:
            continue
        marks = marks + 1 if category in ("Mn", "Me") else 0
        if marks <= _MAX_MARKS:
            visible.append(character)
    return " ".join("".join(visible).split())[:NAME_CHARS].strip().rstrip(_JOINER)


def first_sign(text: str) -> str:
    """Return the first grapheme cluster of a text, with its accents or joined emoji; empty if there is none."""
    text = one_line(text)
    start = next((place for place, c in enumerate(text) if unicodedata.category(c) not in {*_DROPPED, "Mn", "Me"}), -1)
    if start < 0 or unicodedata.bidirectional(text[start]) in ("R", "AL"):
        return ""
    end = start + 1
    while end < len(text) and end - start < _MAX_SIGN:
        character = text[end]
        joined = text[end - 1] == _JOINER and unicodedata.category(character) not in _DROPPED
        tone = "\U0001f3fb" <= character <= "\U0001f3ff"
        flag = end == start + 1 and all("\U0001f1e6" <= c <= "\U0001f1ff" for c in (text[start], character))
        if not (unicodedata.category(character) in ("Mn", "Me") or character == _JOINER or joined or tone or flag):
            break
        end += 1
    return text[start:end].rstrip(_JOINER)


def symbol_in(text: str) -> str:
    """Return the first symbol (not a letter, digit or punctuation) in a text such as ``daemon⛧``, else empty."""
    for place, character in enumerate(text):
        if unicodedata.category(character) in ("So", "Sm") and not character.isascii():
            return first_sign(text[place:])
    return ""


def color_of(text: str) -> str:
    """Return the stored form of a colour: a name of `COLORS` or ``#rrggbb``; empty if it is not a colour."""
    word = one_line(text).casefold()
    if _HEX.fullmatch(word):
        return word if len(word) == 7 else "#" + "".join(digit * 2 for digit in word[1:])
    return _BY_WORD.get(word, "")
