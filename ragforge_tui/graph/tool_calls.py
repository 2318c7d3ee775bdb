"""Tool calls, their results and the files they touched.

One of the subjects `Store` is composed of. A call is stored when it starts and again when it ends; either may come
first after a journal was written in, so both merge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ragforge_tui.graph.parts import PART_BYTES, byte_length, link_parts, store_large
from ragforge_tui.graph.records import call_properties, file_rows, result_properties
from ragforge_tui.models import ToolCall, ToolResult
from ragforge_tui.text import cut_middle, storable, storable_value

if TYPE_CHECKING:
    from neo4j import AsyncManagedTransaction

    from ragforge_tui.graph.connect import Graph

CALL_LARGE = ("arguments", "reasoning")
RESULT_LARGE = ("result", "error")
MAX_RESULT_BYTES = 5_000_000


class ToolCalls:
    """What `Store` does with tool calls."""

    _graph: Graph

    async def start_tool_call(self, c: ToolCall, conversation_id: str) -> None:
        """Store a call that begins; one that is there already is left as it is."""
        properties = call_properties(c, conversation_id)
        await store_large(self._graph, c.uuid, conversation_id, properties, CALL_LARGE)

        async def work(tx: AsyncManagedTransaction) -> None:
            await tx.run(
                "MATCH (m:Message {uuid: $message}) "
                "MERGE (t:ToolCall {uuid: $uuid}) ON CREATE SET t += $properties "
                "MERGE (m)-[:MADE_TOOL_CALL]->(t)",
                message=c.message_id,
                uuid=c.uuid,
                properties=properties,
            )
            await link_parts(tx, "ToolCall", c.uuid, properties)

        await self._graph.write(work)

    async def finish_tool_call(self, c: ToolCall, workspace: str) -> None:
        """Store a call's outcome: its result, cut when it is huge, and the files it touched."""
        texts = (c.arguments, c.reasoning, c.result.result if c.result else "")
        large = sum(map(len, texts)) > PART_BYTES // 4
        # Parts are stored before the call and must say whose they are; nodes learn it in the statement itself.
        conversation_id = await self._conversation_of(c.message_id) if large else ""
        call = call_properties(c, conversation_id)
        await store_large(self._graph, c.uuid, conversation_id, call, CALL_LARGE)
        result: dict[str, Any] = {}
        if c.result is not None:
            result = result_properties(cut_result(c.result), conversation_id)
            await store_large(self._graph, c.result.uuid, conversation_id, result, RESULT_LARGE)

        async def work(tx: AsyncManagedTransaction) -> None:
            await tx.run(
                "MATCH (m:Message {uuid: $message}) MERGE (t:ToolCall {uuid: $uuid}) "
                "SET t += $properties, t.conversation_id = m.conversation_id MERGE (m)-[:MADE_TOOL_CALL]->(t)",
                message=c.message_id,
                uuid=c.uuid,
                properties=call,
            )
            await link_parts(tx, "ToolCall", c.uuid, call)
            if result:
                await tx.run(
                    "MATCH (t:ToolCall {uuid: $call}) MERGE (r:ToolResult {uuid: $uuid}) "
                    "SET r += $properties, r.conversation_id = t.conversation_id MERGE (t)-[:PRODUCED_RESULT]->(r)",
                    call=c.uuid,
                    uuid=result["uuid"],
                    properties=result,
                )
                await link_parts(tx, "ToolResult", result["uuid"], result)
            await link_files(tx, c, workspace)

        await self._graph.write(work)

    async def _conversation_of(self, message_uuid: str) -> str:
        async def work(tx: AsyncManagedTransaction) -> str:
            result = await tx.run("MATCH (m:Message {uuid: $uuid}) RETURN m.conversation_id AS id", uuid=message_uuid)
            record = await result.single()
            return record["id"] if record else ""

        return await self._graph.read(work)


async def link_files(tx: AsyncManagedTransaction, c: ToolCall, workspace: str) -> None:
    """Lead from a call to the files it touched, in the order it names them."""
    rows = file_rows(c.files)
    for start in range(0, len(rows), 500):
        batch = [{**row, "ordinal": start + n} for n, row in enumerate(rows[start : start + 500])]
        await tx.run(
            "MATCH (t:ToolCall {uuid: $call}) UNWIND $rows AS row "
            "MERGE (f:File {workspace: $workspace, path: row.path}) "
            "MERGE (t)-[a:ACCESSED {access: row.access}]->(f) SET a.ordinal = row.ordinal",
            call=c.uuid,
            workspace=storable(workspace),
            rows=batch,
        )


def cut_result(result: ToolResult) -> ToolResult:
    """A result small enough to keep: above `MAX_RESULT_BYTES` its longest text is cut, with a note and the size.

    `result_size_bytes` is the size the tool told, as the running chat showed it, else that of the JSON; the result
    stays valid JSON.
    """
    size = byte_length(result.result)
    full = result.result_size_bytes or size
    if size <= MAX_RESULT_BYTES:
        return msgspec.structs.replace(result, result_size_bytes=full)
    try:
        data = msgspec.json.decode(storable(result.result))
    except msgspec.DecodeError:
        data = None
    if not isinstance(data, dict):
        data = {"text": storable(result.result)}
    limit = MAX_RESULT_BYTES
    text = result.result
    while byte_length(text) > MAX_RESULT_BYTES and limit > 1:
        # Escapes and several long values can keep the whole above the limit after a first cut.
        limit //= 2
        note = f"\n… [cut: the whole result is {full} bytes; {{cut}} characters left out] …\n"
        short = {k: cut_middle(v, limit, note) if isinstance(v, str) else v for k, v in data.items()}
        text = msgspec.json.encode(storable_value({**short, "truncated": full})).decode()
        if limit < 1000 and byte_length(text) > MAX_RESULT_BYTES:
            data = {"text": cut_middle(storable(result.result), MAX_RESULT_BYTES // 8, note)}
    return msgspec.structs.replace(result, result=text, result_size_bytes=full)
