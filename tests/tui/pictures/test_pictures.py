"""Every state of the table at its sizes and in its themes, as text pictures; some also as SVG for the eye.

`pytest tests/tui/pictures --update-pictures` writes the files again. Read the difference before you commit it, and look
at the SVG of a state whose design changed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.pictures.chat import CHAT
from tests.tui.pictures.contrast import ENOUGH, HIGH, unreadable, unseen
from tests.tui.pictures.panes import PANES
from tests.tui.pictures.picture import Capture, check, render
from tests.tui.pictures.questions import QUESTIONS
from tests.tui.pictures.screens import SCREENS
from tests.tui.pictures.stage import Stage, named

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
"""States seen without colours too, where nothing may depend on them."""
OTHER_THEMES: dict[str, tuple[str, ...]] = {
    "contrast-dark": CONTRAST,
    "contrast-light": CONTRAST,
    "nord": ("chat", "work-selected"),
    "ansi": ("work-folded", "work-selected", "approval-diff", "sessions"),
    "mono": WITHOUT_COLOR,
}
FRAMED = (
    "empty",
    "chat",
    "work-open",
    "panes",
    "approval-no-because",
    "approval-diff",
    "sessions",
    "persona-wizard",
    "settings-edit",
)
"""States whose frames, marks, thumbs and edges of fields must be seen, at 120x40, also in foreign themes."""
FOREIGN = ("nord", "rose-pine-dawn", "solarized-light")
"""Themes of the framework: one whose frames are faint, a usual one, and one whose text is faint where it is dimmed."""
PLACED_AT_START = (
    "chat",
    "settings",
    "work-open",
    "work-open-end",
    "work-selected",
    "complete-files",
    "trace",
    "files",
    "help",
    "help-end",
    "persona-draft",
    "persona-improved",
)
"""States that keep what was in view, or in a column, at the size in which they began: each size is begun anew."""
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


Kept = dict[tuple[str, str], Capture]
"""Pictures by size and theme."""


def themes_of(name: str, size: str) -> list[str]:
    """Return the themes in which a state is looked at."""
    if size == "60x20":
        return ["dark"]
    others = [theme for theme, names in OTHER_THEMES.items() if size == "80x24" and name in names]
    return ["dark", "light", *others]


def walks(name: str) -> list[tuple[list[str], str]]:
    """Return the runs of the chat that a state needs: the sizes it goes through, and the theme it begins with."""
    sizes = [size for size in SIZES if size != "60x20" or name in NARROW]
    runs = [[size] for size in sizes] if name in PLACED_AT_START else [sizes]
    return [
        (run, theme) for run in runs for theme in (themes_of(name, run[0]) if name in COLORED_AT_START else ["dark"])
    ]


async def walk(stage: Stage, name: str, sizes: list[str], kept: Kept, *, update: bool) -> None:
    """Bring a state once and look at it in its sizes and themes, at first in that which is worn."""
    async with stage.app.run_test(size=SIZES[sizes[0]]) as pilot:
        stage.pilot = pilot
        await stage.opened()
        await STATES[name].bring(stage)
        for size in sizes:
            await stage.resize(*SIZES[size])
            framed = size == "120x40" and name in FRAMED
            themes = [stage.theme] if name in COLORED_AT_START else themes_of(name, size)
            worn = sorted(themes, key=lambda theme: theme != stage.theme)
            for theme in [*worn, *(FOREIGN if framed else ())]:
                await stage.wear(theme)
                if theme in themes:
                    kept[size, theme] = Capture(stage.screen)
                    if size == "120x40" and name in DESIGN and theme in ("dark", "light"):
                        check(HERE / "svg" / f"{name}-{theme}.svg", stage.svg(), update=update)
                if theme in LEAST_CONTRAST:
                    assert not unreadable(stage, LEAST_CONTRAST[theme])
                if framed:
                    assert not unseen(stage)


@pytest.mark.parametrize("name", STATES)
async def test_state(tmp_path: Path, name: str, update_pictures: bool) -> None:
    kept: Kept = {}
    for number, (sizes, theme) in enumerate(walks(name)):
        stage = STATES[name].stage(tmp_path / str(number), theme)
        await walk(stage, name, sizes, kept, update=update_pictures)
    for size in SIZES:
        colored = {theme: kept[size, theme] for theme in themes_of(name, size) if (size, theme) in kept}
        mono = colored.pop("mono", None)
        for file, captures in ((f"{name}-{size}", colored), (f"{name}-{size}-mono", {"mono": mono} if mono else {})):
            if captures:
                check(HERE / "text" / f"{file}.txt", render(captures), update=update_pictures)


def test_no_picture_is_left_over() -> None:
    """A renamed state must not leave its old picture, which nothing would compare any more."""
    texts = {f"{name}-{size}" for name in STATES for size in ("80x24", "120x40")}
    texts |= {f"{name}-60x20" for name in NARROW} | {f"{name}-80x24-mono" for name in WITHOUT_COLOR}
    assert {path.stem for path in (HERE / "text").glob("*.txt")} == texts
    svgs = {f"{name}-{theme}" for name in DESIGN for theme in ("dark", "light")}
    assert {path.stem for path in (HERE / "svg").glob("*.svg")} == svgs
