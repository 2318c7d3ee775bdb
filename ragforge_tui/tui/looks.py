"""What settings of the screen do to a chat: at its start, and again when one is changed while it runs.

Used by `app.py` before the first paint, and by the settings screen and the theme picker after it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec
from textual.filter import LineFilter, NoColor

from ragforge_tui.tui import theme
from ragforge_tui.tui.keymap import keymap_problems, use_keymap

if TYPE_CHECKING:
    from ragforge_tui.tui.app import ChatApp


def set_up(app: ChatApp) -> None:
    """Theme, motion and keys, as the settings say."""
    for own in theme.OWN:
        app.register_theme(own)
    use_theme(app, app.options.tui.theme)
    _use_motion(app)
    use_keymap(app)


def use_theme(app: ChatApp, setting: str) -> None:
    """Draw in the colours a setting names; an unknown name gives the dark theme."""
    name = theme.choose(setting, os.environ, no_color=app.no_color)
    app.theme = name if name in app.available_themes else theme.DARK.name


def filters(app: ChatApp) -> list[LineFilter]:
    """What stands between the screen and the terminal instead of the framework's own, nothing for most themes."""
    return [NoColor()] if app.theme == theme.MONO.name else []


def problems(app: ChatApp) -> list[str]:
    """What the settings of the screen say that cannot be done, in sentences."""
    tui = app.options.tui
    found = keymap_problems(tui.keymap, app.registry)
    if theme.choose(tui.theme, os.environ) not in app.available_themes:
        found.append(f"tui.theme: there is no theme {tui.theme!r}; /theme shows all of them.")
    return found


def take_up(app: ChatApp, key: str, value: Any) -> None:
    """Let a setting of the screen take effect now.

    Args:
        key: Dotted, below ``tui``.
        value: Checked before.
    """
    tui = msgspec.structs.replace(app.options.tui, **{key.removeprefix("tui."): value})
    app.options = app.controller.options = msgspec.structs.replace(app.options, tui=tui)
    match key:
        case "tui.theme":
            use_theme(app, value)
        case "tui.show_reasoning":
            app.transcript.document.shown.unfold_reasoning = value
        case "tui.reduced_motion":
            _use_motion(app)
        case "tui.keymap":
            use_keymap(app)
        case "tui.sidebar":
            if app.sidebar.display != value:
                app.sidebar.toggle()


def _use_motion(app: ChatApp) -> None:
    app.animation_level = "none" if app.options.tui.reduced_motion else "full"
