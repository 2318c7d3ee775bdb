"""Pictures of the screens at two sizes in both themes; nothing in them depends on clock, folder or machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from ragforge_tui.config import TuiSettings
from ragforge_tui.events import TrustRequested
from ragforge_tui.tui.app import ChatApp
from tests.support.chat_scene import approval, scene_engine
from tests.support.fake_engine import FakeEngine
from tests.tui.conftest import make_app

SIZES = [(80, 24), (120, 40)]
THEMES = ["ragforge-dark", "ragforge-light"]
each_look = pytest.mark.parametrize("size", SIZES, ids=["80x24", "120x40"])
each_theme = pytest.mark.parametrize("theme", THEMES, ids=["dark", "light"])


class Scene:
    """The scene's app and its engine."""

    def __init__(self, folder: Path, theme: str, *, engine: FakeEngine | None = None, **options: Any) -> None:
        self.engine = engine or scene_engine()

        async def connect() -> FakeEngine:
            return self.engine

        options.setdefault("continue_last", True)
        tui = TuiSettings(theme=theme, reduced_motion=True, sidebar=False)
        self.app: ChatApp = make_app(connect, folder, tui=tui, **options)

    async def ready(self, pilot: Pilot[Any]) -> None:
        """Wait until the conversation is there."""
        for _ in range(500):
            state = self.app.controller.state
            if state.ready and (state.conversation is not None or not self.app.options.continue_last):
                break
            await pilot.pause(0.01)
        await pilot.pause(0.1)


@each_look
@each_theme
def test_chat(snap_compare: Any, tmp_path: Path, size: tuple[int, int], theme: str) -> None:
    scene = Scene(tmp_path, theme)

    async def before(pilot: Pilot[Any]) -> None:
        await scene.ready(pilot)
        scene.app.prompt.insert("take the first one, and add a test that retries twice")
        await pilot.pause()

    assert snap_compare(scene.app, terminal_size=size, run_before=before)


@each_look
@each_theme
def test_approval(snap_compare: Any, tmp_path: Path, size: tuple[int, int], theme: str) -> None:
    scene = Scene(tmp_path, theme)

    async def before(pilot: Pilot[Any]) -> None:
        await scene.ready(pilot)
        conversation = scene.app.controller.state.conversation
        assert conversation is not None
        scene.engine.emit(approval(conversation, 2))
        await pilot.pause(0.2)

    assert snap_compare(scene.app, terminal_size=size, run_before=before)


@each_look
@each_theme
def test_sessions(snap_compare: Any, tmp_path: Path, size: tuple[int, int], theme: str) -> None:
    scene = Scene(tmp_path, theme)

    async def before(pilot: Pilot[Any]) -> None:
        await scene.ready(pilot)
        await pilot.press("ctrl+o")
        for _ in range(300):
            await pilot.pause(0.01)
            shown = scene.app.screen.query("#session-preview")
            if shown and "last " in str(shown.first().render()):
                break
        scene.app.screen.query_one("Input").cursor_blink = False  # type: ignore[attr-defined]  # an Input
        await pilot.pause(0.2)

    assert snap_compare(scene.app, terminal_size=size, run_before=before)


@pytest.mark.parametrize(("size", "theme"), [(SIZES[0], THEMES[0]), (SIZES[1], THEMES[1])], ids=["dark", "light"])
def test_search(snap_compare: Any, tmp_path: Path, size: tuple[int, int], theme: str) -> None:
    scene = Scene(tmp_path, theme)

    async def before(pilot: Pilot[Any]) -> None:
        await scene.ready(pilot)
        await pilot.press("ctrl+t", *"retr")
        for _ in range(300):
            await pilot.pause(0.01)
            if "hit" in str(scene.app.screen.query("#search-keys").first().render()):
                break
        scene.app.screen.query_one("Input").cursor_blink = False  # type: ignore[attr-defined]  # an Input
        await pilot.pause(0.2)

    assert snap_compare(scene.app, terminal_size=size, run_before=before)


@each_look
@each_theme
def test_slash_menu(snap_compare: Any, tmp_path: Path, size: tuple[int, int], theme: str) -> None:
    scene = Scene(tmp_path, theme)

    async def before(pilot: Pilot[Any]) -> None:
        await scene.ready(pilot)
        await pilot.press("/", "e")
        await pilot.pause(0.1)

    assert snap_compare(scene.app, terminal_size=size, run_before=before)


@pytest.mark.parametrize("size", [(60, 20), (80, 24)], ids=["60x20", "80x24"])
def test_start_with_messages_that_wait(snap_compare: Any, tmp_path: Path, size: tuple[int, int]) -> None:
    scene = Scene(tmp_path, THEMES[0], engine=FakeEngine(phase="starting"), continue_last=False)

    async def before(pilot: Pilot[Any]) -> None:
        await pilot.pause(0.1)
        scene.app.prompt.insert("typed before the graph was there")
        await pilot.press("enter")
        await pilot.pause(0.1)

    assert snap_compare(scene.app, terminal_size=size, run_before=before)


def test_trust(snap_compare: Any, tmp_path: Path) -> None:
    scene = Scene(tmp_path, THEMES[0])

    async def before(pilot: Pilot[Any]) -> None:
        await scene.ready(pilot)
        scene.engine.emit(TrustRequested(root="/w", files=["AGENTS.md"], text="# Rules\n\nAlways use [tabs].\n" * 8))
        await pilot.pause(0.2)

    assert snap_compare(scene.app, terminal_size=(80, 24), run_before=before)


def test_help(snap_compare: Any, tmp_path: Path) -> None:
    scene = Scene(tmp_path, THEMES[0])

    async def before(pilot: Pilot[Any]) -> None:
        await scene.ready(pilot)
        await pilot.press("f1")
        await pilot.pause(0.1)

    assert snap_compare(scene.app, terminal_size=(120, 40), run_before=before)


def test_no_color(snap_compare: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The chosen row is told apart without colour."""
    monkeypatch.setenv("NO_COLOR", "1")
    scene = Scene(tmp_path, THEMES[0])

    async def before(pilot: Pilot[Any]) -> None:
        await scene.ready(pilot)
        await pilot.press("/")
        await pilot.pause(0.1)

    assert snap_compare(scene.app, terminal_size=(80, 24), run_before=before)
