"""The ranking of all searches.

Two measures are kept apart. The relevance of a candidate, in units of one rare word in common, can be compared with
that of any other and decides what is left out. Its score, the weighted views of a recipe, gives the order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec
import numpy as np

from ragforge_tui.memory.retrieval.candidates import Candidate
from ragforge_tui.memory.retrieval.question import Question
from ragforge_tui.memory.retrieval.recipes import KNOWN_TURNS, Pick
from ragforge_tui.memory.retrieval.scoring import fused, relevance

C = TypeVar("C", bound=Candidate)
T = TypeVar("T")

MOST_WORDINGS = 4
"""Wordings of one query that a tool searches for, its own among them."""
SAME_SUBJECT, OTHER_SUBJECTS = 10.0, 1.0
"""How much agreement of rankings counts beside a first place: wordings ask the same, parts of a message do not."""


def rank(question: Question, found: Iterable[C], pick: Pick, similar: float) -> list[C]:
    """Return the candidates that a question asks for, best first, with their relevance and score.

    Args:
        similar: See `relevance`.
    """
    measured = measure(question, found, pick, similar)
    total = sum(question.rarities.values()) or 1.0
    views = [
        {
            "words": one.words,
            "cosine": one.cosine,
            "share": one.matched / total,
            "relevance": one.relevance,
            **one.views,
        }
        for one in measured
    ]
    for one, score in zip(measured, scores(views, pick.weights, scaled=pick.scaled), strict=True):
        one.score = score * one.factor
    return chosen(question, measured, pick)


def measure(question: Question, found: Iterable[C], pick: Pick, similar: float) -> list[C]:
    """Return candidates with their relevance, which a source may have measured in part."""
    measured = list(found)
    by_words = pick.by_words or bool(question.context)
    for one in measured:
        one.measure(question)
        one.relevance = relevance(one.matched, one.cosine, similar, by_words=by_words)
    return measured


def chosen(question: Question, found: Sequence[C], pick: Pick) -> list[C]:
    """Return the relevant ones of candidates that have relevance and score, best first."""
    shared = sum(question.rarities.values()) * pick.share
    floor = pick.floor + pick.small * max(0.0, 1 - question.turns / KNOWN_TURNS)
    floor = max(floor, pick.gap * max((one.relevance for one in found), default=0.0))
    relevant = [
        one
        for one in found
        if one.relevance >= floor and one.matched >= shared and (one.matched > 0 or not pick.by_words)
    ]
    if pick.one_is_enough and relevant:
        relevant = list(found)
    ranked = sorted(relevant, key=lambda one: -one.score)
    return (first_of_each_text(ranked) if pick.distinct else ranked)[: pick.limit or None]


def ranked_by_part(question: Question, found: Sequence[C], pick: Pick, similar: float) -> list[C]:
    """Return what `rank` does; if a question has parts, with a fair share for each."""
    each = [
        rank(part, [msgspec.structs.replace(one, matched=-1.0, cosine=None) for one in found], pick, similar)
        for part in question.parts
    ]
    whole = rank(question, found, pick, similar)
    return shared(whole, each) if whole and each else whole


def shared(whole: Sequence[C], parts: Sequence[Sequence[C]]) -> list[C]:
    """Return what a question and its parts found as one ranking; a part's best comes before another's second."""
    return fused_rankings(
        [*parts, whole], lambda one: (one.conversation_id, one.turn_index, one.last_turn), OTHER_SUBJECTS
    )


def scores(
    views: Sequence[Mapping[str, float | None]], weights: Mapping[str, float], *, scaled: bool = False
) -> list[float]:
    """Return the weighted sum of each candidate's views; an unknown view (None) counts as 0, or as the mean if scaled.

    Args:
        scaled: Weigh z-scores.
    """
    if not scaled:
        return [sum(weight * (one.get(name) or 0.0) for name, weight in weights.items()) for one in views]
    known = [np.array([one.get(name) is not None for one in views], bool) for name in weights]
    values = [np.array([one.get(name) or 0.0 for one in views], np.float32) for name in weights]
    columns = zip(weights.values(), zip(values, known, strict=True), strict=True)
    return [float(score) for score in fused(columns, np.ones(len(views), bool))]


def merged(own: Iterable[C], others: Sequence[C]) -> Iterator[C]:
    """Merge two rankings: the more relevant of the two next candidates comes first; this conversation wins ties."""
    second = 0
    for candidate in own:
        while second < len(others) and others[second].relevance > candidate.relevance:
            yield others[second]
            second += 1
        yield candidate
    yield from others[second:]


def wordings(query: str, also: Iterable[str]) -> list[str]:
    """Return a query and its other wordings, each once, at most `MOST_WORDINGS`."""
    texts = (" ".join(text.split()) for text in also)
    return [query, *(text for text in dict.fromkeys(texts) if text and text != query)][:MOST_WORDINGS]


def fused_rankings(
    rankings: Sequence[Sequence[T]], key: Callable[[T], Hashable], agreement: float = SAME_SUBJECT
) -> list[T]:
    """Return what several rankings found as one, by reciprocal rank: what several have, or one has first, leads.

    Scores of two wordings cannot be compared, their places can.

    Args:
        key: What makes two entries the same; the one that is placed best is kept.
        agreement: See `SAME_SUBJECT`.
    """
    if len(rankings) == 1:
        return list(rankings[0])
    points: defaultdict[Hashable, float] = defaultdict(float)
    best: dict[Hashable, tuple[int, T]] = {}
    for ranking in rankings:
        for place, one in enumerate(ranking):
            name = key(one)
            points[name] += 1 / (agreement + place)
            if name not in best or place < best[name][0]:
                best[name] = place, one
    return [best[name][1] for name in sorted(points, key=lambda name: -points[name])]


def first_of_each_text(ranked: Iterable[C]) -> list[C]:
    """Return ranked candidates without those that repeat the text of a better one."""
    found: dict[str, C] = {}
    for one in ranked:
        found.setdefault(" ".join(one.text.casefold().split()), one)
    return list(found.values())


def covering_each_turn_once(ranked: Iterable[C], told: Iterable[tuple[str, int]]) -> list[C]:
    """Return ranked candidates of several turns without those that cover a turn of a better one, or one told anyway."""
    covered = set(told)
    kept: list[C] = []
    for one in ranked:
        turns = {(one.conversation_id, turn) for turn in range(one.turn_index, one.last_turn + 1)}
        if covered.isdisjoint(turns):
            kept.append(one)
            covered |= turns
    return kept
