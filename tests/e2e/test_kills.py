"""Nothing acknowledged is lost or doubled, whatever is killed and whenever; with odd seeds, texts are in files."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from ragforge_tui.graph import GraphTarget, stop_server
from ragforge_tui.settings.schema import PersistenceSettings
from tests.conftest import paths_under
from tests.support.agents import loaded_for, settings_for, with_host, with_memory
from tests.support.hosts import end_host
from tests.support.kills import survive, survive_cold_starts
from tests.support.openai_server import OpenAIServer

POINTS = int(os.environ.get("RAGFORGE_KILL_POINTS", "5"))
"""Five in `make test`, fifty in CI."""
COLD_POINTS = max(2, POINTS // 5)
"""Conversations that begin when nothing runs, which takes most of the time."""
RUNS = min(4, max(1, POINTS // 5))
"""Conversations that share the points; each has a server, an engine and a last reader of its own to start."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(RUNS))
async def test_kills_cost_nothing_that_was_acknowledged(tmp_path: Path, seed: int) -> None:
    points = POINTS * (seed + 1) // RUNS - POINTS * seed // RUNS
    async with OpenAIServer() as server:
        settings = settings_for(GraphTarget(embedded=True), api_base=server.base_url)
        loaded = with_host(loaded_for(settings, paths_under(tmp_path / "home"), tmp_path / "workspace"))
        try:
            if seed % 2:
                loaded = with_memory(loaded, persistence=PersistenceSettings(type="hybrid"))
            outcome, broken = await survive(loaded, server, points=points, seed=seed)
        finally:
            end_host(loaded)
            stop_server(loaded.paths)
    assert not broken, (broken, msgspec.to_builtins(outcome))
    assert len(outcome.acknowledged) == points + 1


@pytest.mark.slow
async def test_kills_while_the_graph_starts_cost_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    async with OpenAIServer() as server:
        settings = settings_for(GraphTarget(embedded=True), api_base=server.base_url)
        loaded = with_host(loaded_for(settings, paths_under(tmp_path / "home"), tmp_path / "workspace"))
        try:
            checked = await survive_cold_starts(loaded, server, points=COLD_POINTS, seed=1)
        finally:
            end_host(loaded)
            stop_server(loaded.paths)
    broken = [(promises, msgspec.to_builtins(outcome)) for outcome, promises in checked if promises]
    assert not broken
    assert [len(outcome.acknowledged) for outcome, _ in checked] == [2] * COLD_POINTS
