"""The memory in outline: the tree of summaries without its texts, and how turns begin.

A screen asks for this, so that a conversation with thousands of summaries costs as much as the part that is visible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragforge_tui.graph.store.records import native
from ragforge_tui.graph.store.segments import Segment, segments_of
from ragforge_tui.graph.store.summaries import headlines_of
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.records import Summary
from ragforge_tui.shared.requests.tree import TreeNode, TurnLine

if TYPE_CHECKING:
    from neo4j import AsyncManagedTransaction

    from ragforge_tui.graph.connect import Graph

HEADLINE_CHARS = 160
_PAGE = 500


class Outline:
    """The tree of summaries and the beginnings of turns."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def summaries(self, conversation_id: str) -> list[TreeNode]:
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

    async def turns(self, conversation_id: str, first: int, last: int) -> list[TurnLine]:
        """Return the beginnings of the turns of a range, both ends included, in order.

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
        # What is too large for one property stands in parts; the search text of the turn begins the same.
        return [
            TurnLine(turn_index=record["turn"], text=record["text"] or record["other"], timestamp=native(record["at"]))
            for record in await self._graph.rows(
                "UNWIND range($first, $last) AS turn "
                "MATCH (m:Message {conversation_id: $id, turn_index: turn, position: 0}) "
                "RETURN turn, substring(coalesce(m.content, ''), 0, $chars) AS text, "
                "substring(coalesce(m.turn_text, ''), 0, $chars) AS other, m.timestamp AS at ORDER BY turn",
                id=conversation_id,
                first=first,
                last=last,
                chars=HEADLINE_CHARS,
            )
        ]
