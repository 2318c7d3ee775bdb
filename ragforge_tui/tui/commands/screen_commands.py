"""Commands about the screen: settings, theme, editor of the prompt, stop, quit.

Screens are imported when first used: they bring the parser of the settings file along.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.tui.command_registry import Commands
from ragforge_tui.tui.drawing.theme import NAMES
from ragforge_tui.tui.host import Host

if TYPE_CHECKING:
    from ragforge_tui.tui.settings.setting_rows import Setting

COMMANDS = Commands("Screen")

THEME = "tui.theme"


@COMMANDS.add("settings", "Show and change every setting", ("config",), arguments="[WORDS]")
async def show_settings(host: Host, query: str) -> None:
    """Show the settings; changes are saved."""
    from ragforge_tui.tui.settings.setting_rows import read_settings
    from ragforge_tui.tui.settings.settings_screen import SettingsScreen

    options = host.options
    file = options.config_file
    if file is None:
        raise RagforgeError("This chat was started without a settings file.", kind="config")

    def read() -> list[Setting]:
        return read_settings(options.settings, options.origins, file, known, host.session.state.model)

    # Offer the names of themes and personas.
    known = {THEME: [*NAMES, *framework_themes(host)], "personas.default": list(host.session.state.persona_styles)}

    def changed(key: str, value: Any) -> list[str]:
        section, _, name = key.partition(".")
        if section == "tui":
            return host.settings.apply(key, value)
        host.session.spawn(host.session.change_model_setting(name, value), group="settings")
        return []

    host.open_screen(SettingsScreen(read, file, changed, query))


@COMMANDS.add("theme", "Choose the colours", arguments="[NAME]", completes="themes")
async def set_theme(host: Host, name: str) -> None:
    """Use and save a theme; without a name, show a list."""
    if name:
        await _save_theme(host, name)
        return
    from ragforge_tui.tui.settings.settings_screen import ThemePicker

    def picked(setting: str) -> None:
        host.session.spawn(_save_theme(host, setting), group="theme", exclusive=True)

    host.open_screen(ThemePicker(framework_themes(host), host.options.tui.theme, host.settings.use_theme), picked)


def framework_themes(host: Host) -> list[str]:
    """Return the names of the themes that are not the chat's own."""
    return sorted(theme for theme in host.app.available_themes if not theme.startswith("ragforge-"))


async def _save_theme(host: Host, name: str) -> None:
    if name not in NAMES and name not in host.app.available_themes:
        raise RagforgeError(f"There is no theme {name!r}.", todo="/theme shows all of them.")
    host.settings.apply(THEME, name)
    if host.app.no_color and name != "mono":
        host.hint("NO_COLOR is set: no colours here")
    await _save(host, THEME, name)


async def _save(host: Host, key: str, value: Any) -> None:
    """Store a setting in the user's file, if there is one; say so if another place overrides it."""
    file = host.options.config_file
    if file is None:
        return
    from ragforge_tui.settings.edit import set_value

    await asyncio.to_thread(set_value, file, key, value)
    wins = host.options.origins.get(key, "")
    if wins and wins != str(file):
        host.session.notice(f"{key} was saved in {file}, but {wins} overrides it at the next start.", "warning")


@COMMANDS.add("vim", "Use Vim's keys in the prompt, or stop using them")
async def toggle_vim(host: Host, _: str) -> None:
    """Switch Vim's keys on or off, and save it."""
    wanted = not host.options.tui.vim
    host.settings.apply("tui.vim", wanted)
    host.hint("Vim's keys are on: escape, then h j k l" if wanted else "Vim's keys are off")
    await _save(host, "tui.vim", wanted)


@COMMANDS.add("editor", "Write the prompt in $VISUAL or $EDITOR", key="ctrl+g")
async def edit_prompt(host: Host, _: str) -> None:
    """Edit the prompt in the user's editor; leaving the editor sends nothing."""
    from ragforge_tui.tui.dialogs.external_editor import edited

    # The chat is suspended meanwhile: the draft must survive if it is killed.
    host.prompt.save_draft()
    text = await edited(host.app, host.prompt.whole, "prompt.md")
    host.prompt.put_whole(text.rstrip())
    host.prompt.focus()


@COMMANDS.add("paste", "Name the clipboard's image in the message", key="alt+v")
async def paste_image(host: Host, _: str) -> None:
    """Save the clipboard's image and insert its path into the prompt; it is sent with the message."""
    from ragforge_tui.tui.prompt.clipboard import save_image
    from ragforge_tui.tui.prompt.completion import mention

    path = await save_image(host.options.state_dir / "pasted")
    host.prompt.insert(f"{mention(str(path))} ")
    host.prompt.focus()


@COMMANDS.add("stop", "Stop the running answer", key="escape", hint="stop")
async def stop(host: Host, _: str) -> None:
    await host.session.stop()


@COMMANDS.add("quit", "Leave the chat", ("exit", "q"), key="ctrl+q", hint="quit")
async def leave(host: Host, _: str) -> None:
    await host.leave()
