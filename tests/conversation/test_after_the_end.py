"""No processor time is used for a turn that was cancelled, or for a chat that was closed."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.events import ToolCallStarted
from tests.conftest import ONE_BACKEND
from tests.support.model_script import Script

LINES = 12_000
MOST_SECONDS = 2.0
"""Processor time that work may use up after its end was asked for: an edit that does not match is bounded by 1 s."""
WATCHED_SECONDS = 1.0
RESTING_SHARE = 0.3


def lines(seed: int) -> str:
    """Return about 500 kB that differ in each line."""
    chosen = random.Random(seed)
    return "".join(f"    value_{n} = compute({chosen.random()}, {chosen.random()})\n" for n in range(LINES))


@ONE_BACKEND
async def test_an_edit_of_a_large_file_leaves_no_work_behind(loaded: Loaded, server: Script) -> None:
    await asyncio.to_thread(Path(loaded.workspace, "large.py").write_text, lines(1), encoding="utf-8")
    # Alike everywhere and equal nowhere: the longest search for a near match there is.
    edit = {"path": "large.py", "old_string": lines(2)[:250_000], "new_string": "nothing"}
    server.script([{"tool_calls": [{"name": "edit_file", "arguments": edit}], "chunk": 1_000_000}])
    async with ConversationAgent(loaded, approve_all=True) as agent:
        conversation = await agent.create_conversation()
        async for event in conversation.stream("Change it."):
            if isinstance(event, ToolCallStarted):
                conversation.cancel()
        before = time.process_time()
        while time.process_time() - before < MOST_SECONDS:
            used = time.process_time()
            await asyncio.sleep(WATCHED_SECONDS)
            if time.process_time() - used < RESTING_SHARE * WATCHED_SECONDS:
                break
        else:
            raise AssertionError("work goes on after the turn was cancelled")
    used = time.process_time()
    await asyncio.sleep(WATCHED_SECONDS)
    assert time.process_time() - used < RESTING_SHARE * WATCHED_SECONDS, "work goes on after the chat was closed"
