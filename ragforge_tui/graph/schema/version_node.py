"""The node that records what belongs to a graph as a whole: its identity, and the embedding model of its vectors."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neo4j import AsyncManagedTransaction

    from ragforge_tui.graph.connect import Graph


async def read_identity(graph: Graph) -> str:
    """Return the uuid that makes this graph itself, wherever it is reached; empty when it has none."""

    async def work(tx: AsyncManagedTransaction) -> str:
        result = await tx.run("MATCH (v:RagforgeSchema {name: 'schema'}) RETURN v.identity AS identity")
        record = await result.single()
        return (record["identity"] or "") if record else ""

    found: str = await graph.read(work)
    return found


async def ensure_identity(graph: Graph) -> str:
    """Return the graph's identity; a graph of an earlier release gets one. No migration, so that those still open it.

    Two processes may try at once: the first one to commit wins, and both read what is there then.
    """
    found = await read_identity(graph)
    if found:
        return found
    fresh = uuid.uuid4().hex

    async def work(tx: AsyncManagedTransaction) -> None:
        await tx.run(
            "MATCH (v:RagforgeSchema {name: 'schema'}) SET v.identity = coalesce(v.identity, $fresh)", fresh=fresh
        )

    await graph.write(work)
    return await read_identity(graph)


async def recorded_embedding(graph: Graph) -> tuple[str, int]:
    """Return the embedding model (empty until one was used) and the dimension that belong to the graph."""

    async def work(tx: AsyncManagedTransaction) -> tuple[str, int]:
        result = await tx.run(
            "MATCH (v:RagforgeSchema {name: 'schema'}) RETURN v.embedding_model AS model, v.embedding_dimension AS size"
        )
        record = await result.single()
        return (record["model"] or "", record["size"] or 0) if record else ("", 0)

    found: tuple[str, int] = await graph.read(work)
    return found


async def record_embedding(graph: Graph, model: str, dimension: int) -> None:
    """Note which embedding model the graph's vectors come from."""

    async def work(tx: AsyncManagedTransaction) -> None:
        await tx.run(
            "MATCH (v:RagforgeSchema {name: 'schema'}) SET v.embedding_model = $model, v.embedding_dimension = $size",
            model=model,
            size=dimension,
        )

    await graph.write(work)
