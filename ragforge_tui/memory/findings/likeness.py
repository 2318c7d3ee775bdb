"""How far two statements are about the same: stems, names of code, numbers. Pure."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

import msgspec

from ragforge_tui.memory.keyterms import stem, words
from ragforge_tui.memory.language import language_of
from ragforge_tui.shared.finding_records import KeptFinding

_NAME = re.compile(
    r"`([^`\n]{2,60})`|((?<![\w.-])(?:[\w.-]+/)+[\w.-]+|\b\w+\.(?:py|js|ts|tsx|go|rs|c|h|java|md|rst|toml|ya?ml|json|sql)\b)|"
    r"\b(\w+_\w+|[a-z]+[A-Z]\w*|[A-Z][a-z]+(?:[A-Z][a-z]+)+)\b|\b([a-z]\w+)(?=\(\))"
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NEGATION = re.compile(
    r"(?<!\w)(?:\w+n['’]t|cannot|never|not|without|pas|jamais|sans|nicht|nie|niemals|kein\w*|ohne|nunca|jamás|sin|não|sem|"
    r"mai|non|senza|nooit|niet|geen|zonder|никогда|не|без|nigdy|bez)(?![\w-])",
    re.I,
)
_PART = re.compile(r"[^\W\d_]+|\d+")
_SAME = 0.8
_ALIKE = 0.5


class Gist(msgspec.Struct, frozen=True):
    """What a statement is compared by.

    Attributes:
        stems: Of its words.
        names: Names of code and files in it, case-folded.
        negated: Whether it has a word such as "never", which is no stem.
    """

    stems: frozenset[str]
    names: frozenset[str]
    numbers: frozenset[str]
    negated: bool = False

    def likeness(self, other: Gist) -> float:
        """Return the share of the stems of both that they have in common."""
        both = self.stems | other.stems
        return len(self.stems & other.stems) / len(both) if both else 0.0

    def share_in(self, other: Gist) -> float:
        """Return the share of its stems that the other has."""
        return len(self.stems & other.stems) / len(self.stems) if self.stems else 0.0

    def is_same(self, other: Gist) -> bool:
        """Return whether two statements say the same in about the same words."""
        return self.negated == other.negated and self._has_words_of(other)

    def is_opposite(self, other: Gist) -> bool:
        """Return whether one of two statements forbids or denies what the other says."""
        return self.negated != other.negated and self._has_words_of(other)

    def _has_words_of(self, other: Gist) -> bool:
        return self.numbers == other.numbers and self.likeness(other) >= _SAME

    def is_alike(self, other: Gist) -> bool:
        """Return whether two statements are about the same, whatever they say about it."""
        return self.likeness(other) >= _ALIKE


@functools.lru_cache(maxsize=8_192)
def gist(text: str) -> Gist:
    """Return what a text is compared by."""
    names = {name.casefold().removesuffix("()") for found in _NAME.finditer(text) for name in found.groups() if name}
    stems = {stem(word.removesuffix("()")) for word in words(text, language_of(text))}
    return Gist(
        stems=frozenset(one.strip("`") for one in stems if one.strip("`")),
        names=frozenset(name for name in names if " " not in name),
        numbers=frozenset(_NUMBER.findall(text)),
        negated=_NEGATION.search(text) is not None,
    )


def most_alike(text: str, findings: Iterable[KeptFinding], *, least: float) -> KeptFinding | None:
    """Return the finding that has most stems of a text; None if that is less than a share of them."""
    told = gist(text)
    rated = [(told.share_in(gist(one.text)), one) for one in findings]
    share, found = max(rated, key=lambda pair: pair[0], default=(0.0, None))
    return found if share >= least else None


def mentions(text: str, name: str) -> bool:
    """Return whether a case-folded text has a name as a word."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def files_named(text: str) -> list[str]:
    """Return the paths of files that a text names, each once."""
    paths = (found[2] for found in _NAME.finditer(text) if found[2])
    return list(dict.fromkeys(path.removeprefix("./").strip(".") for path in paths))
