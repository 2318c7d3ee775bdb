"""Requests to models and what they took: replies of turns, and requests of background work."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ragforge_tui.graph.connection import Graph, Transaction
from ragforge_tui.graph.labels import own_node
from ragforge_tui.graph.store.records import USAGE_FIELDS, graph_value, projection, usage_from, usage_properties
from ragforge_tui.graph.values import native
from ragforge_tui.shared.records import Usage
from ragforge_tui.shared.sanitize import storable
from ragforge_tui.shared.usage_records import BackgroundRequest, SpentRequest

_AT_ONCE = 100
_CONTEXTS_AT_ONCE = 50
_REPLY = projection("m", ("turn_index", "position", "timestamp", "model", "persona", "state", *USAGE_FIELDS))
_REQUEST = projection("r", ("conversation_id", "timestamp", "model", "purpose", *USAGE_FIELDS))


class Spending:
    """What requests to models took."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def add(self, request: BackgroundRequest) -> None:
        """Store a request of background work; nothing happens if its conversation is gone."""
        properties = {
            "uuid": request.uuid,
            "conversation_id": request.conversation_id,
            "purpose": request.purpose,
            "model": storable(request.model),
            "timestamp": graph_value(request.timestamp),
            **usage_properties(request.usage),
        }

        async def work(tx: Transaction) -> None:
            await tx.run(
                "MATCH (c:Conversation {uuid: $id}) SET c.spent_at = $now MERGE (r:BackgroundRequest {uuid: $uuid}) "
                "SET r += $properties MERGE (c)-[:HAS_BACKGROUND_REQUEST]->(r)",
                id=request.conversation_id,
                now=graph_value(request.timestamp),
                uuid=request.uuid,
                properties=properties,
            )

        await self._graph.write(work)

    async def requests(
        self, since: datetime | None, *, workspace: str | None = None, conversation_id: str = ""
    ) -> list[SpentRequest]:
        """Return all requests of the conversations that were used at this time or later, in the order of their turns.

        Earlier requests of these conversations are included. A conversation's helpers belong to it. Conversations that
        are deleted but not purged count too: what they took was spent. In the sessions of other agents, replies without
        a persona are theirs.
        """
        found = {
            row["id"]: row
            for row in await self._graph.rows(
                f"MATCH {own_node('c', 'Conversation')} "
                "WHERE ($since IS NULL OR c.updated_at >= $since OR c.spent_at >= $since) "
                "AND ($workspace IS NULL OR c.workspace = $workspace) "
                "AND ($id = '' OR c.uuid = $id OR (c.branch_of = $id AND coalesce(c.helper_of, '') <> '')) "
                "RETURN c.uuid AS id, c.workspace AS workspace, c.helper_of AS helper, "
                "[tag IN coalesce(c.tags, []) WHERE tag STARTS WITH 'from:' | substring(tag, 5)] AS agents",
                since=since and graph_value(since),
                workspace=workspace,
                id=conversation_id,
            )
        }
        requests: list[SpentRequest] = []
        ids = sorted(found)
        for start in range(0, len(ids), _AT_ONCE):
            some = ids[start : start + _AT_ONCE]
            replies = [(row, found[row["id"]]) for row in await self._replies(some)]
            requests += [_reply(row, of) for row, of in replies]
            requests += [_background(row["r"], found) for row in await self._background(some)]
        return requests

    async def _replies(self, ids: Sequence[str]) -> list[dict[str, Any]]:
        # A reply may have several contexts, if a shorter request followed; the last one was answered.
        return await self._graph.rows(
            f"UNWIND $ids AS id MATCH {own_node('m', 'Message', 'conversation_id: id')} "
            "WHERE m.role = 'assistant' AND m.model <> '' "
            "AND (m.input_tokens IS NOT NULL OR m.state IN ['interrupted', 'failed']) "
            "OPTIONAL MATCH (m)-[:WAS_SENT]->(x:Context) "
            f"WITH id, m, x ORDER BY x.created_at WITH id, m, collect(x.uuid) AS contexts "
            f"RETURN id, {_REPLY} AS m, contexts ORDER BY id, m.turn_index, m.position",
            ids=list(ids),
        )

    async def _background(self, ids: Sequence[str]) -> list[dict[str, Any]]:
        return await self._graph.rows(
            f"UNWIND $ids AS id MATCH {own_node('r', 'BackgroundRequest', 'conversation_id: id')} "
            f"RETURN {_REQUEST} AS r",
            ids=list(ids),
        )

    async def contexts(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the stored contexts of requests by id, as JSON of `ContextRecord`."""
        found: dict[str, str] = {}
        for start in range(0, len(ids), _CONTEXTS_AT_ONCE):
            rows = await self._graph.rows(
                "UNWIND $ids AS id MATCH (x:Context {uuid: id}) RETURN x.uuid AS uuid, x.items AS items",
                ids=list(ids[start : start + _CONTEXTS_AT_ONCE]),
            )
            found |= {row["uuid"]: row["items"] for row in rows}
        return found


def _reply(row: dict[str, Any], conversation: dict[str, Any]) -> SpentRequest:
    reply = row["m"]
    usage = usage_from(reply)
    return SpentRequest(
        conversation_id=row["id"],
        turn_index=reply["turn_index"],
        position=reply["position"],
        timestamp=native(reply["timestamp"]),
        model=reply["model"],
        persona=reply.get("persona") or "",
        workspace=conversation["workspace"] or "",
        helper=bool(conversation["helper"]),
        superseded=reply["state"] == "superseded",
        unknown=usage is None,
        context=row["contexts"][-1] if row["contexts"] else "",
        agent="" if reply.get("persona") else next(iter(conversation["agents"]), ""),
        usage=usage or Usage(),
    )


def _background(request: dict[str, Any], conversations: dict[str, dict[str, Any]]) -> SpentRequest:
    conversation = conversations[request["conversation_id"]]
    return SpentRequest(
        conversation_id=request["conversation_id"],
        timestamp=native(request["timestamp"]),
        model=request["model"],
        workspace=conversation["workspace"] or "",
        purpose=request["purpose"],
        helper=bool(conversation["helper"]),
        usage=usage_from(request) or Usage(),
    )
