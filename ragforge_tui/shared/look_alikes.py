"""Characters that look alike, such as a typographic quote and a straight one, folded to one form for comparison.

Used for the text that an edit replaces, for names of files and for searches: a model writes the usual form of what it
was shown. Letters of other alphabets stay apart. Imports no other module of the package.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_ACCENTED = re.compile("[\u00c0-\u1fff]")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_SIGNS = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u2035\u02b9\u02bc\u00b4", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u2036", '"'),
    "\u2026": "...",
    "\u2212": "-",
}
_BY_CATEGORY = {"Zs": " ", "Pd": "-", "Cf": ""}


def folded(text: str) -> str:
    """Return a text in the form for comparison: accents apart from letters, plain quotes, dashes and blanks."""
    return text if text.isascii() else _NOT_ASCII.sub(_folded_match, text)


def composed(text: str) -> str:
    """Return a text like `folded`, with letters and their accents as one character."""
    return text if text.isascii() else unicodedata.normalize("NFC", folded(text))


def unaccented(text: str) -> str:
    """Return a text of the same length with letters in place of those with accents, but for signs of East Asia."""
    return text if text.isascii() else _ACCENTED.sub(lambda match: _base(match[0]), text)


@lru_cache(maxsize=2_048)
def _base(letter: str) -> str:
    parts = unicodedata.normalize("NFD", letter)
    return parts[0] if all(unicodedata.combining(part) for part in parts[1:]) else letter


def _folded_match(match: re.Match[str]) -> str:
    return folded_character(match[0])


@lru_cache(maxsize=8_192)
def folded_character(character: str) -> str:
    """Return one character in the form for comparison; empty for one without a glyph."""
    sign = _SIGNS.get(character)
    if sign is not None:
        return sign
    by_category = _BY_CATEGORY.get(unicodedata.category(character))
    return by_category if by_category is not None else unicodedata.normalize("NFD", character)
