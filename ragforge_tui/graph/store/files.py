"""Files a conversation touched, and the calls that wrote files.

The graph counts touched files and picks the newest access by path, kind and tool, so that what comes back grows with
the files, not with the calls. A branch has the files of the turns it shares. A session's diff and undo are worked out
from the writes; attempts that were replaced count too, since what they wrote stayed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ragforge_tui.graph.connection import Graph, Transaction
from ragforge_tui.graph.labels import own_node
from ragforge_tui.graph.store.conversations import segments_of
from ragforge_tui.graph.store.parts import join_large, outside
from ragforge_tui.graph.store.records import RESULT_FIELDS, projection, result_from
from ragforge_tui.graph.store.tool_calls import RESULT_LARGE
from ragforge_tui.graph.values import native
from ragforge_tui.shared.accessed_files import group_of, merge_by_path, top_files
from ragforge_tui.shared.json_text import decode_json
from ragforge_tui.shared.records import AccessedFile, LineChange, Message, Turn

_FILES = (
    "UNWIND $segments AS segment "
    f"MATCH (m:Message {{conversation_id: segment.id}})-[:MADE_TOOL_CALL]->{own_node('t', 'ToolCall')}"
    f"-[a:ACCESSED]->{own_node('f', 'File')} "
    "WHERE m.turn_index >= segment.first AND m.turn_index <= segment.last AND coalesce(t.success, true) <> false "
    "RETURN f.path AS path, a.access AS access, t.tool_name AS tool, max(m.turn_index) AS turn, "
    "max(t.timestamp) AS at, count(*) AS count"
)
_END = 2**31

_RESULT = projection("r", RESULT_FIELDS, *outside(RESULT_LARGE))
_WRITES = (
    "UNWIND $segments AS segment "
    f"MATCH {own_node('m', 'Message', 'conversation_id: segment.id')}-[:MADE_TOOL_CALL]->{own_node('t', 'ToolCall')}"
    f"-[:PRODUCED_RESULT]->{own_node('r', 'ToolResult')} "
    "WHERE m.turn_index >= segment.first AND m.turn_index <= segment.last "
    "AND t.tool_name IN $tools "
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
_LONG = ("text", "whole", "diff")
_MOST_MENTIONS = 200
_MENTION_CHARS = 20_000
"""Start of a question that is searched for mentions; more is a pasted text."""
_BATCH = 500
_CHANGES_AT_ONCE = 20
_RESULTS_AT_ONCE = 50
"""Each may hold a diff of some 200 000 characters, which is not kept here."""


class ChangedLines(msgspec.Struct, frozen=True, kw_only=True):
    """Lines of a file that a stored call changed."""

    message: str
    tool: str
    change: LineChange


class StoredWrite(msgspec.Struct, frozen=True, kw_only=True):
    """A call that wrote files, with the JSON text of its result without the diff and the text for the model."""

    turn_index: int
    tool: str
    result: str


class Files:
    """Files that tool calls touched."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def accessed(self, conversation_id: str, limit: int = 100, *, before: int = 0) -> list[AccessedFile]:
        """Return the files that tools accessed: modified, then read, then found, each newest first.

        Args:
            before: Only turns below this index; 0 for all.

        Raises:
            NotFoundError: There is no such conversation.
        """

        async def work(tx: Transaction) -> list[AccessedFile]:
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
        return top_files(merge_by_path(found).values(), limit)

    async def mentions(self, conversation_id: str, *, before: int) -> list[Turn]:
        """Return the newest turns below an index whose question may mention a file (@), without anything else.

        Raises:
            NotFoundError: There is no such conversation.
        """

        async def work(tx: Transaction) -> list[Turn]:
            segments = await segments_of(tx, conversation_id, 1, before - 1) if before > 1 else []
            if not segments:
                return []
            result = await tx.run(
                "UNWIND $segments AS segment MATCH (m:Message {conversation_id: segment.id, position: 0}) "
                "WHERE m.turn_index >= segment.first AND m.turn_index <= segment.last "
                "AND (m.content CONTAINS '@' OR (m.content_file IS NOT NULL AND m.turn_text CONTAINS '@')) "
                "RETURN m.uuid AS uuid, m.turn_index AS turn, left(toStringOrNull(m.content), $chars) AS content, "
                "m.content_file AS content_file, m.timestamp AS at "
                "ORDER BY turn DESC LIMIT $limit",
                segments=[{"id": s.conversation_id, "first": s.first, "last": s.last} for s in segments],
                limit=_MOST_MENTIONS,
                chars=_MENTION_CHARS,
            )
            rows = [dict(record) async for record in result]
            await self._graph.contents.fill(rows, ("content",))
            found = [
                Message(
                    uuid=row["uuid"],
                    conversation_id=conversation_id,
                    turn_index=row["turn"],
                    role="user",
                    content=row["content"][:_MENTION_CHARS],
                    timestamp=native(row["at"]),
                )
                for row in rows
            ]
            return [Turn(turn_index=message.turn_index, messages=[message]) for message in reversed(found)]

        return await self._graph.read(work)

    async def writes(self, conversation_id: str, tools: Sequence[str], workspace: str) -> list[StoredWrite]:
        """Return successful calls of these tools that wrote files of a workspace, in order.

        A branch has those of the turns it shares too.

        Raises:
            NotFoundError: There is no such conversation.
        """

        async def work(tx: Transaction) -> list[StoredWrite]:
            segments = await segments_of(tx, conversation_id, 1, _END)
            if not segments:
                return []
            found = await tx.run(
                _WRITES,
                segments=[{"id": s.conversation_id, "first": s.first, "last": s.last} for s in segments],
                tools=list(tools),
            )
            rows: list[dict[str, Any]] = [dict(record) async for record in found]
            here = await _calls_in(tx, [row["call"] for row in rows], workspace)
            rows = [row for row in rows if row["call"] in here]
            rows.sort(key=lambda row: tuple(row[name] for name in ("turn", "position", "iteration", "ordinal")))
            texts = await _results(self._graph, tx, [row["call"] for row in rows])
            return [
                StoredWrite(turn_index=row["turn"], tool=row["tool"], result=texts[row["call"]])
                for row in rows
                if row["call"] in texts
            ]

        return await self._graph.read(work)

    async def changed_lines(self, places: Sequence[tuple[str, str]]) -> list[ChangedLines]:
        """Return the changes of a file by all calls of conversations that are not deleted, in order of time.

        Args:
            places: Workspace and path under which calls may have changed it.
        """
        rows = await self._graph.rows(
            "UNWIND $places AS place MATCH (f:File {workspace: place[0], path: place[1]})"
            f"<-[:CHANGED]-{own_node('t', 'ToolCall')} "
            f"MATCH {own_node('m', 'Message', 'uuid: t.message_id')} "
            f"MATCH {own_node('c', 'Conversation', 'uuid: m.conversation_id')} "
            f"WHERE c.status <> 'deleted' OPTIONAL MATCH (t)-[:PRODUCED_RESULT]->{own_node('r', 'ToolResult')} "
            "RETURN DISTINCT t.uuid AS call, t.message_id AS message, t.tool_name AS tool, "
            "coalesce(r.timestamp, t.timestamp) AS at, coalesce(t.ordinal, 0) AS ordinal",
            places=[list(place) for place in dict.fromkeys(places)],
        )
        rows.sort(key=lambda row: (native(row["at"]), row["ordinal"], row["call"]))
        found: list[ChangedLines] = []
        for start in range(0, len(rows), _CHANGES_AT_ONCE):
            page = rows[start : start + _CHANGES_AT_ONCE]
            changes = await self._graph.rows(
                "UNWIND $ids AS id MATCH (t:ToolCall {uuid: id})-[h:CHANGED]->(f:File) RETURN id, "
                "f.workspace AS workspace, f.path AS path, h.before AS before, h.after AS after, h.hunks AS hunks",
                ids=[row["call"] for row in page],
            )
            of_call: dict[str, list[LineChange]] = {}
            for row in changes:
                if (row["workspace"], row["path"]) in places:
                    change = LineChange(path=row["path"], before=row["before"], after=row["after"], hunks=row["hunks"])
                    of_call.setdefault(row["id"], []).append(change)
            found += [
                ChangedLines(message=row["message"], tool=row["tool"], change=change)
                for row in page
                for change in of_call.get(row["call"], [])
            ]
        return found


async def _calls_in(tx: Transaction, calls: list[str], workspace: str) -> set[str]:
    found: set[str] = set()
    for start in range(0, len(calls), _BATCH):
        records = await tx.run(_WORKSPACES, ids=calls[start : start + _BATCH])
        found |= {record["id"] async for record in records if record["workspace"] == workspace}
    return found


async def _results(graph: Graph, tx: Transaction, calls: list[str]) -> dict[str, str]:
    """Return results by call, without long texts."""
    texts: dict[str, str] = {}
    for start in range(0, len(calls), _RESULTS_AT_ONCE):
        found = await tx.run(_RESULTS, ids=calls[start : start + _RESULTS_AT_ONCE])
        rows = [(record["id"], dict(record["r"])) async for record in found]
        await join_large(graph, tx, (result for _, result in rows), RESULT_LARGE)
        texts |= {call: _short(one.result) for call, row in rows if (one := result_from(row)) is not None}
    return texts


def _short(result: str) -> str:
    try:
        told = decode_json(result, dict[str, Any])
    except msgspec.MsgspecError:
        return ""
    return msgspec.json.encode({name: value for name, value in told.items() if name not in _LONG}).decode()
