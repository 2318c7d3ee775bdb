"""Pictures of the transcript: two sizes, two themes, and the terminal's own colours."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from textual.pilot import Pilot

from tests.tui.transcript.app import TranscriptApp
from tests.tui.transcript.samples import plain_turns, working_turn


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


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
@pytest.mark.parametrize("theme", ["textual-dark", "textual-light", "ansi-dark"])
def test_a_working_turn(snap_compare: Callable[..., bool], size: tuple[int, int], theme: str) -> None:
    assert snap_compare(TranscriptApp([working_turn()], theme=theme), terminal_size=size)


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light"])
def test_opened_blocks(snap_compare: Callable[..., bool], theme: str) -> None:
    app = TranscriptApp([working_turn(), *plain_turns(1, first=2)], theme=theme)
    assert snap_compare(app, terminal_size=(120, 40), run_before=_open_the_diff)


def test_without_colour(snap_compare: Callable[..., bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(TranscriptApp([working_turn()]), terminal_size=(80, 40))
