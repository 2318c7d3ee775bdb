"""Removal of conversations for good, in small batches that can be resumed after a kill.

First a branch takes over the turns it shares (`shared_turns`); then all else is removed, leaves first, and the shared
nodes that no conversation needs any more. A merged topic still has a relationship to its successor, so missing
relationships do not make it an orphan: it stays while a summary named it or has it, or while a topic that stays was
merged into it.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

from ragforge_tui.graph.connection import Graph, Transaction
from ragforge_tui.graph.content_files import Reference
from ragforge_tui.graph.labels import OWNED, own_node
from ragforge_tui.graph.store.contents import KINDS, ContentNodes
from ragforge_tui.graph.store.conversations import branches_of
from ragforge_tui.graph.store.memory_acts import forget_in_records
from ragforge_tui.graph.store.parts import join_large
from ragforge_tui.graph.store.scope_words import forget_aliases
from ragforge_tui.graph.store.shared_turns import Heir, hand_over
from ragforge_tui.shared.errors import GraphError
from ragforge_tui.shared.records import PURGE_AFTER_DAYS, now

_SHARED = ("File", "Persona", "SystemText", "Commit")
_AT_ONCE = 500
_TEXTS = 16
"""Nodes whose texts are read at once."""
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")


class Purges:
    """Removal of conversations."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def expired(self, older_than: timedelta = timedelta(days=PURGE_AFTER_DAYS)) -> list[str]:
        """Return the ids of conversations that were deleted longer ago than this."""
        rows = await self._graph.rows(
            f"MATCH {own_node('c', 'Conversation')} WHERE c.status = 'deleted' AND c.deleted_at <= $cutoff "
            "RETURN c.uuid AS uuid",
            cutoff=now() - older_than,
        )
        return [row["uuid"] for row in rows]

    async def branches(self, uuid: str, *, helpers: bool = False) -> list[str]:
        """Return a conversation's branches, the one that shares most first, or its helpers' conversations."""
        return await branches_of(self._graph, uuid, helpers=helpers)

    async def purge(self, uuid: str) -> Heir | None:
        """Remove a conversation, its helpers and all it owns but the turns that branches share.

        Returns:
            The branch that has those turns now; None without one.

        Raises:
            NotFoundError: There is no such conversation.
        """
        heir = await self.hand_over(uuid)
        for helper in await self.branches(uuid, helpers=True):
            await self.purge(helper)
        await self.remove(uuid)
        return heir

    async def hand_over(self, uuid: str) -> Heir | None:
        """Hide a conversation that is to be purged, and give the turns that branches share to one of them.

        From then on an interrupted purge is due: the next start continues it.

        Raises:
            NotFoundError: There is no such conversation.
        """
        await self._graph.run(
            "MATCH (c:Conversation {uuid: $uuid}) SET c.status = 'deleted', c.updated_at = $now, c.deleted_at = "
            "CASE WHEN c.deleted_at < $due THEN c.deleted_at ELSE $due END",
            uuid=uuid,
            now=now(),
            due=now() - timedelta(days=PURGE_AFTER_DAYS),
        )
        return await hand_over(self._graph, uuid)

    async def remove(self, uuid: str) -> None:
        """Remove a hidden conversation without branches, and all it owns; nodes that others share stay.

        Raises:
            GraphError: The files with its texts cannot be removed; the next start tries again.
        """
        await forget_aliases(self._graph, uuid)
        await forget_in_records(self._graph, uuid)
        for label, size in reversed(OWNED.items()):
            await self._repeat(
                f"MATCH {own_node('n', label, 'conversation_id: $uuid')} WITH n LIMIT {size} DETACH DELETE n "
                "RETURN count(*) AS done",
                uuid=uuid,
            )
        try:
            await self._graph.contents.remove(uuid)
        except OSError as error:
            raise GraphError(
                f"{error.filename} cannot be removed: {error.strerror}.",
                kept="The conversation stays hidden.",
                todo="Make the folder writable; the next start removes the rest.",
                kind="contents",
            ) from error
        # The conversation itself goes last: as long as it is there, the next start continues.
        await self._graph.run("MATCH (:Conversation {uuid: $uuid})-[r:BEGINS_WITH]->() DELETE r", uuid=uuid)
        await _remove_orphans(self._graph, uuid)
        await self._graph.run("MATCH (n:Conversation {uuid: $uuid}) DETACH DELETE n", uuid=uuid)

    async def digests(self, uuid: str) -> set[str]:
        """Return the SHA-256 digests that only the texts of this conversation name, as those of stored files."""
        found: set[str] = set()
        for kind in KINDS:
            async for row in self._texts(kind, uuid):
                found.update(digest for field in kind.fields for digest in _DIGEST.findall(row[field] or ""))
        for kind in KINDS if found else ():
            named = " OR ".join(f"coalesce(n.{field}, '') CONTAINS digest" for field in kind.fields)
            rows = await self._graph.rows(
                f"MATCH {own_node('n', kind.label)} WHERE n.conversation_id <> $uuid "
                f"UNWIND $digests AS digest WITH n, digest WHERE {named} RETURN DISTINCT digest",
                uuid=uuid,
                digests=sorted(found),
            )
            found.difference_update(row["digest"] for row in rows)
        return found - await self._graph.contents.named(found, but=uuid)

    async def texts_elsewhere(self, uuid: str) -> set[str]:
        """Return the machines and folders with texts of a conversation that this machine cannot remove."""
        files = self._graph.contents
        places = set()
        for kind in KINDS:
            for row in await self._graph.rows(
                f"MATCH {own_node('n', kind.label, 'conversation_id: $uuid')} WHERE {kind.in_files} "
                f"UNWIND [{', '.join(f'n.{field}_file' for field in kind.fields)}] AS file "
                "WITH file WHERE file IS NOT NULL RETURN DISTINCT file",
                uuid=uuid,
            ):
                folder = Reference.decode(row["file"]).folder
                places.add("" if folder == files.folder_id else files.places.get(folder, "another machine"))
        return places - {"", files.place}

    async def _texts(self, kind: ContentNodes, uuid: str) -> AsyncIterator[dict[str, Any]]:
        last = ""
        while True:

            async def work(tx: Transaction, after: str = last) -> list[dict[str, Any]]:
                result = await tx.run(
                    f"MATCH {own_node('n', kind.label, 'conversation_id: $uuid')} WHERE n.uuid > $after "
                    f"RETURN {kind.projection} AS n ORDER BY n.uuid LIMIT $limit",
                    uuid=uuid,
                    after=after,
                    limit=_TEXTS,
                )
                rows = [dict(record["n"]) async for record in result]
                await join_large(self._graph, tx, rows, kind.fields)
                return rows

            rows = await self._graph.read(work)
            if not rows:
                return
            for row in rows:
                yield row
            last = rows[-1]["uuid"]

    async def _repeat(self, statement: str, **parameters: Any) -> None:
        """Run a statement, each time in a transaction of its own, until it has nothing left to do."""
        while (row := await self._graph.write_one(statement, **parameters)) and row["done"]:
            pass


async def _remove_orphans(graph: Graph, purged: str) -> None:
    """Remove unused shared nodes, in small transactions, and the statements of the purged conversation about topics."""
    for label in _SHARED:
        # A file of the code index stays, even one that defines nothing.
        deletion = (
            f"MATCH {own_node('n', label)} WHERE NOT (n)--() AND n.indexed_at IS NULL WITH n LIMIT {_AT_ONCE} "
            "DELETE n RETURN count(*) AS removed"
        )
        while (row := await graph.write_one(deletion)) and row["removed"]:
            pass
    await graph.run("MATCH (:Topic)-[r:RELATED_TO {conversation_id: $uuid}]->(:Topic) DELETE r", uuid=purged)
    await graph.run(
        "MATCH (t:Topic) WHERE t.described_in = $uuid SET t.description = '', t.described_in = NULL, "
        "t.described_by = NULL, t.embedding = NULL, t.embedding_bytes = NULL, t.embed_model = NULL",
        uuid=purged,
    )
    orphans, told_by = await graph.read(_orphaned_topics)
    for start in range(0, len(orphans), _AT_ONCE):
        await graph.write(_topics_deletion(orphans[start : start + _AT_ONCE], told_by))


async def _orphaned_topics(tx: Transaction) -> tuple[list[str], dict[str, list[str]]]:
    """Return the topics to remove, and the names that each remaining topic loses as aliases."""
    result = await tx.run(f"MATCH {own_node('t', 'Topic')} RETURN t.uuid AS uuid, t.name AS name")
    names = {record["uuid"]: record["name"] async for record in result}
    result = await tx.run("MATCH (:Summary)-[h:HAS_TOPIC]->(t:Topic) RETURN DISTINCT t.uuid AS uuid, h.topic AS named")
    needed = {uuid async for record in result for uuid in (record["uuid"], record["named"])}
    result = await tx.run("MATCH (a:Topic)-[:MERGED_INTO]->(b:Topic) RETURN a.uuid AS a, b.uuid AS b")
    became = {record["a"]: record["b"] async for record in result}
    for uuid in [uuid for uuid in became if uuid in needed]:
        needed.update(_line(uuid, became))
    orphans = sorted(names.keys() - needed)
    told_by: dict[str, list[str]] = {}
    for uuid in orphans:
        for heir in _line(uuid, became):
            if heir in needed:
                told_by.setdefault(heir, []).append(names[uuid])
    return orphans, told_by


def _line(uuid: str, became: dict[str, str]) -> list[str]:
    """Return the topics that a topic was merged into, nearest first."""
    found: list[str] = []
    while (uuid := became.get(uuid, "")) and uuid not in found:
        found.append(uuid)
    return found


def _topics_deletion(orphans: list[str], told_by: dict[str, list[str]]) -> Any:
    async def work(tx: Transaction) -> None:
        await tx.run(
            "UNWIND $rows AS row MATCH (t:Topic {uuid: row.uuid}) "
            "SET t.aliases = [x IN coalesce(t.aliases, []) WHERE NOT x IN row.names]",
            rows=[{"uuid": uuid, "names": names} for uuid, names in told_by.items()],
        )
        await tx.run("UNWIND $ids AS id MATCH (t:Topic {uuid: id}) DETACH DELETE t", ids=orphans)

    return work
