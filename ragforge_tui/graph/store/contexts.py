"""Stored contexts: what each request held, as sources and cuts.

Texts of turns and summaries are in the graph already and are looked up; the stable beginning of requests
(instructions, AGENTS.md, persona) is stored once per text.
"""

from __future__ import annotations

import msgspec

from ragforge_tui.graph.connection import Graph, Transaction
from ragforge_tui.graph.labels import own_node
from ragforge_tui.graph.store.messages import INDEXED_CHARS
from ragforge_tui.graph.store.records import derived
from ragforge_tui.shared.json_text import decode_json
from ragforge_tui.shared.records import ContextRecord, now
from ragforge_tui.shared.sanitize import storable
from ragforge_tui.shared.truncation import cut_middle


class StoredRequest(msgspec.Struct, frozen=True):
    """A stored request without its texts, and the number of replies to requests with the same content."""

    record: ContextRecord
    replies: int


class Contexts:
    """Stored contexts of requests."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def store(
        self, message_uuid: str, items: str, tokens: int, digest: str, texts: dict[str, str] | None = None
    ) -> None:
        """Store the content of the request that a reply answers.

        Args:
            message_uuid: The reply. Replies of one turn that held the same share one node.
            items: JSON of a `ContextRecord` whose texts are left out where they can be looked up.
            texts: Digest to text of the stable beginning.
        """
        properties = {"items": storable(items), "tokens": tokens, "digest": digest, "created_at": now()}
        kept = [
            {"uuid": derived("system text", key), "digest": key, "text": storable(cut_middle(text, INDEXED_CHARS))}
            for key, text in (texts or {}).items()
        ]

        async def work(tx: Transaction) -> None:
            found = await tx.run(
                "MATCH (m:Message {uuid: $message}) RETURN m.conversation_id AS id, m.turn_index AS turn",
                message=message_uuid,
            )
            record = await found.single()
            if record is None:
                return
            uuid = derived("context", record["id"], record["turn"], digest)
            await tx.run(
                "MATCH (m:Message {uuid: $message}) MERGE (x:Context {uuid: $uuid}) "
                "ON CREATE SET x += $properties, x.conversation_id = m.conversation_id "
                "MERGE (m)-[:WAS_SENT]->(x)",
                message=message_uuid,
                uuid=uuid,
                properties=properties,
            )
            await tx.run(
                "MATCH (c:Conversation {uuid: $id}) UNWIND $kept AS row MERGE (t:SystemText {uuid: row.uuid}) "
                "ON CREATE SET t += row MERGE (c)-[:BEGINS_WITH]->(t)",
                id=record["id"],
                kept=kept,
            )

        await self._graph.write(work)

    async def system_texts(self, digests: list[str]) -> dict[str, str]:
        """Return texts of the stable beginning by digest."""
        return {
            record["digest"]: record["text"]
            for record in await self._graph.rows(
                "UNWIND $ids AS id MATCH (t:SystemText {uuid: id}) RETURN t.digest AS digest, t.text AS text",
                ids=[derived("system text", digest) for digest in digests],
            )
        }

    async def of_turn(self, conversation_id: str, turn_index: int) -> list[StoredRequest]:
        """Return the requests of a turn without their texts, in order; equal ones once.

        Args:
            conversation_id: The conversation that holds the turn itself, not a branch of it.
        """
        rows = await self._graph.rows(
            f"MATCH {own_node('m', 'Message', 'conversation_id: $id, turn_index: $turn')}-[:WAS_SENT]->"
            f"{own_node('x', 'Context')} "
            "RETURN x.uuid AS uuid, x.items AS items, m.position AS position ORDER BY position",
            id=conversation_id,
            turn=turn_index,
        )
        replies: dict[str, int] = {}
        items: dict[str, str] = {}
        for row in rows:
            replies[row["uuid"]] = replies.get(row["uuid"], 0) + 1
            items.setdefault(row["uuid"], row["items"])
        found = []
        for uuid, text in items.items():
            try:
                record = decode_json(text, ContextRecord)
            except msgspec.MsgspecError:
                continue  # Kept by a version that wrote it in another form.
            # Where the turn is, not where it was thought to be when the request was made.
            record.turn_index = turn_index
            found.append(StoredRequest(record, replies[uuid]))
        return found
