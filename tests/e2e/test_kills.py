"""Nothing acknowledged is lost or doubled, whatever is killed and whenever; with odd seeds, texts are in files."""

from __future__ import annotations

import argparse
import asyncio
import os
from pathlib import Path

import msgspec
import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.graph import GraphTarget, stop_server
from ragforge_tui.settings.schema import Loaded, PersistenceSettings
from tests.conftest import ONE_BACKEND, paths_under
from tests.support import storm
from tests.support.agents import loaded_for, settings_for, with_host, with_memory
from tests.support.hosts import end_host
from tests.support.kills import (
    Outcome,
    answer_to,
    broken_promises,
    question,
    read_back,
    script,
    survive,
    survive_cold_starts,
)
from tests.support.openai_server import OpenAIServer

POINTS = int(os.environ.get("RAGFORGE_KILL_POINTS", "5"))
"""Five in `make test-all`, more in CI."""
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


@ONE_BACKEND
async def test_two_programs_that_write_at_once_break_no_promise(loaded: Loaded, server: OpenAIServer) -> None:
    asked = [[question(f"{name}-{number}") for number in range(3)] for name in ("one", "two")]
    server.script(script(f"{name}-{number}" for name in ("one", "two") for number in range(3)))
    loaded = with_memory(loaded, enabled=False)

    async def talk(agent: ConversationAgent, conversation_id: str, messages: list[str]) -> list[str]:
        conversation = await agent.load_conversation(conversation_id)
        return [(await conversation.send_message(text)).content for text in messages]

    async with ConversationAgent(loaded, approve_all=True) as one, ConversationAgent(loaded, approve_all=True) as two:
        uuid = (await one.create_conversation("storm")).record.uuid
        said = await asyncio.gather(*(talk(agent, uuid, mine) for agent, mine in zip((one, two), asked, strict=True)))
    assert said == [[answer_to(text) for text in mine] for mine in asked]
    turns = await read_back(loaded, uuid)
    assert broken_promises(Outcome(conversation_id=uuid), turns) == []
    assert sorted(turn.messages[0].content for turn in turns) == sorted(text for mine in asked for text in mine)


@pytest.mark.slow
async def test_a_storm_of_four_writers_and_kills_breaks_no_promise() -> None:
    sizes = argparse.Namespace(turns=8, graph_kills=1, engine_kills=1, host_kills=1, seed=1)
    assert await storm.main(sizes) == 0
