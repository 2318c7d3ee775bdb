"""Normalisation of words for comparison: case-folded, without stop words, reduced to their stems.

Used by the index for texts and questions alike, so that both are split the same way.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import msgspec
import Stemmer

from ragforge_tui.memory.language import CHAT_WORDS, MONTHS, STEMMERS, STOP_WORDS, language_of
from ragforge_tui.shared.look_alikes import unaccented

_WORD = re.compile(r"[^\W_]+")
_NO_BLANKS = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7a3\U00020000-\U0003ffff]+"
)
"""Runs of scripts that write words without blanks, or with particles: they are split into pairs of letters."""
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PARTS = re.compile(r"[A-Z](?:(?<=[a-z0-9].)|[A-Z][a-z])")
"""Found where `_CAMEL` would split, in a fifth of the time."""
MAX_WORD = 64
"""Longer runs are data (base64, hashes), not words."""
SAME_START = 2
"""Letters that words of one stem have in common, but for three English verbs (die, lie, tie)."""
FALLBACK = "en"
"""Language of texts whose language is unknown; its stemmer leaves most foreign words alone."""

_NAMES_OF_MONTHS = frozenset(name for names in MONTHS.values() for name in names)


class _Stemmers(threading.local):
    """Stemmers of one thread: a stemmer must not be used by two threads at once."""

    def __init__(self) -> None:
        self.by_language: dict[str, Stemmer.Stemmer] = {}


_OWN = _Stemmers()


class TextStems(msgspec.Struct, frozen=True):
    """Stems of a text's content words, each once, and the language they were made for."""

    language: str
    stems: frozenset[str]


def words(text: str) -> list[str]:
    """Return the words of a text in order; a camelCase name is followed by its parts, Chinese is split into pairs."""
    result: list[str] = []
    for run in _WORD.findall(text):
        if not run.isascii() and _NO_BLANKS.search(run):
            result += _pairs(run)
        elif len(run) <= MAX_WORD:
            parts = _CAMEL.split(run)
            result.extend(parts if len(parts) == 1 else [run, *parts])
    return result


def _pairs(run: str) -> list[str]:
    """Return pairs of neighbouring letters of scripts without blanks, and other words whole."""
    found: list[str] = []
    done = 0
    for match in _NO_BLANKS.finditer(run):
        letters = match[0]
        found += [run[done : match.start()], *(letters[at : at + 2] for at in range(max(len(letters) - 1, 1)))]
        done = match.end()
    return [word for word in (*found, run[done:]) if word]


def terms(text: str, language: str) -> list[str]:
    """Return the terms of a text: the stems of its words without stop words."""
    code = language if language in STEMMERS else FALLBACK
    stop = STOP_WORDS[code]
    content = [
        word
        for word, folded in ((word, word.casefold()) for word in words(text))
        # "May" is a month, "may" is not.
        if folded not in stop or word in _NAMES_OF_MONTHS
    ]
    return stems(content, code)


def stems(found: Iterable[str], language: str) -> list[str]:
    """Return the stems of words, case-folded."""
    code = language if language in STEMMERS else FALLBACK
    stemmer = _OWN.by_language.get(code)
    if stemmer is None:
        stemmer = _OWN.by_language[code] = Stemmer.Stemmer(STEMMERS[code])
    result: list[str] = stemmer.stemWords([_fold(word) for word in found])
    return result


def variants(word: str, languages: Iterable[str]) -> set[str]:
    """Return the terms that a question's word may have in texts of these languages."""
    return {_stem(word, language) for language in languages}


@lru_cache(maxsize=4_096)
def _stem(word: str, language: str) -> str:
    """Return the stem of a question's word, which is compared with many texts."""
    return stems([word], language)[0]


def _fold(word: str) -> str:
    folded = word.casefold()
    if folded.isascii():
        return folded
    return unaccented(unicodedata.normalize("NFC", folded))


def content_words(question: str, language: str) -> list[str]:
    """Return the content words of a question, each once."""
    stop = STOP_WORDS.get(language if language in STEMMERS else FALLBACK, frozenset())
    content = [word for word in words(question) if word.casefold() not in stop or word in _NAMES_OF_MONTHS]
    return list({word.casefold(): word for word in content}.values())


def asked_words(message: str, language: str) -> list[str]:
    """Return the words of a message's subject: its content words without those that keep a talk going."""
    return [word for word in content_words(message, language) if word.casefold() not in CHAT_WORDS]


def matched(rarities: Mapping[str, float], text: str) -> float:
    """Return the summed rarity of the words that occur in a text."""
    # Words of one stem begin alike; to stem all others is most of the work. A name of parts may hide a word inside.
    starts = frozenset(_fold(word)[:SAME_START] for word in rarities)
    folded = unaccented(text.casefold())
    # Letters that fold to others, or to more than one, are not where the words of the text are.
    plain = (
        folded == unaccented(text.lower())
        and len(folded) == len(text)
        and unicodedata.is_normalized("NFC", text)
        and not _NO_BLANKS.search(text)
    )
    if plain and not _PARTS.search(text):
        near = [text[slice(*found.span())] for found in _starting(starts).finditer(folded)]
    else:
        near = [
            run
            for run in _WORD.findall(text)
            if not run[1:].islower() or _fold(run)[:SAME_START] in starts or _NO_BLANKS.search(run)
        ]
    if not near:
        return 0.0
    language = language_of(text)
    return matched_stems(rarities, TextStems(language, frozenset(terms(" ".join(near), language))))


def text_stems(text: str) -> TextStems:
    """Return the stems of a text that is compared with many questions."""
    language = language_of(text)
    return TextStems(language, frozenset(terms(text, language)))


def matched_stems(rarities: Mapping[str, float], text: TextStems) -> float:
    """Return what `matched` does, for a text whose stems are known."""
    return sum((rarity for word, rarity in rarities.items() if _stem(word, text.language) in text.stems), 0.0)


@lru_cache(maxsize=64)
def _starting(starts: frozenset[str]) -> re.Pattern[str]:
    """Return the pattern of the words with one of these beginnings, which matches nothing without any."""
    if not starts:
        return re.compile(r"(?!)")
    # The letter comes first, so that the search skips to it, and what may not be in front of it is checked afterwards.
    each = (rf"{start}(?<![^\W_]{start})" for start in map(re.escape, sorted(starts)))
    return re.compile(rf"(?:{'|'.join(each)})[^\W_]*")


def share_of_stems(asked: Sequence[str], present: frozenset[str]) -> float:
    """Return the share of a question's stems that are among those of a text."""
    return sum(stem in present for stem in asked) / len(asked) if asked else 0.0
