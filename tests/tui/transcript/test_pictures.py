"""Pictures of the transcript alone: two sizes, two themes, and the terminal's own colours."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.tui.pictures.picture import Capture, check, render
from tests.tui.transcript.app import TranscriptApp
from tests.tui.transcript.samples import plain_turns, working_turn

HERE = Path(__file__).parent / "text"


async def _open_the_diff(pilot: Pilot[None]) -> None:
    app = pilot.app
    assert isinstance(app, TranscriptApp)
    view = app.transcript
    await pilot.pause()
    view.toggle_fold(view.document.blocks[1])
    view.toggle_fold(
        next(block for block in view.document.blocks if "schema.py" in block.source and "@@" in block.source)
    )
    await pilot.press("home")
    await pilot.pause()


async def _picture(
    app: TranscriptApp,
    size: tuple[int, int],
    themes: Sequence[str],
    bring: Callable[[Pilot[None]], Awaitable[None]] | None = None,
) -> str:
    captures = {}
    async with app.run_test(size=size) as pilot:
        if bring is not None:
            await bring(pilot)
        for theme in themes:
            app.theme = theme
            await pilot.pause(0.05)
            captures[theme] = Capture(app.screen)
    return render(captures)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
async def test_a_working_turn(size: tuple[int, int], update_pictures: bool) -> None:
    picture = await _picture(TranscriptApp([working_turn()]), size, ["textual-dark", "textual-light", "ansi-dark"])
    check(HERE / f"working-turn-{size[0]}x{size[1]}.txt", picture, update=update_pictures)


async def test_opened_blocks(update_pictures: bool) -> None:
    app = TranscriptApp([working_turn(), *plain_turns(1, first=2)])
    picture = await _picture(app, (120, 40), ["textual-dark", "textual-light"], _open_the_diff)
    check(HERE / "opened-blocks.txt", picture, update=update_pictures)


async def test_without_colour(monkeypatch: pytest.MonkeyPatch, update_pictures: bool) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    picture = await _picture(TranscriptApp([working_turn()]), (80, 40), ["textual-dark"])
    check(HERE / "without-color.txt", picture, update=update_pictures)
