"""Schema of a graph: migrations to the current version, and the node that records version, identity and embedding.

`Graph.open` calls `migrate` before any other request. Each step is a module with its own statements, so that a released
step has the same effect on a new graph as it had on old ones.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from ragforge_tui.graph.schema import m010_initial
from ragforge_tui.shared.errors import ForeignGraphError, GraphError
from ragforge_tui.shared.json_text import decode_json

if TYPE_CHECKING:
    from neo4j import AsyncManagedTransaction

    from ragforge_tui.graph.dialect import Dialect

log = logging.getLogger(__name__)

T = TypeVar("T")

_ATTEMPTS = 4


class SchemaGraph(Protocol):
    """Part of `graph.connection.Graph` that this module uses; `Graph.open` migrates, so it cannot be imported here."""

    name: str
    dialect: Dialect

    async def read(self, work: Callable[[AsyncManagedTransaction], Awaitable[T]]) -> T: ...
    async def one(self, statement: str, /, **parameters: Any) -> dict[str, Any] | None: ...
    async def run(self, statement: str, /, **parameters: Any) -> None: ...


class Migration(msgspec.Struct, frozen=True):
    """One step forward. Steps add, drop only indexes that nothing reads, are safe to repeat, and never change once
    released.
    """

    version: int
    name: str
    apply: Callable[[Dialect, int], Awaitable[None]]


MIGRATIONS = (Migration(10, "initial", m010_initial.apply),)
VERSION = MIGRATIONS[-1].version


async def migrate(graph: SchemaGraph, *, adopt: bool, embedding_dimension: int) -> None:
    """Migrate the graph to this version's schema; does nothing if it is current.

    Args:
        graph: Where.
        adopt: Allow the schema in a graph with other data.
        embedding_dimension: Dimension of the vectors of a graph that is new; an existing graph keeps its own.

    Raises:
        ForeignGraphError: The graph holds data, but not our version node.
        GraphError: The graph was written by a newer version of this program.
    """
    version = await graph.read(_version)
    if version is None:
        if not adopt and await graph.read(_has_data):
            raise ForeignGraphError(
                f"The graph at {graph.name} holds data that is not from this program.",
                kept="Nothing was changed there.",
                todo="Choose another graph or database, or allow it with `ragforge-chat graph adopt`.",
            )
    elif version > VERSION:
        raise GraphError(
            f"The graph at {graph.name} has schema version {version}; this program supports {VERSION}.",
            kept="Nothing was changed there.",
            todo="Upgrade ragforge-tui.",
            kind="graph_newer",
        )
    elif version == VERSION:
        return
    for step in MIGRATIONS:
        await _apply(graph, step, embedding_dimension)


async def _apply(graph: SchemaGraph, step: Migration, dimension: int) -> None:
    """Apply a step once. Two processes may try at once; `IF NOT EXISTS` does not prevent that on Neo4j."""
    for attempt in range(_ATTEMPTS):
        if (await graph.read(_version) or 0) >= step.version:
            return
        log.info("schema: applying %s", step.name)
        try:
            await step.apply(graph.dialect, dimension)
            await _record(graph, step, dimension)
            return
        except GraphError:
            if attempt == _ATTEMPTS - 1:
                raise
            log.warning("schema: %s failed, trying again", step.name, exc_info=True)
            await asyncio.sleep(0.5 * (attempt + 1))


async def _version(tx: AsyncManagedTransaction) -> int | None:
    result = await tx.run("MATCH (v:RagforgeSchema) RETURN max(v.version) AS version")
    record = await result.single()
    return record["version"] if record else None


async def _has_data(tx: AsyncManagedTransaction) -> bool:
    result = await tx.run("MATCH (n) WHERE NOT n:RagforgeMigration RETURN n IS NOT NULL AS found LIMIT 1")
    return await result.single() is not None


async def _record(graph: SchemaGraph, step: Migration, dimension: int) -> None:
    parameters: dict[str, Any] = {
        "step": step.name,
        "version": step.version,
        "dimension": dimension,
        "now": datetime.now(UTC),
    }
    await graph.run(
        "MERGE (m:RagforgeMigration {name: $step}) ON CREATE SET m.applied_at = $now "
        "MERGE (v:RagforgeSchema {name: 'schema'}) "
        "ON CREATE SET v.embedding_model = '', v.embedding_dimension = $dimension, v.created_at = $now "
        "SET v.version = CASE WHEN coalesce(v.version, 0) > $version THEN v.version ELSE $version END",
        **parameters,
    )


async def read_identity(graph: SchemaGraph) -> str:
    """Return the uuid that identifies this graph at any address; empty if it has none."""
    record = await graph.one("MATCH (v:RagforgeSchema {name: 'schema'}) RETURN v.identity AS identity")
    return (record["identity"] or "") if record else ""


async def ensure_identity(graph: SchemaGraph) -> str:
    """Return the graph's identity; a new graph gets one.

    Two processes may try at once: the first one to commit wins, and both read its value.
    """
    found = await read_identity(graph)
    if found:
        return found
    fresh = uuid.uuid4().hex
    await graph.run(
        "MATCH (v:RagforgeSchema {name: 'schema'}) SET v.identity = coalesce(v.identity, $fresh)", fresh=fresh
    )
    return await read_identity(graph)


async def recorded_embedding(graph: SchemaGraph) -> tuple[str, int]:
    """Return the embedding model (empty until one was used) and the dimension that belong to the graph."""
    record = await graph.one(
        "MATCH (v:RagforgeSchema {name: 'schema'}) RETURN v.embedding_model AS model, v.embedding_dimension AS size"
    )
    return (record["model"] or "", record["size"] or 0) if record else ("", 0)


async def record_embedding(graph: SchemaGraph, model: str, dimension: int) -> None:
    """Note which embedding model the graph's vectors come from."""
    await graph.run(
        "MATCH (v:RagforgeSchema {name: 'schema'}) SET v.embedding_model = $model, v.embedding_dimension = $size",
        model=model,
        size=dimension,
    )


async def recorded_folders(graph: SchemaGraph, added: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return machine and path of the folders with texts of this graph, by the folder's id.

    Args:
        added: Folders to record first; two processes may do so at once.
    """
    encoded = [msgspec.json.encode(place).decode() for place in (added or {}).items()]
    if encoded:
        await graph.run(
            "MATCH (v:RagforgeSchema {name: 'schema'}) SET v.contents_folders = "
            "[x IN coalesce(v.contents_folders, []) WHERE NOT x IN $added] + $added",
            added=encoded,
        )
    record = await graph.one("MATCH (v:RagforgeSchema {name: 'schema'}) RETURN v.contents_folders AS folders")
    stored = (record["folders"] or []) if record else []
    return dict(decode_json(line, tuple[str, str]) for line in stored)
