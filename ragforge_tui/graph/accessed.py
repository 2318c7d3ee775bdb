"""Files a conversation touched, over all its turns, from the edges its tool calls left.

One of the subjects `Store` is composed of. The graph counts and picks the newest access by path, kind and tool, so
that what comes back grows with the files, not with the calls. A branch has the files of the turns it shares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragforge_tui.graph.records import native
from ragforge_tui.graph.turns import segments_of
from ragforge_tui.models import AccessedFile
from ragforge_tui.touched import group_of, joined, most_telling

if TYPE_CHECKING:
    from neo4j import AsyncManagedTransaction

    from ragforge_tui.graph.connect import Graph

_FILES = (
    "UNWIND $segments AS segment "
    "MATCH (m:Message {conversation_id: segment.id})-[:MADE_TOOL_CALL]->(t:ToolCall)-[a:ACCESSED]->(f:File) "
    "WHERE m.turn_index >= segment.first AND m.turn_index <= segment.last AND coalesce(t.success, true) "
    "RETURN f.path AS path, a.access AS access, t.tool_name AS tool, max(m.turn_index) AS turn, "
    "max(t.timestamp) AS at, count(*) AS count"
)
_END = 2**31


class AccessedFiles:
    """What `Store` tells of files."""

    _graph: Graph

    async def accessed_files(self, conversation_id: str, limit: int = 100, *, before: int = 0) -> list[AccessedFile]:
        """Files touched by tools: modified ones first, then read, then found, each newest first.

        Args:
            before: Only turns below this index; 0 for all.

        Raises:
            NotFoundError: There is no such conversation.
        """

        async def work(tx: AsyncManagedTransaction) -> list[AccessedFile]:
            last = before - 1 if before > 0 else _END
            segments = await segments_of(tx, conversation_id, 1, last)
            if not segments:
                return []
            result = await tx.run(
                _FILES, segments=[{"id": s.conversation_id, "first": s.first, "last": s.last} for s in segments]
            )
            return [
                AccessedFile(
                    path=record["path"],
                    group=group,
                    tool=record["tool"] or "",
                    turn_index=record["turn"],
                    timestamp=native(record["at"]),
                    count=record["count"],
                )
                async for record in result
                if (group := group_of(record["access"])) is not None
            ]

        found: list[AccessedFile] = await self._graph.read(work)
        return most_telling(joined(found).values(), limit)
