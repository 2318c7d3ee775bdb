"""Turns of a range of time, by conversation: where something was done since a day."""

from __future__ import annotations

from datetime import datetime

import msgspec

from ragforge_tui.graph.connection import Graph
from ragforge_tui.graph.labels import own_node
from ragforge_tui.graph.store.records import CONVERSATION_FIELDS, conversation_from, graph_value, projection
from ragforge_tui.graph.values import native
from ragforge_tui.shared.records import Conversation

_CONVERSATION = projection("c", CONVERSATION_FIELDS)
_AT_ONCE = 100


class ActiveTurns(msgspec.Struct, frozen=True, kw_only=True):
    """Turns of a conversation that began within a range of time, `first` to `last`, both included."""

    conversation: Conversation
    first: int
    last: int
    started: datetime
    ended: datetime


class Activity:
    """Times at which conversations were used."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def turns(
        self, since: datetime, until: datetime, *, workspace: str | None = None, private: str = ""
    ) -> list[ActiveTurns]:
        """Return the turns that began in [since, until), those of the conversation used last first.

        A branch has its own only. Deleted conversations are left out, and private ones but for the one named by
        `private`.
        """
        rows = await self._graph.rows(
            f"MATCH {own_node('c', 'Conversation')} "
            "WHERE c.updated_at >= $since AND c.created_at < $until AND c.status <> 'deleted' "
            "AND ($workspace IS NULL OR c.workspace = $workspace) "
            "AND (coalesce(c.private, false) <> true OR c.uuid = $private) "
            f"RETURN {_CONVERSATION} AS c",
            since=graph_value(since),
            until=graph_value(until),
            workspace=workspace,
            private=private,
        )
        found_all = [one for row in rows if (one := conversation_from(row["c"])) is not None]
        conversations = {one.uuid: one for one in found_all}
        found: list[ActiveTurns] = []
        ids = list(conversations)
        for start in range(0, len(ids), _AT_ONCE):
            found += [
                ActiveTurns(
                    conversation=conversations[row["id"]],
                    first=row["first"],
                    last=row["last"],
                    started=native(row["started"]),
                    ended=native(row["ended"]),
                )
                for row in await self._graph.rows(
                    "UNWIND $ids AS id MATCH (m:Message {conversation_id: id}) "
                    "WHERE m.position = 0 AND m.timestamp >= $since AND m.timestamp < $until "
                    "RETURN id, min(m.turn_index) AS first, max(m.turn_index) AS last, "
                    "min(m.timestamp) AS started, max(m.timestamp) AS ended",
                    ids=ids[start : start + _AT_ONCE],
                    since=graph_value(since),
                    until=graph_value(until),
                )
            ]
        return sorted(found, key=lambda turns: (turns.ended, turns.conversation.uuid), reverse=True)
