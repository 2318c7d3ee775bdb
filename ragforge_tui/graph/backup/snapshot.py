"""Backup of a graph while chats use it.

Each conversation is read between two looks at its counters, and again if they changed meanwhile, so that turns,
counters and summaries fit together; a running answer is stored as far as it had come. Nodes that conversations share
are read last, so that all that is referred to is there.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ragforge_tui.graph.backup.backup_file import (
    FORMAT,
    FRAME_BYTES,
    BackupWriter,
    Edges,
    End,
    FileText,
    Header,
    Key,
    Nodes,
    Texts,
    new_backup,
)
from ragforge_tui.graph.connection import Graph, Transaction
from ragforge_tui.graph.content_files import LostText, Reference
from ragforge_tui.graph.labels import ALL, FILE_SUFFIX, OWNED, SHARED, key_names, key_of, matched, own_node
from ragforge_tui.graph.store.parts import byte_length
from ragforge_tui.graph.values import native
from ragforge_tui.shared.records import now

T = TypeVar("T")

Progress = Callable[[int, int], None]

Rows = list[dict[str, Any]]

_ATTEMPTS = 20
"""Times that the end of a conversation is read while it changes."""
_SETTLED = {
    "Message": "n.turn_index < $turn AND n.state <> 'streaming'",
    "ToolCall": "n.success IS NOT NULL",
    "ToolResult": "true",
    "Part": "true",
    "Context": "true",
}
"""Nodes of a conversation that the turns to come do not change."""
_AT_ONCE = 100
_SECONDS = 300.0
_COUNTERS = (
    "next_turn",
    "message_count",
    "summary_sequence",
    "summary_through",
    "summaries_replaced",
    "topics_changed",
    "findings_changed",
    "attempts_through",
    "status",
)


class BackupInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A backup, as the commands show it.

    Attributes:
        graph: The graph it is of.
        texts: Texts of files in it.
        lost: Texts that could not be read, on this machine at least; the backup has their references only.
    """

    file: str
    size_bytes: int
    graph: str
    created_at: Any
    schema_version: int
    nodes: dict[str, int]
    relationships: int
    texts: int
    lost: int

    @classmethod
    def of(cls, path: Path, header: Header, end: End) -> BackupInfo:
        """Return the description of a file with this header and end."""
        return cls(
            file=str(path),
            size_bytes=path.stat().st_size,
            graph=header.graph,
            created_at=header.created_at,
            schema_version=header.schema_version,
            nodes=dict(sorted(end.nodes.items())),
            relationships=sum(end.edges.values()),
            texts=end.texts,
            lost=end.lost,
        )


async def back_up(graph: Graph, path: Path, progress: Progress = lambda done, total: None) -> BackupInfo:
    """Write everything that the program stored in a graph into one file, with the texts that are in files.

    Args:
        progress: Called with the conversations done and their number.

    Raises:
        GraphError: The file cannot be written, or the graph cannot be read; no file is left behind.
    """
    row = await graph.one("MATCH (v:RagforgeSchema {name: 'schema'}) RETURN v")
    schema = native(dict(row["v"])) if row else {}
    header = Header(
        format=FORMAT,
        schema_version=schema.get("version", 0),
        created_at=now(),
        graph=graph.name,
        identity=graph.identity,
        schema=schema,
    )
    with new_backup(path, header) as writer:
        snapshot = _Snapshot(graph, writer)
        conversations = own_node("c", "Conversation")
        ids = [row["uuid"] for row in await graph.rows(f"MATCH {conversations} RETURN c.uuid AS uuid ORDER BY uuid")]
        for done, uuid in enumerate(ids, 1):
            await snapshot.conversation(uuid)
            progress(done, len(ids))
        for label in SHARED:
            await snapshot.shared(label)
        end = snapshot.counts.end()
        await asyncio.to_thread(writer.finish, end)
    return await asyncio.to_thread(BackupInfo.of, path, header, end)


class _Counts:
    """Numbers of nodes, relationships and texts written so far."""

    def __init__(self) -> None:
        self.nodes: Counter[str] = Counter()
        self.edges: Counter[str] = Counter()
        self.texts = self.lost = 0

    def copy(self) -> _Counts:
        other = _Counts()
        other.nodes, other.edges = self.nodes.copy(), self.edges.copy()
        other.texts, other.lost = self.texts, self.lost
        return other

    def end(self) -> End:
        return End(nodes=dict(self.nodes), edges=dict(self.edges), texts=self.texts, lost=self.lost)


class _Snapshot:
    """The graph on its way into a file."""

    def __init__(self, graph: Graph, writer: BackupWriter) -> None:
        self._graph = graph
        self._writer = writer
        self.counts = _Counts()

    async def conversation(self, uuid: str) -> None:
        """Write a conversation with all nodes it owns; nothing if it was deleted meanwhile.

        First what does not change any more, which is most of it. The rest is read until the counters stay as they are.
        If it changes faster than it can be read, it gets the counters of the messages that were written.
        """
        start, nothing = await asyncio.to_thread(self._writer.mark), self.counts.copy()
        counters = await self._counters(uuid)
        if counters is None:
            return
        known: set[str] = set()
        done: dict[str, set[str]] = {}
        for label in OWNED:
            nodes = f"MATCH {own_node('n', label, 'conversation_id: $id')}"
            statement = f"{nodes} WHERE {_SETTLED.get(label, 'false')} RETURN [n.uuid] AS key"
            keys = await self._keys(statement, id=uuid, turn=counters["next_turn"] - 1)
            await self._pages(label, keys, known)
            done[label] = {key[0] for key in keys}
        mark, counted = await asyncio.to_thread(self._writer.mark), self.counts.copy()
        for attempt in range(_ATTEMPTS):
            before, fresh = await self._counters(uuid), known.copy()
            written: dict[str, list[Key]] = {}
            for label in OWNED:
                keys = await self._keys(
                    f"MATCH {own_node('n', label, 'conversation_id: $id')} RETURN [n.uuid] AS key", id=uuid
                )
                await self._pages(label, [key for key in keys if key[0] not in done[label]], fresh)
                written[label] = keys
            last = attempt == _ATTEMPTS - 1
            recounted = await self._counted(uuid, written["Message"]) if last else {}
            await self._pages("Conversation", [[uuid]], fresh, recounted)
            after = await self._counters(uuid)
            if after is None:
                await asyncio.to_thread(self._writer.rewind, start)
                self.counts = nothing
                return
            if before == after or last:
                return
            await asyncio.to_thread(self._writer.rewind, mark)
            self.counts = counted.copy()

    async def shared(self, label: str) -> None:
        """Write all nodes of a label."""
        names = ", ".join(f"n.{name}" for name in key_names(label))
        await self._pages(label, await self._keys(f"MATCH {own_node('n', label)} RETURN [{names}] AS key"), set())

    async def _counters(self, uuid: str) -> dict[str, Any] | None:
        names = ", ".join(f"c.{name} AS {name}" for name in _COUNTERS)
        return await self._graph.one(f"MATCH (c:Conversation {{uuid: $uuid}}) RETURN {names}", uuid=uuid)

    async def _counted(self, uuid: str, messages: list[Key]) -> dict[str, Any]:
        """Return the counters of a conversation that owns these messages; none without messages.

        Those of a branch count its parent's messages too, which stay as they are.
        """
        row = await self._graph.one(
            "UNWIND $keys AS key MATCH (n:Message {uuid: key[0]}) "
            "WITH max(n.turn_index) + 1 AS next_turn, count(n) AS messages, sum(coalesce(n.counted_chars, 0)) AS chars "
            "MATCH (c:Conversation {uuid: $uuid}) RETURN next_turn, messages, chars, c.branch_of AS branch_of",
            keys=messages,
            uuid=uuid,
        )
        if row is None or not row["messages"]:
            return {}
        own = {"message_count": row["messages"], "total_chars": row["chars"]} if row["branch_of"] is None else {}
        return {"next_turn": row["next_turn"], **own}

    async def _keys(self, statement: str, **parameters: Any) -> list[Key]:
        async def work(tx: Transaction) -> list[Key]:
            return [record["key"] async for record in await tx.run(statement, parameters)]

        return await self._graph.read(work, deadline=_SECONDS)

    async def _pages(
        self, label: str, keys: list[Key], known: set[str], instead: Mapping[str, Any] | None = None
    ) -> None:
        """Write nodes with the relationships that begin at them.

        Args:
            known: Digests of the texts that were written with the conversation's other nodes; grows.
            instead: Properties that take the place of the nodes' own.
        """
        pattern = f"UNWIND $keys AS key MATCH (n:{label} {matched(label, 'key')})"
        # A conversation may own thousands of nodes: its relationships to them are read with those.
        elsewhere = "WHERE NOT labels(m)[0] IN $owned " if label == "Conversation" else ""
        related = (
            f"{pattern}-[r]->(m) {elsewhere}RETURN key, type(r) AS type, labels(m)[0] AS label, "
            "m.uuid AS uuid, m.workspace AS workspace, m.path AS path, r AS r"
        )
        owners = f"{pattern}<-[r]-{own_node('c', 'Conversation')} RETURN key, type(r) AS type, c.uuid AS uuid, r AS r"
        for start in range(0, len(keys), _AT_ONCE):
            page = keys[start : start + _AT_ONCE]

            async def work(tx: Transaction, page: list[Key] = page) -> tuple[Rows, Rows, Rows]:
                nodes = [
                    native(dict(record["n"]) | dict(instead or {}))
                    async for record in await tx.run(f"{pattern} RETURN n", keys=page)
                ]
                edges = await _edges(tx, related, keys=page, owned=list(OWNED))
                return nodes, edges, await _edges(tx, owners, keys=page) if label in OWNED else []

            nodes, edges, owned = await self._graph.read(work, deadline=_SECONDS)
            texts = await self._texts(nodes, known)
            await asyncio.to_thread(self._put, label, nodes, edges, owned, texts)

    async def _texts(self, nodes: list[dict[str, Any]], known: set[str]) -> dict[str, list[FileText]]:
        """Return the texts in files that nodes refer to, by conversation, except those written before."""
        for node in nodes:
            for name, value in node.items():
                if name.endswith(FILE_SUFFIX) and value is not None and not Reference.is_valid(value):
                    node[name] = None
                    self.counts.lost += 1
        wanted = {
            value: (node["uuid"], name.removesuffix(FILE_SUFFIX))
            for node in nodes
            for name, value in node.items()
            if name.endswith(FILE_SUFFIX) and isinstance(value, str)
        }
        found: dict[str, list[FileText]] = {}
        for encoded, text in (await self._graph.contents.read(wanted)).items():
            reference = Reference.decode(encoded)
            if isinstance(text, LostText):
                self.counts.lost += 1
            elif reference.sha256 not in known:
                known.add(reference.sha256)
                found.setdefault(reference.conversation, []).append(FileText(*wanted[encoded], reference.sha256, text))
        return found

    def _put(
        self,
        label: str,
        nodes: Rows,
        edges: Rows,
        owned: Rows,
        texts: dict[str, list[FileText]],
    ) -> None:
        for conversation_id, own in texts.items():
            for some in _in_frames(own, lambda text: byte_length(text.data)):
                self._writer.put(Texts(conversation_id, some))
            self.counts.texts += len(own)
        for page in _in_frames(nodes, row_bytes):
            self._writer.put(Nodes(label, page))
        self.counts.nodes[label] += len(nodes)
        grouped: dict[tuple[str, str, str], list[tuple[Key, Key, dict[str, Any]]]] = {}
        for edge in edges:
            key = key_of(edge["label"], edge) if edge["label"] in ALL else []
            if key and all(isinstance(part, str) for part in key):
                row = (edge["key"], key, edge["r"])
                grouped.setdefault((edge["type"], label, edge["label"]), []).append(row)
        for edge in owned:
            row = ([edge["uuid"]], edge["key"], edge["r"])
            grouped.setdefault((edge["type"], "Conversation", label), []).append(row)
        for (kind, source, target), rows in grouped.items():
            for part in _in_frames(rows, lambda row: row_bytes(row[2]) + 200):
                self._writer.put(Edges(kind, source, target, part))
            self.counts.edges[kind] += len(rows)


def _in_frames(rows: list[T], size_of: Callable[[T], int]) -> Iterator[list[T]]:
    """Yield rows in lists of about `FRAME_BYTES`, at least one row each."""
    some: list[T] = []
    size = 0
    for row in rows:
        size += size_of(row)
        some.append(row)
        if size >= FRAME_BYTES:
            yield some
            some, size = [], 0
    if some:
        yield some


def row_bytes(row: Mapping[str, Any]) -> int:
    """Estimate the size of a node's or a relationship's properties, vectors included."""
    return sum(_value_bytes(value) + len(name) + 4 for name, value in row.items())


def _value_bytes(value: Any) -> int:
    if isinstance(value, str):
        return byte_length(value)
    if isinstance(value, bytes):
        return len(value)
    if isinstance(value, list):
        return sum(_value_bytes(item) for item in value)
    return 9


async def _edges(tx: Transaction, statement: str, **parameters: Any) -> Rows:
    result = await tx.run(statement, parameters)
    return [{**dict(record), "r": native(dict(record["r"]))} async for record in result]
