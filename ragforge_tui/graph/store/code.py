"""Code in the graph: the files of a workspace, the scopes they define, and the references between scopes.

A file's digest is written after its scopes, so that an interrupted file is indexed again. A scope keeps its uuid while
its text changes. When it goes, it is deleted; one that messages refer to stays, marked with `removed_at`, for the
conversations about it, and no search of code finds it. Workspaces share the graph: every statement names one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ragforge_tui.graph.connection import Graph, Transaction
from ragforge_tui.graph.labels import own_node
from ragforge_tui.graph.store.code_search import SCOPE, CodeSearch, scope_from, workspace_key
from ragforge_tui.graph.store.parts import BATCH_NODES, batches, byte_length
from ragforge_tui.graph.store.records import given, record_from
from ragforge_tui.graph.store.scope_words import SUFFIX
from ragforge_tui.graph.values import native
from ragforge_tui.shared.code_records import (
    CodeTotals,
    IndexedFile,
    Reference,
    Scope,
    ScopeHit,
    ScopeTalk,
    UnresolvedName,
)
from ragforge_tui.shared.code_words import masked, search_text
from ragforge_tui.shared.json_text import decode_json
from ragforge_tui.shared.records import now
from ragforge_tui.shared.sanitize import storable

TEXT_CHARS = 60_000
"""Stored of a scope's text, from its beginning; the file has the rest."""
_PAGE = 2_000
_UNRESOLVED = 200
"""Most unresolved names stored with a scope."""
_TALK_CHARS = 300
_INDEXED = "f.indexed_at IS NOT NULL"
_FILE_FIELDS = (
    "path",
    "digest",
    "language",
    "size",
    "mtime",
    "version",
    "embedded",
    "left_out",
    "linked",
    "defines",
    "refers",
    "unresolved",
)
_NOTED = ("path", "digest", "size", "mtime", "embedded", "linked", "refers", "unresolved")
_TOTALS = ("files", "scopes", "references", "unresolved", "vectors", "problem", "complete", "deaths")

_STORE_SCOPES = (
    "UNWIND $rows AS row MATCH (f:File {workspace: $workspace, path: row.set.file}) "
    "MERGE (s:Scope {uuid: row.set.uuid}) "
    # Name, signature and documentation are embedded, and a section's text: while they stay, the vector does.
    "SET s.embed_model = CASE WHEN s.signature = row.set.signature AND s.doc = row.set.doc "
    "AND (s.kind <> 'section' OR s.digest = row.set.digest) THEN s.embed_model ELSE NULL END "
    "SET s.called = CASE WHEN s.digest = row.set.digest THEN s.called ELSE NULL END "
    "SET s += row.set, s.removed_at = NULL "
    # The words that users have for it outlive a new text.
    f"SET s.search_text = row.set.search_text + {SUFFIX} MERGE (f)-[:DEFINES]->(s)"
)
_STALE = (
    "UNWIND $rows AS row MATCH (s:Scope {workspace: $workspace, file: row.path}) "
    "WHERE s.removed_at IS NULL AND NOT s.uuid IN row.uuids "
    "OPTIONAL MATCH (s)<-[r:REFERENCES_CODE]-(:Message) RETURN s.uuid AS uuid, count(r) > 0 AS kept"
)
_MARK_REMOVED = (
    "UNWIND $ids AS id MATCH (s:Scope {uuid: id}) SET s.removed_at = $at, s.search_text = NULL, s.vector = NULL, "
    "s.embed_model = NULL, s.unresolved = NULL WITH s OPTIONAL MATCH (s)-[r:REFERENCES]-(:Scope) DELETE r"
)
_UNDEFINE = "UNWIND $ids AS id MATCH (:File)-[d:DEFINES]->(s:Scope {uuid: id}) DELETE d"
_DELETE = "UNWIND $ids AS id MATCH (s:Scope {uuid: id}) DETACH DELETE s"
_SIGN_FILES = (
    "UNWIND $rows AS row MATCH (f:File {workspace: $workspace, path: row.path}) SET f += row.set, f.indexed_at = $at"
)
_FORGET_FILES = (
    "UNWIND $paths AS path MATCH (f:File {workspace: $workspace, path: path}) "
    "SET f.indexed_at = NULL, f.parsed = NULL, "
    + ", ".join(f"f.{name} = NULL" for name in _FILE_FIELDS if name != "path")
)
_DELETE_FILES = "UNWIND $paths AS path MATCH (f:File {workspace: $workspace, path: path}) WHERE NOT (f)--() DELETE f"
_DELETE_REFERENCES = (
    "UNWIND $paths AS path MATCH (s:Scope {workspace: $workspace, file: path})-[r:REFERENCES]->(:Scope) DELETE r"
)
_STORE_REFERENCES = (
    "UNWIND $rows AS row MATCH (a:Scope {uuid: row.source}), (b:Scope {uuid: row.target}) "
    "WHERE a.workspace = $workspace AND b.workspace = $workspace "
    "MERGE (a)-[r:REFERENCES {kind: row.kind}]->(b) SET r.line = row.line, r.confidence = row.confidence"
)
_CLEAR_UNRESOLVED = (
    "UNWIND $paths AS path MATCH (s:Scope {workspace: $workspace, file: path}) WHERE s.unresolved IS NOT NULL "
    "SET s.unresolved = NULL, s.unresolved_count = NULL"
)
_STORE_UNRESOLVED = (
    "UNWIND $rows AS row MATCH (s:Scope {uuid: row.uuid}) WHERE s.workspace = $workspace "
    "SET s.unresolved = row.names, s.unresolved_count = row.count"
)


class Code:
    """Files, scopes and references of workspaces."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.search = CodeSearch(graph)

    # --- files -----------------------------------------------------------------------------------------------------

    async def files(self, workspace: str) -> dict[str, str]:
        """Return the digests of the indexed files by path."""
        return {path: file.digest for path, file in (await self.indexed(workspace)).items()}

    async def indexed(self, workspace: str) -> dict[str, IndexedFile]:
        """Return the indexed files by path, without their scopes and `parsed`."""
        # One row, because thousands would cost the driver more than the statement.
        fields = ", ".join(f"f.{name}" for name in _FILE_FIELDS)
        row = await self._graph.one(
            f"MATCH (f:File {{workspace: $workspace}}) WHERE {_INDEXED} RETURN collect([{fields}]) AS files",
            workspace=workspace,
        )
        return {
            values[0]: IndexedFile(
                **{name: value for name, value in zip(_FILE_FIELDS, values, strict=True) if value is not None}
            )
            for values in (row["files"] if row else [])
        }

    async def parsed(self, workspace: str, paths: Sequence[str]) -> dict[str, bytes]:
        """Return what resolving needs of these files, by path."""
        found: dict[str, bytes] = {}
        for start in range(0, len(paths), BATCH_NODES):
            row = await self._graph.one(
                "UNWIND $paths AS path MATCH (f:File {workspace: $workspace, path: path}) WHERE f.parsed IS NOT NULL "
                "RETURN collect([f.path, f.parsed]) AS files",
                workspace=workspace,
                paths=list(paths[start : start + BATCH_NODES]),
            )
            found |= {path: bytes(parsed) for path, parsed in (row["files"] if row else [])}
        return found

    async def replace_files(self, workspace: str, files: Sequence[IndexedFile]) -> None:
        """Replace files and the scopes they define; scopes that a file no longer has are removed.

        References of new scopes are stored by `replace_references`.
        """
        rows = await asyncio.to_thread(_scope_rows, workspace, files)
        await self._graph.run(
            "UNWIND $paths AS path MERGE (f:File {workspace: $workspace, path: path})",
            workspace=workspace,
            paths=[storable(file.path) for file in files],
        )
        for batch in batches(rows, lambda row: _row_bytes(row["set"])):
            await self._graph.run(_STORE_SCOPES, workspace=workspace, rows=batch)
        await self._remove_scopes(
            workspace, [{"path": storable(file.path), "uuids": [scope.uuid for scope in file.scopes]} for file in files]
        )
        signed = ({"path": storable(file.path), "set": _file_properties(file)} for file in files)
        for batch in batches(signed, lambda row: _row_bytes(row["set"])):
            await self._graph.run(_SIGN_FILES, workspace=workspace, rows=batch, at=now())

    async def touch_files(self, workspace: str, files: Sequence[IndexedFile]) -> None:
        """Store what may change of files whose content did not: size, time, `embedded`, `linked` and its counts."""
        for start in range(0, len(files), BATCH_NODES):
            await self._graph.run(
                "UNWIND $rows AS row MATCH (f:File {workspace: $workspace, path: row.path}) "
                f"WHERE {_INDEXED} AND f.digest = row.digest "
                "SET f += row",
                workspace=workspace,
                rows=[{name: getattr(file, name) for name in _NOTED} for file in files[start : start + BATCH_NODES]],
            )

    async def remove_files(self, workspace: str, paths: Iterable[str]) -> None:
        """Remove files from the index, with the scopes they define; a file that tools accessed stays in the graph."""
        gone = list(paths)
        for start in range(0, len(gone), BATCH_NODES):
            batch = gone[start : start + BATCH_NODES]
            await self._remove_scopes(workspace, [{"path": path, "uuids": []} for path in batch])
            await self._graph.run(_FORGET_FILES, workspace=workspace, paths=batch)
            await self._graph.run(_DELETE_FILES, workspace=workspace, paths=batch)

    async def forget(self, workspace: str) -> None:
        """Remove the whole index of a workspace."""
        await self.remove_files(workspace, await self.files(workspace))
        for label in ("CodeIndex", "CodeWords"):
            await self._graph.run(f"MATCH (n:{label} {{workspace: $workspace}}) DETACH DELETE n", workspace=workspace)

    async def _remove_scopes(self, workspace: str, rows: list[dict[str, Any]]) -> None:
        stale = [
            row
            for batch in batches(rows, lambda row: 40 * len(row["uuids"]) + 200)
            for row in await self._graph.rows(_STALE, workspace=workspace, rows=batch)
        ]
        for start in range(0, len(stale), BATCH_NODES):
            batch = stale[start : start + BATCH_NODES]
            kept = [row["uuid"] for row in batch if row["kept"]]
            deleted = [row["uuid"] for row in batch if not row["kept"]]

            async def work(tx: Transaction, kept: list[str] = kept, deleted: list[str] = deleted) -> None:
                if kept:
                    await (await tx.run(_MARK_REMOVED, ids=kept, at=now())).consume()
                    await (await tx.run(_UNDEFINE, ids=kept)).consume()
                if deleted:
                    await (await tx.run(_DELETE, ids=deleted)).consume()

            await self._graph.write(work)

    # --- references ------------------------------------------------------------------------------------------------

    async def replace_references(
        self,
        workspace: str,
        source_files: Iterable[str],
        references: Iterable[Reference],
        unresolved: Iterable[UnresolvedName],
    ) -> None:
        """Replace the references that the scopes of some files make, and the names that could not be resolved."""
        paths = list(source_files)
        for start in range(0, len(paths), BATCH_NODES):
            batch = paths[start : start + BATCH_NODES]
            await self._graph.run(_DELETE_REFERENCES, workspace=workspace, paths=batch)
            await self._graph.run(_CLEAR_UNRESOLVED, workspace=workspace, paths=batch)
        for rows in batches(map(msgspec.structs.asdict, references)):
            await self._graph.run(_STORE_REFERENCES, workspace=workspace, rows=rows)
        by_source: dict[str, list[UnresolvedName]] = {}
        for name in unresolved:
            by_source.setdefault(name.source, []).append(name)
        for rows in batches(map(_unresolved_row, by_source.values())):
            await self._graph.run(_STORE_UNRESOLVED, workspace=workspace, rows=rows)

    async def dependents(self, uuid: str, *, limit: int = 100) -> list[tuple[Reference, Scope]]:
        """Return the scopes that refer to a scope, the surest first."""
        return await self._neighbours("(s)-[r:REFERENCES]->(:Scope {uuid: $uuid})", uuid, limit)

    async def dependencies(self, uuid: str, *, limit: int = 100) -> list[tuple[Reference, Scope]]:
        """Return the scopes that a scope refers to, the surest first."""
        return await self._neighbours("(:Scope {uuid: $uuid})-[r:REFERENCES]->(s)", uuid, limit)

    async def _neighbours(self, pattern: str, uuid: str, limit: int) -> list[tuple[Reference, Scope]]:
        rows = await self._graph.rows(
            f"MATCH {pattern} WITH r, s, startNode(r).uuid AS source, endNode(r).uuid AS target "
            "ORDER BY r.confidence DESC, s.file, s.start_line LIMIT $limit "
            f"RETURN source, target, r.kind AS kind, r.line AS line, r.confidence AS confidence, {SCOPE} AS s",
            uuid=uuid,
            limit=limit,
        )
        return [
            (reference, scope)
            for row in rows
            if (scope := scope_from(row["s"])) is not None
            and (reference := record_from(Reference, given(row, Reference.__struct_fields__))) is not None
        ]

    async def unresolved(self, uuid: str) -> list[UnresolvedName]:
        """Return the names a scope refers to that no scope of its workspace explains, by line."""
        row = await self._graph.one("MATCH (s:Scope {uuid: $uuid}) RETURN s.unresolved AS names", uuid=uuid)
        if not row or not row["names"]:
            return []
        names = decode_json(row["names"], list[tuple[str, Any, int]])
        return [UnresolvedName(source=uuid, name=name, kind=kind, line=line) for name, kind, line in names]

    # --- scopes ----------------------------------------------------------------------------------------------------

    async def get(self, uuids: Sequence[str]) -> list[Scope]:
        """Return scopes by uuid, in this order; unknown ones are left out."""
        rows = await self._graph.rows(
            f"UNWIND $ids AS id MATCH (s:Scope {{uuid: id}}) RETURN {SCOPE} AS s", ids=list(dict.fromkeys(uuids))
        )
        found = {scope.uuid: scope for row in rows if (scope := scope_from(row["s"])) is not None}
        return [found[uuid] for uuid in dict.fromkeys(uuids) if uuid in found]

    async def by_name(self, workspace: str, name: str, file: str = "", *, removed: bool = False) -> list[Scope]:
        """Return the scopes with a name, which may be qualified in part (`Session.send`), by file and line.

        Args:
            file: Path, or the end of one from a slash on; empty for any.
            removed: Scopes that no longer exist and that conversations are about, too.
        """
        rows = await self._graph.rows(
            "MATCH (s:Scope {workspace: $workspace, name: $last}) "
            "WHERE ($name = $last OR s.qualified_name = $name OR s.qualified_name ENDS WITH $ending) "
            "AND ($file = '' OR s.file = $file OR s.file ENDS WITH $file_ending) "
            "AND ($removed OR s.removed_at IS NULL) "
            f"RETURN {SCOPE} AS s ORDER BY s.file, s.start_line LIMIT $limit",
            workspace=workspace,
            name=name,
            last=name.rsplit(".", 1)[-1],
            ending=f".{name}",
            file=file,
            file_ending=f"/{file}",
            removed=removed,
            limit=_PAGE,
        )
        return [scope for row in rows if (scope := scope_from(row["s"])) is not None]

    async def in_lines(self, workspace: str, path: str, first: int, last: int) -> list[Scope]:
        """Return the scopes of a file that share lines with a range, the innermost first."""
        rows = await self._graph.rows(
            "MATCH (s:Scope {workspace: $workspace, file: $path}) "
            "WHERE s.removed_at IS NULL AND s.start_line <= $last AND s.end_line >= $first "
            f"RETURN {SCOPE} AS s ORDER BY s.end_line - s.start_line, s.start_line LIMIT $limit",
            workspace=workspace,
            path=path,
            first=first,
            last=last,
            limit=_PAGE,
        )
        return [scope for row in rows if (scope := scope_from(row["s"])) is not None]

    async def candidates(
        self,
        workspace: str,
        words: Sequence[str],
        vector: Sequence[float] | None = None,
        *,
        similar: Mapping[str, float] | None = None,
        kinds: Sequence[str] = (),
        limit: int = 100,
    ) -> list[ScopeHit]:
        """Return the scopes that have some of the words or are near a vector, with both scores; see `CodeSearch`."""
        return await self.search.candidates(workspace, words, vector, similar=similar, kinds=kinds, limit=limit)

    # --- conversations ---------------------------------------------------------------------------------------------

    async def link_message(self, message_id: str, scope_uuids: Sequence[str]) -> None:
        """Note that a message is about scopes; those linked before stay."""
        await self._graph.run(
            "MATCH (m:Message {uuid: $message}) UNWIND $ids AS id MATCH (s:Scope {uuid: id}) "
            "MERGE (m)-[:REFERENCES_CODE]->(s)",
            message=message_id,
            ids=list(dict.fromkeys(scope_uuids)),
        )

    async def conversations_about(self, scope_uuid: str, limit: int = 50) -> list[ScopeTalk]:
        """Return the turns about a scope, newest first, one entry a turn; never of private or deleted conversations."""
        rows = await self._graph.rows(
            "MATCH (s:Scope {uuid: $uuid})<-[:REFERENCES_CODE]-(m:Message) WHERE m.state <> 'superseded' "
            "MATCH (c:Conversation {uuid: m.conversation_id}) "
            "WHERE c.status <> 'deleted' AND coalesce(c.private, false) <> true "
            "RETURN c.uuid AS conversation_id, c.title AS title, m.turn_index AS turn_index, m.uuid AS message_id, "
            "m.timestamp AS timestamp, m.role AS role, left(toStringOrNull(m.content), $chars) AS text, "
            "m.content_file AS text_file ORDER BY m.timestamp DESC, m.position LIMIT $limit",
            uuid=scope_uuid,
            limit=4 * limit,
            chars=_TALK_CHARS,
        )
        await self._graph.contents.fill(rows, ("text",))
        turns: dict[tuple[str, int], ScopeTalk] = {}
        for row in rows:
            told = {
                **{name: value for name, value in row.items() if name != "text_file"},
                "timestamp": native(row["timestamp"]),
                "title": row["title"] or "",
                "text": (row["text"] or "")[:_TALK_CHARS],
            }
            turns.setdefault((row["conversation_id"], row["turn_index"]), ScopeTalk(**told))
        return list(turns.values())[:limit]

    # --- the index as a whole --------------------------------------------------------------------------------------

    async def count(self, workspace: str) -> CodeTotals:
        """Count the files, scopes, references and unresolved names of a workspace."""
        row = await self._graph.one(
            f"MATCH (f:File {{workspace: $workspace}}) WHERE {_INDEXED} RETURN count(f) AS files", workspace=workspace
        )
        scopes = await self._graph.one(
            "MATCH (s:Scope {workspace: $workspace}) WHERE s.removed_at IS NULL RETURN count(s) AS scopes, "
            "count(s.embed_model) AS vectors, coalesce(sum(s.unresolved_count), 0) AS unresolved",
            workspace=workspace,
        )
        edges = await self._graph.one(
            "MATCH (s:Scope {workspace: $workspace})-[r:REFERENCES]->(:Scope) RETURN count(r) AS references",
            workspace=workspace,
        )
        return CodeTotals(workspace=workspace, **(row or {}), **(scopes or {}), **(edges or {}))

    async def store_totals(self, totals: CodeTotals) -> None:
        """Store the totals of a workspace's index; the time is now."""
        await self._graph.run(
            "MERGE (i:CodeIndex {workspace: $workspace}) SET i += $values, i.indexed_at = $at",
            workspace=totals.workspace,
            values={name: getattr(totals, name) for name in _TOTALS}
            | {"left_out": msgspec.json.encode(totals.left_out).decode()},
            at=now(),
        )

    async def totals(self, workspace: str = "") -> list[CodeTotals]:
        """Return the stored totals of one workspace, or of all by path."""
        rows = await self._graph.rows(
            f"MATCH {own_node('i', 'CodeIndex')} WHERE $workspace = '' OR i.workspace = $workspace "
            "RETURN i {.workspace, .indexed_at, .left_out, "
            + ", ".join(f".{name}" for name in _TOTALS)
            + "} AS i ORDER BY i.workspace",
            workspace=workspace,
        )
        return [_totals_from(row["i"]) for row in rows]


def _totals_from(found: Mapping[str, Any]) -> CodeTotals:
    left_out = found["left_out"] if isinstance(found["left_out"], str) else "{}"
    values = {**given(found, tuple(found)), "left_out": decode_json(left_out)}
    return record_from(CodeTotals, values) or CodeTotals(workspace=found["workspace"])


def _scope_rows(workspace: str, files: Sequence[IndexedFile]) -> list[dict[str, Any]]:
    """Return the rows of all scopes, each once, with texts that may be stored."""
    rows: dict[str, dict[str, Any]] = {}
    for file in files:
        prepared = len(file.search_texts) == len(file.scopes)
        scopes = file.scopes if prepared else [masked(scope) for scope in file.scopes]
        texts = file.search_texts if prepared else map(search_text, scopes)
        for scope, text in zip(scopes, texts, strict=True):
            properties: dict[str, Any] = msgspec.structs.asdict(scope) | {
                "workspace": workspace,
                "file": storable(file.path),
                "text": scope.text[:TEXT_CHARS],
                "doc": scope.doc[:TEXT_CHARS],
                "search_text": text,
                "workspace_key": workspace_key(workspace),
            }
            rows[scope.uuid] = {"set": properties}
    return list(rows.values())


def _file_properties(file: IndexedFile) -> dict[str, Any]:
    properties = {name: getattr(file, name) for name in _FILE_FIELDS if name != "path"}
    return properties | {"parsed": file.parsed, "defines": len(file.scopes)}


def _row_bytes(values: Mapping[str, Any]) -> int:
    return sum(
        byte_length(value) if isinstance(value, str) else len(value) if isinstance(value, bytes) else 16
        for value in values.values()
    ) + 32 * len(values)


def _unresolved_row(names: list[UnresolvedName]) -> dict[str, Any]:
    told = sorted({(name.name, name.kind, name.line) for name in names}, key=lambda name: (name[2], name[0]))
    return {
        "uuid": names[0].source,
        "names": storable(msgspec.json.encode(told[:_UNRESOLVED]).decode()),
        "count": len(told),
    }
