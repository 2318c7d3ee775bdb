"""Candidates from other conversations: fetched from the graph, ranked, and merged with those of this one.

Used by `Recall`. Scores of two conversations cannot be compared, since each is relative to its own turns. So each side
is ranked by itself, and the two rankings are merged by a simple measure that both share: the share of the question's
words in a turn, plus the cosine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

import msgspec
import numpy as np

from ragforge_tui.graph import Store
from ragforge_tui.graph.store.other_conversations import Others, OtherSummary, OtherTurn
from ragforge_tui.memory.language import language_of
from ragforge_tui.memory.recall import scoring, terms
from ragforge_tui.memory.recall.packing import Candidate, RecalledSummary
from ragforge_tui.memory.recall.query import Question, Vector
from ragforge_tui.settings.schema import RecallSettings

Ranges = Mapping[str, Sequence[tuple[int, int]]]

CANDIDATES = 50
"""Turns requested from each index."""
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
    turns: Ranges | None = None,
) -> list[Fetched]:
    """Return turns of other conversations relevant to a question, best first.

    A turn that shares no word with the question and is not similar either is irrelevant: unlike the turns of this
    conversation, those of others are not context by default.
    """
    if not question.words:
        return []
    # The few turns of a topic may share only a common word with the question.
    words = question.words if turns is not None else question.rarest
    found = await store.other_conversations.turns(
        others, words, question.vector, question.model, limit=CANDIDATES, turns=turns
    )
    return rank(found, question, settings.min_score)


def rank(found: Sequence[OtherTurn], question: Question, min_score: float) -> list[Fetched]:
    """Return the turns best first, by the sum of the z-scores of words and vectors."""
    if not found:
        return []
    everything = np.ones(len(found), bool)
    words = np.array([turn.words for turn in found], np.float32)
    cosines = np.array([cosine(question.vector, turn.vector) for turn in found], np.float32)
    views: list[tuple[float, scoring.View]] = [(1.0, (words, everything))]
    if question.vector is not None:
        views.append((1.0, (cosines, np.array([turn.vector is not None for turn in found]))))
    scores = scoring.fused(views, everything)
    order = np.argsort(-scores, kind="stable")
    return [
        Fetched(
            Candidate(
                conversation_id=turn.conversation_id,
                title=turn.title,
                turn_index=turn.turn_index,
                date=turn.date,
                text=turn.text,
                score=float(scores[row]),
                own=False,
            ),
            turn.vector,
        )
        for row in order
        for turn in [found[row]]
        if turn.words > 0 or cosines[row] >= min_score
    ][:TRIED]


async def summaries_of_others(
    store: Store,
    question: Question,
    settings: RecallSettings,
    others: Others,
) -> list[RecalledSummary]:
    """Return summaries of other conversations that are similar enough, best first."""
    if not question.words or not settings.max_summaries:
        return []
    found = await store.other_conversations.summaries(others, question.words, question.vector, question.model)
    return [hit for summary in found if (hit := _summary(summary, question, settings)) is not None]


def _summary(found: OtherSummary, question: Question, settings: RecallSettings) -> RecalledSummary | None:
    if question.vector is not None and found.vector is not None:
        similarity = cosine(question.vector, found.vector)
    else:
        text = f"{found.summary.conversation_summary}\n{found.summary.actions_summary}"
        similarity = terms.share(question.words, text, language_of(text))
    if similarity < settings.min_score:
        return None
    score = summary_score(similarity, found.summary.level, found.ended, settings)
    return RecalledSummary(summary=found.summary, title=found.title, score=score, own=False)


def summary_score(similarity: float, level: int, ended: datetime, settings: RecallSettings) -> float:
    """Return similarity times the factors of level and age, by which summaries are ranked among themselves."""
    age = (datetime.now(UTC) - ended).total_seconds() / 86_400
    factor = scoring.level_factor(level, settings.level_boost)
    return similarity * factor * scoring.recency(age, settings.recency_boost, settings.recency_decay_days)


def cosine(a: Vector | None, b: Vector | None) -> float:
    """Return the cosine of two unit vectors, 0 if one is unknown."""
    return 0.0 if a is None or b is None or len(a) != len(b) else float(a @ b)


def typical(question: Vector | None, vectors: Iterable[Vector | None]) -> float | None:
    """Return the mean cosine of a question with the known ones of several vectors; None when none is known."""
    known = [cosine(question, vector) for vector in vectors if vector is not None]
    return sum(known) / len(known) if question is not None and known else None


def merged(
    own: Iterable[Candidate], others: Sequence[Candidate], measure: Callable[[Candidate], float]
) -> Iterator[Candidate]:
    """Merge two rankings: the better of the two next candidates comes first; this conversation wins ties."""
    second = 0
    theirs = measure(others[0]) if others else 0.0
    for candidate in own:
        mine = measure(candidate) if second < len(others) else None
        while mine is not None and second < len(others) and theirs > mine:
            yield others[second]
            second += 1
            theirs = measure(others[second]) if second < len(others) else 0.0
        yield candidate
    yield from others[second:]
