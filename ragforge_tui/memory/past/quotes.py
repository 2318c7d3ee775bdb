"""The sentences of a turn that answer a question best. Pure.

A past question holds the words of a new one more often than its answer does, so a question counts less, and where only
it matches the reply to it is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Literal

import msgspec

from ragforge_tui.graph.store.search import Matcher
from ragforge_tui.memory.prose import answer_prose, code_lines, cut, sentences, user_prose
from ragforge_tui.memory.retrieval.terms import matched
from ragforge_tui.memory.summaries.offline.informativeness import QUESTION_MARKS, decides
from ragforge_tui.shared.records import Message, Turn
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.shared.tool_calls import result_text

QUOTE_CHARS = 320
_SHORT = 80
"""A quote below so many characters is continued by the next sentence."""
_ASKED = 0.4
"""Factor for a sentence that asks."""
_DECIDED = 1.3
"""Factor for a sentence that states a decision or a preference."""
_OWN_WORDS = 1.2
"""Factor for what the user stated: the reply often only repeats it."""
_FROM_CODE = 0.6
_FROM_RESULT = 0.5
_MOST_LINES = 400
_NOISE = re.compile(
    r"\[ *\d{1,3}%\]|^\S{1,300}::\S{1,300} (?:PASSED|SKIPPED|XFAIL|ok)\b|\b\d{1,3}%[| ]|\d(?:it|[kMG]?i?B)/s|(\S)\1{9}"
)
"""Progress that a command prints: it holds names, but states nothing."""
_ASSENT = 3
"""Times that a statement is longer than a reply that only assents to it."""
_REFERRING = re.compile(r"^\W*(?:it|this|that|these|those|they|he|she|so|both|ça|cela|das|dies)\b", re.I)

QuoteRole = Literal["user", "assistant", "system", "tool"]


class Quotation(msgspec.Struct, frozen=True, kw_only=True):
    """Sentences of a turn.

    Attributes:
        matched: Summed rarity of the question's words in the best of them, weighted by what kind of sentence it is.
        highlights: (start, end) offsets of the question's words in `text`.
    """

    role: QuoteRole
    text: str
    matched: float = 0.0
    highlights: list[tuple[int, int]] = []


class _Passage(msgspec.Struct, frozen=True):
    """Consecutive sentences of one message, with the factor of their kind."""

    role: QuoteRole
    sentences: list[str]
    factor: float = 1.0


def best_quote(turn: Turn, rarities: Mapping[str, float]) -> Quotation | None:
    """Return the sentences of a turn that answer a question best; None if the turn has no text.

    Args:
        rarities: Words of the question with their rarity.
    """
    passages = list(_passages(turn))
    rated = [
        (_rating(sentence, rarities) * passage.factor, -number, -place, passage)
        for number, passage in enumerate(passages)
        for place, sentence in enumerate(passage.sentences)
    ]
    best = max(rated, key=lambda one: one[:3], default=None)
    if best is None:
        return None
    score, _, place, passage = best
    place = -place
    asked = passage.role == "user" and passage.sentences[place].endswith(QUESTION_MARKS)
    if score <= 0 or asked:
        # Found by meaning, or by the question that was asked then: the reply uses words of its own.
        reply = next((one for one in passages if one.role == "assistant"), None)
        # A reply that is much shorter than a statement only assents to it.
        if reply is not None and (asked or _ASSENT * _length(reply) >= _length(passage)):
            place, passage = 0, reply
    text = _grown(passage.sentences, place, rarities)
    return Quotation(role=passage.role, text=text, matched=max(score, 0.0), highlights=highlights(text, rarities))


def _length(passage: _Passage) -> int:
    return sum(map(len, passage.sentences))


def highlights(text: str, words: Iterable[str]) -> list[tuple[int, int]]:
    """Return the positions of words, or of forms of them, in a text."""
    wanted = list(words)
    return Matcher([word.casefold() for word in wanted]).spans(text) if wanted else []


def _passages(turn: Turn) -> Iterable[_Passage]:
    """Yield the prose of the messages, then code, then results of tools."""
    said = [message for message in turn.messages if message.state != "superseded"]
    for message in said:
        prose = user_prose(message.content) if message.role == "user" else answer_prose(message.content)
        if found := _lines(sentences(prose)):
            yield _Passage(message.role, found, _OWN_WORDS if message.role == "user" else 1.0)
    for message in said:
        if found := _lines(code_lines(message.content)):
            yield _Passage(message.role, found, _FROM_CODE)
    for message in said:
        for found in _results(message):
            yield _Passage("tool", found, _FROM_RESULT)


def _results(message: Message) -> Iterable[list[str]]:
    for call in message.tool_calls:
        if found := _lines(line for line in result_text(call).splitlines() if not _NOISE.search(line)):
            yield found


def _lines(texts: Iterable[str]) -> list[str]:
    lines = (" ".join(plain_text(text).split()) for text in islice(texts, _MOST_LINES))
    return [line for line in lines if line]


def _rating(sentence: str, rarities: Mapping[str, float]) -> float:
    rating = matched(rarities, sentence)
    if sentence.endswith(QUESTION_MARKS):
        return rating * _ASKED
    return rating * _DECIDED if decides(sentence) else rating


def _grown(found: Sequence[str], place: int, rarities: Mapping[str, float]) -> str:
    """Return a sentence with the one it refers to, and with the next ones that match more of the question."""
    text = found[place]
    if place and _REFERRING.match(text) and len(found[place - 1]) + len(text) < QUOTE_CHARS:
        text = f"{found[place - 1]} {text}"
    for following in found[place + 1 :]:
        longer = f"{text} {following}"
        more = matched(rarities, longer) > matched(rarities, text)
        if len(longer) > QUOTE_CHARS or not (more or len(text) < _SHORT):
            break
        text = longer
    return cut(text, QUOTE_CHARS)
