"""What the commands about the settings and the looks do. A part of `ChatActions`.

Screens are imported when first wanted: they bring the parser of the settings file along.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ragforge_tui.errors import RagforgeError
from ragforge_tui.tui import looks
from ragforge_tui.tui.theme import NAMES

if TYPE_CHECKING:
    from ragforge_tui.tui.app import ChatApp
    from ragforge_tui.tui.setting_rows import Setting

THEME = "tui.theme"


class LooksActions:
    """The commands about the settings of one chat screen."""

    _app: ChatApp

    async def settings(self, query: str) -> None:
        """Show the settings; what is changed there is kept."""
        from ragforge_tui.tui.setting_rows import read_settings
        from ragforge_tui.tui.settings_screen import SettingsScreen

        options = self._app.options
        file = options.config_file
        if file is None:
            raise RagforgeError("This chat was started without a settings file.", kind="config")

        def read() -> list[Setting]:
            return read_settings(options.settings, options.origins, file, known)

        app = self._app
        # Nobody knows a theme or a persona by heart.
        known = {THEME: [*NAMES, *self._others()], "personas.default": list(app.controller.state.looks)}

        def changed(key: str, value: Any) -> list[str]:
            section, _, name = key.partition(".")
            if section == "tui":
                return looks.take_up(app, key, value)
            app.controller.spawn(app.controller.change_model_setting(name, value), group="settings")
            return []

        app.push_screen(SettingsScreen(read, file, changed, query))

    async def theme(self, name: str) -> None:
        """Use a theme and remember it, or pick one."""
        if name:
            await self._keep_theme(name)
            return
        from ragforge_tui.tui.theme_picker import ThemePicker

        app = self._app

        def picked(setting: str | None) -> None:
            if setting is not None:
                app.controller.spawn(self._keep_theme(setting), group="theme", exclusive=True)

        app.push_screen(
            ThemePicker(self._others(), app.options.tui.theme, lambda one: looks.use_theme(app, one)), picked
        )

    def _others(self) -> list[str]:
        """The themes that come with the framework."""
        return sorted(theme for theme in self._app.available_themes if not theme.startswith("ragforge-"))

    async def _keep_theme(self, name: str) -> None:
        app = self._app
        if name not in NAMES and name not in app.available_themes:
            raise RagforgeError(f"There is no theme {name!r}.", todo="/theme shows all of them.")
        looks.take_up(app, THEME, name)
        if app.no_color and name != "mono":
            app.hint("NO_COLOR is set: no colours here")
        file = app.options.config_file
        if file is None:
            return
        from ragforge_tui.config_edit import set_value

        await asyncio.to_thread(set_value, file, THEME, name)
        wins = app.options.origins.get(THEME, "")
        if wins and wins != str(file):
            app.controller.notice(f"The theme was kept in {file}, but {wins} wins at the next start.", "warning")
