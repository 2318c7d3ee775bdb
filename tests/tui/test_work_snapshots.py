"""Pictures of the diff of a session, and of a command of the person's own with an undo that is asked about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from ragforge_tui.protocol import FileDiff, UndoPlan
from tests.support.chat_scene import DIFF
from tests.tui.test_snapshots import Scene

MADE = "--- /dev/null\n+++ b/notes/retry.md\n@@ -0,0 +1,2 @@\n+# Retry\n+One uuid for all tries.\n"
DIFFS = [
    FileDiff(path="graph/store.py", diff=DIFF),
    FileDiff(path="notes/retry.md", diff=MADE, note="somebody else changed it since"),
]


@pytest.mark.parametrize(
    ("size", "theme"), [((80, 24), "ragforge-dark"), ((120, 40), "ragforge-light")], ids=["dark-80x24", "light-120x40"]
)
def test_diff(snap_compare: Any, tmp_path: Path, size: tuple[int, int], theme: str) -> None:
    scene = Scene(tmp_path, theme)

    async def before(pilot: Pilot[Any]) -> None:
        await scene.ready(pilot)
        scene.engine.work.diffs = DIFFS
        scene.app.prompt.insert("/diff")
        await pilot.press("enter")
        await pilot.pause(0.2)

    assert snap_compare(scene.app, terminal_size=size, run_before=before)


def test_own_command_and_undo(snap_compare: Any, tmp_path: Path) -> None:
    scene = Scene(tmp_path, "ragforge-dark")

    async def before(pilot: Pilot[Any]) -> None:
        await scene.ready(pilot)
        scene.engine.work.undo_plan = UndoPlan(turn_index=1, restored=DIFFS[1:])
        scene.app.prompt.insert("!git status")
        await pilot.press("enter")
        await pilot.pause(0.2)
        scene.app.controller.state.mode = "edits"
        scene.app.prompt.insert("/undo")
        await pilot.press("enter")
        await pilot.pause(0.2)

    assert snap_compare(scene.app, terminal_size=(80, 24), run_before=before)
