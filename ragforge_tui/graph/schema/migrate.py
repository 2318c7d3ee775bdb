"""Bring a graph to the current version of the schema.

`Graph.open` calls `migrate` before anything else is asked. Each step is a module with its own statements, so that a
released step reaches a new graph as it reached the old ones.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from ragforge_tui.graph.schema import m001_initial, m002_system_texts, m003_summary_sequence
from ragforge_tui.shared.errors import ForeignGraphError, GraphError

if TYPE_CHECKING:
    from neo4j import AsyncManagedTransaction

    from ragforge_tui.graph.connect import Graph
    from ragforge_tui.graph.dialect import Dialect

log = logging.getLogger(__name__)

_ATTEMPTS = 4


class Migration(msgspec.Struct, frozen=True):
    """One step forward. Steps only ever add, are safe to repeat, and never change once released."""

    version: int
    name: str
    apply: Callable[[Dialect, int], Awaitable[None]]


MIGRATIONS = (
    Migration(1, "initial", m001_initial.apply),
    Migration(2, "system texts", m002_system_texts.apply),
    Migration(3, "summary sequence", m003_summary_sequence.apply),
)
VERSION = MIGRATIONS[-1].version


async def migrate(graph: Graph, *, adopt: bool, embedding_dimension: int) -> None:
    """Bring the graph to this version's schema; does nothing when it is there already.

    Args:
        graph: Where.
        adopt: Allow our schema beside data that is not ours.
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
            f"The graph at {graph.name} has schema version {version}; this program knows {VERSION}.",
            kept="Nothing was changed there.",
            todo="Upgrade ragforge-tui.",
            kind="graph_newer",
        )
    elif version == VERSION:
        return
    for step in MIGRATIONS:
        await _apply(graph, step, embedding_dimension, anew=version is None)


async def _apply(graph: Graph, step: Migration, dimension: int, *, anew: bool) -> None:
    """Apply a step once. Two processes may try at once; `IF NOT EXISTS` does not hold against that on Neo4j.

    Args:
        anew: There was no version node: steps that are noted all the same belong to one that somebody removed.
    """
    for attempt in range(_ATTEMPTS):
        if (attempt or not anew) and step.name in await graph.read(_applied):
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


async def _applied(tx: AsyncManagedTransaction) -> set[str]:
    # Without the version node nothing counts as applied: both are written together, so somebody removed it.
    result = await tx.run("MATCH (v:RagforgeSchema {name: 'schema'}), (m:RagforgeMigration) RETURN m.name AS name")
    return {record["name"] async for record in result}


async def _record(graph: Graph, step: Migration, dimension: int) -> None:
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
