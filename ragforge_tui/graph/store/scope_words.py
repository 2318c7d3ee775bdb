"""Words that users have for code: of their questions about it, and a line on what they would call it.

Both are properties of a scope and the end of its search text, so that the full-text index finds it by them, each once
and therefore with little weight. `aliases` is NULL until it is known what was asked, and again when a conversation that
asked goes or becomes private; `called` stays while the scope's text does. Private and deleted conversations give none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ragforge_tui.graph.connection import Graph
from ragforge_tui.graph.store.parts import BATCH_NODES
from ragforge_tui.shared.code_records import Scope
from ragforge_tui.shared.sanitize import storable

QUESTIONS = 20
"""Newest questions about a scope that count."""
QUESTION_CHARS = 600
_CODE_CHARS = 600
_ASKED = (
    "MATCH (s)<-[:REFERENCES_CODE]-(m:Message {role: 'user'}) WHERE m.state <> 'superseded' "
    "MATCH (c:Conversation {uuid: m.conversation_id}) WHERE c.status <> 'deleted' "
    "AND coalesce(c.private, false) <> true "
)
SUFFIX = "coalesce(' ' + s.aliases, '') + coalesce(' ' + s.called, '')"
"""End of the search text of a scope `s`."""


class AskedScope(msgspec.Struct, frozen=True):
    """Scope with what users asked in the turns about it, newest first."""

    uuid: str
    name: str
    questions: list[str]


class ScopeWords:
    """Words of users for the scopes of a workspace."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def asked(self, uuids: Sequence[str]) -> list[AskedScope]:
        """Return these scopes with the questions about them."""
        rows = await self._graph.rows(
            f"UNWIND $ids AS id MATCH (s:Scope {{uuid: id}}) WHERE s.removed_at IS NULL {_ASKED}"
            "WITH s, m ORDER BY m.timestamp DESC "
            "RETURN s.uuid AS uuid, s.qualified_name AS name, "
            # A text that is in a file begins the turn's text all the same.
            "collect(left(CASE WHEN m.content_file IS NULL THEN coalesce(toStringOrNull(m.content), '') "
            "ELSE coalesce(toStringOrNull(m.turn_text), '') END, $chars))[..$most] AS questions",
            ids=list(dict.fromkeys(uuids)),
            chars=QUESTION_CHARS,
            most=QUESTIONS,
        )
        return [AskedScope(**row) for row in rows]

    async def without_aliases(self, workspace: str, limit: int = BATCH_NODES) -> list[str]:
        """Return the scopes that were asked about and have no aliases yet."""
        rows = await self._graph.rows(
            "MATCH (s:Scope {workspace: $workspace}) WHERE s.removed_at IS NULL AND s.aliases IS NULL "
            f"{_ASKED}RETURN DISTINCT s.uuid AS uuid LIMIT $limit",
            workspace=workspace,
            limit=limit,
        )
        return [row["uuid"] for row in rows]

    async def uncalled(self, workspace: str, limit: int) -> list[Scope]:
        """Return definitions that were asked about and have no line on what users would call them, newest first."""
        rows = await self._graph.rows(
            "MATCH (s:Scope {workspace: $workspace}) WHERE s.removed_at IS NULL AND s.called IS NULL "
            f"AND NOT s.kind IN ['module', 'section'] {_ASKED}"
            "WITH s, max(m.timestamp) AS newest ORDER BY newest DESC LIMIT $limit "
            "RETURN s.uuid AS uuid, s.name AS name, s.qualified_name AS qualified_name, s.kind AS kind, "
            "s.file AS file, s.start_line AS start_line, s.end_line AS end_line, s.digest AS digest, "
            "coalesce(s.signature, '') AS signature, coalesce(s.doc, '') AS doc, "
            "left(coalesce(toStringOrNull(s.text), ''), $chars) AS text",
            workspace=workspace,
            limit=limit,
            chars=_CODE_CHARS,
        )
        return [msgspec.convert(row, Scope) for row in rows]

    async def set_aliases(self, aliases: Mapping[str, str]) -> None:
        """Store the words of the questions about scopes, by uuid."""
        rows = [{"uuid": uuid, "digest": None, "text": storable(words)} for uuid, words in aliases.items()]
        await self._set("aliases", rows)

    async def set_called(self, lines: Sequence[tuple[Scope, str]]) -> None:
        """Store what users would call scopes; one whose text changed meanwhile is left alone."""
        rows = [{"uuid": scope.uuid, "digest": scope.digest, "text": storable(line)} for scope, line in lines]
        await self._set("called", rows)

    async def _set(self, name: str, rows: Sequence[Mapping[str, str | None]]) -> None:
        for start in range(0, len(rows), BATCH_NODES):
            await self._graph.run(
                "UNWIND $rows AS row MATCH (s:Scope {uuid: row.uuid}) "
                "WHERE s.search_text IS NOT NULL AND (row.digest IS NULL OR s.digest = row.digest) "
                f"WITH s, row, left(s.search_text, size(s.search_text) - size({SUFFIX})) AS own "
                f"SET s.{name} = row.text SET s.search_text = own + {SUFFIX}",
                rows=list(rows[start : start + BATCH_NODES]),
            )


async def forget_aliases(graph: Graph, conversation_id: str) -> None:
    """Take the aliases from the scopes that a conversation asked about; those of other conversations come back."""
    await graph.run(
        "MATCH (m:Message {conversation_id: $id})-[:REFERENCES_CODE]->(s:Scope) WHERE s.aliases IS NOT NULL "
        f"WITH DISTINCT s, left(s.search_text, size(s.search_text) - size({SUFFIX})) AS own "
        f"SET s.aliases = NULL SET s.search_text = own + {SUFFIX}",
        id=conversation_id,
    )
