"""A whole agent on each graph backend, talking to the scripted server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from ragforge_tui.config import Loaded, Paths
from ragforge_tui.graph import Graph, GraphTarget
from tests.support.agents import loaded_for, settings_for
from tests.support.openai_server import OpenAIServer


@pytest.fixture
async def server() -> AsyncIterator[OpenAIServer]:
    async with OpenAIServer() as running:
        yield running


@pytest.fixture
def loaded(graph: Graph, graph_target: GraphTarget, graph_paths: Paths, tmp_path: Path, server: OpenAIServer) -> Loaded:
    """Settings of an agent on an empty graph."""
    settings = settings_for(graph_target, api_base=server.base_url)
    # A journal that one test leaves must not be written into another's graph.
    paths = msgspec.structs.replace(graph_paths, state=str(tmp_path / "state"))
    return loaded_for(settings, paths, tmp_path / "workspace")
