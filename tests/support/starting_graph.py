"""A graph that starts for as long as a test wants, on each backend."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from ragforge_tui.conversation.storage import graph_connection
from ragforge_tui.graph import Graph


class StartingGraph:
    """The start of a graph, held up until `finish`.

    Attributes:
        error: Raised in place of opening it.
    """

    def __init__(self) -> None:
        self.error: Exception | None = None
        self._finished = asyncio.Event()
        self._open = Graph.open

    def finish(self, error: Exception | None = None) -> None:
        """Let it open, or fail."""
        self.error = error
        self._finished.set()

    async def open(self, *args: Any, **kwargs: Any) -> Graph:
        """Open the graph once the test lets it."""
        await self._finished.wait()
        if self.error is not None:
            raise self.error
        return await self._open(*args, **kwargs)


@contextmanager
def starting_graph(*, wait: float = 0.0) -> Iterator[StartingGraph]:
    """Hold up each graph that an agent opens.

    Args:
        wait: Seconds that a first message waits for it.
    """
    held = StartingGraph()
    with (
        mock.patch.object(graph_connection.Graph, "open", held.open),
        mock.patch.object(graph_connection, "OPENING_SECONDS", wait),
    ):
        yield held
