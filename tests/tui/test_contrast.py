"""What is no text but shows where something is, on rendered screens: frames, rules, marks, thumbs, edges of fields."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.pictures.contrast import unreadable, unseen
from tests.tui.pictures.test_pictures import LEAST_CONTRAST, STATES

SCREENS = {
    "first screen": "empty",
    "chat": "chat",
    "calls": "work-open",
    "sidebar": "panes",
    "question": "approval-no-because",
    "diff": "approval-diff",
    "dialog": "sessions",
    "wizard": "persona-wizard",
    "settings": "settings-edit",
}
OTHERS = ("nord", "rose-pine-dawn", "textual-dark")
"""Themes of the framework: one whose frames are faint, and two usual ones."""


@pytest.mark.parametrize("name", SCREENS.values(), ids=SCREENS)
async def test_frames_are_seen_and_texts_read(tmp_path: Path, name: str) -> None:
    stage = STATES[name].stage(tmp_path, "dark")
    async with stage.app.run_test(size=(120, 40)) as pilot:
        stage.pilot = pilot
        await stage.opened()
        await STATES[name].bring(stage)
        faint: set[str] = set()
        for theme in ("dark", "light", *OTHERS):
            stage.wear(theme)
            await stage.rest()
            faint |= unseen(stage)
            if theme in LEAST_CONTRAST:
                faint |= unreadable(stage, LEAST_CONTRAST[theme])
        assert not faint, "\n".join(sorted(faint))
