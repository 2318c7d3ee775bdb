"""One search over everything that is known: code, text files, turns, summaries and topics.

Used by the agent's brain_search and by the command line. What may be seen of past conversations follows the same rules
as in search_history: the reach of the calling turn.

Scores of two searches cannot be compared, so code keeps the order of its own search, and all hits are merged by what
every text has: the share of the question's rarer words it holds, and the similarity of the vectors. A question about
the past prefers turns and summaries; any other prefers code. Measurements: benchmarks/CODE_SEARCH.md.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from ragforge_tui.code import search
from ragforge_tui.code.query_words import query_words, stem_set, word_stems
from ragforge_tui.graph import Store
from ragforge_tui.graph.store.search import Matcher, excerpt
from ragforge_tui.memory.retrieval.candidates import Candidate, SummaryCandidate
from ragforge_tui.memory.retrieval.question import PAST_WORDS, Question, Questions, Vector, Vectors, asks_for_past
from ragforge_tui.memory.retrieval.ranking import fused_rankings, rank, wordings
from ragforge_tui.memory.retrieval.reach import Reach, reach_of
from ragforge_tui.memory.retrieval.recipes import BRAIN
from ragforge_tui.shared.code_records import BrainHit, Scope, ScopeHit
from ragforge_tui.shared.records import Topic
from ragforge_tui.shared.sanitize import plain_text

MOST_TOPICS = 500
TEXT_CHARS = 4_000
"""Characters of a scope that count for its relevance."""

_WORD = re.compile(r"[^\W_]+")


class HitCandidate(Candidate, kw_only=True):
    """Candidate with the hit that is shown for it."""

    hit: BrainHit


class Brain:
    """Search over code, text files, turns, summaries and topics."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    async def search(self, query: str, *, also: Sequence[str] = (), limit: int = 10) -> list[BrainHit]:
        """Return hits of all kinds, best first. What the calling turn's requests hold already is left out.

        Args:
            also: Other wordings of the query.
        """
        store = await self._questions.claimed_store()
        reach = await reach_of(self._questions, store)
        rankings = await asyncio.gather(*(self._search(store, reach, one) for one in wordings(query, also)))
        return fused_rankings(rankings, _place)[:limit]

    async def _search(self, store: Store, reach: Reach, query: str) -> list[BrainHit]:
        """Return the hits of one wording, best first."""
        question = await self._questions.ask(query)
        scopes, (mine, others), summaries, topics = await asyncio.gather(
            self._scopes(store, question),
            reach.turns(store, question, BRAIN),
            reach.summaries(store, question, BRAIN),
            self._topics(store, query, reach),
        )
        return await asyncio.to_thread(_ranked, question, scopes, [*mine, *others], summaries, topics)

    async def _scopes(self, store: Store, question: Question) -> list[ScopeHit]:
        async def known(texts: Sequence[str]) -> Vectors | None:
            if question.vector is None:
                return None
            # The first text is the question.
            rest = await self._questions.vectors(texts[1:]) if texts[1:] else None
            return question.vector[None] if rest is None else np.concatenate([question.vector[None], rest])

        return await search.search(store, self._questions.workspace, question.text, known, limit=BRAIN.scopes.limit)

    async def _topics(self, store: Store, query: str, reach: Reach) -> list[Topic]:
        found: list[Topic] = []
        if reach.conversation_id:
            found += await store.topics.search(limit=MOST_TOPICS, conversation_id=reach.conversation_id)
        if reach.others is not None:
            found += await store.topics.search(limit=MOST_TOPICS, workspace=self._questions.scope)
        different = {topic.uuid: topic for topic in found}.values()
        stems = {stem for word in query_words(query) for stem in word_stems(word)}
        return [topic for topic in different if not stems.isdisjoint(word_stems(topic.name))]


def _ranked(
    question: Question,
    scopes: Sequence[ScopeHit],
    turns: Sequence[Candidate],
    summaries: Sequence[SummaryCandidate],
    topics: Sequence[Topic],
) -> list[BrainHit]:
    names = search.parse(question.text).names
    words = Matcher(list(question.words) or [question.text])
    code = [_of_scope(hit, words, names) for hit in scopes]
    said = [
        *(_of_turn(turn, words) for turn in turns),
        *(_of_summary(summary, words) for summary in summaries),
        *(_of_topic(topic, words) for topic in topics),
    ]
    return merged(question, code, said)


def subject_words(query: str) -> list[str]:
    """Return the stems of a question's subject, without words that only refer to the past."""
    words = [word for word in _WORD.findall(query) if word.casefold() not in PAST_WORDS]
    return list(dict.fromkeys(stem for word in query_words(" ".join(words) or query) for stem in word_stems(word)))


def merged(question: Question, code: Sequence[HitCandidate], said: Sequence[HitCandidate]) -> list[BrainHit]:
    """Return the hits of a ranking of code, which keeps its order, and unordered ones of other kinds, best first."""
    candidates = [*code, *said]
    stems = [stem_set(one.searched) for one in candidates]
    rarities = search.rarities_among(subject_words(question.text), stems)
    past = asks_for_past(question.text)
    for one, present in zip(candidates, stems, strict=True):
        if one.matched < 0:
            one.matched = sum(rarity for word, rarity in rarities.items() if word in present)
        told = one.hit.kind in ("turn", "summary", "topic")
        one.views = {one.hit.kind: 1.0, "preferred": float(told == past)}
    rank(msgspec.structs.replace(question, rarities=rarities), candidates, BRAIN.merged, 1.0)
    # A weak hit of code does not hold back those ranked after it. The sort is stable, so that code keeps its order.
    best = -math.inf
    for one in reversed(code):
        one.score = best = max(best, one.score)
    hits = [msgspec.structs.replace(one.hit, score=one.score) for one in candidates]
    return sorted(hits, key=lambda hit: -hit.score)


def _place(hit: BrainHit) -> tuple[str, ...]:
    """Return what makes two hits the same."""
    if hit.scope:
        return (hit.scope,)
    return hit.kind, hit.conversation_id, str(hit.turn_index), str(hit.end_turn_index), hit.title


def _candidate(
    words: Matcher, shown: str, searched: str, *, matched: float = -1.0, vector: Vector | None = None, **fields: Any
) -> HitCandidate:
    """Return a candidate with the part of a text that is shown of it.

    Args:
        searched: Text whose words count.
        fields: Of the hit.
    """
    snippet, highlights = excerpt(shown, words)
    hit = BrainHit(snippet=snippet, highlights=highlights, **fields)
    return HitCandidate(text=snippet, searched=searched, matched=matched, vector=vector, hit=hit)


def _of_scope(found: ScopeHit, words: Matcher, names: Sequence[str]) -> HitCandidate:
    scope = found.scope
    candidate = _candidate(
        words,
        _told(scope, words),
        f"{scope.qualified_name} {scope.file}\n{scope.signature}\n{scope.doc}\n{scope.text[:TEXT_CHARS]}",
        matched=1.0 if scope.name in names or scope.qualified_name in names else -1.0,
        kind="section" if scope.kind == "section" else "code",
        title=scope.qualified_name or scope.name,
        file=scope.file,
        scope=scope.uuid,
        start_line=scope.start_line,
        end_line=scope.end_line,
    )
    candidate.cosine = found.meaning
    return candidate


def _told(scope: Scope, words: Matcher) -> str:
    """Return the part of a scope that a snippet is cut from: declaration and documentation, or text with the words."""
    head = "\n".join(part for part in (scope.signature, scope.doc) if part)
    return head if head and words.count(head) >= words.count(scope.text) else scope.text or head


def _of_turn(turn: Candidate, words: Matcher) -> HitCandidate:
    return _candidate(
        words,
        turn.text,
        turn.searched,
        vector=turn.vector,
        kind="turn",
        title=plain_text(turn.title) or "untitled",
        conversation_id=turn.conversation_id,
        turn_index=turn.turn_index,
        date=turn.date,
    )


def _of_summary(one: SummaryCandidate, words: Matcher) -> HitCandidate:
    summary = one.summary
    text = f"{summary.title}\n{one.text}"
    return _candidate(
        words,
        text,
        text,
        vector=one.vector,
        kind="summary",
        title=plain_text(summary.title or one.title) or "untitled",
        conversation_id=summary.conversation_id,
        turn_index=summary.start_turn_index,
        end_turn_index=summary.end_turn_index,
        date=summary.created_at,
    )


def _of_topic(topic: Topic, words: Matcher) -> HitCandidate:
    searched = "\n".join([topic.name, *topic.aliases, topic.description])
    return _candidate(words, topic.description or topic.name, searched, kind="topic", title=plain_text(topic.name))
