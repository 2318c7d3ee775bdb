"""Links from the turns of conversations to the scopes they touch or name, and how far each conversation is linked.

`store.code` stores the links themselves. A conversation notes the last turn that was examined, so that turns stored
while the program was not running, imported ones too, are found by one query.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ragforge_tui.graph.connection import Graph
from ragforge_tui.graph.store.code_search import SCOPE, scope_from
from ragforge_tui.graph.store.conversations import read_segments
from ragforge_tui.shared.code_views import TouchedScope
from ragforge_tui.shared.sanitize import storable

_END = 2**31
TYPE_KINDS = ("class", "interface", "struct", "enum", "trait", "type")


class Unlinked(msgspec.Struct, frozen=True):
    """Conversation with turns that were not examined: those after `through`, up to `last`."""

    conversation_id: str
    through: int
    last: int


class NamedScope(msgspec.Struct, frozen=True):
    """Scope as far as a name in a text is compared with it."""

    uuid: str
    name: str
    qualified_name: str
    file: str


class CodeLinks:
    """Links from turns to scopes."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def unlinked(self, workspace: str) -> list[Unlinked]:
        """Return the conversations of a workspace with turns that were not examined."""
        rows = await self._graph.rows(
            "MATCH (c:Conversation {workspace: $workspace}) WHERE c.status <> 'deleted' "
            "WITH c, coalesce(c.code_through, c.branch_turn, 0) AS through WHERE through < c.next_turn - 1 "
            "RETURN c.uuid AS conversation_id, through, c.next_turn - 1 AS last ORDER BY c.updated_at DESC",
            workspace=workspace,
        )
        return [Unlinked(**row) for row in rows]

    async def through(self, conversation_id: str) -> int:
        """Return the last turn of a conversation that was examined; for a branch at least the last it shares."""
        row = await self._graph.one(
            "MATCH (c:Conversation {uuid: $id}) RETURN coalesce(c.code_through, c.branch_turn, 0) AS through",
            id=conversation_id,
        )
        return int(row["through"]) if row else 0

    async def set_through(self, conversation_id: str, turn_index: int) -> None:
        """Note that the turns up to one were examined."""
        await self._graph.run(
            "MATCH (c:Conversation {uuid: $id}) "
            "SET c.code_through = CASE WHEN coalesce(c.code_through, 0) > $turn THEN c.code_through ELSE $turn END",
            id=conversation_id,
            turn=turn_index,
        )

    async def named(self, workspace: str, names: Sequence[str]) -> list[NamedScope]:
        """Return the definitions of a workspace with one of these names, spelled the same."""
        rows = await self._graph.rows(
            "UNWIND $names AS name MATCH (s:Scope {workspace: $workspace, name: name}) "
            "WHERE s.removed_at IS NULL AND NOT s.kind IN ['module', 'section'] "
            "RETURN s.uuid AS uuid, s.name AS name, s.qualified_name AS qualified_name, s.file AS file LIMIT 2000",
            workspace=workspace,
            names=[storable(name) for name in names],
        )
        return [NamedScope(**row) for row in rows]

    async def existing(self, uuids: Sequence[str]) -> set[str]:
        """Return which of these scopes are in the graph."""
        rows = await self._graph.rows(
            "UNWIND $ids AS id MATCH (s:Scope {uuid: id}) RETURN id", ids=list(dict.fromkeys(uuids))
        )
        return {row["id"] for row in rows}

    async def enclosing(self, uuids: Sequence[str]) -> list[str]:
        """Return the classes and other types around some scopes: of the same file, or the only one of its name."""
        rows = await self._graph.rows(
            "UNWIND $ids AS id MATCH (s:Scope {uuid: id}) WHERE s.qualified_name CONTAINS '.' "
            "RETURN s.workspace AS workspace, s.file AS file, s.qualified_name AS name",
            ids=list(uuids),
        )
        inside = {(row["workspace"], row["file"], path) for row in rows for path in _around(row["name"])}
        names = [{"workspace": workspace, "name": path.rpartition(".")[2]} for workspace, _, path in inside]
        found = await self._graph.rows(
            "UNWIND $names AS row MATCH (s:Scope {workspace: row.workspace, name: row.name}) "
            "WHERE s.removed_at IS NULL AND s.kind IN $kinds "
            "RETURN DISTINCT s.uuid AS uuid, s.workspace AS workspace, s.file AS file, s.qualified_name AS name",
            names=names,
            kinds=list(TYPE_KINDS),
        )
        chosen: dict[str, None] = {}
        for workspace, file, path in sorted(inside):
            same = [one for one in found if (one["workspace"], one["name"]) == (workspace, path)]
            here = [one for one in same if one["file"] == file] or (same if len(same) == 1 else [])
            chosen.update((one["uuid"], None) for one in here)
        return list(chosen)

    async def touched(self, conversation_id: str, limit: int = 200) -> list[TouchedScope]:
        """Return the scopes that turns of a conversation are linked to, without their texts, newest turn first.

        Raises:
            NotFoundError: There is no such conversation.
        """
        segments = await read_segments(self._graph, conversation_id, 1, _END)
        rows = await self._graph.rows(
            "UNWIND $segments AS segment "
            "MATCH (m:Message {conversation_id: segment.id})-[:REFERENCES_CODE]->(s:Scope) "
            "WHERE m.turn_index >= segment.first AND m.turn_index <= segment.last AND s.removed_at IS NULL "
            "WITH s, max(m.turn_index) AS turn, count(DISTINCT m.turn_index) AS turns "
            f"RETURN {SCOPE} AS scope, turn, turns ORDER BY turn DESC, s.file, s.start_line LIMIT $limit",
            segments=[{"id": one.conversation_id, "first": one.first, "last": one.last} for one in segments],
            limit=limit,
        )
        return [
            TouchedScope(scope=scope, turn_index=row["turn"], turns=row["turns"])
            for row in rows
            if (scope := scope_from(row["scope"], "")) is not None
        ]


def _around(qualified_name: str) -> list[str]:
    """Return the qualified names of what encloses a scope."""
    parts = qualified_name.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts))]
