"""Candidates from other conversations: fetched from the graph, ranked, and merged with those of this one.

Used by `Recall`. Scores of two conversations cannot be compared, since each is relative to its own turns. So each side
is ranked by itself, and the two rankings are merged by the relevance of their turns, which both share.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np

from ragforge_tui.graph import Store
from ragforge_tui.graph.store.other_conversations import Others, OtherTurn
from ragforge_tui.memory.recall import scoring, terms
from ragforge_tui.memory.recall.keys import RESULTS_MARK, shown
from ragforge_tui.memory.recall.packing import Candidate
from ragforge_tui.memory.recall.query import Question, Vector
from ragforge_tui.memory.recall.summaries import RatedSummary
from ragforge_tui.settings.schema import RecallSettings

CANDIDATES = 20
"""Turns requested from each index; more are read in vain (see benchmarks/RECALL.md)."""
TRIED = 60
"""Turns of other conversations considered for packing."""


class Fetched(msgspec.Struct):
    """Candidate of another conversation with its vector."""

    candidate: Candidate
    vector: Vector | None


async def turns_of_others(
    store: Store,
    question: Question,
    settings: RecallSettings,
    others: Others,
    *,
    least: float = scoring.RELEVANT,
    candidates: int = CANDIDATES,
) -> list[Fetched]:
    """Return turns of other conversations relevant to a question, best first.

    Args:
        least: Relevance from which a turn counts.
        candidates: Turns requested from each index.
    """
    found = await store.other_conversations.turns(
        others, question.rarest, question.vector, question.model, limit=candidates
    )
    return rank(found, question, settings.min_score, least)


def rank(
    found: Sequence[OtherTurn], question: Question, similar: float, least: float = scoring.RELEVANT
) -> list[Fetched]:
    """Return the relevant turns best first, by the sum of the z-scores of words and vectors.

    Unlike the turns of this conversation, those of others are not context by default: each must be relevant itself.
    """
    if not found:
        return []
    everything = np.ones(len(found), bool)
    words = np.array([turn.words for turn in found], np.float32)
    cosines = np.array([cosine(question.vector, turn.vector) or 0.0 for turn in found], np.float32)
    views: list[tuple[float, scoring.View]] = [(1.0, (words, everything))]
    if question.vector is not None:
        views.append((1.0, (cosines, np.array([turn.vector is not None for turn in found]))))
    scores = scoring.fused(views, everything)
    fetched: list[Fetched] = []
    for row in np.argsort(-scores, kind="stable"):
        turn = found[row]
        matched = terms.matched(question.rarities, turn.text)
        near = cosine(question.vector, turn.vector)
        relevance = scoring.relevance(matched, near, similar, in_context=bool(question.context))
        if relevance < least:
            continue
        candidate = Candidate(
            conversation_id=turn.conversation_id,
            title=turn.title,
            turn_index=turn.turn_index,
            date=turn.date,
            text=shown(turn.text),
            said=RESULTS_MARK in turn.text,
            score=float(scores[row]),
            relevance=relevance,
            own=False,
        )
        fetched.append(Fetched(candidate, turn.vector))
    return fetched[:TRIED]


async def summaries_of_others(store: Store, question: Question, others: Others) -> list[RatedSummary]:
    """Return summaries of other conversations that have its rarer words or are nearest to it in meaning."""
    found = await store.other_conversations.summaries(others, question.rarest, question.vector, question.model)
    return [
        RatedSummary(
            summary=other.summary,
            title=other.title,
            ended=other.ended,
            cosine=cosine(question.vector, other.vector),
            own=False,
        )
        for other in found
    ]


def cosine(a: Vector | None, b: Vector | None) -> float | None:
    """Return the cosine of two unit vectors, None if one is unknown."""
    return None if a is None or b is None or len(a) != len(b) else float(a @ b)


def merged(own: Iterable[Candidate], others: Sequence[Candidate]) -> Iterator[Candidate]:
    """Merge two rankings: the more relevant of the two next candidates comes first; this conversation wins ties."""
    second = 0
    for candidate in own:
        while second < len(others) and others[second].relevance > candidate.relevance:
            yield others[second]
            second += 1
        yield candidate
    yield from others[second:]
