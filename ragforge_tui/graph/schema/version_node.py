"""The node that records what belongs to a graph as a whole: its identity, and the embedding model of its vectors."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragforge_tui.graph.connect import Graph


async def read_identity(graph: Graph) -> str:
    """Return the uuid that makes this graph itself, wherever it is reached; empty when it has none."""
    record = await graph.one("MATCH (v:RagforgeSchema {name: 'schema'}) RETURN v.identity AS identity")
    return (record["identity"] or "") if record else ""


async def ensure_identity(graph: Graph) -> str:
    """Return the graph's identity; a graph of an earlier release gets one. No migration, so that those still open it.

    Two processes may try at once: the first one to commit wins, and both read what is there then.
    """
    found = await read_identity(graph)
    if found:
        return found
    fresh = uuid.uuid4().hex
    await graph.run(
        "MATCH (v:RagforgeSchema {name: 'schema'}) SET v.identity = coalesce(v.identity, $fresh)", fresh=fresh
    )
    return await read_identity(graph)


async def recorded_embedding(graph: Graph) -> tuple[str, int]:
    """Return the embedding model (empty until one was used) and the dimension that belong to the graph."""
    record = await graph.one(
        "MATCH (v:RagforgeSchema {name: 'schema'}) RETURN v.embedding_model AS model, v.embedding_dimension AS size"
    )
    return (record["model"] or "", record["size"] or 0) if record else ("", 0)


async def record_embedding(graph: Graph, model: str, dimension: int) -> None:
    """Note which embedding model the graph's vectors come from."""
    await graph.run(
        "MATCH (v:RagforgeSchema {name: 'schema'}) SET v.embedding_model = $model, v.embedding_dimension = $size",
        model=model,
        size=dimension,
    )
