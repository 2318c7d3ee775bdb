"""A stop asked through the graph by another process, wherever the turn stands."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import psutil
import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.graph import Graph, Store
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.events import ModelRetry, TextDelta, ToolCallStarted, TurnCancelled
from tests.support.agents import with_model
from tests.support.model_script import Script
from tests.support.openai_server import OpenAIServer
from tests.support.records import turn_id
from tests.support.waiting import PATIENCE


def still_running(mark: str) -> bool:
    """Whether a command with this mark in its text lives, which may have process ids of its own."""
    return any(mark in " ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"]))


async def stopped_at(graph: Graph, loaded: Loaded, moment: type) -> tuple[str, TurnCancelled]:
    """Begin a turn, ask from outside that it stop when an event of that kind comes; how it ended."""
    async with ConversationAgent(loaded, approve_all=True) as agent, asyncio.timeout(PATIENCE):
        conversation = await agent.create_conversation()
        asked = False
        async for event in conversation.stream("go"):
            if isinstance(event, moment) and not asked:
                asked = True
                store = Store(graph)
                await store.messages.request_stop(await turn_id(store, conversation.record.uuid, 1))
        assert isinstance(event, TurnCancelled)
        return conversation.record.uuid, event


async def test_a_long_command_is_ended(graph: Graph, loaded: Loaded, server: Script) -> None:
    mark = uuid4().hex
    command = {"command": f"sleep 600; echo {mark}"}
    server.script([{"tool_calls": [{"name": "run_command", "arguments": command}]}, {"text": "never"}])
    uuid, _ = await stopped_at(graph, loaded, ToolCallStarted)
    (turn,) = await Store(graph).turns.between(uuid, start=1, end=2)
    reply = turn.messages[-1]
    assert reply.state == "interrupted"
    assert reply.tool_calls[0].result is not None
    assert len(server.chats()) == 1
    assert not still_running(mark)


@pytest.mark.http
async def test_waiting_for_another_attempt_is_ended(graph: Graph, loaded: Loaded, server: OpenAIServer) -> None:
    server.script([{"status": 429, "headers": {"retry-after": "30"}}, {"text": "never"}])
    uuid, _ = await stopped_at(graph, with_model(loaded, retries=3), ModelRetry)
    (turn,) = await Store(graph).turns.between(uuid, start=1, end=2)
    assert turn.messages[-1].state == "interrupted"


async def test_a_streaming_answer_is_ended(graph: Graph, loaded: Loaded, server: Script) -> None:
    server.script([{"text": "word " * 2_000, "delay": 0.05}])
    _, event = await stopped_at(graph, loaded, TextDelta)
    assert event.text.startswith("word")
