"""The bar of keys: what it shows where there is little room, its height, a click, and no colours."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from ragforge_tui.tui.drawing.theme import DARK, MONO
from ragforge_tui.tui.widgets.key_bar import KeyBar, KeyHint

HINTS = (
    KeyHint("leave", "escape", "back"),
    KeyHint("open", "enter", "open"),
    KeyHint("rename", "ctrl+r", "rename"),
    KeyHint("read", "shift+down", "scroll", on=True),
)


class Bars(App[None]):
    """One bar, which notes what is clicked."""

    def __init__(self, lines: int) -> None:
        super().__init__()
        self.register_theme(DARK)
        self.register_theme(MONO)
        self.bar = KeyBar(self, HINTS, lines=lines)
        self.ran: list[str] = []

    def compose(self) -> ComposeResult:
        yield self.bar

    def action_open(self) -> None:
        self.ran.append("open")

    def action_leave(self) -> None:
        self.ran.append("leave")


@asynccontextmanager
async def shown(width: int, lines: int = 1) -> AsyncIterator[tuple[Bars, Pilot[None]]]:
    app = Bars(lines)
    async with app.run_test(size=(width, 10)) as pilot:
        await pilot.pause()
        yield app, pilot


@pytest.mark.parametrize(
    ("width", "lines", "text"),
    [
        (60, 1, "enter open · ^r rename · shift+↓ scroll · esc back"),
        (50, 1, "enter open  ^r rename  shift+↓ scroll  esc back"),
        (40, 1, "enter open · ^r rename · esc back"),
        (14, 1, "esc back"),
        (40, 2, "enter open · ^r rename\nshift+↓ scroll · esc back"),
    ],
)
async def test_the_last_keys_give_way_but_not_the_way_out(width: int, lines: int, text: str) -> None:
    async with shown(width, lines) as (app, _):
        assert app.bar.render().plain == text
        assert app.bar.size.height == text.count("\n") + 1


async def test_words_before_the_keys_and_a_sentence_in_their_place() -> None:
    async with shown(40, 2) as (app, pilot):
        app.bar.show_keys(HINTS[:2], lead="3 hits in this\x1b[31m folder")
        await pilot.pause()
        assert app.bar.render().plain == "3 hits in this folder · enter open\nesc back"
        sentence = "The server at 127.0.0.1 did not answer within five seconds. Start it."
        app.bar.show_note(sentence)
        await pilot.pause()
        assert app.bar.render().plain.split() == sentence.split()
        assert app.bar.size.height == 2, "an error is shown to its end"


async def test_a_click_runs_the_action_of_the_line_that_was_hit() -> None:
    async with shown(40, 2) as (app, pilot):
        await pilot.click(app.bar, offset=(20, 1))
        await pilot.click(app.bar, offset=(3, 0))
        assert app.ran == ["leave", "open"]


async def test_without_colours_the_keys_have_none() -> None:
    async with shown(60) as (app, pilot):
        colours = {}
        for theme in (DARK, MONO):
            app.theme = theme.name
            await pilot.pause()
            colours[theme.name] = {segment.style.color for segment in app.bar.render_line(0) if segment.style}
        assert len(colours[DARK.name]) > 1
        assert len(colours[MONO.name]) == 1
