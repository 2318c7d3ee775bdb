"""Recall candidates from other conversations, by words and by meaning, limited to conversations inside the query.

Full-text and vector indexes give candidates; the caller ranks them by their texts and exact vectors. Private and
deleted conversations are never found.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import msgspec
import numpy as np
import numpy.typing as npt

from ragforge_tui.graph.connection import Graph
from ragforge_tui.graph.labels import own_node
from ragforge_tui.graph.schema.indexes import MESSAGE_LEX, MESSAGE_TEXT, SUMMARY_TEXT
from ragforge_tui.graph.store.search import Match, Scope, Search, matches
from ragforge_tui.graph.store.summaries import SUMMARY, summary_from
from ragforge_tui.graph.values import moment, vector_bytes
from ragforge_tui.shared.records import Conversation, Summary

EXACT_VECTORS = 3_000
"""Nodes in scope up to which all may be compared."""
MOST_COMMON_SHARE = 0.25
"""Share of all messages from which a scope is checked behind the full-text index instead of being searched for with
the words: the index reads a list of all turns of a conversation that is named to it."""
COUNT_SECONDS = 60.0
"""Longest time for which a count of all messages is used to estimate the share of those in scope."""
_DEEPEST = 4_000
"""Maximum number of neighbours requested from a vector index until enough are in scope."""
_EVERYWHERE = Scope(None, [])

Ranges = Mapping[str, Sequence[tuple[int, int]]]


class OtherTurn(msgspec.Struct, kw_only=True):
    """A turn of another conversation that may matter.

    Attributes:
        date: When its sitting began.
        words: What the full-text indexes gave it, 0 when they did not find it.
    """

    conversation_id: str
    title: str
    turn_index: int
    date: datetime
    text: str
    words: float
    vector: npt.NDArray[np.float32] | None


class OtherSummary(msgspec.Struct, kw_only=True):
    """A summary of another conversation that may be relevant. `ended` is the start time of its last turn."""

    summary: Summary
    title: str
    ended: datetime
    vector: npt.NDArray[np.float32] | None


class Others(msgspec.Struct, frozen=True):
    """Conversations that may be recalled from.

    Attributes:
        turns: Their total number of turns; None if not counted.
        share: Theirs of all messages of the graph, above 0 and at most 1.
    """

    scope: Scope
    turns: int | None
    share: float

    @property
    def empty(self) -> bool:
        return self.scope.named is not None and not self.scope.named

    def depth(self, limit: int) -> int:
        """Return how many results to request from the whole graph so that `limit` of them are likely in scope."""
        return min(int(2 * limit / self.share), _DEEPEST)


class OtherConversations:
    """Turns and summaries of conversations other than the open one."""

    def __init__(self, graph: Graph, search: Search) -> None:
        self._graph = graph
        self._search = search
        self._messages = 0
        self._counted = -math.inf

    async def scope(self, own: Sequence[str], workspace: str | None) -> Others:
        """Return the conversations that may be recalled from.

        Args:
            own: Conversations that do not count as others.
            workspace: Only conversations of this folder; None: all.
        """
        hidden = "(c.status = 'deleted' OR coalesce(c.private, false) = true OR c.uuid IN $own)"
        which = f"{own_node('c', 'Conversation')} WHERE {hidden}"
        if workspace is not None:
            which = f"{own_node('c', 'Conversation', 'workspace: $workspace')} WHERE NOT {hidden}"
        rows, everything = await asyncio.gather(
            self._graph.rows(
                f"MATCH {which} RETURN c.uuid AS uuid, c.next_turn - 1 AS turns, "
                "coalesce(c.branch_turn, 0) AS shared, c.message_count AS messages",
                workspace=workspace,
                own=list(own),
            ),
            self._count_messages(),
        )
        uuids = [row["uuid"] for row in rows]
        share = sum(_own_messages(row["turns"], row["shared"], row["messages"]) for row in rows) / max(everything, 1)
        if workspace is None:
            return Others(Scope(None, uuids), None, _share(1 - share))
        return Others(Scope(uuids, []), sum(row["turns"] - row["shared"] for row in rows), _share(share))

    async def among(self, conversations: Sequence[Conversation]) -> Others:
        """Return these conversations as the ones that may be recalled from, whoever asks."""
        shared = [(one.next_turn - 1, one.branch_turn or 0, one.message_count) for one in conversations]
        messages = sum(_own_messages(*sizes) for sizes in shared)
        return Others(
            Scope([one.uuid for one in conversations], []),
            sum(turns - first for turns, first, _ in shared),
            _share(messages / max(await self._count_messages(), 1)),
        )

    async def turns(
        self,
        others: Others,
        words: Sequence[str],
        vector: npt.NDArray[np.float32] | None,
        model: str,
        *,
        limit: int = 50,
        turns: Ranges | None = None,
        keyless: bool = False,
    ) -> list[OtherTurn]:
        """Return turns of other conversations by words or meaning, at most `limit` for each, unordered.

        Args:
            vector: The question's; None to go by words alone.
            model: What `vector` was made by; vectors of other models are not compared.
            turns: Only these: by conversation, ranges of turns with both ends included.
            keyless: Search by the turns' own texts too, which are stored before their keys.
        """
        if turns is not None:
            scope = Scope([uuid for uuid in turns if others.scope.allows(uuid)], [])
            others = msgspec.structs.replace(others, scope=scope)
        if others.empty:
            return []

        wanted = None if turns is None else _within(turns)
        indexes = [*MESSAGE_LEX.values(), *([MESSAGE_TEXT] if keyless else [])] if words else []
        legs = [self._worded(words, props, others, limit, wanted) for props in indexes]
        if vector is not None:
            legs.append(self._nearest("Message", vector, model, others, limit, wanted))
        found = await asyncio.gather(*legs)
        scores: dict[str, float] = {}
        for rows in found[: len(indexes)]:
            for row in rows:
                scores[row.uuid] = max(scores.get(row.uuid, 0.0), row.score)
        return await self._read_turns([row.uuid for rows in found for row in rows], scores, model)

    async def summaries(
        self,
        others: Others,
        words: Sequence[str],
        vector: npt.NDArray[np.float32] | None,
        model: str,
        *,
        limit: int = 20,
    ) -> list[OtherSummary]:
        """Return summaries of other conversations by words or meaning, at most `limit` for each, unordered."""
        if others.empty:
            return []
        legs = [self._worded(words, SUMMARY_TEXT, others, limit, label="Summary")] if words else []
        if vector is not None:
            legs.append(self._nearest("Summary", vector, model, others, limit))
        found = {row.uuid: row for rows in await asyncio.gather(*legs) for row in rows}
        return await self._read_summaries(list(found.values()), model)

    async def _worded(
        self,
        words: Sequence[str],
        props: Sequence[str],
        others: Others,
        limit: int,
        wanted: Callable[[Match], bool] | None = None,
        *,
        label: str = "Message",
    ) -> list[Match]:
        """Return the nodes in scope with most of the words.

        Few turns that are wanted could be out of reach behind all others that match: they are searched in their scope.
        """
        if wanted is not None or others.share < MOST_COMMON_SHARE:
            return await self._search.matches(words, others.scope, props, limit, wanted, label=label)
        depth, allows = others.depth(limit), others.scope.allows
        return await self._search.matches(
            words, _EVERYWHERE, props, limit, lambda row: allows(row.id), label=label, depth=depth
        )

    async def _nearest(
        self,
        label: str,
        vector: npt.NDArray[np.float32],
        model: str,
        others: Others,
        limit: int,
        wanted: Callable[[Match], bool] | None = None,
    ) -> list[Match]:
        """Return the nodes in scope nearest to a vector.

        Comparing one node takes about as long as one more neighbour from the index. So all are compared when they are
        fewer than the neighbours the index would have to give, and when only some of their turns are wanted.
        """
        scope, depth = others.scope, others.depth(limit)
        turns = EXACT_VECTORS + 1 if others.turns is None else others.turns
        if scope.named is not None and turns <= (depth if wanted is None else EXACT_VECTORS):
            # What may be left out afterwards must not have taken others' places.
            rows = await self._exact(label, vector, model, scope.named, limit if wanted is None else EXACT_VECTORS)
            return [row for row in rows if wanted is None or wanted(row)][:limit]
        while True:
            found = await self._from_index(label, vector, model, depth)
            allowed = [row for row in found if row.id and scope.allows(row.id) and (wanted is None or wanted(row))]
            if len(allowed) >= limit or len(found) < depth or depth >= _DEEPEST:
                return allowed[:limit]
            depth = min(depth * 5, _DEEPEST)

    async def _exact(
        self, label: str, vector: npt.NDArray[np.float32], model: str, conversations: Sequence[str], limit: int
    ) -> list[Match]:
        turn = "n.turn_index" if label == "Message" else "n.start_turn_index"
        cosine = self._graph.dialect.cosine("n.embedding", "$vector")
        rows = await self._graph.rows(
            f"UNWIND $ids AS id MATCH (n:{label} {{conversation_id: id}}) "
            "WHERE n.embed_model = $model AND n.embedding IS NOT NULL "
            f"WITH n, {cosine} AS score ORDER BY score DESC LIMIT $limit "
            f"RETURN collect([n.uuid, n.conversation_id, {turn}, score]) AS matches",
            ids=list(conversations),
            model=model,
            vector=vector.tolist(),
            limit=limit,
        )
        return matches(rows)

    async def _from_index(self, label: str, vector: npt.NDArray[np.float32], model: str, depth: int) -> list[Match]:
        """Return the index's neighbours; those of another model lack a conversation and are left out."""
        turn = "node.turn_index" if label == "Message" else "node.start_turn_index"
        rows = await self._graph.rows(
            "CALL db.index.vector.queryNodes($index, $depth, $vector) YIELD node, score "
            "WITH node, score, "
            "CASE WHEN node.embed_model = $model THEN node.conversation_id ELSE '' END AS id "
            f"RETURN collect([node.uuid, id, {turn}, score]) AS matches",
            index=self._graph.dialect.vector_index(label),
            depth=depth,
            vector=vector.tolist(),
            model=model,
        )
        return matches(rows)

    async def _read_turns(self, uuids: Sequence[str], scores: Mapping[str, float], model: str) -> list[OtherTurn]:
        if not uuids:
            return []
        # In one row, with times as text: the driver spends more on a row or a time than on a text.
        rows = await self._graph.rows(
            f"UNWIND $ids AS id MATCH {own_node('m', 'Message', 'uuid: id')} "
            f"MATCH {own_node('c', 'Conversation', 'uuid: m.conversation_id')} "
            "OPTIONAL MATCH (s:Sitting {conversation_id: m.conversation_id, ordinal: m.sitting}) "
            "RETURN collect([m.uuid, m.conversation_id, coalesce(c.title, ''), m.turn_index, "
            "toString(coalesce(s.date, m.timestamp)), coalesce(toStringOrNull(m.turn_text), ''), "
            "CASE WHEN m.embed_model = $model THEN m.embedding_bytes ELSE NULL END]) AS turns",
            ids=list(dict.fromkeys(uuids)),
            model=model,
        )
        return [
            OtherTurn(
                conversation_id=conversation_id,
                title=title,
                turn_index=turn_index,
                date=moment(date),
                text=text,
                words=scores.get(uuid, 0.0),
                vector=_vector(stored),
            )
            for row in rows
            for uuid, conversation_id, title, turn_index, date, text, stored in row["turns"]
        ]

    async def _read_summaries(self, rows: Sequence[Match], model: str) -> list[OtherSummary]:
        if not rows:
            return []
        found = await self._graph.rows(
            f"UNWIND $ids AS id MATCH {own_node('s', 'Summary', 'uuid: id')} "
            f"MATCH {own_node('c', 'Conversation', 'uuid: s.conversation_id')} "
            "OPTIONAL MATCH (m:Message {conversation_id: s.conversation_id, turn_index: s.end_turn_index, "
            f"position: 0}}) RETURN collect([{SUMMARY}, coalesce(c.title, ''), "
            "toString(coalesce(m.timestamp, s.created_at)), "
            "CASE WHEN s.embed_model = $model THEN s.embedding_bytes ELSE NULL END]) AS summaries",
            ids=list({row.uuid: None for row in rows}),
            model=model,
        )
        return [
            OtherSummary(
                summary=summary,
                title=title,
                ended=moment(ended),
                vector=_vector(vector),
            )
            for row in found
            for properties, title, ended, vector in row["summaries"]
            if (summary := summary_from(properties)) is not None
        ]

    async def _count_messages(self) -> int:
        """Return the number of all messages, at most `COUNT_SECONDS` old; both backends keep it."""
        now = time.monotonic()
        if now - self._counted > COUNT_SECONDS:
            row = await self._graph.one("MATCH (m:Message) RETURN count(m) AS messages")
            self._messages, self._counted = int(row["messages"]) if row else 0, now
        return self._messages


def _vector(stored: object) -> npt.NDArray[np.float32] | None:
    data = vector_bytes(stored)
    return None if data is None else np.frombuffer(data, np.float32)


def _own_messages(turns: int, shared: int, messages: int) -> float:
    """Estimate the number of a conversation's own messages; those of shared turns belong to its parent."""
    return messages * (turns - shared) / max(turns, 1)


def _share(share: float) -> float:
    """Return a share between 0.001 and 1: counts may be outdated, and nothing is divided by zero."""
    return min(max(share, 0.001), 1.0)


def _within(turns: Ranges) -> Callable[[Match], bool]:
    """Return whether a match is one of these turns."""
    return lambda row: any(first <= row.turn_index <= last for first, last in turns.get(row.id, ()))
