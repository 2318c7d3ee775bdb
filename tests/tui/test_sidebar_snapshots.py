"""Pictures of the sidebar: over the chat, beside it, and of what is opened from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.support.calls_scene import calls_engine
from tests.tui.test_snapshots import Scene


@pytest.mark.parametrize(
    ("theme", "size", "keys"),
    [
        ("ragforge-dark", (80, 24), ["f4"]),
        ("ragforge-dark", (120, 40), ["f4", "f5"]),
        ("ragforge-light", (120, 40), ["f4", "x", "up", "enter"]),
        ("ragforge-dark", (60, 20), ["f5"]),
    ],
    ids=["over-80x24", "beside-120x40", "opened-light-120x40", "files-60x20"],
)
def test_sidebar(snap_compare: Any, tmp_path: Path, theme: str, size: tuple[int, int], keys: list[str]) -> None:
    scene = Scene(tmp_path, theme, engine=calls_engine())

    async def before(pilot: Pilot[Any]) -> None:
        await scene.ready(pilot)
        for key in keys:
            await pilot.press(key)
            await pilot.pause(0.3)

    assert snap_compare(scene.app, terminal_size=size, run_before=before)
