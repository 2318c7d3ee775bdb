"""Informativeness of sentences, by which the extractive summaries select them.

Names, numbers, times and statements in the first person score higher than pleasantries and questions. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ragforge_tui.memory.findings.likeness import gist
from ragforge_tui.memory.keyterms import stem, unspaced, words
from ragforge_tui.memory.summaries.draft import FINDING_CHARS, MAX_FINDINGS
from ragforge_tui.shared.records import FindingKind

QUESTION_MARKS = ("?", "？")
_FEWEST_WORDS = 3
_ALIKE = 0.6
_SPECIFIC = re.compile(r"\d|`|\w/\w|\w_\w|[a-z][A-Z]|\w\(\)|\.\w{2,4}\b")
_NAME = re.compile(r"(?<=[\w,;:]\s)[^\W\d_a-zà-ÿ][\w'’-]+")
_FILLER = re.compile(
    r"^(?:sure|of course|certainly|great|okay|ok|yes|no|thanks|thank you|you['’]re welcome|hi|hello|hey|wow|awesome|"
    r"glad|sorry|let me|i['’]ll|here (?:is|are)|i am the offline assistant|i['’]m the offline|"
    r"bien sûr|d'accord|merci|bonjour|salut|voici|je vais|je suis l['’]assistant)\b",
    re.I,
)
_ANNOUNCEMENT = re.compile(
    r"^(?:(?:first|now|next|then|to [^,]{3,80}|d['’]abord|maintenant|ensuite|pour [^,]{3,80}|zuerst|nun|jetzt),? )?"
    r"(?:I(?:['’]ll| will| need to| have to| am going to|['’]m going to| can)|let['’]?s|let me|we need to|"
    r"here(?:['’]s| is| are)|these changes|the following|je vais|nous allons|voici|ich werde|hier (?:ist|sind)|"
    r"voy a|aquí (?:está|tienes)|vado a|ecco|vou)\b",
    re.I,
)
"""Announcement of what comes next in a reply; results are more informative."""
_OWN = re.compile(r"\b(?:I|my|me|we|our|je|j['’]|mon|ma|mes|nous|notre|nos)\b", re.I)
_YOURS = re.compile(r"\b(?:you|your|tu|te|ton|ta|tes|vous|votre|vos)\b", re.I)
_WHEN = re.compile(
    r"\b(?:yesterday|today|tomorrow|tonight|last|next|ago|since|until|hier|demain|dernier|dernière|prochaine?|depuis|"
    r"one|two|three|four|five|six|seven|eight|nine|ten|deux|trois|quatre|cinq|dix)\b|\d",
    re.I,
)

_DECISION = re.compile(
    r"\b(?:decided?|agreed|chose|chosen|my (?:plan|goal)|our plan|deadline|instead of|rather than|décidé|choisi|"
    r"mon (?:plan|but)|échéance|plutôt que|entschieden|decidid[oa]|decidí|deciso|besloten|decidi|решил[аи]?)\b",
    re.I,
)
_PREFERENCE = re.compile(
    r"\b(?:prefer|from now on|préf[èé]r\w*|désormais|bevorzuge|ab jetzt|prefiero|preferisco|prefiro|предпочитаю)\b|"
    r"^(?:(?:please|and|but|also|bitte|s['’]il (?:te|vous) plaît|por favor|per favore|пожалуйста),? )*"
    r"(?:always|never|toujours|jamais|immer|niemals|siempre|nunca|sempre|altijd|nooit|всегда|никогда)\b",
    re.I,
)
"""Preferences, and rules: "never" at the start is an order, later it is mostly a story ("I have never been there")."""
_NOTABLE = re.compile(
    r"\b(?:remember|must|never|always|my name|retiens|rappelle-toi|souviens-toi|toujours|jamais|il faut|mon nom|"
    r"merk dir|immer|niemals|recuerda|siempre|nunca|ricorda|sempre|onthoud|altijd|nooit|lembra|запомни|всегда|"
    r"никогда)\b",
    re.I,
)


class Statement(msgspec.Struct, frozen=True):
    """Sentence with its author, the turns it comes from, its score, and its kind as a finding."""

    text: str
    by_user: bool
    turns: tuple[int, ...]
    score: float
    kind: FindingKind = ""


def decides(sentence: str) -> bool:
    """Return whether a sentence states a decision, a preference or something to remember: looked for first later."""
    said = (_DECISION, _PREFERENCE, _NOTABLE)
    return not sentence.endswith(QUESTION_MARKS) and any(pattern.search(sentence) for pattern in said)


def announces(sentence: str) -> bool:
    """Return whether a sentence of a reply only announces the next ones."""
    return sentence.endswith((":", "：")) or _ANNOUNCEMENT.match(sentence) is not None


def score(sentence: str, place: int, weigh: Mapping[str, float], language: str) -> float:
    """Return how informative a sentence is: the weight of its words, more for names and numbers, less for filler."""
    stems = {stem(word) for word in words(sentence, language)}
    if not stems or (len(sentence.split()) < _FEWEST_WORDS and not unspaced(sentence)):
        return 0.0
    value: float = sum(weigh.get(word, 0.0) for word in stems) / (len(stems) + 4) ** 0.5
    value *= 1.0 + 0.15 * min(3, len(_SPECIFIC.findall(sentence))) + 0.1 * min(3, len(_NAME.findall(sentence)))
    if place == 0:
        value *= 1.15
    if _FILLER.match(sentence):
        value *= 0.5
    if _OWN.search(sentence):
        value *= 1.25
    elif _YOURS.search(sentence):
        value *= 0.6
    if _WHEN.search(sentence):
        value *= 1.2
    if sentence.endswith(QUESTION_MARKS):
        value *= 0.5
    if len(sentence) > FINDING_CHARS:
        value *= 0.6
    return value


def distinct(ranked: Iterable[Statement], used: Sequence[str] = ()) -> list[Statement]:
    """Return all decisions, and `MAX_FINDINGS` statements in all that repeat neither each other nor a text in `used`.

    A decision like another one is another decision, unless it says the same.
    """
    chosen: list[Statement] = []
    for statement in ranked:
        if statement.kind == "decision":
            if not any(gist(statement.text).is_same(gist(other.text)) for other in chosen):
                chosen.append(statement)
            continue
        if len(chosen) >= MAX_FINDINGS:
            continue
        if not any(_alike(statement.text, text) for text in (*used, *(other.text for other in chosen))):
            chosen.append(statement)
    return chosen


def _alike(a: str, b: str) -> bool:
    first, second = ({stem(word) for word in words(text)} for text in (a, b))
    return bool(first and second) and len(first & second) / min(len(first), len(second)) >= _ALIKE
