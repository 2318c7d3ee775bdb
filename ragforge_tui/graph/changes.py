"""Which calls of a conversation wrote files, in order: what a session's diff and undo are worked out from.

One of the subjects `Store` is composed of. Attempts that were replaced count too, since what they wrote stayed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ragforge_tui.graph.parts import join_large
from ragforge_tui.graph.records import RESULT_FIELDS, projection, result_from
from ragforge_tui.graph.tool_calls import RESULT_LARGE

if TYPE_CHECKING:
    from neo4j import AsyncManagedTransaction

    from ragforge_tui.graph.connect import Graph

_RESULT = projection("r", RESULT_FIELDS, *(f"{name}_parts" for name in RESULT_LARGE))
_WRITES = (
    "MATCH (m:Message {conversation_id: $id})-[:MADE_TOOL_CALL]->(t:ToolCall)-[:PRODUCED_RESULT]->(r:ToolResult) "
    "WHERE t.tool_name IN $tools AND r.success "
    "RETURN t.uuid AS call, t.tool_name AS tool, m.turn_index AS turn, m.position AS position, "
    "coalesce(t.iteration, 1) AS iteration, coalesce(t.ordinal, 0) AS ordinal"
)
_RESULTS = (
    f"UNWIND $ids AS id MATCH (t:ToolCall {{uuid: id}})-[:PRODUCED_RESULT]->(r:ToolResult) RETURN id, {_RESULT} AS r"
)
_WORKSPACES = (
    "UNWIND $ids AS id MATCH (t:ToolCall {uuid: id})-[a:ACCESSED]->(f:File) WHERE a.access = 'write' "
    "RETURN DISTINCT id, f.workspace AS workspace"
)
_LONG = ("text", "diff")
_BATCH = 500
_RESULTS_AT_ONCE = 50
"""Each may hold a diff of some 200 000 characters, which is not kept here."""


class StoredWrite(msgspec.Struct, frozen=True, kw_only=True):
    """A call that wrote files, with the JSON text of its result but for the diff and what the model was told."""

    turn_index: int
    tool: str
    result: str


class FileChanges:
    """What `Store` tells of written files."""

    _graph: Graph

    async def file_writes(self, conversation_id: str, tools: Sequence[str], workspace: str) -> list[StoredWrite]:
        """Successful calls of these tools that wrote files of a workspace, in the order they were made.

        A branch has its own only, not those of the turns it shares.
        """

        async def work(tx: AsyncManagedTransaction) -> list[StoredWrite]:
            found = await tx.run(_WRITES, id=conversation_id, tools=list(tools))
            rows: list[dict[str, Any]] = [dict(record) async for record in found]
            here = await _calls_in(tx, [row["call"] for row in rows], workspace)
            rows = [row for row in rows if row["call"] in here]
            rows.sort(key=lambda row: tuple(row[name] for name in ("turn", "position", "iteration", "ordinal")))
            texts = await _results(tx, [row["call"] for row in rows])
            return [
                StoredWrite(turn_index=row["turn"], tool=row["tool"], result=texts[row["call"]])
                for row in rows
                if row["call"] in texts
            ]

        writes: list[StoredWrite] = await self._graph.read(work)
        return writes


async def _calls_in(tx: AsyncManagedTransaction, calls: list[str], workspace: str) -> set[str]:
    found: set[str] = set()
    for start in range(0, len(calls), _BATCH):
        records = await tx.run(_WORKSPACES, ids=calls[start : start + _BATCH])
        found |= {record["id"] async for record in records if record["workspace"] == workspace}
    return found


async def _results(tx: AsyncManagedTransaction, calls: list[str]) -> dict[str, str]:
    """By call: its result without its long texts."""
    texts: dict[str, str] = {}
    for start in range(0, len(calls), _RESULTS_AT_ONCE):
        found = await tx.run(_RESULTS, ids=calls[start : start + _RESULTS_AT_ONCE])
        rows = [(record["id"], dict(record["r"])) async for record in found]
        await join_large(tx, (result for _, result in rows), RESULT_LARGE)
        texts.update((call, _short(result_from(result).result)) for call, result in rows)
    return texts


def _short(result: str) -> str:
    try:
        told = msgspec.json.decode(result, type=dict[str, Any])
    except msgspec.MsgspecError:
        return ""
    return msgspec.json.encode({name: value for name, value in told.items() if name not in _LONG}).decode()
