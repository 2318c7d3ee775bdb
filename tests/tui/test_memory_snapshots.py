"""Pictures of the memory pane and of what was sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from ragforge_tui.requests.tree import MemoryDue
from tests.support.calls_scene import calls_engine
from tests.tui.test_snapshots import Scene


@pytest.mark.parametrize(
    ("theme", "size", "command", "keys"),
    [
        ("ragforge-dark", (120, 40), "memory", ["enter", "down", "down", "enter"]),
        ("ragforge-light", (80, 24), "memory", ["t", "enter"]),
        ("ragforge-light", (120, 40), "context 7", ["down"]),
        ("ragforge-dark", (80, 24), "context 7", ["end"]),
    ],
    ids=["tree-120x40", "topics-light-80x24", "sent-light-120x40", "sent-80x24"],
)
def test_memory(
    snap_compare: Any, tmp_path: Path, theme: str, size: tuple[int, int], command: str, keys: list[str]
) -> None:
    engine = calls_engine()
    engine.memory.due = MemoryDue(next_turns=3, next_chars=8_200)
    owner = next(iter(engine.conversations.values()))
    owner.summary = "Why retries doubled turns was looked into; one retry was left, and a test was added."
    scene = Scene(tmp_path, theme, engine=engine)

    async def before(pilot: Pilot[Any]) -> None:
        await scene.ready(pilot)
        scene.app.prompt.insert(f"/{command}")
        await pilot.pause()
        await pilot.press("escape", "enter")
        await pilot.pause(0.5)
        for key in keys:
            await pilot.press(key)
            await pilot.pause(0.3)

    assert snap_compare(scene.app, terminal_size=size, run_before=before)
