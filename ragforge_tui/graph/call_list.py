"""Calls of tools as a list: names, outcomes and sizes without the results themselves.

One of the subjects `Store` is composed of. Turns are looked at from the newest down, some hundred a statement through
the index on (conversation_id, turn_index), until there are enough calls: the list of a conversation of ten thousand
turns begins as fast as that of ten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragforge_tui.graph.records import call_from, native
from ragforge_tui.graph.turns import segments_of
from ragforge_tui.models import ToolResult
from ragforge_tui.requests.calls import CallEntry, CallPage

if TYPE_CHECKING:
    from neo4j import AsyncManagedTransaction

    from ragforge_tui.graph.connect import Graph
    from ragforge_tui.graph.turns import Segment

SHOWN_CHARS = 2000
"""Most characters of a call's arguments and reason."""
ERROR_CHARS = 400
WINDOW = 100
"""Turns looked at in one statement."""
MOST_WINDOWS = 20
_END = 2**31

_CALLS = (
    "UNWIND range($first, $last) AS turn "
    "MATCH (m:Message {conversation_id: $id, turn_index: turn})-[:MADE_TOOL_CALL]->(t:ToolCall) "
    "OPTIONAL MATCH (t)-[:PRODUCED_RESULT]->(r:ToolResult) "
    "RETURN turn, m.position AS position, t {.uuid, .message_id, .tool_name, .iteration, .ordinal, .timestamp, "
    ".duration_ms, .success} AS call, substring(t.arguments, 0, $shown) AS arguments, "
    "substring(t.reasoning, 0, $shown) AS reasoning, "
    "CASE WHEN r IS NULL THEN NULL ELSE r {.uuid, .success, .timestamp, .result_size_bytes} END AS result, "
    "substring(r.error, 0, $error) AS error"
)


class CallList:
    """What `Store` tells of calls."""

    _graph: Graph

    async def list_calls(self, conversation_id: str, *, before: int = 0, limit: int = 200) -> CallPage:
        """The calls of the newest turns below `before`, at least `limit` of them if there are and not too far apart.

        Raises:
            NotFoundError: There is no such conversation.
        """

        async def segments(tx: AsyncManagedTransaction) -> list[Segment]:
            return await segments_of(tx, conversation_id, 1, before - 1 if before > 0 else _END)

        found: list[CallEntry] = []
        windows = 0
        for segment in reversed(await self._graph.read(segments)):
            last = segment.last
            while last >= segment.first:
                first = max(segment.first, last - WINDOW + 1)
                found = await self._window(segment.conversation_id, first, last) + found
                windows += 1
                if len(found) >= limit or windows >= MOST_WINDOWS:
                    return _page(found, first, limit)
                last = first - 1
        return CallPage(calls=found, first_turn=1)

    async def _window(self, conversation_id: str, first: int, last: int) -> list[CallEntry]:
        async def work(tx: AsyncManagedTransaction) -> list[CallEntry]:
            result = await tx.run(
                _CALLS, id=conversation_id, first=first, last=last, shown=SHOWN_CHARS, error=ERROR_CHARS
            )
            return [_entry(dict(record)) async for record in result]

        found: list[CallEntry] = await self._graph.read(work)
        return sorted(found, key=_order)


def _page(found: list[CallEntry], first: int, limit: int) -> CallPage:
    """Not more than is wanted, but the calls of a turn together."""
    if len(found) > limit:
        first = found[-limit].turn_index
        found = [entry for entry in found if entry.turn_index >= first]
    return CallPage(calls=found, first_turn=first)


def _entry(row: dict[str, Any]) -> CallEntry:
    properties = {**row["call"], "arguments": row["arguments"] or "", "reasoning": row["reasoning"] or ""}
    call = call_from(properties)
    if (outcome := row["result"]) is not None:
        call.result = ToolResult(
            uuid=outcome["uuid"],
            tool_call_id=call.uuid,
            success=bool(outcome["success"]),
            result="",
            error=row["error"],
            timestamp=native(outcome["timestamp"]),
            result_size_bytes=outcome["result_size_bytes"] or 0,
        )
    return CallEntry(turn_index=row["turn"], position=row["position"] or 0, call=call)


def _order(entry: CallEntry) -> tuple[object, ...]:
    call = entry.call
    return entry.turn_index, entry.position, call.iteration, call.ordinal, call.timestamp, call.uuid
