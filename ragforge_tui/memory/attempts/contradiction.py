"""The decision that an edit contradicts, found by words and values that both have.

Three forms are recognised, each where the decision and the changed lines share a name or a value: something was ruled
out and the edit adds it, something was to stay and the edit removes it, a value was fixed and the edit changes it.
Other contradictions are not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from ragforge_tui.memory.attempts.edits import Change
from ragforge_tui.memory.language import CHAT_WORDS, STOP_WORDS

_BECAUSE = re.compile(
    r"\b(?:because|since|so that|due to|as (?:it|they|we)|car|parce que|puisque|afin|weil|denn|damit|porque|ya que|"
    r"perché|poiché|omdat|want|zodat|потому|так как)\b|\s[(]",
    re.IGNORECASE,
)
"""Begins a reason, whose words the decision is not about."""
_NOT = re.compile(
    r"(?:not|never|no|n't|don'?t|doesn'?t|avoid|instead of|rather than|no longer|forbidden|"
    r"pas|jamais|aucun|aucune|plutôt que|au lieu de|nicht|nie|niemals|kein|keine|keinen|statt|anstatt|"
    r"nunca|en vez de|non|mai|invece di|niet|nooit|geen|não|не|никогда|вместо)",
    re.IGNORECASE,
)
_STAYS = re.compile(
    r"\b(?:keep|keeps|kept|stay|stays|remain|remains|still|leave|must be|always|bleib\w*|behält|behalten|immer|"
    r"reste\w*|garde\w*|conserve\w*|toujours|sigue|queda|mantiene|siempre|resta|rimane|sempre|blijft|blijven|altijd|fica|"
    r"mantém|continua|остаётся|остается|всегда)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z_][\w]*(?:\.[A-Za-z_]\w*)*|\d+(?:[.,]\d+)*|[^\W\d_]+")
_QUOTED = re.compile(r"`([^`]+)`|“([^”]+)”|\"([^\"]+)\"")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_CODE_NAME = re.compile(r"\w*_\w+|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*|[A-Z]{2,}\w*|\w+(?:\.\w+)+|\w*\d\w*")
_SYNTAX = frozenset(
    word
    for words in (
        "and as assert async await bool break case class const continue def del do elif else enum except export false",
        "finally float fn for from func function if impl import in int interface is lambda let match mut new nil none",
        "not null or package pass pub raise return self static str string struct super switch this throw true try type",
        "undefined use using var void when where while with yield args kwargs key value name data list dict item",
        "result line text file path test tests code",
    )
    for word in words.split()
)
"""Words of programming languages, and names that everything has: a decision shares them with any edit."""
_IS = re.compile(
    r"(?:is|are|was|be|must|should|will|can|may|does|do|wird|werden|ist|sind|darf|soll|est|sont|doit|es|son|debe|è|sono|"
    r"deve|wordt|worden|zijn|mag|é|são|não)",
    re.IGNORECASE,
)
_REACH_NAME, _REACH_WORD, _REACH_BACK = 6, 3, 4
"""Words after a negation up to which it is about a name of the code, or any word; and before one like "is not"."""
_LEAST_LETTERS = 4


class Contradiction(NamedTuple):
    """How an edit contradicts a decision, such as (``adds``, ``Sniffer``)."""

    verb: str
    term: str


def contradicts(decision: str, changes: Iterable[Change]) -> Contradiction | None:
    """Return how one of these changes contradicts a decision; None if none does, or that is doubtful."""
    main = _BECAUSE.split(decision, maxsplit=1)[0]
    for change in changes:
        found = _ruled_out(main, change) or _fixed(main, change) or _removed(main, change)
        if found is not None:
            return found
    return None


def _ruled_out(decision: str, change: Change) -> Contradiction | None:
    new = _terms(change.added) - _terms(change.removed)
    plain = {term for term in new if any(_is_used(term, line) for line in change.added)}
    for clause in re.split(r"[;:]|, (?!not\b)|\. ", decision):
        words = re.findall(r"[\w.'-]*\w", clause)
        places = [n for n in range(len(words)) if _negates(words, n)]
        if not places:
            continue
        quoted = {name.casefold() for name in _quoted(clause)}
        for n, word in enumerate(words):
            reach = _REACH_NAME if word.casefold() in quoted or _CODE_NAME.fullmatch(word) else _REACH_WORD
            after = any(0 < n - place <= reach for place in places)
            before = any(0 < place - n <= _REACH_BACK and _IS.fullmatch(words[place - 1]) for place in places)
            if (after or before) and (term := _same(word, new if reach == _REACH_NAME else plain, quoted)):
                return Contradiction("adds", term)
    return None


def _is_used(term: str, line: str) -> bool:
    """Return whether a line of code imports, calls or reaches into something, rather than mentions a word."""
    name = re.escape(term)
    if re.match(rf"\s*(?:import|from|use|using|require|#include|const|let|var)\b.*\b{name}\b", line):
        return True
    code = re.sub(r"\"[^\"]*\"|'[^']*'|(?:#|//).*", "", line)
    return re.search(rf"(?<!def )(?<!function )\b{name}\(|\b{name}\.\w|@{name}\b", code) is not None


def _negates(words: list[str], n: int) -> bool:
    two = " ".join(words[n : n + 2])
    return bool(_NOT.fullmatch(words[n]) or _NOT.fullmatch(two) or words[n].casefold().endswith("n't"))


def _removed(decision: str, change: Change) -> Contradiction | None:
    if not _STAYS.search(decision) or any(_NOT.fullmatch(word) for word in re.findall(r"[\w']+", decision)):
        return None
    gone = _terms(change.removed) - _terms(change.added)
    for text in _quoted(decision):
        kept = any(text in line for line in change.added) or not any(text in line for line in change.removed)
        if sum(character.isalnum() for character in text) >= _LEAST_LETTERS and not kept:
            return Contradiction("removes", text)
    quoted = {name.casefold() for name in _quoted(decision)}
    for word in _WORD.findall(decision):
        if (_CODE_NAME.fullmatch(word) or word.casefold() in quoted) and (term := _same(word, gone, quoted)):
            return Contradiction("removes", term)
    return None


def _fixed(decision: str, change: Change) -> Contradiction | None:
    """Return the value of a name that the decision gives and the edit replaces by another one."""
    before, after = _terms(change.removed), _terms(change.added)
    words = _WORD.findall(decision)
    values = {word for word in words if _NUMBER.fullmatch(word)} | set(_quoted(decision))
    values |= {
        text
        for line in change.removed
        for text in re.findall(r"[\"']([^\"']{2,40})[\"']", line)
        if re.search(rf"(?<!\w){re.escape(text)}(?!\w)", decision)
    }
    gone = sorted((value for value in values if value in before - after), key=len, reverse=True)
    names = {name for word in words if (name := _same(word, before & after, set())) and not _NUMBER.fullmatch(name)}
    for old in change.removed:
        for value in gone:
            if any(name in _terms([old]) for name in names) and value in _terms([old]):
                return Contradiction("changes", value)
    return None


def _same(word: str, terms: set[str], quoted: set[str]) -> str:
    """Return the term of the code that a word of a decision means; empty if there is none."""
    folded = word.casefold().removesuffix("()")
    if folded not in quoted and (
        folded in _SYNTAX
        or folded.removesuffix("s") in _SYNTAX
        or sum(character.isalpha() for character in folded) < _LEAST_LETTERS
        or any(folded in words for words in STOP_WORDS.values())
        or folded in CHAT_WORDS
    ):
        return ""
    return next((term for term in sorted(terms) if term.casefold() in (folded, folded.removesuffix("s"))), "")


def _terms(lines: Iterable[str]) -> set[str]:
    """Return the names, numbers and short quoted texts of lines of code; a dotted name with its parts."""
    found: set[str] = set()
    for line in lines:
        for word in _WORD.findall(line):
            found.add(word)
            found.update(word.split("."))
        found.update(text for text in re.findall(r"[\"']([^\"']{1,40})[\"']", line))
    return found


def _quoted(text: str) -> list[str]:
    return [next(filter(None, groups)).removesuffix("()") for groups in _QUOTED.findall(text)]
