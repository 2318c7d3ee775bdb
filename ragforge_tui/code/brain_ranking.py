"""Order of hits of different kinds: code, text files, turns, summaries, topics.

Scores of two searches cannot be compared, so code keeps the order of its own search, and all hits are merged by one
measure that every text has: the share of the question's rarer words it holds, and the similarity of the vectors.
A question about the past prefers turns and summaries; any other prefers code. Measurements: benchmarks/CODE_SEARCH.md.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from ragforge_tui.code.query_words import query_words, stem_set, word_stems
from ragforge_tui.shared.code_records import BrainHit

COSINE_WEIGHT = 1.0
"""Similarity that counts as much as all words of the question."""
PREFERENCE = 0.5
"""Lead of the kinds that a question asks for, in shares of its words."""
BELOW_TURNS: Mapping[str, float] = {"summary": 0.1, "topic": 0.2}
"""Handicap against a turn: a turn has the words themselves."""

_PAST_PHRASES = re.compile(
    r"\b(?:did|have|had|were) (?:we|i|you)\b|\bwe (?:said|agreed|had|did|talked|decided|discussed)\b"
    r"|\b(?:which|what|in a|our) (?:conversation|discussion|session|chat)s?\b|\blast (?:week|time|month|year)\b"
    r"|\b(?:avons|avions|ai|as|avez)-(?:nous|je|tu|vous)\b|\bnous (?:avons|avions)\b|\bon a (?:dit|parlé|décidé)\b"
    r"|\b(?:haben|hatten) wir\b|\bwir (?:haben|hatten)\b|\bhabe ich\b|\bhast du\b"
    r"|\b(?:abbiamo|hemos|hebben we|hadden we|temos)\b",
    re.IGNORECASE,
)
_PAST_WORDS = frozenset(
    word
    for words in (
        "discuss discussed discussion decide decided decision agree agreed agreement talk talked mentioned said "
        "earlier yesterday previously remember concluded conclusion",
        "discuté décidé décision convenu parlé mentionné hier rappelle",
        "besprochen diskutiert entschieden entscheidung beschlossen vereinbart gesprochen erwähnt gesagt gestern",
        "hablamos discutimos decidimos dijimos ayer discusso deciso detto ieri parlato",
        "besproken besloten gezegd gisteren falamos ontem обсуждали решили говорили вчера",
    )
    for word in words.split()
)
_WORD = re.compile(r"[^\W_]+")


class Candidate(msgspec.Struct, frozen=True):
    """Hit with what its relevance is measured by.

    Attributes:
        text: Whose words count.
        named: The question gives the hit's exact name.
    """

    hit: BrainHit
    text: str
    cosine: float | None = None
    named: bool = False


def asks_for_past(query: str) -> bool:
    """Return whether a question is about past conversations rather than about code."""
    spoken = {word.casefold() for word in _WORD.findall(query)}
    return bool(_PAST_PHRASES.search(query)) or len(spoken & _PAST_WORDS) > 0


def subject_words(query: str) -> list[str]:
    """Return the stems of a question's subject, without words that only refer to the past."""
    words = [word for word in _WORD.findall(query) if word.casefold() not in _PAST_WORDS]
    return list(dict.fromkeys(stem for word in query_words(" ".join(words) or query) for stem in word_stems(word)))


def merged(query: str, code: Sequence[Candidate], said: Sequence[Candidate], limit: int) -> list[BrainHit]:
    """Return the best hits of a ranking of code, which keeps its order, and of unordered hits of other kinds."""
    words = subject_words(query)
    candidates = [*code, *said]
    stems = [stem_set(candidate.text) for candidate in candidates]
    rarities = _rarities(words, stems)
    past = asks_for_past(query)
    scored = [_scored(*each, rarities, past) for each in zip(candidates, stems, strict=True)]
    hits = [*_monotone(scored[: len(code)]), *scored[len(code) :]]
    # The sort is stable and the scores of the code do not increase, so that it keeps its order.
    return sorted(hits, key=lambda hit: -hit.score)[:limit]


def _scored(candidate: Candidate, stems: set[str], rarities: Mapping[str, float], past: bool) -> BrainHit:
    hit = candidate.hit
    share = 1.0 if candidate.named else sum(rarity for word, rarity in rarities.items() if word in stems)
    said = hit.kind in ("turn", "summary", "topic")
    score = share + COSINE_WEIGHT * max(candidate.cosine or 0.0, 0.0) - BELOW_TURNS.get(hit.kind, 0.0)
    return msgspec.structs.replace(hit, score=score + (PREFERENCE if said == past else 0.0))


def _monotone(ranking: Sequence[BrainHit]) -> list[BrainHit]:
    """Raise each score to the highest one below it, so that a weak hit does not hold back those ranked after it."""
    best = -math.inf
    raised: list[BrainHit] = []
    for hit in reversed(ranking):
        best = max(best, hit.score)
        raised.append(msgspec.structs.replace(hit, score=best))
    return raised[::-1]


def _rarities(words: Sequence[str], texts: Sequence[set[str]]) -> dict[str, float]:
    """Return each word's share of the question: a word that fewer hits hold weighs more."""
    having = Counter(word for stems in texts for word in stems.intersection(words))
    weights = {word: math.log(1 + (len(texts) + 1) / (having[word] + 1)) for word in words}
    total = sum(weights.values()) or 1.0
    return {word: weight / total for word, weight in weights.items()}
