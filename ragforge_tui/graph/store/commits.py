"""Commits that turns made, or that hold what a turn wrote, and the turns behind a file.

A commit is one node for each workspace, whoever refers to it; purging a conversation removes those that no message
refers to any more. The turn that made a commit comes before one that only wrote a file in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ragforge_tui.graph.connection import Graph, Transaction
from ragforge_tui.graph.store.records import derived, given, graph_value
from ragforge_tui.graph.values import native
from ragforge_tui.shared.export_records import MessageCommit
from ragforge_tui.shared.records import Commit
from ragforge_tui.shared.requests.work import CommitTurn

_FIELDS = tuple(name for name in Commit.__struct_fields__ if name != "trailer")
_LINK = (
    "UNWIND $rows AS row MATCH (m:Message {uuid: row.message}) MERGE (k:Commit {uuid: row.uuid}) "
    "ON CREATE SET k += row.properties MERGE (m)-[p:PRODUCED]->(k) "
    "ON CREATE SET p.found = row.found "
    "WITH DISTINCT m.conversation_id AS id MATCH (c:Conversation {uuid: id}) "
    "SET c.commits_linked = coalesce(c.commits_linked, 0) + 1"
)
_TURN = (
    "MATCH (c:Conversation {uuid: m.conversation_id}) "
    "OPTIONAL MATCH (q:Message {conversation_id: m.conversation_id, turn_index: m.turn_index, position: 0}) "
    "RETURN m.uuid AS message, m.conversation_id AS conversation_id, c.title AS title, c.status AS status, "
    "m.turn_index AS turn_index, substring(coalesce(q.content, ''), 0, 1000) AS question, "
    "q.content_file AS question_file, substring(coalesce(q.turn_text, ''), 0, 1000) AS other"
)


class Commits:
    """Commits and the messages that produced them."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def store(self, message_uuid: str, commits: Sequence[Commit], workspace: str, *, found: bool = False) -> None:
        """Store commits with the message behind them.

        Args:
            found: Made by the user afterwards, with files that the message wrote.
        """
        rows = commit_rows(message_uuid, commits, workspace, found=found)
        if rows:
            await self._graph.run(_LINK, rows=rows)

    async def turn_of(self, commit: str, workspace: str) -> CommitTurn | None:
        """Return the turn that made a commit, else the newest one that wrote what it holds; None if none did."""
        rows = await self._graph.rows(
            "MATCH (k:Commit {uuid: $uuid})<-[p:PRODUCED]-(m:Message) "
            f"WITH m, coalesce(p.found, false) AS found {_TURN}, found, m.timestamp AS at",
            uuid=derived("commit", workspace, commit),
        )
        rows = [row for row in rows if row["status"] != "deleted"]
        rows.sort(key=lambda row: (not row["found"], row["at"]))
        if not rows:
            return None
        return await self._turn(rows[-1], "committed later" if rows[-1]["found"] else "committed")

    async def turn_at(self, conversation_id: str, turn_index: int) -> CommitTurn | None:
        """Return a turn by its conversation and index; None if there is none."""
        row = await self._graph.one(
            f"MATCH (m:Message {{conversation_id: $id, turn_index: $turn, position: 0}}) {_TURN}",
            id=conversation_id,
            turn=turn_index,
        )
        if row is None or row["status"] == "deleted":
            return None
        return await self._turn(row, "named by the commit")

    async def writer_of(
        self, path: str, workspace: str, before: datetime | None = None, conversation_id: str = ""
    ) -> CommitTurn | None:
        """Return the turn that last wrote a file by a tool call; None if none did.

        Args:
            before: Only calls up to this time.
            conversation_id: Only calls of this conversation.
        """
        row = await self._graph.one(
            "MATCH (f:File {workspace: $workspace, path: $path})<-[a:ACCESSED]-(t:ToolCall) "
            "WHERE a.access = 'write' AND coalesce(t.success, false) AND ($before IS NULL OR t.timestamp <= $before) "
            "AND ($id = '' OR t.conversation_id = $id) "
            "MATCH (m:Message {uuid: t.message_id}) MATCH (:Conversation {uuid: m.conversation_id, status: 'active'}) "
            f"WITH m, t ORDER BY t.timestamp DESC LIMIT 1 {_TURN}",
            path=path,
            workspace=workspace,
            before=graph_value(before) if before is not None else None,
            id=conversation_id,
        )
        return await self._turn(row, "written") if row is not None else None

    async def _turn(self, row: dict[str, Any], relation: str) -> CommitTurn:
        # A question may be in a file, or in parts, whose start the turn's search text has too.
        await self._graph.contents.fill([row], ("question",))
        return CommitTurn(
            message=row["message"],
            conversation_id=row["conversation_id"],
            title=row["title"] or "",
            turn_index=row["turn_index"],
            question=row["question"] or row["other"],
            relation=relation,
        )


def commit_rows(message: str, commits: Sequence[Commit], workspace: str, *, found: bool) -> list[dict[str, Any]]:
    """Return the rows of the statement that links commits to a message."""
    return [
        {
            "message": message,
            "uuid": derived("commit", workspace, commit.hash),
            "properties": {
                **{name: graph_value(getattr(commit, name)) for name in _FIELDS},
                "workspace": graph_value(workspace),
            },
            "found": found,
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
        found=bool(row["found"]),
        commit=Commit(**given({name: native(row[name]) for name in _FIELDS}, _FIELDS)),
    )
