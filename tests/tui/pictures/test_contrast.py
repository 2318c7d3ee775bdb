"""Whether everything can be read in the themes of high contrast; for dark and light `test_pictures` looks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.pictures.contrast import HIGH, unreadable
from tests.tui.pictures.test_pictures import STATES

LOOKED_AT = (
    "work-open",
    "markdown",
    "graph-down",
    "find",
    "complete-commands",
    "approval-no-because",
    "trace-text",
    "memory-working",
    "what-was-sent",
    "sessions",
    "personas",
    "persona-wizard-colour",
    "settings-words",
    "diff",
)


@pytest.mark.parametrize("theme", ["contrast-dark", "contrast-light"])
@pytest.mark.parametrize("name", LOOKED_AT)
async def test_every_letter_can_be_read(tmp_path: Path, name: str, theme: str) -> None:
    stage = STATES[name].stage(tmp_path, theme)
    async with stage.app.run_test(size=(80, 24)) as pilot:
        stage.pilot = pilot
        await stage.opened()
        await STATES[name].bring(stage)
        await stage.rest()
        assert not unreadable(stage, HIGH)
