"""The memory in outline: the tree of summaries without its texts, how turns begin, the requests of a turn.

One of the subjects `Store` is composed of. What a screen shows of a conversation of thousands of summaries is asked
for here, so that it costs what can be seen and not what is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ragforge_tui.errors import NotFoundError
from ragforge_tui.graph.records import native
from ragforge_tui.graph.summaries import headlines_of
from ragforge_tui.graph.turns import Segment, segments_of
from ragforge_tui.models import ContextRecord, Summary
from ragforge_tui.requests.tree import TreeNode, TurnLine

if TYPE_CHECKING:
    from neo4j import AsyncManagedTransaction

    from ragforge_tui.graph.connect import Graph

HEADLINE_CHARS = 160
_PAGE = 500


class SentOf(msgspec.Struct, frozen=True):
    """What a request held, texts left out, and how many replies were given to requests that began so."""

    record: ContextRecord
    replies: int


class Outline:
    """What `Store` tells of a memory in outline."""

    _graph: Graph

    async def summary_outline(self, conversation_id: str) -> list[TreeNode]:
        """The summaries a conversation has, a branch those of its shared turns too; by level, then in order.

        Raises:
            NotFoundError: There is no such conversation.
        """

        async def work(tx: AsyncManagedTransaction) -> list[Summary] | None:
            return await headlines_of(tx, conversation_id, HEADLINE_CHARS)

        found: list[Summary] | None = await self._graph.read(work)
        if found is None:
            raise NotFoundError(f"There is no conversation {conversation_id!r}.")
        return [
            TreeNode(
                uuid=summary.uuid,
                level=summary.level,
                start_turn_index=summary.start_turn_index,
                end_turn_index=summary.end_turn_index,
                headline=summary.conversation_summary,
                topics=summary.topics,
                parent=summary.parent,
            )
            for summary in found
        ]

    async def turn_lines(self, conversation_id: str, first: int, last: int) -> list[TurnLine]:
        """How the turns of a range, both ends included, begin, in order.

        Raises:
            NotFoundError: There is no such conversation.
        """

        async def segments(tx: AsyncManagedTransaction) -> list[Segment]:
            return await segments_of(tx, conversation_id, max(first, 1), last)

        found: list[TurnLine] = []
        for segment in await self._graph.read(segments):
            for start in range(segment.first, segment.last + 1, _PAGE):
                found += await self._lines(segment.conversation_id, start, min(start + _PAGE - 1, segment.last))
        return found

    async def _lines(self, conversation_id: str, first: int, last: int) -> list[TurnLine]:
        async def work(tx: AsyncManagedTransaction) -> list[TurnLine]:
            # What is too large for one property stands in parts; the search text of the turn begins the same.
            result = await tx.run(
                "UNWIND range($first, $last) AS turn "
                "MATCH (m:Message {conversation_id: $id, turn_index: turn, position: 0}) "
                "RETURN turn, substring(coalesce(m.content, ''), 0, $chars) AS text, "
                "substring(coalesce(m.turn_text, ''), 0, $chars) AS other, m.timestamp AS at ORDER BY turn",
                id=conversation_id,
                first=first,
                last=last,
                chars=HEADLINE_CHARS,
            )
            return [
                TurnLine(
                    turn_index=record["turn"], text=record["text"] or record["other"], timestamp=native(record["at"])
                )
                async for record in result
            ]

        found: list[TurnLine] = await self._graph.read(work)
        return found

    async def contexts_of(self, conversation_id: str, turn_index: int) -> list[SentOf]:
        """What the requests of a turn held, texts left out, in the order they were made; those that are alike once.

        Args:
            conversation_id: The conversation that holds the turn itself, not a branch of it.
        """

        async def work(tx: AsyncManagedTransaction) -> list[dict[str, Any]]:
            result = await tx.run(
                "MATCH (m:Message {conversation_id: $id, turn_index: $turn})-[:WAS_SENT]->(x:Context) "
                "RETURN x.uuid AS uuid, x.items AS items, m.position AS position ORDER BY position",
                id=conversation_id,
                turn=turn_index,
            )
            return [dict(record) async for record in result]

        rows = await self._graph.read(work)
        replies: dict[str, int] = {}
        items: dict[str, str] = {}
        for row in rows:
            replies[row["uuid"]] = replies.get(row["uuid"], 0) + 1
            items.setdefault(row["uuid"], row["items"])
        found = []
        for uuid, text in items.items():
            try:
                record = msgspec.json.decode(text, type=ContextRecord)
            except msgspec.MsgspecError:
                continue  # Kept by a version that wrote it in another form.
            found.append(SentOf(record, replies[uuid]))
        return found
