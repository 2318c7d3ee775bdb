"""Access to the configured graph for one command."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from ragforge_tui.settings.schema import Loaded

if TYPE_CHECKING:  # importing the driver takes 100 ms, which --help does not need
    from ragforge_tui.graph import Graph, GraphTarget

T = TypeVar("T")


async def use_graph(loaded: Loaded, target: GraphTarget, work: Callable[[Graph], Awaitable[T]]) -> T:
    """Open the graph, run `work` with it and close it."""
    from ragforge_tui.graph import Graph

    settings = loaded.settings
    graph = await Graph.open(
        target,
        loaded.paths,
        heap_mb=settings.graph.heap_mb,
        linger_seconds=settings.graph.linger_seconds,
        embedding_dimension=settings.agent.memory.embeddings.dimension,
    )
    try:
        return await work(graph)
    finally:
        await graph.close()


def target_of(loaded: Loaded) -> GraphTarget:
    """Return the graph that the settings name."""
    from ragforge_tui.graph import resolve_target

    return resolve_target(loaded.settings.graph, loaded.origins)
