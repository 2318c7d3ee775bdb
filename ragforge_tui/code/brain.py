"""One search over everything that is known: code, text files, turns, summaries and topics.

Used by the agent's brain_search and by the command line. What may be seen of past conversations follows the same rules
as in search_history: the calling conversation with the turns it shares, in addition those that `recall.scope` allows;
private and deleted ones are found from nowhere else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from ragforge_tui.code import search
from ragforge_tui.code.brain_ranking import Candidate, merged
from ragforge_tui.code.query_words import query_words, word_stems
from ragforge_tui.graph import Store
from ragforge_tui.graph.store.other_conversations import Others, OtherSummary, OtherTurn
from ragforge_tui.graph.store.search import Matcher, excerpt
from ragforge_tui.graph.store.search import Scope as Visible
from ragforge_tui.llm.embeddings import Embedder
from ragforge_tui.memory.history_source import calling_turn, lineage
from ragforge_tui.memory.language import language_of
from ragforge_tui.memory.recall.keys import shown
from ragforge_tui.memory.recall.terms import content_words
from ragforge_tui.settings.schema import RecallSettings
from ragforge_tui.shared.code_records import BrainHit, Scope, ScopeHit
from ragforge_tui.shared.errors import ModelError
from ragforge_tui.shared.records import Topic
from ragforge_tui.shared.sanitize import plain_text

Vector = npt.NDArray[np.float32]

SCOPES = 30
TURNS = 30
SUMMARIES = 10
"""Hits of each kind that are ranked against each other."""
MOST_TOPICS = 500
TEXT_CHARS = 4_000
"""Characters of a scope that count for its relevance."""


class _Asked(msgspec.Struct, frozen=True):
    """Question with its content words and vector; `model` made the vector."""

    query: str
    words: list[str]
    vector: Vector | None
    model: str

    @property
    def matcher(self) -> Matcher:
        return Matcher(self.words or [self.query])


class _Found(msgspec.Struct, frozen=True):
    """Hits of all kinds, before they are ranked against each other."""

    scopes: list[ScopeHit]
    turns: list[OtherTurn]
    summaries: list[OtherSummary]
    topics: list[Topic]


class Brain:
    """Search over code, text files, turns, summaries and topics.

    Args:
        store: Returns the store, waiting while the graph starts.
        embedder: None to search by words alone.
        workspace: Folder whose code is searched, and conversations in the scope ``workspace``.
    """

    def __init__(
        self,
        store: Callable[[], Awaitable[Store]],
        embedder: Embedder | None,
        settings: RecallSettings,
        workspace: str,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._settings = settings
        self._workspace = workspace

    async def search(self, query: str, *, limit: int = 10) -> list[BrainHit]:
        """Return hits of all kinds, best first. What the calling turn's requests hold already is left out."""
        store = await self._store()
        caller = calling_turn()
        own = await lineage(store, caller.conversation_id)
        asked = _Asked(query, content_words(query, language_of(query)), await self._vector(query), self._model)
        scopes, turns, summaries, others, topics = await asyncio.gather(
            self._scopes(store, asked),
            _own_turns(store, asked, own, {caller.turn_index, *caller.held}),
            _own_summaries(store, caller.conversation_id),
            self._others(store, asked, own),
            self._topics(store, asked, caller.conversation_id),
        )
        found = _Found(scopes, [*turns, *others[0]], [*summaries, *others[1]], topics)
        return await asyncio.to_thread(_ranked, asked, found, limit)

    @property
    def _model(self) -> str:
        return self._embedder.name if self._embedder else ""

    @property
    def _scope(self) -> str | None:
        """Workspace other conversations must belong to, None for any."""
        return self._workspace if self._settings.scope == "workspace" else None

    async def _vector(self, query: str) -> Vector | None:
        if self._embedder is None:
            return None
        try:
            vector: Vector = (await self._embedder.embed([query]))[0]
        except ModelError:
            # Words alone still find most; the indexer, which embeds in the background, reports the failure.
            return None
        return vector

    async def _scopes(self, store: Store, asked: _Asked) -> list[ScopeHit]:
        async def known(texts: Sequence[str]) -> Vector | None:
            if self._embedder is None or asked.vector is None:
                return None
            try:
                # The first text is the question.
                return np.concatenate([asked.vector[None], await self._embedder.embed(texts[1:])])
            except ModelError:
                return asked.vector[None]

        return await search.search(store, self._workspace, asked.query, known, limit=SCOPES)

    async def _others(
        self, store: Store, asked: _Asked, own: Collection[str]
    ) -> tuple[list[OtherTurn], list[OtherSummary]]:
        if self._settings.scope == "none":
            return [], []
        others = await store.other_conversations.scope(list(own), self._scope)
        return await asyncio.gather(
            store.other_conversations.turns(others, asked.words, asked.vector, asked.model, limit=TURNS),
            store.other_conversations.summaries(others, asked.words, asked.vector, asked.model, limit=SUMMARIES),
        )

    async def _topics(self, store: Store, asked: _Asked, conversation_id: str) -> list[Topic]:
        found: list[Topic] = []
        if conversation_id:
            found += await store.topics.search(limit=MOST_TOPICS, conversation_id=conversation_id)
        if self._settings.scope != "none":
            found += await store.topics.search(limit=MOST_TOPICS, workspace=self._scope)
        different = {topic.uuid: topic for topic in found}.values()
        stems = {stem for word in query_words(asked.query) for stem in word_stems(word)}
        return [topic for topic in different if not stems.isdisjoint(word_stems(topic.name))]


async def _own_turns(store: Store, asked: _Asked, own: Mapping[str, int], seen: Collection[int]) -> list[OtherTurn]:
    """Return turns of the calling conversation and those it shares with its ancestors."""
    if not own:
        return []
    ranges = {uuid: [(1, last)] for uuid, last in own.items()}
    scope = Others(Visible(list(own), []), None, 1.0)
    turns = await store.other_conversations.turns(
        scope, asked.words, asked.vector, asked.model, limit=TURNS, turns=ranges
    )
    return [turn for turn in turns if turn.turn_index not in seen]


async def _own_summaries(store: Store, conversation_id: str) -> list[OtherSummary]:
    found = await store.summaries.of(conversation_id) if conversation_id else []
    return [OtherSummary(summary=summary, title="", ended=summary.created_at, vector=None) for summary in found]


def _ranked(asked: _Asked, found: _Found, limit: int) -> list[BrainHit]:
    names = search.parse(asked.query).names
    code = [_of_scope(hit, asked, names) for hit in found.scopes]
    said = [
        *(_of_turn(turn, asked) for turn in found.turns),
        *(_of_summary(summary, asked) for summary in found.summaries),
        *(_of_topic(topic, asked) for topic in found.topics),
    ]
    return merged(asked.query, code, said, limit)


def _of_scope(hit: ScopeHit, asked: _Asked, names: Sequence[str]) -> Candidate:
    scope = hit.scope
    text = f"{scope.qualified_name} {scope.file}\n{scope.signature}\n{scope.doc}\n{scope.text[:TEXT_CHARS]}"
    snippet, highlights = excerpt(_told(scope, asked), asked.matcher)
    found = BrainHit(
        kind="section" if scope.kind == "section" else "code",
        title=scope.qualified_name or scope.name,
        file=scope.file,
        scope=scope.uuid,
        start_line=scope.start_line,
        end_line=scope.end_line,
        snippet=snippet,
        highlights=highlights,
    )
    named = scope.name in names or scope.qualified_name in names
    return Candidate(found, text, hit.meaning, named)


def _told(scope: Scope, asked: _Asked) -> str:
    """Return the part of a scope that a snippet is cut from: declaration and documentation, or text with the words."""
    head = "\n".join(part for part in (scope.signature, scope.doc) if part)
    return head if head and asked.matcher.count(head) >= asked.matcher.count(scope.text) else scope.text or head


def _of_turn(turn: OtherTurn, asked: _Asked) -> Candidate:
    snippet, highlights = excerpt(shown(turn.text), asked.matcher)
    found = BrainHit(
        kind="turn",
        title=plain_text(turn.title) or "untitled",
        conversation_id=turn.conversation_id,
        turn_index=turn.turn_index,
        date=turn.date,
        snippet=snippet,
        highlights=highlights,
    )
    return Candidate(found, turn.text, _cosine(asked.vector, turn.vector))


def _of_summary(other: OtherSummary, asked: _Asked) -> Candidate:
    summary = other.summary
    findings = [finding.text for finding in summary.key_findings]
    text = "\n".join([summary.title, summary.conversation_summary, summary.actions_summary, *findings])
    snippet, highlights = excerpt(text, asked.matcher)
    found = BrainHit(
        kind="summary",
        title=plain_text(summary.title or other.title) or "untitled",
        conversation_id=summary.conversation_id,
        turn_index=summary.start_turn_index,
        end_turn_index=summary.end_turn_index,
        date=summary.created_at,
        snippet=snippet,
        highlights=highlights,
    )
    return Candidate(found, text, _cosine(asked.vector, other.vector))


def _of_topic(topic: Topic, asked: _Asked) -> Candidate:
    text = "\n".join([topic.name, *topic.aliases, topic.description])
    snippet, highlights = excerpt(topic.description or topic.name, asked.matcher)
    found = BrainHit(kind="topic", title=plain_text(topic.name), snippet=snippet, highlights=highlights)
    return Candidate(found, text)


def _cosine(first: Vector | None, second: Vector | None) -> float | None:
    return None if first is None or second is None or len(first) != len(second) else float(first @ second)
