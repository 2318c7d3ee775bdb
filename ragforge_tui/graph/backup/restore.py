"""Restoring a graph from a backup, of either backend and of earlier schemas.

The graph is marked before the first change, and the mark goes with the last one: in between no chat opens the graph,
and a restore that was interrupted is repeated from its beginning. Each batch notes its number in its own transaction,
so that one is not stored twice whose commit succeeded without an answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ragforge_tui.graph.backup.backup_file import Edges, Header, Nodes, Record, Texts, check, records
from ragforge_tui.graph.backup.snapshot import BackupInfo, Progress, back_up, row_bytes
from ragforge_tui.graph.connection import Graph, Transaction
from ragforge_tui.graph.content_files import Reference, Text
from ragforge_tui.graph.labels import ALL, FILE_SUFFIX, key_names, matched, own_node
from ragforge_tui.graph.repositories import Store
from ragforge_tui.graph.schema.migrate import MIGRATIONS
from ragforge_tui.graph.store.parts import batches
from ragforge_tui.shared.errors import GraphError
from ragforge_tui.shared.records import now

_OWN = frozenset(
    {"name", "version", "identity", "created_at", "contents_folders", "restoring", "restored"}
    | {"embedding_model", "embedding_dimension"}
)
"""Properties of a version node that a graph keeps, or that are set by other means."""
_SECONDS = 300.0
_DELETED_AT_ONCE = 200
_KEPT_BACKUPS = 5
_MARK = "MATCH (v:RagforgeSchema {name: 'schema'}) SET v.restoring = $name, v.restored = 0"
_UNMARK = "MATCH (v:RagforgeSchema {name: 'schema'}) SET v.restoring = NULL, v.restored = NULL"
_BATCH = (
    "MATCH (v:RagforgeSchema {name: 'schema'}) WHERE v.restored < $number "
    "SET v.restored = $number RETURN v.restored AS number"
)


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of a restore.

    Attributes:
        graph: The graph that was restored.
        kept: Backup of the graph's earlier content; empty if there was none.
        dropped: Relationships to nodes that the backup does not have.
    """

    graph: str
    backup: BackupInfo
    kept: str
    dropped: int


async def restore(
    graph: Graph,
    path: Path,
    *,
    replace: bool = False,
    keep: Path,
    progress: Progress = lambda done, total: None,
) -> Restored:
    """Make a graph what a backup holds. It must have been opened for this: `Graph.open(…, restoring=True)`.

    Args:
        replace: Whether the graph may hold something, which is removed.
        keep: Folder for a backup of the graph's present content.
        progress: Called with the nodes and relationships stored and their number.

    Raises:
        GraphError: The file is no whole backup, the graph is in use or not empty; nothing was changed. Or storing
            failed: the same command starts again.
    """
    header, end = await asyncio.to_thread(check, path)
    if await graph.used_by_others():
        raise _in_use(graph)
    interrupted, kept = await graph.being_restored(), ""
    if not interrupted and await _has_nodes(graph):
        if not replace:
            raise GraphError(
                f"The graph at {graph.name} is not empty.",
                kept="Nothing was changed.",
                todo="Add --replace to replace what it holds; a backup of that is kept.",
                kind="graph_not_empty",
            )
        kept = (await back_up(graph, _free_name(keep))).file
    await graph.run(_MARK, name=path.name)
    # No chat opens the graph from here on; one may have done so while the backup was written.
    if not interrupted and await graph.used_by_others():
        await graph.run(_UNMARK)
        raise _in_use(graph)
    await _clear(graph)
    restoring = _Restoring(graph, path, sum(end.nodes.values()) + sum(end.edges.values()), progress)
    await restoring.prepare(header)
    dropped = await restoring.run()
    await restoring.finish(header)
    await asyncio.to_thread(_remove_old, keep, path)
    return Restored(
        graph=graph.name,
        backup=await asyncio.to_thread(BackupInfo.of, path, header, end),
        kept=kept,
        dropped=dropped,
    )


def _in_use(graph: Graph) -> GraphError:
    return GraphError(
        f"A chat uses the graph at {graph.name}.",
        kept="Nothing was changed.",
        todo="End all chats, and run it again.",
        kind="graph_in_use",
    )


def _free_name(folder: Path) -> Path:
    """Return the name of a new backup; an older one there may be the one that is restored."""
    moment = f"{now():%Y%m%dT%H%M%S}"
    names = (folder / f"before-restore-{moment}{end}.backup" for end in ("", *(f"-{n}" for n in range(2, 99))))
    return next(name for name in names if not name.exists())


def _remove_old(folder: Path, restored: Path) -> None:
    """Remove the oldest of the backups that restores made; not the one that was restored."""
    made = sorted(folder.glob("before-restore-*.backup"), key=lambda path: path.stat().st_mtime)
    for path in made[:-_KEPT_BACKUPS]:
        if path != restored:
            with suppress(OSError):
                path.unlink()


async def _has_nodes(graph: Graph) -> bool:
    for label in ALL:
        if await graph.one(f"MATCH {own_node('n', label)} RETURN 1 AS found LIMIT 1"):
            return True
    return False


async def _clear(graph: Graph) -> None:
    """Remove all nodes of the program, in small transactions."""
    for label in ALL:
        statement = (
            f"MATCH {own_node('n', label)} WITH n LIMIT {_DELETED_AT_ONCE} DETACH DELETE n RETURN count(*) AS removed"
        )
        while (row := await graph.write_one(statement)) and row["removed"]:
            pass


class _Restoring:
    """One run of a restore."""

    def __init__(self, graph: Graph, path: Path, total: int, progress: Progress) -> None:
        self._graph = graph
        self._path = path
        self._total = total
        self._progress = progress
        self._number = 0
        self._stored = 0
        self._dropped = 0
        self._references: dict[str, str] = {}
        """References to the texts of the conversation in hand, by digest."""
        self._conversation = ""

    async def prepare(self, header: Header) -> None:
        """Give the graph the vectors' model and dimension of the backup."""
        schema = header.schema
        model, dimension = schema.get("embedding_model") or "", schema.get("embedding_dimension") or 0
        if dimension:
            await Store(self._graph).vectors.change_model(model, dimension)

    async def run(self) -> int:
        """Store all nodes, then all relationships; return the number of relationships whose nodes are missing."""
        async for record in _streamed(self._path):
            if isinstance(record, Texts):
                await self._texts(record)
            elif isinstance(record, Nodes):
                await self._nodes(record)
        async for record in _streamed(self._path):
            if isinstance(record, Edges):
                await self._edges(record)
        return self._dropped

    async def finish(self, header: Header) -> None:
        """Bring data of an earlier schema up to date, and remove the mark."""
        for step in MIGRATIONS:
            if step.version > header.schema_version:
                await step.apply(self._graph.dialect, self._graph.embedding_dimension)
        await self._graph.run(
            "MATCH (v:RagforgeSchema {name: 'schema'}) SET v += $own",
            own={name: value for name, value in header.schema.items() if name not in _OWN},
        )
        await Store(self._graph).contents.remove_unused()
        await self._graph.run(_UNMARK)

    async def _texts(self, record: Texts) -> None:
        """Write texts to this machine's files."""
        if record.conversation != self._conversation:
            self._references, self._conversation = {}, record.conversation
            try:
                await self._graph.prepare_contents()
            except OSError as error:
                raise self._unwritable(error) from error
        texts = [Text(text.owner, text.kind, text.data) for text in record.texts]
        try:
            references = await self._graph.contents.append(record.conversation, texts)
        except OSError as error:
            raise self._unwritable(error) from error
        self._references |= {reference.sha256: reference.encode() for reference in references}

    async def _nodes(self, record: Nodes) -> None:
        # A damaged node of the program may have been left: it has the same key.
        key = ", ".join(f"{name}: row.{name}" for name in key_names(record.label))
        statement = f"UNWIND $rows AS row MERGE (n:{record.label} {{{key}}}) SET n = row"
        for rows in batches(map(self._moved, record.rows), row_bytes):
            await self._write(statement, rows)
            self._report(len(rows))

    async def _edges(self, record: Edges) -> None:
        source, target = matched(record.source, "row.source"), matched(record.target, "row.target")
        statement = (
            f"UNWIND $rows AS row MATCH (a:{record.source} {source}) MATCH (b:{record.target} {target}) "
            f"CREATE (a)-[r:{record.kind}]->(b) SET r += row.properties RETURN count(r) AS stored"
        )
        edges = ({"source": a, "target": b, "properties": properties} for a, b, properties in record.rows)
        for rows in batches(edges, lambda row: row_bytes(row["properties"])):
            self._dropped += len(rows) - await self._write(statement, rows)
            self._report(len(rows))

    async def _write(self, statement: str, rows: list[Any]) -> int:
        """Run a statement with a batch once, however often the transaction is repeated."""
        self._number += 1
        number = self._number

        async def work(tx: Transaction) -> int:
            if await (await tx.run(_BATCH, number=number)).single() is None:
                return len(rows)
            record = await (await tx.run(statement, rows=rows)).single()
            return int(record["stored"]) if record else len(rows)

        return await self._graph.write(work, deadline=_SECONDS)

    def _moved(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return a node with the references to its texts as they are in this graph's files."""
        moved = {
            name: self._references[reference.sha256]
            for name, value in row.items()
            if name.endswith(FILE_SUFFIX)
            and isinstance(value, str)
            and (reference := Reference.decode(value)).conversation == self._conversation
            and reference.sha256 in self._references
        }
        return {**row, **moved}

    def _report(self, count: int) -> None:
        self._stored += count
        self._progress(self._stored, self._total)

    def _unwritable(self, error: OSError) -> GraphError:
        return GraphError(
            f"{self._graph.contents.root} cannot be written: {error.strerror or error}.",
            kept="The backup is unchanged; the graph is not complete.",
            todo="Make room or make the folder writable, and run it again.",
            kind="contents",
        )


async def _streamed(path: Path) -> AsyncIterator[Record]:
    """Yield the records of a backup, read in a thread."""
    found = records(path)
    while (record := await asyncio.to_thread(next, found, None)) is not None:
        yield record
