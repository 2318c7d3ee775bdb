"""Pictures of choosing and making personas."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from ragforge_tui.tui.persona_picker import PersonaPicker
from ragforge_tui.tui.persona_review import PersonaReview
from ragforge_tui.tui.persona_wizard import PersonaWizard
from tests.support.fake_engine import FakeEngine, conversation, turn
from tests.tui.test_snapshots import SIZES, THEMES, Scene, each_look, each_theme

CROOKED = (
    "<night id=lamp⛧ name=\"Vega\" color='#ffb000' glyph=☾>\n  <trigger>dusk\n  <soul>a < b & c</sole>\n</night>\n"
)
IMPROVED = "<luciform name='Vega' color='orange' glyph='☾'>\n  Far better ✶\n</luciform>\n"


def talked() -> FakeEngine:
    """A conversation in which the speaker changed."""
    engine = FakeEngine()
    (engine.shelf.own / "Vega.luciform").write_text(CROOKED, encoding="utf-8")
    owner = conversation(1, "Three voices", persona="Dev")
    looks = [("Ragnarök", "✶", "violet"), ("Vega", "☾", "#ffb000"), ("Dev", "▸", "green")]
    turns = [
        turn(owner, index, f"Question {index}", "An answer.", persona=name, persona_glyph=glyph, persona_color=color)
        for index, (name, glyph, color) in enumerate(looks, 1)
    ]
    engine.store(owner, *turns)
    return engine


def picture(
    snap_compare: Any,
    folder: Path,
    act: Callable[[Scene, Pilot[Any]], Awaitable[None]],
    *,
    size: tuple[int, int] = SIZES[1],
    theme: str = THEMES[0],
) -> bool:
    scene = Scene(folder, theme, engine=talked())

    async def before(pilot: Pilot[Any]) -> None:
        await scene.ready(pilot)
        await act(scene, pilot)
        await pilot.pause(0.2)

    return bool(snap_compare(scene.app, terminal_size=size, run_before=before))


async def command(scene: Scene, pilot: Pilot[Any], text: str, screen: type[Any]) -> None:
    """Give a command and wait for its screen."""
    scene.app.prompt.insert(text)
    await pilot.press("enter")
    for _ in range(300):
        if isinstance(scene.app.screen, screen):
            break
        await pilot.pause(0.01)
    await pilot.pause(0.2)


@each_look
@each_theme
def test_list(snap_compare: Any, tmp_path: Path, size: tuple[int, int], theme: str) -> None:
    async def act(scene: Scene, pilot: Pilot[Any]) -> None:
        await command(scene, pilot, "/personas", PersonaPicker)
        await pilot.press(*"vega")

    assert picture(snap_compare, tmp_path, act, size=size, theme=theme)


@each_theme
def test_switches(snap_compare: Any, tmp_path: Path, theme: str) -> None:
    async def act(scene: Scene, pilot: Pilot[Any]) -> None:
        await pilot.pause()

    assert picture(snap_compare, tmp_path, act, size=SIZES[0], theme=theme)


@pytest.mark.parametrize("size", SIZES, ids=["80x24", "120x40"])
def test_wizard(snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
    async def act(scene: Scene, pilot: Pilot[Any]) -> None:
        await command(scene, pilot, "/create-persona", PersonaWizard)
        await pilot.press(*"Lyra", "enter", *"Reviews SQL", "enter", "enter", *"Deutsch", "enter")

    assert picture(snap_compare, tmp_path, act, size=size)


@pytest.mark.parametrize("step", ["draft", "diff"])
def test_review(snap_compare: Any, tmp_path: Path, step: str) -> None:
    async def act(scene: Scene, pilot: Pilot[Any]) -> None:
        scene.engine.shelf.improvement = IMPROVED
        await command(scene, pilot, "/create-persona Lyra | orange | | Reviews SQL", PersonaReview)
        if step == "diff":
            await pilot.press("i")

    assert picture(snap_compare, tmp_path, act)
