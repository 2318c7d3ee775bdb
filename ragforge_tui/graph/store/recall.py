"""Recall keys on a turn's first message: its text, the key of its window and its sitting, read in pages.

Vectors are read as bytes: the driver unpacks a list of floats one by one, which would block the event loop for a page
of turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from ragforge_tui.graph.connection import Graph, Transaction
from ragforge_tui.graph.labels import own_node
from ragforge_tui.graph.store.conversations import Segment, in_pages, read_segments
from ragforge_tui.graph.store.messages import INDEXED_CHARS, key_properties
from ragforge_tui.graph.store.parts import batches, row_size
from ragforge_tui.graph.store.records import derived
from ragforge_tui.graph.values import native, vector_bytes
from ragforge_tui.shared.sanitize import storable

PAGE = 200
"""Turns read in one statement."""
_SAMPLE_PAGE = 50
"""Keys per statement: together far below the limit of one message."""
_KEY_CHARS = 8_000
"""Read of a key; longer ones are mostly results of tools."""


class RecallRow(msgspec.Struct, kw_only=True):
    """A turn as recall reads it.

    Attributes:
        conversation_id: The conversation that holds it: for the shared turns of a branch, its parent.
        uuid: Of its first message.
        version: Of its keys; 0 when they are missing.
        facts_digest: Of the facts in its keys; empty without any.
        vector: float32 values of the wanted model; None when there are none.
    """

    conversation_id: str
    turn_index: int
    uuid: str
    text: str
    timestamp: datetime
    ended: datetime
    version: int = 0
    facts_digest: str = ""
    vector: bytes | None = None


class KeyRow(msgspec.Struct, kw_only=True, frozen=True):
    """The keys of a turn as they are stored."""

    conversation_id: str
    turn_index: int
    text: str
    lex_key: str
    language: str
    ended: datetime
    sitting: int
    version: int
    facts_digest: str = ""


class Span(msgspec.Struct, frozen=True):
    """A conversation's own turns, both ends included."""

    conversation_id: str
    first: int
    last: int


class Recall:
    """The recall keys of a conversation's own turns."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def rows(self, conversation_id: str, *, start: int, end: int, model: str = "") -> list[RecallRow]:
        """Return the turns with index in [start, end), in order, with vectors of `model`; a branch reads its parent's.

        Raises:
            NotFoundError: There is no such conversation.
        """
        segments = await read_segments(self._graph, conversation_id, start, end - 1)
        return [row for page in in_pages(segments, PAGE) for row in await self._page(page, model)]

    async def _page(self, page: Segment, model: str) -> list[RecallRow]:
        return [
            _recall_row(row)
            for row in await self._graph.rows(
                "UNWIND range($first, $last) AS turn "
                "MATCH (m:Message {conversation_id: $id, turn_index: turn, position: 0}) "
                "RETURN m.conversation_id AS conversation_id, m.turn_index AS turn_index, m.uuid AS uuid, "
                "coalesce(toStringOrNull(m.turn_text), '') AS text, m.timestamp AS timestamp, "
                "coalesce(m.turn_ended, m.timestamp) AS ended, coalesce(m.recall_version, 0) AS version, "
                "coalesce(m.facts_digest, '') AS facts_digest, "
                "CASE WHEN m.embed_model = $model THEN m.embedding_bytes ELSE NULL END AS vector "
                "ORDER BY m.turn_index",
                id=page.conversation_id,
                first=page.first,
                last=page.last,
                model=model,
            )
        ]

    async def store_keys(self, rows: Sequence[KeyRow]) -> None:
        """Store the keys of turns; those that are windows of each other in one transaction."""
        for batch in batches(map(_key_properties, rows), lambda row: row_size(row["set"])):

            async def work(tx: Transaction, batch: list[dict[str, Any]] = batch) -> None:
                # A turn whose text changed (after a retry) has no vector until it is embedded again.
                await tx.run(
                    "UNWIND $rows AS row "
                    "MATCH (m:Message {conversation_id: row.id, turn_index: row.turn, position: 0}) "
                    "SET m.embed_model = CASE WHEN m.turn_text = row.set.turn_text THEN m.embed_model ELSE NULL END "
                    "SET m += row.set",
                    rows=batch,
                )
                # Up to which turn there are keys: what an import or a crash left without is found by this alone.
                await tx.run(
                    "UNWIND $rows AS row WITH row.id AS id, max(row.turn) AS last "
                    "MATCH (c:Conversation {uuid: id}) "
                    "SET c.keys_version = $version, c.indexed_turn = "
                    "CASE WHEN coalesce(c.indexed_turn, 0) > last THEN c.indexed_turn ELSE last END",
                    rows=batch,
                    version=batch[0]["set"]["recall_version"],
                )

            await self._graph.write(work)

    async def conversations_without_keys(self, version: int, *, limit: int = 1_000) -> list[str]:
        """Return conversations whose last turns lack keys of this version, newest first, without deleted ones."""
        return [
            record["uuid"]
            for record in await self._graph.rows(
                f"MATCH {own_node('c', 'Conversation')} WHERE c.status <> 'deleted' "
                "AND coalesce(c.stub, false) <> true AND coalesce(c.branch_turn, 0) < c.next_turn - 1 "
                "AND (coalesce(c.indexed_turn, 0) < c.next_turn - 1 OR coalesce(c.keys_version, 1) < $version) "
                "RETURN c.uuid AS uuid ORDER BY c.updated_at DESC LIMIT $limit",
                limit=limit,
                version=version,
            )
        ]

    async def store_sitting(self, conversation_id: str, ordinal: int, *, date: datetime, text: str) -> None:
        """Store the text of a sitting, replacing an earlier one."""
        await self._graph.run(
            "MATCH (c:Conversation {uuid: $id}) MERGE (s:Sitting {uuid: $uuid}) "
            "SET s.conversation_id = $id, s.ordinal = $ordinal, s.date = $date, s.text = $text "
            "MERGE (c)-[:HAS_SITTING]->(s)",
            id=conversation_id,
            uuid=derived("sitting", conversation_id, ordinal),
            ordinal=ordinal,
            date=date,
            text=storable(text[:INDEXED_CHARS]),
        )

    async def sittings_stored(self, conversation_id: str) -> int:
        """Return the highest ordinal of the stored sittings, 0 if there are none."""
        record = await self._graph.one(
            "MATCH (s:Sitting {conversation_id: $id}) RETURN max(s.ordinal) AS last", id=conversation_id
        )
        return int(record["last"] or 0) if record else 0

    async def sample_spans(self) -> list[Span]:
        """Return the own turns of conversations that may be recalled from; shared ones count once."""
        found = [
            Span(record["uuid"], record["first"], record["last"])
            for record in await self._graph.rows(
                f"MATCH {own_node('c', 'Conversation')} WHERE c.status <> 'deleted' "
                "AND coalesce(c.private, false) <> true "
                "RETURN c.uuid AS uuid, coalesce(c.branch_turn, 0) + 1 AS first, c.next_turn - 1 AS last "
                "ORDER BY c.uuid"
            )
        ]
        return [span for span in found if span.first <= span.last]

    async def sample_keys(self, spans: Sequence[Span], size: int) -> list[str]:
        """Return window keys of about `size` of these turns, evenly spread, without turns that have none yet."""
        places = spread(spans, size)
        keys: list[str] = []
        for start in range(0, len(places), _SAMPLE_PAGE):
            page: list[dict[str, Any]] = [
                {"id": uuid, "turn": turn} for uuid, turn in places[start : start + _SAMPLE_PAGE]
            ]
            keys += [
                record["key"]
                for record in await self._graph.rows(
                    "UNWIND $rows AS row "
                    "MATCH (m:Message {conversation_id: row.id, turn_index: row.turn, position: 0}) "
                    "RETURN left(coalesce(toStringOrNull(m.lex_key), toStringOrNull(m.lex_key_fr), ''), $chars) AS key",
                    rows=page,
                    chars=_KEY_CHARS,
                )
                if record["key"]
            ]
        return keys


def spread(spans: Sequence[Span], size: int) -> list[tuple[str, int]]:
    """Return at most `size` turns at even distances, as if the conversations were one."""
    total = sum(span.last - span.first + 1 for span in spans)
    wanted = iter([n * total // size for n in range(size)] if total > size else range(total))
    place = next(wanted, None)
    places: list[tuple[str, int]] = []
    before = 0
    for span in spans:
        turns = span.last - span.first + 1
        while place is not None and place < before + turns:
            places.append((span.conversation_id, span.first + place - before))
            place = next(wanted, None)
        before += turns
    return places


def _recall_row(row: dict[str, Any]) -> RecallRow:
    return RecallRow(
        conversation_id=row["conversation_id"],
        turn_index=row["turn_index"],
        uuid=row["uuid"],
        text=row["text"],
        timestamp=native(row["timestamp"]),
        ended=native(row["ended"]),
        version=row["version"],
        facts_digest=row["facts_digest"],
        vector=vector_bytes(row["vector"]),
    )


def _key_properties(row: KeyRow) -> dict[str, Any]:
    properties = {
        **key_properties(row.text, row.lex_key, row.language),
        "turn_ended": row.ended,
        "sitting": row.sitting,
        "recall_version": row.version,
        "facts_digest": row.facts_digest or None,
    }
    return {"id": row.conversation_id, "turn": row.turn_index, "set": properties}
