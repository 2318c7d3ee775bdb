"""Pictures of the settings, the theme picker, the completion of files, and the plain mode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from ragforge_tui.config import TuiSettings
from ragforge_tui.tui.app import ChatApp
from ragforge_tui.tui.menu import SlashMenu
from tests.support.chat_scene import scene_engine
from tests.tui.conftest import make_app

FILE = Path("/home/ada/.config/ragforge/config.yaml")


def scene(folder: Path, tui: TuiSettings, **options: Any) -> ChatApp:
    """The scene of the other pictures."""

    async def connect() -> Any:
        return scene_engine()

    return make_app(connect, folder, tui=tui, continue_last=True, **options)


async def settle(pilot: Pilot[Any]) -> None:
    app = pilot.app
    assert isinstance(app, ChatApp)
    for _ in range(600):
        if (
            app.controller.state.ready
            and app.controller.state.conversation is not None
            and app.transcript.document.blocks
        ):
            break
        await pilot.pause(0.01)
    await pilot.pause(0.1)


def command(text: str) -> Any:
    """Run a command and let its screen come."""

    async def before(pilot: Pilot[Any]) -> None:
        await settle(pilot)
        pilot.app.prompt.insert(text)  # type: ignore[attr-defined]  # the chat
        await pilot.pause()
        await pilot.press("enter")
        for _ in range(600):
            if len(pilot.app.screen_stack) > 1:
                break
            await pilot.pause(0.01)
        await pilot.pause(0.1)

    return before


def test_settings(snap_compare: Any, tmp_path: Path) -> None:
    tui = TuiSettings(theme="dark", reduced_motion=True, sidebar=False)
    app = scene(tmp_path, tui, config_file=FILE, origins={"model.name": "RAGFORGE_MODEL"})
    assert snap_compare(app, terminal_size=(80, 24), run_before=command("/settings model"))


def test_theme_picker(snap_compare: Any, tmp_path: Path) -> None:
    tui = TuiSettings(theme="contrast-light", reduced_motion=True, sidebar=False)
    assert snap_compare(scene(tmp_path, tui), terminal_size=(120, 40), run_before=command("/theme"))


def test_files(snap_compare: Any, tmp_path: Path) -> None:
    async def before(pilot: Pilot[Any]) -> None:
        await settle(pilot)
        await pilot.press(*"see ", "@", "s")
        for _ in range(600):
            if pilot.app.query_one(SlashMenu).chosen:
                break
            await pilot.pause(0.01)
        await pilot.pause(0.1)

    tui = TuiSettings(theme="light", reduced_motion=True, sidebar=False)
    assert snap_compare(scene(tmp_path, tui), terminal_size=(60, 20), run_before=before)


def test_plain(snap_compare: Any, tmp_path: Path) -> None:
    tui = TuiSettings(theme="dark", plain=True)
    assert snap_compare(scene(tmp_path, tui), terminal_size=(80, 24), run_before=settle)
