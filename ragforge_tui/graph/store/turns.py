"""Whole turns: messages with their texts joined, calls, results and files, all in order.

A page requests its turn indexes one by one through the index on (conversation_id, turn_index), so that thirty turns of
ten thousand cost as much as thirty. A branch reads the turns it shares from its parent, and the parent from its own.
"""

from __future__ import annotations

from typing import Any, get_args

from ragforge_tui.graph.connection import Graph, Transaction
from ragforge_tui.graph.labels import own_node
from ragforge_tui.graph.store.conversations import Segment, existing_conversation, in_pages, read_segments
from ragforge_tui.graph.store.messages import LARGE, MESSAGE
from ragforge_tui.graph.store.parts import join_large, outside
from ragforge_tui.graph.store.records import (
    CALL_FIELDS,
    RESULT_FIELDS,
    call_from,
    message_from,
    projection,
    result_from,
)
from ragforge_tui.graph.store.tool_calls import CALL_LARGE, RESULT_LARGE
from ragforge_tui.graph.values import native
from ragforge_tui.graph.writer import writer_alive
from ragforge_tui.shared.records import FileAccess, FileAccessKind, LineChange, Message, ToolCall, Turn, now
from ragforge_tui.shared.requests.memory import TurnLine

PAGE = 100
"""Turns per statement."""
_LINES_PAGE = 500
_CHANGES_AT_ONCE = 20
_ACCESSES = frozenset(get_args(FileAccessKind))
LINE_CHARS = 160

_CALL = projection("t", CALL_FIELDS, *outside(CALL_LARGE))
_RESULT = projection("r", RESULT_FIELDS, *outside(RESULT_LARGE))


class Turns:
    """Turns, read whole."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def between(self, conversation_id: str, *, start: int, end: int, changes: bool = False) -> list[Turn]:
        """Return the turns with index in [start, end), whole and in order.

        Args:
            changes: Add the lines that calls changed, which only an export needs.

        Raises:
            NotFoundError: There is no such conversation.
        """
        segments = await read_segments(self._graph, conversation_id, start, end - 1)
        turns = [turn for page in in_pages(segments, PAGE) for turn in await self._page(page)]
        if changes:
            await _add_changes(self._graph, turns)
        return turns

    async def _page(self, page: Segment) -> list[Turn]:
        async def work(tx: Transaction) -> list[Message]:
            messages = await _messages(self._graph, tx, page)
            await _add_calls(self._graph, tx, messages)
            return messages

        turns: dict[int, Turn] = {}
        for message in await self._graph.read(work):
            turns.setdefault(message.turn_index, Turn(turn_index=message.turn_index, messages=[])).messages.append(
                message
            )
        return list(turns.values())

    async def lines(self, conversation_id: str, first: int, last: int) -> list[TurnLine]:
        """Return the beginnings of the turns of a range, both ends included, in order.

        Raises:
            NotFoundError: There is no such conversation.
        """
        segments = await read_segments(self._graph, conversation_id, first, last)
        return [line for page in in_pages(segments, _LINES_PAGE) for line in await self._lines(page)]

    async def _lines(self, page: Segment) -> list[TurnLine]:
        # A text too large for one property is stored in parts; the turn's search text has the same start.
        rows = await self._graph.rows(
            "UNWIND range($first, $last) AS turn "
            "MATCH (m:Message {conversation_id: $id, turn_index: turn, position: 0}) "
            "RETURN turn, substring(coalesce(toStringOrNull(m.content), ''), 0, $chars) AS text, "
            "m.content_file AS text_file, "
            "substring(coalesce(toStringOrNull(m.turn_text), ''), 0, $chars) AS other, m.timestamp AS at ORDER BY turn",
            id=page.conversation_id,
            first=page.first,
            last=page.last,
            chars=LINE_CHARS,
        )
        await self._graph.contents.fill(rows, ("text",))
        return [
            TurnLine(
                turn_index=row["turn"],
                text=row["text"][:LINE_CHARS] or row["other"],
                timestamp=native(row["at"]),
            )
            for row in rows
        ]

    async def range(self, conversation_id: str) -> tuple[int, int]:
        """Return the lowest and highest turn index, (1, 0) if there are no turns.

        Raises:
            NotFoundError: There is no such conversation.
        """

        async def work(tx: Transaction) -> int:
            return (await existing_conversation(tx, conversation_id)).next_turn - 1

        return 1, await self._graph.read(work)


async def _messages(graph: Graph, tx: Transaction, page: Segment) -> list[Message]:
    result = await tx.run(
        "UNWIND range($first, $last) AS turn MATCH (m:Message {conversation_id: $id, turn_index: turn}) "
        f"RETURN {MESSAGE} AS m ORDER BY m.turn_index, m.position",
        id=page.conversation_id,
        first=page.first,
        last=page.last,
    )
    rows = [dict(record["m"]) async for record in result]
    await join_large(graph, tx, rows, LARGE)
    return [as_seen(message) for row in rows if (message := message_from(row)) is not None]


def as_seen(message: Message) -> Message:
    """Return the message as a reader sees it: a streaming one whose writer is gone is interrupted."""
    if message.state == "streaming" and not writer_alive(message.writer, message.lease_until, now()):
        message.state = "interrupted"
    return message


async def _add_calls(graph: Graph, tx: Transaction, messages: list[Message]) -> None:
    answers = {message.uuid: message for message in messages if message.role != "user"}
    if not answers:
        return
    result = await tx.run(
        "UNWIND $ids AS id MATCH (t:ToolCall {message_id: id}) OPTIONAL MATCH (t)-[:PRODUCED_RESULT]->(r:ToolResult) "
        f"RETURN {_CALL} AS t, CASE WHEN r IS NULL THEN NULL ELSE {_RESULT} END AS r",
        ids=list(answers),
    )
    rows: list[tuple[dict[str, Any], dict[str, Any] | None]] = [
        (dict(record["t"]), dict(record["r"]) if record["r"] else None) async for record in result
    ]
    if not rows:
        return
    await join_large(graph, tx, (call for call, _ in rows), CALL_LARGE)
    await join_large(graph, tx, (outcome for _, outcome in rows if outcome), RESULT_LARGE)
    calls: dict[str, ToolCall] = {}
    for properties, outcome in rows:
        call = call_from(properties)
        if call is None or call.message_id not in answers:
            continue
        call.result = result_from(outcome) if outcome else None
        calls[call.uuid] = call
    await _add_files(tx, calls)
    for call in sorted(calls.values(), key=lambda c: (c.iteration, c.ordinal, c.timestamp, c.uuid)):
        answers[call.message_id].tool_calls.append(call)


async def _add_changes(graph: Graph, turns: list[Turn]) -> None:
    """Add the changed lines to the calls that wrote files, in batches, since each may be large."""
    calls = {call.uuid: call for turn in turns for message in turn.messages for call in message.tool_calls}
    writing = [uuid for uuid, call in calls.items() if any(file.access == "write" for file in call.files)]
    for start in range(0, len(writing), _CHANGES_AT_ONCE):
        rows = await graph.rows(
            f"UNWIND $ids AS id MATCH (t:ToolCall {{uuid: id}})-[h:CHANGED]->{own_node('f', 'File')} "
            "RETURN id, f.path AS path, "
            "h.before AS before, h.after AS after, h.hunks AS hunks ORDER BY id, path",
            ids=writing[start : start + _CHANGES_AT_ONCE],
        )
        for row in rows:
            calls[row["id"]].changes.append(
                LineChange(path=row["path"], before=row["before"], after=row["after"], hunks=row["hunks"])
            )


async def _add_files(tx: Transaction, calls: dict[str, ToolCall]) -> None:
    result = await tx.run(
        f"UNWIND $ids AS id MATCH (t:ToolCall {{uuid: id}})-[a:ACCESSED]->{own_node('f', 'File')} "
        "RETURN id, f.path AS path, a.access AS access, coalesce(toIntegerOrNull(a.ordinal), 0) AS ordinal",
        ids=list(calls),
    )
    rows = [(r["id"], r["ordinal"], r["path"], r["access"]) async for r in result if r["access"] in _ACCESSES]
    for uuid, _, path, access in sorted(rows):
        calls[uuid].files.append(FileAccess(path=path, access=access))
