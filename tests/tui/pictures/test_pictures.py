"""Every state of the table, at two sizes and in two themes, and what the themes without many colours make of some.

`pytest tests/tui/pictures --snapshot-update` makes the pictures anew. Look at them before committing them: a browser
shows an SVG.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.tui.pictures.chat import CHAT
from tests.tui.pictures.contrast import ENOUGH, unreadable
from tests.tui.pictures.panes import PANES
from tests.tui.pictures.questions import QUESTIONS
from tests.tui.pictures.screens import SCREENS
from tests.tui.pictures.stage import State, named

STATES = named((*CHAT, *QUESTIONS, *PANES, *SCREENS))
SIZES = {"80x24": (80, 24), "120x40": (120, 40)}
THEMES = ("dark", "light")
NARROW = ("chat", "starting", "complete-files", "approval-diff", "trace", "files", "sessions", "settings", "help")
"""States that are looked at on the smallest screen that has to do."""
ELSEWHERE = {
    "mono": (
        "work-open",
        "work-selected",
        "draft-selected",
        "complete-commands",
        "sessions",
        "trace",
        "approval-diff",
        "find",
        "failed",
    ),
    "ansi": ("work-folded", "work-selected", "approval-diff", "sessions"),
    "contrast-dark": ("approval-several", "trace"),
    "contrast-light": ("themes", "work-folded"),
    "nord": ("chat", "work-selected"),
}
"""States seen in other themes; without colours nothing may hang on them."""


def compare(snap_compare: Any, folder: Path, state: State, size: tuple[int, int], theme: str) -> bool:
    """Whether the state looks as it did."""
    stage = state.stage(folder, theme)

    async def before(pilot: Pilot[Any]) -> None:
        stage.pilot = pilot
        await stage.opened()
        await state.bring(stage)
        await stage.rest()
        if theme in THEMES:
            assert not unreadable(stage, ENOUGH)

    return bool(snap_compare(stage.app, terminal_size=size, run_before=before))


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", STATES)
def test_state(snap_compare: Any, tmp_path: Path, name: str, size: str, theme: str) -> None:
    assert compare(snap_compare, tmp_path, STATES[name], SIZES[size], theme)


@pytest.mark.parametrize("name", NARROW)
def test_narrow(snap_compare: Any, tmp_path: Path, name: str) -> None:
    assert compare(snap_compare, tmp_path, STATES[name], (60, 20), "dark")


@pytest.mark.parametrize(("theme", "name"), [(theme, name) for theme, names in ELSEWHERE.items() for name in names])
def test_other_themes(
    snap_compare: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, theme: str, name: str
) -> None:
    if theme == "mono":
        monkeypatch.setenv("NO_COLOR", "1")
    assert compare(snap_compare, tmp_path, STATES[name], SIZES["80x24"], theme)
