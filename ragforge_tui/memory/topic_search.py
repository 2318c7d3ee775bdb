"""Search for topics by words and by meaning, and the turns about one.

Used by `topics`, by searches limited to a topic and by the memory tools. Without an embedding model, or while it is too
slow, topics are found by their words.
"""

from __future__ import annotations

from typing import TypedDict

import msgspec

from ragforge_tui.graph.store.topics import Near
from ragforge_tui.memory.retrieval.question import Questions
from ragforge_tui.memory.retrieval.recipes import DESCRIBED_FLOOR, NAMED_FLOOR
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.records import Topic

SIMILAR_TOPICS = 3
"""Topics that a limit by meaning may name: one subject often has several names."""

Ranges = dict[str, list[tuple[int, int]]]
"""Turns by conversation, both ends included."""


class _Scope(TypedDict):
    workspace: str | None
    conversation_id: str


class TopicTurns(msgspec.Struct, frozen=True, kw_only=True):
    """Turns about a topic.

    Attributes:
        topics: The topic of that name, or else the topics most similar to it.
        exact: Whether there is a topic of that name.
        ranges: Ranges of turns, inclusive, by conversation.
    """

    topics: list[Topic]
    exact: bool
    ranges: Ranges

    def note(self, ref: str) -> str:
        """Return a sentence on the topics used in place of the named one; empty if it exists."""
        return "" if self.exact else f"No topic is named {ref!r}; limited to {', '.join(t.name for t in self.topics)}."


class TopicSearch:
    """Search over the topics of one graph."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    async def find(
        self, query: str = "", *, limit: int = 50, workspace: str | None = None, conversation_id: str = ""
    ) -> list[Topic]:
        """Return topics as `Store.topics.search` orders them: those found by words first, then those by meaning."""
        store = await self._questions.claimed_store()
        near = await self._near(query)
        return await store.topics.search(
            query, near=near, limit=limit, workspace=workspace, conversation_id=conversation_id
        )

    async def turns(self, ref: str, *, workspace: str | None = None, conversation_id: str = "") -> TopicTurns:
        """Return the turns about the topic with this id or name; if there is none, about the most similar topics.

        Raises:
            NotFoundError: No conversation in scope has such a topic.
        """
        store = await self._questions.store()
        scope: _Scope = {"workspace": workspace, "conversation_id": conversation_id}
        exact = True
        try:
            topics = [await store.topics.get(ref, **scope)]
        except NotFoundError:
            exact = False
            topics = await self.find(ref, limit=SIMILAR_TOPICS, **scope)
            if not topics:
                raise
        ranges: dict[str, set[tuple[int, int]]] = {}
        for topic in topics:
            for uuid, spans in (await store.topics.turns(topic.uuid, **scope)).items():
                ranges.setdefault(uuid, set()).update(spans)
        return TopicTurns(topics=topics, exact=exact, ranges={uuid: sorted(spans) for uuid, spans in ranges.items()})

    async def _near(self, query: str) -> Near | None:
        if not query.strip():
            return None
        question = await self._questions.ask(query)
        if question.vector is None:
            return None
        return Near(
            vector=question.vector,
            model=question.model,
            described=DESCRIBED_FLOOR * self._questions.settings.min_score,
            named=NAMED_FLOOR * self._questions.settings.min_score,
        )
