"""What settings of the screen do to a chat: at its start, and again when one is changed while it runs.

Used by `app.py` before the first paint, and by the settings screen and the theme picker after it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from textual.filter import LineFilter, NoColor
from textual.widget import Widget

from ragforge_tui.tui import theme
from ragforge_tui.tui.keymap import keymap_problems, use_keymap
from ragforge_tui.tui.options import ChatOptions
from ragforge_tui.tui.plain import UPDATE_SECONDS, PlainSigns
from ragforge_tui.tui.transcript.streaming import SHORTEST_PAUSE
from ragforge_tui.tui.widths import AgreedWidths

if TYPE_CHECKING:
    from ragforge_tui.tui.app import ChatApp

PLAIN = "-plain"
"""The app's class in the plain mode."""
# Lines that were filtered are remembered by their filter, so there is one of each.
_NO_COLOR, _WIDTHS, _SIGNS = NoColor(), AgreedWidths(), PlainSigns()


def set_up(app: ChatApp) -> None:
    """Theme, motion and keys, as the settings say."""
    if app.options.tui.plain:
        _use_plain(app, plain=True)
    for own in theme.OWN:
        app.register_theme(own)
    # TEXTUAL_THEME may name one of ours, which the framework took for unknown; naming it again would change nothing.
    app.theme = "textual-dark"
    use_theme(app, app.options.tui.theme)
    _use_motion(app)
    use_keymap(app)


def use_theme(app: ChatApp, setting: str) -> None:
    """Draw in the colours a setting names; an unknown name gives the dark theme."""
    name = theme.choose(setting, os.environ, no_color=app.no_color)
    app.theme = name if name in app.available_themes else theme.DARK.name


def as_asked(options: ChatOptions) -> ChatOptions:
    """The options with what the plain mode means for other settings."""
    if not options.tui.plain:
        return options
    tui = msgspec.structs.replace(options.tui, reduced_motion=True, sidebar=False)
    return msgspec.structs.replace(options, tui=tui)


def filters(app: ChatApp, usual: Sequence[LineFilter]) -> Sequence[LineFilter]:
    """What stands between the screen and the terminal."""
    found = [_NO_COLOR] if app.theme == theme.MONO.name else list(usual)
    return [*found, _WIDTHS, *([_SIGNS] if app.has_class(PLAIN) else [])]


def variables(app: ChatApp) -> dict[str, str]:
    """Variables of the theme that say how to draw."""
    return {"plain": "yes"} if app.has_class(PLAIN) else {}


def calm(app: ChatApp, widget: Widget) -> None:
    """Keep the cursor of a widget that got the focus from blinking, where nothing is to move."""
    if app.options.tui.reduced_motion and hasattr(widget, "cursor_blink"):
        widget.cursor_blink = False


def problems(app: ChatApp) -> list[str]:
    """What the settings of the screen say that cannot be done, in sentences."""
    tui = app.options.tui
    found = keymap_problems(tui.keymap, app.registry)
    if theme.choose(tui.theme, os.environ) not in app.available_themes:
        found.append(f"tui.theme: there is no theme {tui.theme!r}; /theme shows all of them.")
    return found


def take_up(app: ChatApp, key: str, value: Any) -> list[str]:
    """Let a setting of the screen take effect now.

    Args:
        key: Dotted, below ``tui``.
        value: Checked before.

    Returns:
        What it says that cannot be done, in sentences.
    """
    tui = msgspec.structs.replace(app.options.tui, **{key.removeprefix("tui."): value})
    app.options = app.controller.options = msgspec.structs.replace(app.options, tui=tui)
    match key:
        case "tui.theme":
            use_theme(app, value)
        case "tui.notify":
            app.controller.attention.notify = value
        case "tui.plain":
            _change_plain(app, plain=value)
        case "tui.show_reasoning":
            app.transcript.document.shown.unfold_reasoning = value
        case "tui.reduced_motion":
            _use_motion(app)
        case "tui.keymap":
            use_keymap(app)
        case "tui.sidebar":
            if app.sidebar.display != value:
                app.sidebar.toggle()
    return [problem for problem in problems(app) if problem.startswith(f"{key}: ")]


def _use_plain(app: ChatApp, *, plain: bool) -> None:
    app.set_class(plain, PLAIN)
    app.transcript.shortest_pause = UPDATE_SECONDS if plain else SHORTEST_PAUSE


def _change_plain(app: ChatApp, *, plain: bool) -> None:
    """Into the plain mode, or out of it to what the settings said at the start."""
    said = app.options.settings.tui
    motion, sidebar = (True, False) if plain else (said.reduced_motion, said.sidebar)
    _use_plain(app, plain=plain)
    take_up(app, "tui.reduced_motion", motion)
    take_up(app, "tui.sidebar", sidebar)
    # Everything is drawn anew, as with another theme: how is told by the theme's variables.
    app.refresh_css(animate=False)
    app.theme_changed_signal.publish(app.current_theme)
    app.header.update()
    app.status_line.update()
    app.refresh(layout=True)


def _use_motion(app: ChatApp) -> None:
    app.animation_level = "none" if app.options.tui.reduced_motion else "full"
