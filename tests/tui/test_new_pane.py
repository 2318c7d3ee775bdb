"""A pane and a live setting added from outside the package: each is one class or field and one entry."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, ClassVar

import pytest
from msgspec import Meta
from textual.app import ComposeResult
from textual.widgets import Static

from ragforge_tui.settings import keys
from ragforge_tui.settings.schema import Settings, TuiSettings
from ragforge_tui.tui.dialogs.help_screen import HelpScreen, help_text
from ragforge_tui.tui.settings.settings_screen import SettingsScreen
from ragforge_tui.tui.sidebar.pane import PANES, Pane, PaneEntry
from tests.tui.conftest import ChatRunner


class WeatherPane(Pane, can_focus=True):
    """A pane with one line."""

    name_: ClassVar[str] = "weather"
    label: ClassVar[str] = "Weather"

    def compose(self) -> ComposeResult:
        yield Static("Sunny.", markup=False)

    def opened(self) -> None:
        self.note = "mild"


ENTRY = PaneEntry(
    name="weather",
    place=f"{__name__}:WeatherPane",
    help="Show the weather",
    key="f12",
    keys=("w", "in the weather: tomorrow"),
)


class ToyTuiSettings(TuiSettings, frozen=True):
    """The screen with one setting more."""

    wrap_columns: Annotated[int, Meta(ge=1, description="Columns of a toy.", extra={"live": "screen"})] = 80


class ToySettings(Settings, frozen=True):
    """All settings with one more."""

    tui: ToyTuiSettings = ToyTuiSettings()


@pytest.fixture
def weather() -> Iterator[None]:
    """Register the pane, all that its author would do."""
    PANES.append(ENTRY)
    yield
    PANES.remove(ENTRY)


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Define the settings with the toy among them."""
    caches = (keys._definition, keys.keys, keys.sections)
    monkeypatch.setattr(keys, "Settings", ToySettings)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


@pytest.mark.usefixtures("weather")
async def test_a_registered_pane_has_a_place_a_command_and_a_key(run_chat: ChatRunner) -> None:
    async with run_chat(size=(130, 40)) as chat:
        await chat.ready()
        await chat.press("f12")
        await chat.until(lambda: chat.app.chat.sidebar.pane("weather"))
        shown = chat.app.chat.sidebar.pane("weather")
        assert isinstance(shown, WeatherPane)
        await chat.until(lambda: shown.display and shown.note == "mild" and shown.has_focus)
        assert [pane.name_ for pane in chat.app.chat.sidebar.panes] == ["trace", "memory", "files", "weather"]
        await chat.press("escape")
        await chat.type("/help")
        await chat.until(lambda: isinstance(chat.app.screen, HelpScreen))
        text = help_text(chat.app.chat.registry, {}).plain
        assert any("/weather" in line and "Show the weather  F12" in line for line in text.splitlines())
        assert "in the weather: tomorrow" in text


@pytest.mark.usefixtures("toy")
async def test_a_live_setting_is_shown_as_live_and_applied_at_once(run_chat: ChatRunner, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    async with run_chat(config_file=file, tui=ToyTuiSettings(), settings=ToySettings()) as chat:
        await chat.ready()
        drawn: list[None] = []
        chat.app.theme_changed_signal.subscribe(chat.app.chat.header, lambda _: drawn.append(None))
        await chat.type("/settings wrap_columns")
        await chat.until(lambda: isinstance(chat.app.screen, SettingsScreen))
        screen = chat.app.screen
        about = str(screen.query_one("#settings-about", Static).render())
        assert "tui.wrap_columns" in about and "at once" in about
        await chat.press("enter", "end", "backspace", "backspace", "7", "2", "enter")
        await chat.until(lambda: "wrap_columns: 72" in (file.read_text() if file.exists() else ""))
        await chat.until(lambda: getattr(chat.app.chat.options.tui, "wrap_columns", 0) == 72)
        assert drawn, "the screen was not drawn again"
        note = screen.query_one("#settings-note", Static)
        await chat.until(lambda: "at once" in str(note.render()))
