"""Messages in the graph, stored while they are written.

A turn's identity is the uuid of its first message; its index is only its place in the order, which the store allocates.
Whoever writes to a turn names it by that uuid, because an index that was guessed while the graph was away may by now
belong to another turn.

A turn's index and a message's position are allocated by one statement that changes the conversation's counters and
creates the node. Neo4j locks the conversation for it. The embedded server does not: there the unique (conversation_id,
turn_index, position) refuses the second writer, whose transaction runs again. Either way, a message that is already
stored keeps its place.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from ragforge_tui.graph.connection import Graph, Transaction
from ragforge_tui.graph.schema.indexes import MESSAGE_LEX
from ragforge_tui.graph.store.parts import join_large, link_parts, outside, store_large, store_parts
from ragforge_tui.graph.store.records import (
    MESSAGE_FIELDS,
    USAGE_FIELDS,
    derived,
    graph_value,
    message_from,
    message_properties,
    projection,
)
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.records import Message, now
from ragforge_tui.shared.sanitize import storable

log = logging.getLogger(__name__)

LARGE = ("content", "reasoning", "note")
"""Texts that may be stored outside their node."""
_STREAMED = ("content", "reasoning")
MESSAGE = projection("m", (*MESSAGE_FIELDS, *USAGE_FIELDS), *outside(LARGE))
INDEXED_CHARS = 200_000
"""Most characters of a turn that full-text search looks at."""

_CHANGED = (
    "c.updated_at = CASE WHEN c.updated_at > $now THEN c.updated_at ELSE $now END, "
    "c.model = CASE WHEN $model = '' THEN c.model ELSE $model END"
)
"""A conversation's model is the one that was used last."""
_COUNTERS = f"SET c.message_count = c.message_count + 1, c.total_chars = c.total_chars + $chars, {_CHANGED}"

_BEGIN = (
    "MATCH (c:Conversation {uuid: $conversation_id}) WHERE NOT EXISTS { MATCH (:Message {uuid: $uuid}) } "
    f"{_COUNTERS}, c.next_turn = c.next_turn + 1 "
    "WITH c, c.next_turn - 1 AS turn_index "
    "CREATE (m:Message {uuid: $uuid, conversation_id: $conversation_id, turn_index: turn_index, position: 0}) "
    "SET m += $properties CREATE (c)-[:HAS_MESSAGE]->(m) "
    "RETURN turn_index, 0 AS position"
)

_ADD = (
    "MATCH (c:Conversation {uuid: $conversation_id}), (q:Message {uuid: $turn_id}) "
    "WHERE NOT EXISTS { MATCH (:Message {uuid: $uuid}) } "
    f"{_COUNTERS} WITH c, q.turn_index AS turn_index "
    "OPTIONAL MATCH (o:Message {conversation_id: $conversation_id, turn_index: turn_index}) "
    "WITH c, turn_index, coalesce(max(o.position), -1) + 1 AS position "
    "CREATE (m:Message {uuid: $uuid, conversation_id: $conversation_id, turn_index: turn_index, position: position}) "
    "SET m += $properties CREATE (c)-[:HAS_MESSAGE]->(m) "
    "RETURN turn_index, position"
)


class Messages:
    """Messages and the counters of their conversations."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def begin_turn(self, m: Message) -> Message:
        """Store the user's message as a new turn and return it; the same uuid again gets the same turn.

        Raises:
            NotFoundError: There is no such conversation.
        """
        return await self._place(m, _BEGIN, {"turn_text": storable(m.content[:INDEXED_CHARS])})

    async def add(self, m: Message, turn_id: str) -> Message:
        """Store a further message of a turn and return it with its turn index and position; idempotent by uuid.

        Args:
            turn_id: Uuid of the turn's first message; `m.turn_index` is ignored.

        Raises:
            NotFoundError: There is no such conversation or turn.
        """
        return await self._place(m, _ADD, {}, turn_id)

    async def places(self, turn_ids: Sequence[str]) -> dict[str, int]:
        """Return the indexes of the turns that these messages begin, without those that are not stored."""
        rows = await self._graph.rows(
            "UNWIND $ids AS id MATCH (m:Message {uuid: id}) RETURN id, m.turn_index AS turn", ids=list(turn_ids)
        )
        return {row["id"]: row["turn"] for row in rows}

    async def _place(self, m: Message, statement: str, extra: dict[str, Any], turn_id: str = "") -> Message:
        properties = {**message_properties(m), **extra, "char_count": len(m.content), "counted_chars": len(m.content)}
        for allocated in ("turn_index", "position"):
            del properties[allocated]
        growing = m.state == "streaming"
        await store_large(self._graph, m.uuid, m.conversation_id, properties, LARGE, growing=growing)
        parameters = {
            "uuid": m.uuid,
            "conversation_id": m.conversation_id,
            "turn_id": turn_id,
            "chars": len(m.content),
            "model": properties["model"],
            "now": now(),
            "properties": properties,
        }

        async def work(tx: Transaction) -> Message | None:
            record = await (await tx.run(statement, parameters)).single()
            if record is None:
                return await _find(self._graph, tx, m.uuid)
            await link_parts(tx, "Message", m.uuid, properties)
            return msgspec.structs.replace(
                m, turn_index=record["turn_index"], position=record["position"], char_count=len(m.content)
            )

        stored: Message | None = await self._graph.write(work)
        if stored is None:
            turn = f" with a turn {turn_id!r}" if turn_id else ""
            raise NotFoundError(f"There is no conversation {m.conversation_id!r}{turn}.")
        return msgspec.structs.replace(stored, tool_calls=m.tool_calls)

    async def checkpoint(
        self, uuid: str, *, content: str, reasoning: str, lease_until: datetime, token_count: int = 0
    ) -> bool:
        """Store the current text of a streaming message and renew its lease.

        Returns:
            False if a stop was requested for its turn.

        Raises:
            NotFoundError: There is no such message.
        """
        properties: dict[str, Any] = {
            "content": storable(content),
            "reasoning": storable(reasoning),
            "lease_until": graph_value(lease_until),
            "char_count": len(content),
            "token_count": token_count,
        }
        await self._store_large_of(uuid, properties)

        async def work(tx: Transaction) -> bool | None:
            # A message that was finished meanwhile is left alone.
            result = await tx.run(
                "MATCH (m:Message {uuid: $uuid}) "
                "FOREACH (_ IN CASE WHEN m.state = 'streaming' THEN [1] ELSE [] END | SET m += $properties) "
                "WITH m OPTIONAL MATCH (f:Message {conversation_id: m.conversation_id, turn_index: m.turn_index, "
                "position: 0}) RETURN coalesce(f.stop_requested, false) AS stop",
                uuid=uuid,
                properties=properties,
            )
            record = await result.single()
            await link_parts(tx, "Message", uuid, properties, tidy=False)
            return None if record is None else bool(record["stop"])

        stop: bool | None = await self._graph.write(work)
        if stop is None:
            raise NotFoundError(f"There is no message {uuid!r}.")
        return not stop

    async def _store_large_of(self, uuid: str, properties: dict[str, Any]) -> None:
        """Call `store_parts` for a message of which only the id is known."""
        if sum(len(properties[name]) for name in _STREAMED) < INDEXED_CHARS:
            properties.update({f"{name}_parts": None for name in _STREAMED})
            return

        async def work(tx: Transaction) -> str:
            found = await _find(self._graph, tx, uuid)
            return found.conversation_id if found else ""

        await store_parts(self._graph, uuid, await self._graph.read(work), properties, _STREAMED)

    async def set_token_count(self, uuid: str, count: int) -> None:
        """Set the tokens of a message's content, which were counted after it was stored."""
        await self._graph.run("MATCH (m:Message {uuid: $uuid}) SET m.token_count = $count", uuid=uuid, count=count)

    async def finish(self, m: Message, turn_id: str) -> None:
        """Store a message's final state; one the graph never saw is stored whole.

        A message superseded meanwhile stays so.

        Args:
            turn_id: Uuid of the first message of its turn, which may be this one.

        Raises:
            NotFoundError: The message is not stored, nor is its conversation or turn.
        """
        properties = {**message_properties(m), "char_count": len(m.content)}
        for fixed in ("uuid", "conversation_id", "turn_index", "position", "state"):
            del properties[fixed]
        await store_large(self._graph, m.uuid, m.conversation_id, properties, LARGE)

        async def work(tx: Transaction) -> bool:
            # counted_chars is what this message has added to the conversation so far: a repeat adds nothing.
            result = await tx.run(
                "MATCH (m:Message {uuid: $uuid}), (c:Conversation {uuid: m.conversation_id}) "
                "SET c.total_chars = c.total_chars + $chars - coalesce(m.counted_chars, 0), "
                f"{_CHANGED} "
                "SET m += $properties, m.counted_chars = $chars, "
                "m.state = CASE WHEN m.state = 'superseded' THEN m.state ELSE $state END "
                "RETURN m.uuid AS uuid",
                uuid=m.uuid,
                chars=len(m.content),
                model=properties["model"],
                now=now(),
                properties=properties,
                state=m.state,
            )
            if await result.single() is None:
                return False
            await link_parts(tx, "Message", m.uuid, properties)
            return True

        if not await self._graph.write(work):
            await (self.begin_turn(m) if m.uuid == turn_id else self.add(m, turn_id))

    async def find(self, uuid: str) -> Message | None:
        """Return a message without its calls, None if there is none with this id."""

        async def work(tx: Transaction) -> Message | None:
            return await _find(self._graph, tx, uuid)

        return await self._graph.read(work)

    async def supersede(self, conversation_id: str, turn_id: str, from_position: int = 1) -> None:
        """Mark a turn's answer as superseded by the next one, and clear a requested stop; the user's messages stay.

        Args:
            conversation_id: The one that is answered again: a branch leaves the answers of its parent alone.
            turn_id: Uuid of the turn's first message.
        """

        async def work(tx: Transaction) -> None:
            await tx.run(
                "MATCH (q:Message {uuid: $turn}) WITH q.turn_index AS turn "
                "MATCH (m:Message {conversation_id: $id, turn_index: turn}) "
                "WHERE m.position >= $position AND m.role <> 'user' SET m.state = 'superseded'",
                id=conversation_id,
                turn=turn_id,
                position=from_position,
            )
            await tx.run("MATCH (q:Message {uuid: $turn}) SET q.stop_requested = null", turn=turn_id)

        await self._graph.write(work)

    async def request_stop(self, turn_id: str) -> None:
        """Ask the process that answers the turn of this first message to stop; it notices at its next checkpoint."""
        await self._graph.run("MATCH (q:Message {uuid: $turn}) SET q.stop_requested = true", turn=turn_id)

    async def stop_requested(self, turn_id: str) -> bool:
        """Return whether a stop was requested for the turn of this first message."""
        record = await self._graph.one(
            "MATCH (q:Message {uuid: $turn}) RETURN coalesce(q.stop_requested, false) AS stop", turn=turn_id
        )
        return bool(record and record["stop"])

    async def store_persona(self, message_uuid: str, name: str, digest: str, text: str) -> None:
        """Store the exact text of a message's persona; one node per text."""
        properties = {
            "uuid": derived("persona", digest),
            "name": storable(name),
            "digest": digest,
            "text": storable(text),
        }
        await self._graph.run(
            "MATCH (m:Message {uuid: $message}) MERGE (p:Persona {uuid: $properties.uuid}) "
            "ON CREATE SET p += $properties MERGE (m)-[:SPOKEN_AS]->(p)",
            message=message_uuid,
            properties=properties,
        )


def key_properties(turn_text: str, lex_key: str, language: str) -> dict[str, Any]:
    """Return the search keys of a turn, for its first message: its own text, and the window around it."""
    key = MESSAGE_LEX.get(language, MESSAGE_LEX["en"])[0]
    return {
        **{props[0]: None for props in MESSAGE_LEX.values()},
        "turn_text": storable(turn_text[:INDEXED_CHARS]),
        key: storable(lex_key[:INDEXED_CHARS]),
        "language": language,
    }


async def _find(graph: Graph, tx: Transaction, uuid: str) -> Message | None:
    record = await (await tx.run(f"MATCH (m:Message {{uuid: $uuid}}) RETURN {MESSAGE} AS m", uuid=uuid)).single()
    if record is None:
        return None
    row = dict(record["m"])
    await join_large(graph, tx, [row], LARGE)
    return message_from(row)
