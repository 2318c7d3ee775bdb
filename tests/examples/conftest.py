"""Where examples run: in a small workspace, on a test's graph, with settings from a file as a user has them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ragforge_tui.graph import Graph, GraphTarget
from ragforge_tui.settings.schema import Paths
from tests.support.sizes import DIMENSION, HEAP_MB, LINGER


@pytest.fixture
async def program(
    graph: Graph, graph_target: GraphTarget, graph_paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Path]:
    """The workspace of a program that is started without arguments."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "greeting.py").write_text('def greet():\n    return "hello"\n', encoding="utf-8")
    config = tmp_path / "config.yaml"
    config.write_text(
        f"graph: {{heap_mb: {HEAP_MB}, linger_seconds: {LINGER}, adopt: true, uri: '{graph_target.uri}'}}\n"
        f"agent: {{memory: {{embeddings: {{enabled: false, dimension: {DIMENSION}}}}}}}\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("RAGFORGE_HOME", str(Path(graph_paths.data).parent))
    monkeypatch.setenv("RAGFORGE_CONFIG", str(config))
    monkeypatch.setenv("RAGFORGE_MODEL", "offline")
    if graph_target.uri:
        monkeypatch.setenv("NEO4J_URI", graph_target.uri)
        monkeypatch.setenv("NEO4J_USERNAME", graph_target.username)
        monkeypatch.setenv("NEO4J_PASSWORD", graph_target.password)
    await forget_embedding_model(graph)
    yield workspace
    await forget_embedding_model(graph)


async def forget_embedding_model(graph: Graph) -> None:
    """Let the next embedder claim the graph, which tests with other embedders share."""
    await graph.run("MATCH (v:RagforgeSchema {name: 'schema'}) SET v.embedding_model = null")
