"""Details for a list of conversations: how each begins and ends, and which ones changed.

Messages are cut inside the query, so that a list never waits for a long text.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from ragforge_tui.graph.store.conversations import find_conversation
from ragforge_tui.graph.store.records import CONVERSATION_FIELDS, conversation_from, graph_value, projection
from ragforge_tui.graph.store.segments import Segment, segments_of
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.records import ConversationChanges, ConversationPeek, ConversationPulse

if TYPE_CHECKING:
    from neo4j import AsyncManagedTransaction

    from ragforge_tui.graph.connect import Graph

_CONVERSATION = projection("c", CONVERSATION_FIELDS)
_END = 2**31
MOST_CHANGES = 1_000


class Sessions:
    """The parts of conversations that a list of them shows."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def peek(self, conversation_id: str, *, chars: int = 600) -> ConversationPeek:
        """The first message and the last text of a conversation; a branch begins as its parent does.

        Raises:
            NotFoundError: There is no such conversation.
        """

        async def work(tx: AsyncManagedTransaction) -> ConversationPeek:
            found = await find_conversation(tx, conversation_id)
            if found is None:
                raise NotFoundError(f"There is no conversation {conversation_id!r}.")
            segments = await segments_of(tx, found.uuid, 1, _END)
            if not segments:
                return ConversationPeek(conversation=found)
            begin = await _texts(tx, segments[0], segments[0].first, chars)
            end = await _texts(tx, segments[-1], segments[-1].last, chars)
            role, last = end[-1] if end else ("user", "")
            return ConversationPeek(
                conversation=found, first=begin[0][1] if begin else "", last=last, last_role=_role(role)
            )

        peeked: ConversationPeek = await self._graph.read(work)
        return peeked

    async def pulse(self, conversation_id: str) -> ConversationPulse | None:
        """Return the state an open conversation polls: one node, by its id; None when it is gone."""
        record = await self._graph.one(
            f"MATCH (c:Conversation {{uuid: $id}}) RETURN {_CONVERSATION} AS c, "
            "coalesce(c.summary_sequence, 0) + coalesce(c.summaries_replaced, 0) AS summaries",
            id=conversation_id,
        )
        if record is None:
            return None
        return ConversationPulse(conversation=conversation_from(record["c"]), summaries=record["summaries"])

    async def changed(self, since: datetime, *, workspace: str | None = None) -> ConversationChanges:
        """Those changed at `since` or later, newest first and at most `MOST_CHANGES`, and how many there are in all."""
        where = "c.workspace = $workspace" if workspace is not None else "true"
        parameters = {"since": graph_value(since), "workspace": workspace, "limit": MOST_CHANGES}

        async def work(tx: AsyncManagedTransaction) -> ConversationChanges:
            result = await tx.run(
                f"MATCH (c:Conversation) WHERE c.updated_at >= $since AND {where} "
                f"RETURN {_CONVERSATION} AS c ORDER BY c.updated_at DESC, c.uuid LIMIT $limit",
                parameters,
            )
            changed = [conversation_from(record["c"]) async for record in result]
            result = await tx.run(f"MATCH (c:Conversation) WHERE {where} RETURN count(c) AS n", parameters)
            record = await result.single(strict=True)
            return ConversationChanges(changed=changed, count=record["n"])

        changes: ConversationChanges = await self._graph.read(work)
        return changes


async def _texts(tx: AsyncManagedTransaction, segment: Segment, turn: int, chars: int) -> list[tuple[str, str]]:
    """Return roles and beginnings of a turn's messages that have text, in order."""
    result = await tx.run(
        "MATCH (m:Message {conversation_id: $id, turn_index: $turn}) WHERE m.state <> 'superseded' "
        "RETURN m.role AS role, left(m.content, $chars) AS text ORDER BY m.position",
        id=segment.conversation_id,
        turn=turn,
        chars=max(chars, 1),
    )
    rows = [(record["role"], record["text"] or "") async for record in result]
    return [(role, text) for role, text in rows if text.strip()]


def _role(value: Any) -> Any:
    return value if value in ("user", "assistant", "system") else "user"
