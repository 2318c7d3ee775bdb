"""Commits that turns made, and the turns behind commits and messages.

A commit is one node for each workspace, whoever refers to it; purging a conversation removes those that no message
refers to any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragforge_tui.graph.connection import Graph, Transaction
from ragforge_tui.graph.labels import own_node
from ragforge_tui.graph.store.records import derived, given, graph_value
from ragforge_tui.graph.store.summary_tree import finding_from
from ragforge_tui.graph.values import native
from ragforge_tui.shared.export_records import MessageCommit
from ragforge_tui.shared.records import Commit
from ragforge_tui.shared.requests.work import BlamedTurn

_FIELDS = tuple(name for name in Commit.__struct_fields__ if name != "trailer")
_LINK = (
    "UNWIND $rows AS row MATCH (m:Message {uuid: row.message}) MERGE (k:Commit {uuid: row.uuid}) "
    "ON CREATE SET k += row.properties MERGE (m)-[:PRODUCED]->(k) "
    "WITH DISTINCT m.conversation_id AS id MATCH (c:Conversation {uuid: id}) "
    "SET c.commits_linked = coalesce(c.commits_linked, 0) + 1"
)
_TURN = (
    "MATCH (c:Conversation {uuid: m.conversation_id}) "
    "OPTIONAL MATCH (q:Message {conversation_id: m.conversation_id, turn_index: m.turn_index, position: 0}) "
    "RETURN key, m.conversation_id AS conversation_id, c.title AS title, c.status AS status, "
    "m.turn_index AS turn_index, substring(coalesce(toStringOrNull(q.content), ''), 0, 1000) AS question, "
    "q.content_file AS question_file, substring(coalesce(toStringOrNull(q.turn_text), ''), 0, 1000) AS other"
)
_AT_ONCE = 500


class Commits:
    """Commits and the messages that produced them."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def turns_of_commits(self, hashes: Sequence[str]) -> dict[str, BlamedTurn]:
        """Return the last turn that made each commit, by its hash; commits that no turn made are left out."""
        return await self._turns(
            f"UNWIND $keys AS key MATCH (:Commit {{hash: key}})<-[:PRODUCED]-(m:Message) WITH key, m {_TURN}, "
            "m.timestamp AS at ORDER BY at",
            hashes,
        )

    async def turns_of_messages(self, uuids: Sequence[str]) -> dict[str, BlamedTurn]:
        """Return the turns of messages, by the messages' ids."""
        return await self._turns(f"UNWIND $keys AS key MATCH (m:Message {{uuid: key}}) {_TURN}", uuids)

    async def turn_at(self, conversation_id: str, turn_index: int) -> BlamedTurn | None:
        """Return a turn by its conversation and index; None if there is none."""
        found = await self._turns(
            "UNWIND $keys AS key MATCH (m:Message {conversation_id: key, turn_index: $turn, position: 0}) "
            f"WITH key, m {_TURN}",
            [conversation_id],
            turn=turn_index,
        )
        return found.get(conversation_id)

    async def decision(self, conversation_id: str, turn_index: int) -> str | None:
        """Return the first decision of a turn, as noted at once or by its summary; None without one.

        Of a summary's decisions it is the one about the fewest turns.
        """
        noted = await self._graph.one(
            f"MATCH {own_node('f', 'Finding', 'conversation_id: $id, turn_index: $turn')} "
            "WHERE f.kind = 'decision' AND f.state <> 'forgotten' "
            "RETURN f.text AS text ORDER BY f.since, f.uuid LIMIT 1",
            id=conversation_id,
            turn=turn_index,
        )
        if noted:
            return str(noted["text"])
        rows = await self._graph.rows(
            "MATCH (s:Summary {conversation_id: $id, level: 1}) "
            "WHERE s.start_turn_index <= $turn AND s.end_turn_index >= $turn RETURN s.key_findings AS findings",
            id=conversation_id,
            turn=turn_index,
        )
        findings = [finding_from(text) for row in rows for text in row["findings"] or []]
        decided = [each for each in findings if each.kind == "decision" and turn_index in each.turns]
        return min(decided, key=lambda each: len(each.turns)).text if decided else None

    async def _turns(self, statement: str, keys: Sequence[str], **parameters: Any) -> dict[str, BlamedTurn]:
        found: dict[str, BlamedTurn] = {}
        for start in range(0, len(keys), _AT_ONCE):
            rows = await self._graph.rows(statement, keys=list(keys[start : start + _AT_ONCE]), **parameters)
            # A question may be in a file, or in parts, whose start the turn's search text has too.
            await self._graph.contents.fill(rows, ("question",))
            found |= {row["key"]: _turn(row) for row in rows if row["status"] != "deleted"}
        return found


def _turn(row: dict[str, Any]) -> BlamedTurn:
    return BlamedTurn(
        conversation_id=row["conversation_id"],
        title=row["title"] or "",
        turn_index=row["turn_index"],
        question=row["question"] or row["other"],
    )


def commit_rows(message: str, commits: Sequence[Commit], workspace: str) -> list[dict[str, Any]]:
    """Return the rows of the statement that links commits to a message."""
    return [
        {
            "message": message,
            "uuid": derived("commit", workspace, commit.hash),
            "properties": {
                **{name: graph_value(getattr(commit, name)) for name in _FIELDS},
                "workspace": graph_value(workspace),
            },
        }
        for commit in commits
    ]


async def link_commits(tx: Transaction, rows: list[dict[str, Any]]) -> None:
    """Link commits to their messages in a running transaction."""
    if rows:
        await (await tx.run(_LINK, rows=rows)).consume()


def message_commit(row: dict[str, Any]) -> MessageCommit:
    """Return a commit of a message as it is exported."""
    return MessageCommit(
        turn_index=row["turn_index"],
        message=row["message"],
        workspace=row["workspace"] or "",
        commit=Commit(**given({name: native(row[name]) for name in _FIELDS}, _FIELDS)),
    )
