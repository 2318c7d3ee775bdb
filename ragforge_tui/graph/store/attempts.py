"""Attempts in the graph, found by the path of a file or the program of a command.

A conversation notes the last turn that was examined, so that turns stored while the program was not running, imported
ones too, are found by one query.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ragforge_tui.graph.connection import Graph, Transaction
from ragforge_tui.graph.labels import is_own, own_node
from ragforge_tui.graph.store.records import given, projection, properties_of, record_from
from ragforge_tui.shared.attempt_records import Attempt
from ragforge_tui.shared.sanitize import storable

MOST_FOUND = 200
"""Newest attempts of each key that are looked at."""
_FIELDS = Attempt.__struct_fields__
_ATTEMPT = projection("a", _FIELDS)
_AT_ONCE = 200


class KnownAttempt(msgspec.Struct, frozen=True):
    """An attempt with the title of its conversation."""

    attempt: Attempt
    title: str


class Unexamined(msgspec.Struct, frozen=True):
    """Conversation with turns that were not examined: those after `through`, up to `last`."""

    conversation_id: str
    through: int
    last: int


class Attempts:
    """Attempts of all conversations."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def add(self, attempts: Sequence[Attempt]) -> None:
        """Store attempts with their message, files and scopes; one that is stored already gets at most a reason."""
        for start in range(0, len(attempts), _AT_ONCE):
            page = attempts[start : start + _AT_ONCE]

            async def work(tx: Transaction, page: Sequence[Attempt] = page) -> None:
                await write_attempts(tx, page)

            await self._graph.write(work)

    async def about(
        self, workspace: str, keys: Sequence[str], *, asking: str, elsewhere: bool = True
    ) -> list[KnownAttempt]:
        """Return what still holds of the attempts with one of these keys, newest first.

        Args:
            asking: The conversation that asks; private ones are found by themselves only.
            elsewhere: Whether other conversations are searched too.
        """
        rows = await self._graph.rows(
            "UNWIND $keys AS key MATCH (a:Attempt {workspace: $workspace, key: key}) "
            f"WHERE NOT a.over AND {is_own('a', 'Attempt')} AND ($elsewhere OR a.conversation_id = $asking) "
            f"MATCH {own_node('c', 'Conversation', 'uuid: a.conversation_id')} WHERE c.status <> 'deleted' "
            "AND (c.uuid = $asking OR coalesce(c.private, false) <> true) "
            f"RETURN {_ATTEMPT} AS a, c.title AS title, a.at AS at ORDER BY at DESC LIMIT $limit",
            workspace=storable(workspace),
            keys=[storable(key) for key in dict.fromkeys(keys)],
            asking=asking,
            elsewhere=elsewhere,
            limit=MOST_FOUND,
        )
        return [
            KnownAttempt(attempt, row["title"] or "") for row in rows if (attempt := attempt_from(row["a"])) is not None
        ]

    async def of_conversation(self, conversation_id: str) -> list[Attempt]:
        """Return all attempts of one conversation, oldest first."""
        return await self._graph.read(lambda tx: stored_attempts(tx, conversation_id))

    async def set_over(self, uuids: Sequence[str]) -> None:
        """Note that attempts no longer hold."""
        await self._graph.run("UNWIND $ids AS id MATCH (a:Attempt {uuid: id}) SET a.over = true", ids=list(uuids))

    async def redone(self, conversation_id: str, turns: Sequence[int]) -> None:
        """Note that the undos of some turns were taken back, so that what they had undone stands again."""
        await self._graph.run(
            "MATCH (a:Attempt {conversation_id: $id}) WHERE a.outcome = 'undone' AND a.end_turn IN $turns "
            "SET a.over = true",
            id=conversation_id,
            turns=list(turns),
        )

    async def unexamined(self, workspace: str) -> list[Unexamined]:
        """Return the conversations of a workspace with turns that were not examined."""
        rows = await self._graph.rows(
            f"MATCH {own_node('c', 'Conversation', 'workspace: $workspace')} WHERE c.status <> 'deleted' "
            "WITH c, coalesce(c.attempts_through, c.branch_turn, 0) AS through WHERE through < c.next_turn - 1 "
            "RETURN c.uuid AS conversation_id, through, c.next_turn - 1 AS last ORDER BY c.updated_at DESC",
            workspace=storable(workspace),
        )
        return [Unexamined(**row) for row in rows]

    async def through(self, conversation_id: str) -> int:
        """Return the last turn of a conversation that was examined; for a branch at least the last it shares."""
        row = await self._graph.one(
            "MATCH (c:Conversation {uuid: $id}) RETURN coalesce(c.attempts_through, c.branch_turn, 0) AS through",
            id=conversation_id,
        )
        return int(row["through"]) if row else 0

    async def set_through(self, conversation_id: str, turn_index: int) -> None:
        """Note that the turns up to one were examined."""
        await self._graph.run(
            "MATCH (c:Conversation {uuid: $id}) WHERE coalesce(c.attempts_through, 0) < $turn "
            "SET c.attempts_through = $turn",
            id=conversation_id,
            turn=turn_index,
        )


async def write_attempts(tx: Transaction, attempts: Sequence[Attempt]) -> None:
    """Store attempts in a running transaction; one that is stored already gets at most a reason."""
    rows = [{"uuid": each.uuid, "message": each.message, "properties": _properties(each)} for each in attempts]
    await (
        await tx.run(
            "UNWIND $rows AS row MERGE (a:Attempt {uuid: row.uuid}) ON CREATE SET a += row.properties "
            "ON MATCH SET a.why = CASE WHEN a.why = '' THEN row.properties.why ELSE a.why END "
            "WITH a, row MATCH (m:Message {uuid: row.message}) MERGE (a)-[:`IN`]->(m)",
            rows=rows,
        )
    ).consume()
    files = [
        {"uuid": each.uuid, "workspace": storable(each.workspace), "path": storable(each.key)}
        for each in attempts
        if each.marks
    ]
    await (
        await tx.run(
            "UNWIND $rows AS row MATCH (a:Attempt {uuid: row.uuid}) "
            "MERGE (f:File {workspace: row.workspace, path: row.path}) MERGE (a)-[:ABOUT]->(f)",
            rows=files,
        )
    ).consume()
    scopes = [{"uuid": each.uuid, "scope": scope} for each in attempts for scope in each.scopes]
    await (
        await tx.run(
            "UNWIND $rows AS row MATCH (a:Attempt {uuid: row.uuid}) MATCH (s:Scope {uuid: row.scope}) "
            "MERGE (a)-[:ABOUT]->(s)",
            rows=scopes,
        )
    ).consume()


async def stored_attempts(tx: Transaction, conversation_id: str) -> list[Attempt]:
    """Return the attempts of a conversation, oldest first."""
    result = await tx.run(
        f"MATCH (a:Attempt {{conversation_id: $id}}) WHERE {is_own('a', 'Attempt')} "
        f"RETURN {_ATTEMPT} AS a, a.end_turn AS turn, a.at AS at, a.uuid AS uuid ORDER BY turn, at, uuid",
        id=conversation_id,
    )
    return [attempt for record in await result.data() if (attempt := attempt_from(record["a"])) is not None]


def attempt_from(properties: Any) -> Attempt | None:
    """Return an attempt of a node's properties; None for another program's node."""
    return record_from(Attempt, given(properties, _FIELDS))


def _properties(attempt: Attempt) -> dict[str, Any]:
    return properties_of(attempt, _FIELDS)
