"""What is no text but shows where something is, on rendered screens: frames, rules, marks, thumbs, edges of fields."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from ragforge_tui.tui.drawing.palette import contrast
from ragforge_tui.tui.terminal import ReadableDim
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
OTHERS = ("nord", "rose-pine-dawn", "solarized-light")
"""Themes of the framework: one whose frames are faint, a usual one, and one whose text is faint where it is dimmed."""


@pytest.mark.parametrize(
    ("ink", "paper", "least"),
    [("#e6edf3", "#0d1117", 4.5), ("#586e75", "#fdf6e3", 4.5), ("#839496", "#fdf6e3", 2.9)],
    ids=["dark", "solarized", "fainter than readable"],
)
def test_text_is_dimmed_no_further_than_it_can_be_read(ink: str, paper: str, least: float) -> None:
    (drawn,) = ReadableDim().apply([Segment("x", Style(color=ink, dim=True))], Color.parse(paper))
    assert drawn.style is not None and drawn.style.color is not None and not drawn.style.dim
    dimmed = Color.from_rich_color(drawn.style.color)
    assert least <= contrast(dimmed, Color.parse(paper)) <= contrast(Color.parse(ink), Color.parse(paper))


def test_where_the_terminal_knows_the_color_it_dims() -> None:
    segments = [Segment("x", Style(dim=True)), Segment("y", Style(color="blue", dim=True)), Segment("z")]
    assert ReadableDim().apply(segments, Color.parse("#000000")) == segments


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
