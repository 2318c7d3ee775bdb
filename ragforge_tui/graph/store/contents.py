"""Moving texts between the graph and files, and checking those in files.

A move works in small batches and can be stopped anywhere: texts already moved no longer match the query for the
remaining ones. Each copy is read back and compared before the original is dropped; a text that has both is read from
its file. Files are removed at the end, when no text refers to them and no other process uses the folder.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, Literal

import msgspec

from ragforge_tui.graph.connection import Graph, Transaction
from ragforge_tui.graph.content_files import LostText, Reference, Text
from ragforge_tui.graph.labels import own_node
from ragforge_tui.graph.store.messages import LARGE
from ragforge_tui.graph.store.parts import (
    batches,
    drop_parts,
    join_parts,
    link_parts,
    outside,
    store_parts,
)
from ragforge_tui.graph.store.tool_calls import CALL_LARGE
from ragforge_tui.graph.values import native
from ragforge_tui.graph.writer import writer_alive
from ragforge_tui.shared.errors import GraphError
from ragforge_tui.shared.records import now

Place = Literal["files", "graph"]
Progress = Callable[[int, int], None]

_NODES_AT_ONCE = 40
_IDS_AT_ONCE = 200
_REFERENCE_BYTES = 400


class ContentNodes(msgspec.Struct, frozen=True):
    """A kind of node with texts that may be in files."""

    label: str
    fields: tuple[str, ...]

    @property
    def in_files(self) -> str:
        return " OR ".join(f"n.{field}_file IS NOT NULL" for field in self.fields)

    @property
    def in_graph(self) -> str:
        return " OR ".join(f"n.{field} <> '' OR n.{field}_parts IS NOT NULL" for field in self.fields)

    @property
    def projection(self) -> str:
        names = ("uuid", *self.fields, *outside(self.fields))
        return f"n {{{', '.join(f'.{name}' for name in names)}, .state, .writer, .lease_until}}"


KINDS = (
    ContentNodes("Message", LARGE),
    ContentNodes("ToolCall", CALL_LARGE),
    ContentNodes("ToolResult", ("result",)),
)


class ContentsInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Places of a graph's texts.

    Attributes:
        in_files: Number of messages, calls and results with a text in files, on this machine or another.
        in_graph: Number of those with a text in the graph; one may have both kinds.
        folders: Machine and path of each contents folder that was written to.
    """

    in_files: int
    in_graph: int
    new_texts: Place
    folder: str
    size_bytes: int
    folders: list[str]


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of a move.

    Attributes:
        nodes: Messages, calls and results whose texts were moved.
        left: Those that stay where they are: still written, or unreadable.
        folders_removed: Folders of conversations that were not needed any more.
        in_use: Whether other processes kept the files from being removed.
    """

    nodes: int
    left: int
    folders_removed: int = 0
    in_use: bool = False


class LostContent(msgspec.Struct, frozen=True, kw_only=True):
    """A text that the graph refers to and that cannot be read."""

    conversation_id: str
    label: str
    uuid: str
    field: str
    loss: str
    file: str
    reason: str


class Contents:
    """The texts of a graph, wherever they are."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def info(self) -> ContentsInfo:
        """Return where texts are; counts whole labels."""
        files = self._graph.contents
        return ContentsInfo(
            in_files=await self._count(in_files=True),
            in_graph=await self._count(in_files=False),
            new_texts="files" if files.writes else "graph",
            folder=str(files.root),
            size_bytes=await files.size(),
            folders=sorted(files.places.values()),
        )

    async def move(self, to: Place, progress: Progress = lambda done, total: None) -> Moved:
        """Move the texts of all conversations into files of this machine, or into the graph; continues a stopped move.

        Raises:
            GraphError: A copy differs from its original, or files cannot be written. Texts that were not moved stay.
        """
        if to == "files":
            try:
                await self._graph.prepare_contents()
            except OSError as error:
                raise self._unwritable(error) from error
        total = await self._count(in_files=to == "graph")
        done = left = 0
        move = self._to_files if to == "files" else self._to_graph
        async for conversation_id in self._conversations():
            for kind in KINDS:
                skipped: list[str] = []
                while rows := await self._nodes(kind, conversation_id, in_files=to == "graph", skipped=skipped):
                    moved = await move(kind, conversation_id, rows)
                    skipped += [row["uuid"] for row in rows if row["uuid"] not in moved]
                    done += len(moved)
                    progress(done, max(total, done))
                left += len(skipped)
        if to == "files":
            return Moved(nodes=done, left=left)
        removed = await self.remove_unused()
        return Moved(nodes=done, left=left, folders_removed=max(removed, 0), in_use=removed < 0)

    async def check(self) -> AsyncIterator[LostContent]:
        """Yield the texts in files that cannot be read, by reading and verifying all of them."""
        async for conversation_id in self._conversations():
            for kind in KINDS:
                names = ", ".join(f"n.{field}_file AS {field}" for field in kind.fields)
                rows = await self._graph.rows(
                    f"MATCH {own_node('n', kind.label, 'conversation_id: $id')} WHERE {kind.in_files} "
                    f"RETURN n.uuid AS uuid, {names}",
                    id=conversation_id,
                )
                lost = await self._graph.contents.lost(
                    {row[field] for row in rows for field in kind.fields if row[field]}
                )
                for row in rows:
                    for field in kind.fields:
                        if (loss := lost.get(row[field] or "")) is not None:
                            yield LostContent(
                                conversation_id=conversation_id,
                                label=kind.label,
                                uuid=row["uuid"],
                                field=field,
                                loss=loss.loss,
                                file=loss.file,
                                reason=loss.reason,
                            )

    async def remove_unused(self) -> int:
        """Remove the folders that no text refers to, and return their number; -1 if other processes use them."""
        files = self._graph.contents
        try:
            if not files.try_alone():
                return -1
            used = {
                files.folder_of(Reference.decode(encoded).conversation)
                async for conversation_id in self._conversations()
                for encoded in await self._references(conversation_id)
            }
            unused = [name for name in await files.folders() if name not in used]
            for name in unused:
                await asyncio.to_thread(shutil.rmtree, files.root / name)
            return len(unused)
        finally:
            files.close()

    async def compact(self) -> bool:
        """Remove from files what no text refers to, such as replaced answers; False if other processes use them.

        Raises:
            GraphError: A file cannot be rewritten; it is as it was.
        """
        if await self.remove_unused() < 0:
            return False
        files = self._graph.contents
        try:
            if not files.try_alone():
                return False
            there = set(await files.folders())
            async for conversation_id in self._conversations():
                if files.folder_of(conversation_id) in there:
                    await self._compact_one(conversation_id)
        except OSError as error:
            raise self._unwritable(error) from error
        finally:
            files.close()
        return True

    async def _compact_one(self, conversation_id: str) -> None:
        places: list[tuple[ContentNodes, str, str, Reference]] = []
        for kind in KINDS:
            names = ", ".join(f"n.{field}_file AS {field}" for field in kind.fields)
            rows = await self._graph.rows(
                f"MATCH {own_node('n', kind.label, 'conversation_id: $id')} "
                f"WHERE {kind.in_files} RETURN n.uuid AS uuid, {names}",
                id=conversation_id,
            )
            fields = [(row, field) for row in rows for field in kind.fields if row[field]]
            places += [(kind, row["uuid"], field, Reference.decode(row[field])) for row, field in fields]
        new = await self._graph.contents.rewrite(conversation_id, {reference.sha256 for *_, reference in places})
        for kind in KINDS:
            changed = [
                {"uuid": uuid, "set": {f"{field}_file": new[reference.sha256].encode()}}
                for owner, uuid, field, reference in places
                if owner is kind and reference.sha256 in new
            ]
            for batch in batches(changed, lambda row: _REFERENCE_BYTES):
                await self._graph.run(
                    f"UNWIND $rows AS row MATCH (n:{kind.label} {{uuid: row.uuid}}) SET n += row.set", rows=batch
                )

    async def _references(self, conversation_id: str) -> list[str]:
        """Return all references; those of turns that a removed parent shared may name the parent's folder."""
        found: list[str] = []
        for kind in KINDS:
            rows = await self._graph.rows(
                f"MATCH {own_node('n', kind.label, 'conversation_id: $id')} WHERE {kind.in_files} "
                f"RETURN [{', '.join(f'n.{field}_file' for field in kind.fields)}] AS files",
                id=conversation_id,
            )
            found += [file for row in rows for file in row["files"] if file]
        return found

    async def _count(self, *, in_files: bool) -> int:
        found = 0
        for kind in KINDS:
            row = await self._graph.one(
                f"MATCH {own_node('n', kind.label)} "
                f"WHERE {kind.in_files if in_files else kind.in_graph} RETURN count(n) AS nodes"
            )
            found += row["nodes"] if row else 0
        return found

    async def _conversations(self) -> AsyncIterator[str]:
        last = ""
        while rows := await self._graph.rows(
            f"MATCH {own_node('c', 'Conversation')} WHERE c.uuid > $last "
            "RETURN c.uuid AS uuid ORDER BY uuid LIMIT $limit",
            last=last,
            limit=_IDS_AT_ONCE,
        ):
            for row in rows:
                yield row["uuid"]
            last = rows[-1]["uuid"]

    async def _nodes(
        self, kind: ContentNodes, conversation_id: str, *, in_files: bool, skipped: list[str]
    ) -> list[dict[str, Any]]:
        """Return some nodes that are to be moved, as they are stored."""
        rows = await self._graph.rows(
            f"MATCH {own_node('n', kind.label, 'conversation_id: $id')} "
            f"WHERE ({kind.in_files if in_files else kind.in_graph}) "
            f"AND NOT n.uuid IN $skipped RETURN {kind.projection} AS n LIMIT $limit",
            id=conversation_id,
            skipped=skipped,
            limit=_NODES_AT_ONCE,
        )
        return [dict(row["n"]) for row in rows]

    async def _to_files(self, kind: ContentNodes, conversation_id: str, rows: list[dict[str, Any]]) -> set[str]:
        """Copy texts into the conversation's file, verify them there, and drop them from the graph."""
        rows = [row for row in rows if not _still_written(row)]
        before = {row["uuid"]: dict(row) for row in rows}
        await self._graph.read(_joined(rows, kind.fields))
        places = [(row, field) for row in rows for field in kind.fields if row[field]]
        texts = [Text(row["uuid"], field, row[field]) for row, field in places]
        try:
            references = await self._graph.contents.append(conversation_id, texts)
        except OSError as error:
            raise self._unwritable(error) from error
        copies = await self._graph.contents.read([reference.encode() for reference in references])
        if any(copies[r.encode()] != row[field] for (row, field), r in zip(places, references, strict=True)):
            raise _differs(str(self._graph.contents.root))
        files: dict[str, dict[str, str]] = {}
        for (row, field), reference in zip(places, references, strict=True):
            files.setdefault(row["uuid"], {})[field] = reference.encode()

        async def work(tx: Transaction) -> set[str]:
            # What another process changed meanwhile is moved with the next batch.
            current = {row["uuid"]: row for row in await _stored(tx, kind, list(before))}
            same = [uuid for uuid in files if current.get(uuid) == before[uuid]]
            await tx.run(
                f"UNWIND $rows AS row MATCH (n:{kind.label} {{uuid: row.uuid}}) SET n += row.set",
                rows=[{"uuid": uuid, "set": _moved_out(files[uuid])} for uuid in same],
            )
            for uuid in same:
                for field in files[uuid]:
                    if before[uuid][f"{field}_parts"]:
                        await drop_parts(tx, kind.label, uuid, field)
            return set(same)

        return await self._graph.write(work)

    def _unwritable(self, error: OSError) -> GraphError:
        return GraphError(
            f"{self._graph.contents.root} cannot be written: {error.strerror or error}.",
            kept="Texts that were not moved are still in the graph.",
            todo="Make room or make the folder writable, and run it again.",
            kind="contents",
        )

    async def _to_graph(self, kind: ContentNodes, conversation_id: str, rows: list[dict[str, Any]]) -> set[str]:
        """Copy texts into the graph, verify them there, and drop the references to the file."""
        references = {row[f"{field}_file"] for row in rows for field in kind.fields if row[f"{field}_file"]}
        texts = await self._graph.contents.read(references)
        moved: dict[str, dict[str, str]] = {}
        wanted: dict[str, dict[str, str]] = {}
        changes: list[dict[str, Any]] = []
        for row in rows:
            files = {field: row[f"{field}_file"] for field in kind.fields if row[f"{field}_file"]}
            if any(isinstance(texts[file], LostText) for file in files.values()):
                continue
            own = {field: str(texts[file]) for field, file in files.items()}
            change: dict[str, Any] = dict(own)
            await store_parts(self._graph, row["uuid"], conversation_id, change, files)
            changes.append({"uuid": row["uuid"], **change})
            moved[row["uuid"]], wanted[row["uuid"]] = files, own
        for batch in batches(changes):
            await self._graph.write(_copied(kind, batch))
        stored = await self._graph.read(_joined_of(kind, list(wanted)))
        if any(stored.get(uuid, {}).get(field) != text for uuid, own in wanted.items() for field, text in own.items()):
            raise _differs(self._graph.name)
        await self._graph.run(
            f"UNWIND $rows AS row MATCH (n:{kind.label} {{uuid: row.uuid}}) SET n += row.set",
            rows=[{"uuid": uuid, "set": {f"{name}_file": None for name in own}} for uuid, own in moved.items()],
        )
        return set(moved)


def _still_written(row: dict[str, Any]) -> bool:
    return row["state"] == "streaming" and writer_alive(row["writer"] or "", native(row["lease_until"]), now())


def _moved_out(files: dict[str, str]) -> dict[str, Any]:
    change: dict[str, Any] = {}
    for field, file in files.items():
        change |= {field: "", f"{field}_parts": None, f"{field}_file": file}
    return change


async def _stored(tx: Transaction, kind: ContentNodes, uuids: list[str]) -> list[dict[str, Any]]:
    result = await tx.run(
        f"UNWIND $ids AS id MATCH (n:{kind.label} {{uuid: id}}) RETURN {kind.projection} AS n", ids=uuids
    )
    return [dict(record["n"]) async for record in result]


def _joined(rows: list[dict[str, Any]], fields: Iterable[str]) -> Callable[[Transaction], Any]:
    async def work(tx: Transaction) -> None:
        for row in rows:
            # A text with a reference and a copy in the graph: a move into the graph was stopped between the two.
            row.update({f"{field}_file": None for field in fields})
        await join_parts(tx, rows, tuple(fields))

    return work


def _joined_of(kind: ContentNodes, uuids: list[str]) -> Callable[[Transaction], Any]:
    async def work(tx: Transaction) -> dict[str, dict[str, Any]]:
        rows = await _stored(tx, kind, uuids)
        await _joined(rows, kind.fields)(tx)
        return {row["uuid"]: row for row in rows}

    return work


def _copied(kind: ContentNodes, batch: list[dict[str, Any]]) -> Callable[[Transaction], Any]:
    async def work(tx: Transaction) -> None:
        await tx.run(f"UNWIND $rows AS row MATCH (n:{kind.label} {{uuid: row.uuid}}) SET n += row", rows=batch)
        for row in batch:
            await link_parts(tx, kind.label, row["uuid"], row)

    return work


def _differs(place: str) -> GraphError:
    return GraphError(
        f"A text copied to {place} differs from its original.",
        kept="The original is still there, and so are all that were not moved.",
        todo="Check the disk; `ragforge-chat graph check` verifies all texts in files.",
        kind="contents",
    )
