"""Tool calls, their results and the files they touched.

A call is stored when it starts and again when it ends. Either may be stored first when a journal is drained, so both
merge.

A list of calls has names, outcomes and sizes without the results; of a failed command it has the end of the output,
which tells why. Turns are read from the newest down, a hundred per statement through the index on
(conversation_id, turn_index), until there are enough calls: the list of a conversation of ten thousand turns opens as
fast as that of ten.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ragforge_tui.graph.connection import Graph, Transaction
from ragforge_tui.graph.labels import own_node
from ragforge_tui.graph.store.commits import commit_rows, link_commits
from ragforge_tui.graph.store.conversations import read_segments
from ragforge_tui.graph.store.parts import PART_BYTES, batches, byte_length, link_parts, store_large
from ragforge_tui.graph.store.records import call_from, call_properties, file_rows, result_from, result_properties
from ragforge_tui.shared.json_text import decode_json
from ragforge_tui.shared.records import ToolCall, ToolResult
from ragforge_tui.shared.requests.work import CallEntry, CallPage
from ragforge_tui.shared.sanitize import storable, storable_value
from ragforge_tui.shared.tool_calls import command_end, commits_of
from ragforge_tui.shared.truncation import cut_middle

CALL_LARGE = ("arguments", "reasoning")
RESULT_LARGE = ("result", "error")
MAX_RESULT_BYTES = 5_000_000
_LEAST_CHARS = 1000
"""Characters to which a text of a huge result may be cut; if that is not enough, its JSON is cut as one text."""
SHOWN_CHARS = 2000
"""Most characters of a call's arguments and reason."""
ERROR_CHARS = 400
WINDOW = 100
"""Turns per statement."""
MOST_WINDOWS = 20
_END = 2**31

_CALLS = (
    "UNWIND range($first, $last) AS turn "
    f"MATCH {own_node('m', 'Message', 'conversation_id: $id, turn_index: turn')}-[:MADE_TOOL_CALL]->"
    f"{own_node('t', 'ToolCall')} "
    "OPTIONAL MATCH (t)-[:PRODUCED_RESULT]->(r:ToolResult) "
    "RETURN turn, m.position AS position, t {.uuid, .message_id, .tool_name, .iteration, .ordinal, .timestamp, "
    ".duration_ms, .success} AS call, substring(toStringOrNull(t.arguments), 0, $shown) AS arguments, "
    "t.arguments_file AS arguments_file, substring(toStringOrNull(t.reasoning), 0, $shown) AS reasoning, "
    "t.reasoning_file AS reasoning_file, "
    "CASE WHEN r IS NULL THEN NULL ELSE r {.uuid, .success, .timestamp, .result_size_bytes} END AS result, "
    "substring(toStringOrNull(r.error), 0, $error) AS error, "
    "CASE WHEN r.success = false THEN r.result END AS text, "
    "CASE WHEN r.success = false THEN r.result_file END AS text_file"
)


class ToolCalls:
    """Tool calls, their results and the list of them."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._running: dict[str, str] = {}
        """Conversations of the calls that this process started."""

    async def start(self, c: ToolCall, conversation_id: str) -> None:
        """Store a call that starts; an existing one stays unchanged."""
        properties = call_properties(c, conversation_id)
        self._running[c.uuid] = conversation_id
        await store_large(self._graph, c.uuid, conversation_id, properties, CALL_LARGE)

        async def work(tx: Transaction) -> None:
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

    async def finish(self, c: ToolCall, workspace: str) -> None:
        """Store a call's outcome: its result, cut when it is huge, and the files it touched."""
        texts = (c.arguments, c.reasoning, c.result.result if c.result else "")
        large = sum(map(len, texts)) > PART_BYTES // 4
        # Files and parts are written before the call and need its conversation; nodes get it in the statement itself.
        conversation_id = self._running.pop(c.uuid, "")
        if not conversation_id and (large or self._graph.contents.writes):
            conversation_id = await self._conversation_of(c.message_id)
        call = call_properties(c, conversation_id)
        await store_large(self._graph, c.uuid, conversation_id, call, CALL_LARGE)
        result: dict[str, Any] = {}
        if c.result is not None:
            result = result_properties(cut_result(c.result), conversation_id)
            await store_large(self._graph, c.result.uuid, conversation_id, result, RESULT_LARGE)

        commits = commit_rows(c.message_id, commits_of(c), workspace)

        async def work(tx: Transaction) -> None:
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
            await link_changes(tx, change_rows(c), workspace)
            await link_commits(tx, commits)

        await self._graph.write(work)

    async def page(self, conversation_id: str, *, before: int = 0, limit: int = 200) -> CallPage:
        """Return calls of the newest turns below `before`: at least `limit`, unless they are too few or too far apart.

        Raises:
            NotFoundError: There is no such conversation.
        """
        segments = await read_segments(self._graph, conversation_id, 1, before - 1 if before > 0 else _END)
        found: list[CallEntry] = []
        windows = 0
        for segment in reversed(segments):
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
        rows = await self._graph.rows(
            _CALLS, id=conversation_id, first=first, last=last, shown=SHOWN_CHARS, error=ERROR_CHARS
        )
        await self._graph.contents.fill(rows, (*CALL_LARGE, "text"))
        return sorted((entry for row in rows if (entry := _entry(row)) is not None), key=_order)

    async def _conversation_of(self, message_uuid: str) -> str:
        record = await self._graph.one(
            "MATCH (m:Message {uuid: $uuid}) RETURN m.conversation_id AS id", uuid=message_uuid
        )
        return record["id"] if record else ""


async def link_files(tx: Transaction, c: ToolCall, workspace: str) -> None:
    """Link a call to the files it accessed, in its order."""
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


def change_rows(c: ToolCall) -> list[dict[str, Any]]:
    """Return the rows that link a call to the files whose lines it changed."""
    rows = [storable_value(msgspec.to_builtins(change)) for change in c.changes]
    return [{**row, "call": c.uuid} for row in rows]


async def link_changes(tx: Transaction, rows: list[dict[str, Any]], workspace: str) -> None:
    """Link calls to the files whose lines they changed."""
    for batch in batches(rows):
        await tx.run(
            "UNWIND $rows AS row MATCH (t:ToolCall {uuid: row.call}) "
            "MERGE (f:File {workspace: $workspace, path: row.path}) MERGE (t)-[h:CHANGED]->(f) "
            "SET h.before = row.before, h.after = row.after, h.hunks = row.hunks",
            rows=batch,
            workspace=storable(workspace),
        )


def cut_result(result: ToolResult) -> ToolResult:
    """Return a result small enough to store: above `MAX_RESULT_BYTES` its longest text is cut, with a note.

    `result_size_bytes` is the size that the tool reported, else that of the JSON; the result stays valid JSON.
    """
    size = byte_length(result.result)
    full = result.result_size_bytes or size
    if size <= MAX_RESULT_BYTES:
        return msgspec.structs.replace(result, result_size_bytes=full)
    try:
        data = decode_json(storable(result.result))
    except msgspec.DecodeError:
        data = None
    # Once, not with every cut: a result may be a list of a million numbers.
    data = storable_value(data) if isinstance(data, dict) else {}
    least = {k: cut_middle(v, _LEAST_CHARS) if isinstance(v, str) else v for k, v in data.items()}
    if not data or len(msgspec.json.encode(least)) > MAX_RESULT_BYTES // 2:
        # Only its texts can be cut, and they are not what is long.
        data = {"text": storable(result.result)}
    note = f"\n… [cut: the whole result is {full} bytes; {{cut}} characters left out] …\n"
    limit = MAX_RESULT_BYTES
    text = result.result
    while byte_length(text) > MAX_RESULT_BYTES:
        # Escapes and several long values can keep the whole above the limit after a first cut.
        limit //= 2
        short = {k: cut_middle(v, limit, note) if isinstance(v, str) else v for k, v in data.items()}
        text = msgspec.json.encode({**short, "truncated": full}).decode()
    return msgspec.structs.replace(result, result=text, result_size_bytes=full)


def _page(found: list[CallEntry], first: int, limit: int) -> CallPage:
    """Return at most the requested number of calls, but whole turns."""
    if len(found) > limit:
        first = found[-limit].turn_index
        found = [entry for entry in found if entry.turn_index >= first]
    return CallPage(calls=found, first_turn=first)


def _entry(row: dict[str, Any]) -> CallEntry | None:
    properties = {**row["call"], **{name: (row[name] or "")[:SHOWN_CHARS] for name in CALL_LARGE}}
    call = call_from(properties)
    if call is None:
        return None
    if (outcome := row["result"]) is not None:
        more = {"tool_call_id": call.uuid, "result": command_end(row["text"] or ""), "error": row["error"]}
        call.result = result_from({**outcome, **more})
    return CallEntry(turn_index=row["turn"], position=row["position"] or 0, call=call)


def _order(entry: CallEntry) -> tuple[object, ...]:
    call = entry.call
    return entry.turn_index, entry.position, call.iteration, call.ordinal, call.timestamp, call.uuid
