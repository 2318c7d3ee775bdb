"""Words as they are compared: without case and accents, without small words, cut to their stems.

Used by the index for texts and questions alike, so that both are taken apart the same way.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterable

import Stemmer

from ragforge_tui.memory.language import MONTHS, STEMMERS, STOP_WORDS

_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
MAX_WORD = 64
"""Longer runs are data (base64, hashes), not words."""
FALLBACK = "en"
"""Language of texts whose language is unknown; its stemmer leaves most foreign words alone."""

_NAMES_OF_MONTHS = frozenset(name for names in MONTHS.values() for name in names)


class _Stemmers(threading.local):
    """Stemmers of this thread: one may not be used by two at once."""

    def __init__(self) -> None:
        self.by_language: dict[str, Stemmer.Stemmer] = {}


_OWN = _Stemmers()


def words(text: str) -> list[str]:
    """The words of a text in order, folded; parts of camelCase names stand beside the whole name."""
    found: list[str] = []
    for run in _WORD.findall(text):
        if len(run) > MAX_WORD:
            continue
        parts = _CAMEL.split(run)
        found.extend(parts if len(parts) == 1 else [run, *parts])
    return found


def terms(text: str, language: str) -> list[str]:
    """The terms of a text: stems of its words without the small ones."""
    code = language if language in STEMMERS else FALLBACK
    small = STOP_WORDS[code]
    kept = [
        word
        for word, folded in ((word, word.casefold()) for word in words(text))
        # "May" is a month, "may" is not.
        if folded not in small or word in _NAMES_OF_MONTHS
    ]
    return stems(kept, code)


def stems(found: Iterable[str], language: str) -> list[str]:
    """Stems of words, folded."""
    code = language if language in STEMMERS else FALLBACK
    stemmer = _OWN.by_language.get(code)
    if stemmer is None:
        stemmer = _OWN.by_language[code] = Stemmer.Stemmer(STEMMERS[code])
    cut: list[str] = stemmer.stemWords([_fold(word) for word in found])
    return cut


def variants(word: str, languages: Iterable[str]) -> set[str]:
    """The terms a word of a question may have become, in texts of these languages."""
    return {term for language in languages for term in stems([word], language)}


def _fold(word: str) -> str:
    folded = word.casefold()
    if folded.isascii():
        return folded
    return unicodedata.normalize("NFC", folded)


def telling_words(question: str, language: str) -> list[str]:
    """The words of a question that say something, each once."""
    small = STOP_WORDS.get(language if language in STEMMERS else FALLBACK, frozenset())
    telling = [word for word in words(question) if word.casefold() not in small or word in _NAMES_OF_MONTHS]
    return list({word.casefold(): word for word in telling}.values())


def share(asked: Iterable[str], text: str, language: str) -> float:
    """The share of a question's words that a text has."""
    wanted = stems(asked, language)
    there = set(terms(text, language))
    return sum(term in there for term in wanted) / len(wanted) if wanted else 0.0
