"""Search for a text letter by letter in one conversation, as an editor finds it in a file.

Full-text search (`search.py`) finds words; this finds any piece of text. It reads only the conversation that is open,
through the index on its id.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neo4j import AsyncManagedTransaction

    from ragforge_tui.graph.store.segments import Segment

_IN_MESSAGES = (
    "MATCH (m:Message {conversation_id: $id}) WHERE m.turn_index >= $first AND m.turn_index <= $last "
    "AND m.state <> 'superseded' AND (toLower(coalesce(m.content, '')) CONTAINS $text "
    "OR toLower(coalesce(m.reasoning, '')) CONTAINS $text) RETURN DISTINCT m.turn_index AS turn"
)
_IN_CALLS = (
    "MATCH (t:ToolCall {conversation_id: $id}) WHERE toLower(coalesce(t.arguments, '')) CONTAINS $coded "
    "OR toLower(coalesce(t.reasoning, '')) CONTAINS $text RETURN DISTINCT t.message_id AS message"
)
_IN_RESULTS = (
    "MATCH (r:ToolResult {conversation_id: $id}) WHERE toLower(coalesce(r.result, '')) CONTAINS $coded "
    "OR toLower(coalesce(r.error, '')) CONTAINS $text "
    "MATCH (t:ToolCall {uuid: r.tool_call_id}) RETURN DISTINCT t.message_id AS message"
)
_IN_PARTS = (
    "MATCH (p:Part {conversation_id: $id}) WHERE toLower(p.text) CONTAINS $text OR toLower(p.text) CONTAINS $coded "
    "RETURN DISTINCT p.owner AS owner"
)
_OWNERS = (
    "UNWIND $ids AS id MATCH (m:Message {uuid: id}) RETURN m.uuid AS message",
    "UNWIND $ids AS id MATCH (t:ToolCall {uuid: id}) RETURN t.message_id AS message",
    "UNWIND $ids AS id MATCH (r:ToolResult {uuid: id}) MATCH (t:ToolCall {uuid: r.tool_call_id}) "
    "RETURN t.message_id AS message",
)
_TURNS = (
    "UNWIND $ids AS id MATCH (m:Message {uuid: id}) WHERE m.turn_index >= $first AND m.turn_index <= $last "
    "AND m.state <> 'superseded' RETURN DISTINCT m.turn_index AS turn"
)


async def turns_holding(tx: AsyncManagedTransaction, segment: Segment, text: str) -> set[int]:
    """Return the indexes of the turns of a segment that hold a text, which is lower case."""
    # Arguments and results are kept as JSON: there a quote or a line end is written with a backslash.
    coded = json.dumps(text, ensure_ascii=False)[1:-1]
    asked: dict[str, Any] = {"id": segment.conversation_id, "text": text, "coded": coded}
    between = {"first": segment.first, "last": segment.last}
    turns = await _column(tx, _IN_MESSAGES, "turn", id=segment.conversation_id, text=text, **between)
    messages = await _column(tx, _IN_CALLS, "message", **asked)
    messages |= await _column(tx, _IN_RESULTS, "message", **asked)
    if owners := await _column(tx, _IN_PARTS, "owner", **asked):
        for statement in _OWNERS:
            messages |= await _column(tx, statement, "message", ids=sorted(owners))
    return turns | await _column(tx, _TURNS, "turn", ids=sorted(messages), **between)


async def _column(tx: AsyncManagedTransaction, statement: str, name: str, **values: Any) -> set[Any]:
    result = await tx.run(statement, values)
    return {record[name] async for record in result}
