"""Conversations in the graph: created, found, listed, changed, and in the end purged.

Deleting hides a conversation at once; `purge` removes it in small batches that can be resumed.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ragforge_tui.graph.store.orphans import remove_orphans
from ragforge_tui.graph.store.records import (
    CONVERSATION_FIELDS,
    conversation_from,
    conversation_properties,
    graph_value,
    projection,
)
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.records import Conversation, ConversationFilter, now
from ragforge_tui.shared.sanitize import storable

if TYPE_CHECKING:
    from neo4j import AsyncManagedTransaction

    from ragforge_tui.graph.connect import Graph

_CONVERSATION = projection("c", CONVERSATION_FIELDS)
_FIXED = {"uuid", "created_at", "next_turn", "message_count", "total_chars", "branch_of", "branch_turn"}
_CHANGEABLE = {*CONVERSATION_FIELDS, "summary_embedding"} - _FIXED
_CANDIDATES = 5

# What a conversation owns, leaves first, with how many go at once: nodes that may hold a MiB each go in small
# batches, because a delete loads what it deletes.
_OWNED = (
    ("Part", 16),
    ("ToolResult", 100),
    ("ToolCall", 100),
    ("Context", 500),
    ("Sitting", 100),
    ("Summary", 500),
    ("Message", 100),
)


class Conversations:
    """Conversations: created, found, listed, changed and purged."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def create(self, c: Conversation) -> Conversation:
        """Store a conversation; one that exists by this uuid is returned as it is.

        A branch (`branch_of`, `branch_turn`) shares its parent's turns up to and including `branch_turn`; its own
        begin after it. What it shares is counted as its own.
        """
        properties = conversation_properties(c)
        if c.branch_of:
            properties["next_turn"] = max(c.next_turn, (c.branch_turn or 0) + 1)

        async def work(tx: AsyncManagedTransaction) -> Conversation:
            if c.branch_of and c.branch_turn:
                messages, chars = await _size(tx, c.branch_of, c.branch_turn)
                properties["message_count"] = max(c.message_count, messages)
                properties["total_chars"] = max(c.total_chars, chars)
            result = await tx.run(
                f"MERGE (c:Conversation {{uuid: $uuid}}) ON CREATE SET c += $properties RETURN {_CONVERSATION} AS c",
                uuid=c.uuid,
                properties=properties,
            )
            record = await result.single(strict=True)
            if c.branch_of:
                await _link_branch(tx, c)
            return conversation_from(record["c"])

        created: Conversation = await self._graph.write(work)
        return created

    async def get(self, uuid: str) -> Conversation:
        """The conversation of that id, whatever its status.

        Raises:
            NotFoundError: There is none.
        """

        async def work(tx: AsyncManagedTransaction) -> Conversation | None:
            return await find_conversation(tx, uuid)

        found: Conversation | None = await self._graph.read(work)
        if found is None:
            raise _unknown(uuid)
        return found

    async def resolve(self, ref: str) -> Conversation:
        """Return the conversation with the id `ref` or with this prefix; deleted ones are found by their full id only.

        Raises:
            NotFoundError: None or several answer; several are listed.
        """
        wanted = storable(ref.strip().lower())

        async def work(tx: AsyncManagedTransaction) -> list[Conversation]:
            exact = await find_conversation(tx, wanted)
            if exact is not None:
                return [exact]
            result = await tx.run(
                "MATCH (c:Conversation) WHERE c.uuid STARTS WITH $ref AND c.status <> 'deleted' "
                f"RETURN {_CONVERSATION} AS c ORDER BY c.updated_at DESC LIMIT $limit",
                ref=wanted,
                limit=_CANDIDATES + 1,
            )
            return [conversation_from(record["c"]) async for record in result]

        found: list[Conversation] = await self._graph.read(work) if wanted else []
        if not found:
            raise _unknown(ref)
        if len(found) > 1:
            names = ", ".join(f"{c.uuid} ({c.title or 'untitled'})" for c in found[:_CANDIDATES])
            more = " and others" if len(found) > _CANDIDATES else ""
            raise NotFoundError(
                f"Several conversations begin with {ref!r}: {names}{more}.", todo="Give more characters of the id."
            )
        return found[0]

    async def latest(self, workspace: str) -> Conversation | None:
        """The active conversation of the workspace that changed last."""
        found = await self.matching(ConversationFilter(workspace=workspace, limit=1))
        return found[0] if found else None

    async def matching(self, f: ConversationFilter) -> list[Conversation]:
        """Conversations that pass the filter, newest first."""
        order = "created_at" if f.order == "created" else "updated_at"
        statement = (
            "MATCH (c:Conversation) "
            "WHERE ($status = 'any' OR c.status = $status) AND ($workspace IS NULL OR c.workspace = $workspace) "
            "AND (size($tags) = 0 OR any(tag IN $tags WHERE tag IN c.tags)) "
            "AND all(word IN $words "
            "WHERE toLower(coalesce(c.title, '') + ' ' + coalesce(c.summary, '')) CONTAINS word) "
            f"RETURN {_CONVERSATION} AS c ORDER BY c.{order} DESC, c.uuid LIMIT $limit"
        )
        parameters = {
            "status": f.status,
            "workspace": f.workspace,
            "tags": [storable(tag) for tag in f.tags],
            "words": storable(f.query).lower().split(),
            "limit": max(f.limit, 0),
        }
        return [conversation_from(record["c"]) for record in await self._graph.rows(statement, **parameters)]

    async def update(self, uuid: str, **changes: Any) -> Conversation:
        """Set properties that the user or the engine may change, and `updated_at` unless it is among them.

        Raises:
            NotFoundError: There is no such conversation.
        """
        unknown = set(changes) - _CHANGEABLE
        if unknown:
            raise ValueError(f"not changeable: {', '.join(sorted(unknown))}")
        values = {name: graph_value(value) for name, value in changes.items()}
        values.setdefault("updated_at", now())
        record = await self._graph.write_one(
            f"MATCH (c:Conversation {{uuid: $uuid}}) SET c += $values RETURN {_CONVERSATION} AS c",
            uuid=uuid,
            values=values,
        )
        if record is None:
            raise _unknown(uuid)
        return conversation_from(record["c"])

    async def purge(self, uuid: str) -> bool:
        """Remove a conversation and all it owns, in batches; nodes that others share stay.

        One that has branches is archived instead, since they read their beginning from it. Cut short, a repeated
        call goes on where this one stopped; meanwhile the conversation is hidden.

        Returns:
            Whether it is gone.
        """
        if await self._has_branches(uuid):
            await self.update(uuid, status="archived", deleted_at=None)
            return False
        current = await self.get(uuid)
        if current.status != "deleted":
            await self.update(uuid, status="deleted", deleted_at=now())
        for label, size in _OWNED:
            await self._delete_all(
                f"MATCH (n:{label} {{conversation_id: $uuid}}) WITH n LIMIT {size} DETACH DELETE n "
                "RETURN count(*) AS removed",
                uuid,
            )
        await self._delete_all(
            "MATCH (n:Conversation {uuid: $uuid}) DETACH DELETE n RETURN 0 AS removed",
            uuid,
        )
        await remove_orphans(self._graph, uuid)
        return True

    async def expired(self, older_than: timedelta = timedelta(days=7)) -> list[str]:
        """Ids of the conversations that were deleted longer ago than that."""
        cutoff = now() - older_than
        return [
            record["uuid"]
            for record in await self._graph.rows(
                "MATCH (c:Conversation {status: 'deleted'}) WHERE c.deleted_at <= $cutoff RETURN c.uuid AS uuid",
                cutoff=cutoff,
            )
        ]

    async def _has_branches(self, uuid: str) -> bool:
        return (
            await self._graph.one("MATCH (b:Conversation {branch_of: $uuid}) RETURN b.uuid AS uuid LIMIT 1", uuid=uuid)
            is not None
        )

    async def _delete_all(self, statement: str, uuid: str) -> None:
        """Repeat a deleting statement, each time in a transaction of its own, until it removes nothing."""
        while (row := await self._graph.write_one(statement, uuid=uuid)) and row["removed"]:
            pass


async def find_conversation(tx: AsyncManagedTransaction, uuid: str) -> Conversation | None:
    """The conversation of that id, None when there is none."""
    result = await tx.run(f"MATCH (c:Conversation {{uuid: $uuid}}) RETURN {_CONVERSATION} AS c", uuid=uuid)
    record = await result.single()
    return conversation_from(record["c"]) if record else None


async def _size(tx: AsyncManagedTransaction, uuid: str, last_turn: int) -> tuple[int, int]:
    """Messages and their characters up to a turn, in a conversation and those it is a branch of."""
    messages = chars = 0
    seen: set[str] = set()
    while uuid and last_turn and uuid not in seen:
        seen.add(uuid)
        record = await (
            await tx.run(
                "MATCH (c:Conversation {uuid: $uuid}) "
                "OPTIONAL MATCH (m:Message {conversation_id: $uuid}) WHERE m.turn_index <= $last "
                "RETURN c.branch_of AS parent, coalesce(c.branch_turn, 0) AS shared, count(m) AS messages, "
                "coalesce(sum(m.char_count), 0) AS chars",
                uuid=uuid,
                last=last_turn,
            )
        ).single()
        if record is None:
            break
        messages, chars = messages + record["messages"], chars + record["chars"]
        uuid, last_turn = record["parent"] or "", min(last_turn, record["shared"])
    return messages, chars


async def _link_branch(tx: AsyncManagedTransaction, c: Conversation) -> None:
    await tx.run(
        "MATCH (p:Conversation {uuid: $parent}), (c:Conversation {uuid: $uuid}) "
        "OPTIONAL MATCH (m:Message {conversation_id: $parent, turn_index: $turn, position: 0}) "
        "MERGE (p)-[b:HAS_BRANCH]->(c) SET b.from_message = m.uuid",
        parent=c.branch_of,
        uuid=c.uuid,
        turn=c.branch_turn,
    )


def _unknown(ref: str) -> NotFoundError:
    return NotFoundError(
        f"There is no conversation {ref!r}.", todo="`ragforge-chat sessions` lists the conversations there are."
    )
