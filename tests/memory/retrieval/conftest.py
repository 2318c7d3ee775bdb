"""A store whose vectors come from no model yet."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from ragforge_tui.graph import Graph, Store
from ragforge_tui.graph.schema.migrate import record_embedding
from tests.support.sizes import DIMENSION


@pytest.fixture
async def store(graph: Graph) -> AsyncIterator[Store]:
    """A graph whose vectors come from no model yet, before and after."""
    await record_embedding(graph, "", DIMENSION)
    yield Store(graph)
    await record_embedding(graph, "", DIMENSION)
