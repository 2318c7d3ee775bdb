"""Every state of the table at its sizes and in its themes, as text pictures; some also as SVG for the eye.

`pytest tests/tui/pictures --update-pictures` writes the files again. Read the difference before you commit it, and look
at the SVG of a state whose design changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.tui.pictures.chat import CHAT
from tests.tui.pictures.contrast import ENOUGH, HIGH, unreadable
from tests.tui.pictures.panes import PANES
from tests.tui.pictures.picture import Capture, check, render
from tests.tui.pictures.questions import QUESTIONS
from tests.tui.pictures.screens import SCREENS
from tests.tui.pictures.stage import State, named

HERE = Path(__file__).parent
STATES = named((*CHAT, *QUESTIONS, *PANES, *SCREENS))
SIZES = {"80x24": (80, 24), "120x40": (120, 40), "60x20": (60, 20)}
NARROW = ("chat", "starting", "complete-files", "approval-diff", "trace", "files", "sessions", "settings", "help")
"""States that are also looked at on the smallest screen that has to do."""
LEAST_CONTRAST = {"dark": ENOUGH, "light": ENOUGH, "contrast-dark": HIGH, "contrast-light": HIGH}
CONTRAST = (
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
    "approval-several",
    "trace",
    "themes",
    "work-folded",
)
OTHER_THEMES: dict[str, tuple[str, ...]] = {
    "contrast-dark": CONTRAST,
    "contrast-light": CONTRAST,
    "nord": ("chat", "work-selected"),
    "ansi": ("work-folded", "work-selected", "approval-diff", "sessions"),
}
WITHOUT_COLOR = (
    "work-open",
    "work-selected",
    "draft-selected",
    "complete-commands",
    "sessions",
    "trace",
    "approval-diff",
    "find",
    "failed",
)
"""States seen without colours, where nothing may depend on them."""
COLORED_AT_START = ("personas", "persona-draft", "persona-wizard-colour")
"""Screens that choose readable colours when they open: the theme cannot change while they are open."""
DESIGN = (
    "chat",
    "work-folded",
    "markdown",
    "streaming",
    "failed",
    "complete-commands",
    "approval-diff",
    "approval-command",
    "trace",
    "memory",
    "files",
    "what-was-sent",
    "sessions",
    "personas",
    "settings",
    "diff",
)
"""States that show the design; their SVGs, in both themes at 120x40, are for people to look at."""


async def pictures(folder: Path, state: State, size: str, themes: Sequence[str], *, update: bool, design: bool) -> str:
    """Return the picture of a state in several themes, and check that every letter can be read in each."""
    starts = [[theme] for theme in themes] if state.name in COLORED_AT_START else [themes]
    captures = {}
    for number, worn in enumerate(starts):
        stage = state.stage(folder / str(number), worn[0])
        async with stage.app.run_test(size=SIZES[size]) as pilot:
            stage.pilot = pilot
            await stage.opened()
            await state.bring(stage)
            for theme in worn:
                if theme != worn[0]:
                    stage.wear(theme)
                await stage.rest()
                captures[theme] = Capture(stage.screen)
                if theme in LEAST_CONTRAST:
                    assert not unreadable(stage, LEAST_CONTRAST[theme])
                if design and theme in ("dark", "light"):
                    check(HERE / "svg" / f"{state.name}-{theme}.svg", stage.svg(), update=update)
    return render(captures)


@pytest.mark.parametrize(
    ("name", "size"), [*((n, s) for n in STATES for s in ("80x24", "120x40")), *((n, "60x20") for n in NARROW)]
)
async def test_state(tmp_path: Path, name: str, size: str, update_pictures: bool) -> None:
    themes = ["dark"] if size == "60x20" else ["dark", "light"]
    if size == "80x24":
        themes += [theme for theme, names in OTHER_THEMES.items() if name in names]
    design = size == "120x40" and name in DESIGN
    actual = await pictures(tmp_path, STATES[name], size, themes, update=update_pictures, design=design)
    check(HERE / "text" / f"{name}-{size}.txt", actual, update=update_pictures)


@pytest.mark.parametrize("name", WITHOUT_COLOR)
async def test_without_color(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, update_pictures: bool) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    actual = await pictures(tmp_path, STATES[name], "80x24", ["mono"], update=update_pictures, design=False)
    check(HERE / "text" / f"{name}-80x24-mono.txt", actual, update=update_pictures)


def test_no_picture_is_left_over() -> None:
    """A renamed state must not leave its old picture, which nothing would compare any more."""
    texts = {f"{name}-{size}" for name in STATES for size in ("80x24", "120x40")}
    texts |= {f"{name}-60x20" for name in NARROW} | {f"{name}-80x24-mono" for name in WITHOUT_COLOR}
    assert {path.stem for path in (HERE / "text").glob("*.txt")} == texts
    svgs = {f"{name}-{theme}" for name in DESIGN for theme in ("dark", "light")}
    assert {path.stem for path in (HERE / "svg").glob("*.svg")} == svgs
