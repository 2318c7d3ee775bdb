"""Token counts that earlier releases stored as a quarter of the length, read and replaced in the background.

The graph's version node has the conversation up to which this was done, so that it is done once and can be interrupted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ragforge_tui.graph.connection import Graph, Transaction
from ragforge_tui.graph.labels import own_node
from ragforge_tui.graph.store.parts import join_large

_END = "~"
"""After every conversation's id."""
_TURNS_AT_ONCE = 20
_ESTIMATED = (
    "UNWIND range($first, $last) AS turn MATCH (m:Message {conversation_id: $id, turn_index: turn}) "
    "WHERE m.state <> 'streaming' AND m.char_count > 0 "
    "AND (m.token_count = m.char_count / 4 OR (m.char_count < 4 AND m.token_count <= 1)) "
    "RETURN m.uuid AS uuid, m.char_count AS chars, m.token_count AS tokens, m.content AS content, "
    "m.content_file AS content_file, m.content_parts AS content_parts"
)


class EstimatedCount(msgspec.Struct, frozen=True):
    """A message whose count may be an estimate."""

    uuid: str
    content: str
    tokens: int


class TokenCounts:
    """Stored token counts that may be estimates."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def next_conversation(self) -> str:
        """Return the next conversation whose counts were not examined; empty when all were."""
        row = await self._graph.one(
            "MATCH (v:RagforgeSchema {name: 'schema'}) RETURN coalesce(v.tokens_counted_to, '') AS last"
        )
        last = row["last"] if row else _END
        if last == _END:
            return ""
        row = await self._graph.one(
            f"MATCH {own_node('c', 'Conversation')} WHERE c.uuid > $last RETURN c.uuid AS uuid ORDER BY uuid LIMIT 1",
            last=last,
        )
        if row is None:
            await self.set_examined(_END)
        return row["uuid"] if row else ""

    async def set_examined(self, conversation_id: str) -> None:
        """Note that the counts of a conversation, and of those before it, are right."""
        await self._graph.run(
            "MATCH (v:RagforgeSchema {name: 'schema'}) SET v.tokens_counted_to = $id", id=conversation_id
        )

    async def estimated(self, conversation_id: str, first: int) -> tuple[list[EstimatedCount], int]:
        """Return the messages with a possible estimate of some turns, and the turn to continue with; 0 at the end."""
        row = await self._graph.one(
            "MATCH (c:Conversation {uuid: $id}) RETURN c.next_turn AS next_turn", id=conversation_id
        )
        end = row["next_turn"] if row else 0
        last = min(first + _TURNS_AT_ONCE, end) - 1

        async def work(tx: Transaction) -> list[dict[str, Any]]:
            result = await tx.run(_ESTIMATED, id=conversation_id, first=first, last=last)
            rows = [dict(record) async for record in result]
            await join_large(self._graph, tx, rows, ("content",))
            return rows

        rows = await self._graph.read(work) if first <= last else []
        found = [
            # A text that is lost now has another length than the one that was counted.
            EstimatedCount(row["uuid"], row["content"], row["tokens"])
            for row in rows
            if len(row["content"] or "") == row["chars"]
        ]
        return found, last + 1 if last + 1 < end else 0

    async def replace(self, counts: Mapping[str, tuple[int, int]]) -> None:
        """Replace counts that are still as they were read: by message, the old count and the new one."""
        await self._graph.run(
            "UNWIND $rows AS row MATCH (m:Message {uuid: row.uuid}) WHERE m.token_count = row.old "
            "SET m.token_count = row.new",
            rows=[{"uuid": uuid, "old": old, "new": new} for uuid, (old, new) in counts.items()],
        )
