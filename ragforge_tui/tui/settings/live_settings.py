"""The screen's settings: applied at the start, and again when one is changed while the chat runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, get_type_hints

import msgspec
from textual.app import App
from textual.filter import LineFilter, NoColor
from textual.widget import Widget

from ragforge_tui.settings.schema import live_part
from ragforge_tui.tui.command_registry import Registry, bind_keys, keymap_problems, stop_key
from ragforge_tui.tui.drawing import theme
from ragforge_tui.tui.session.state import ChatOptions
from ragforge_tui.tui.sidebar.sidebar import Sidebar
from ragforge_tui.tui.terminal import (
    PLAIN,
    UPDATE_SECONDS,
    AgreedWidths,
    Attention,
    NoItalics,
    PlainSigns,
    ReadableDim,
    in_gnu_screen,
)
from ragforge_tui.tui.transcript import Transcript
from ragforge_tui.tui.transcript.transcript import SHORTEST_PAUSE
from ragforge_tui.tui.type_ahead import TypeAheadApp
from ragforge_tui.tui.widgets.status_bar import foot_hints

# A filter remembers the lines it has filtered, so there is one of each.
_NO_COLOR, _DIM, _WIDTHS = NoColor(), ReadableDim(), AgreedWidths()
_SIGNS, _UPRIGHT = PlainSigns(), NoItalics()


def with_plain_mode(options: ChatOptions) -> ChatOptions:
    """Return the options with what the plain mode implies for other settings."""
    if not options.tui.plain:
        return options
    tui = msgspec.structs.replace(options.tui, reduced_motion=True, sidebar=False)
    return msgspec.structs.replace(options, tui=tui)


def line_filters(app: App[Any], usual: Sequence[LineFilter]) -> Sequence[LineFilter]:
    """Return the filters between the screen and the terminal."""
    found = [_NO_COLOR] if app.theme == theme.MONO.name else [_DIM, *usual]
    upright = [_UPRIGHT] if in_gnu_screen(os.environ) else []
    return [*found, _WIDTHS, *upright, *([_SIGNS] if app.has_class(PLAIN) else [])]


def theme_variables(app: App[Any]) -> dict[str, str]:
    return {"plain": "yes"} if app.has_class(PLAIN) else {}


class LiveSettings:
    """Applies the settings below ``tui`` to the widgets of one chat.

    Attributes:
        options: The options of the chat, with the settings as they are now.
        hints: The keys that the status line names.
        stop_key: The user's key that stops an answer, as `key_name` returns it.

    Args:
        use_vim: Gives the prompt Vim's keys, or takes them.
        redraw: Draws everything again that does not follow theme and keys by itself.
    """

    def __init__(
        self,
        app: TypeAheadApp,
        options: ChatOptions,
        registry: Registry,
        *,
        transcript: Transcript,
        sidebar: Sidebar,
        attention: Attention,
        use_vim: Callable[[bool], None],
        redraw: Callable[[], None],
    ) -> None:
        self.options = options
        self._app = app
        self._registry = registry
        self._transcript = transcript
        self._sidebar = sidebar
        self._attention = attention
        self._use_vim = use_vim
        self._redraw = redraw
        self._name_keys()

    def apply_all(self) -> None:
        """Set up theme, motion and keys at the start."""
        tui = self.options.tui
        if tui.plain:
            self._use_plain()
        for own in theme.OWN:
            self._app.register_theme(own)
        # TEXTUAL_THEME may name one of ours, which the framework took for unknown; setting it again changes nothing.
        self._app.theme = "textual-dark"
        self.use_theme(tui.theme)
        self._use_motion()
        self._use_keymap()
        self._use_vim(tui.vim)

    def use_theme(self, setting: str) -> None:
        """Use the theme that a setting names; an unknown name gives the dark theme."""
        name = theme.choose(setting, os.environ, no_color=self._app.no_color)
        self._app.theme = name if name in self._app.available_themes else theme.DARK.name

    def calm(self, widget: Widget) -> None:
        """Stop the cursor of a focused widget from blinking if motion is reduced."""
        if self.options.tui.reduced_motion and hasattr(widget, "cursor_blink"):
            widget.cursor_blink = False

    def problems(self) -> list[str]:
        """Return the problems with the settings of the screen, in sentences."""
        tui = self.options.tui
        found = keymap_problems(tui.keymap, self._registry)
        if theme.choose(tui.theme, os.environ) not in self._app.available_themes:
            found.append(f"tui.theme: there is no theme {tui.theme!r}; /theme shows all of them.")
        return found

    def apply(self, key: str, value: Any) -> list[str]:
        """Let a setting take effect now.

        Args:
            key: Dotted, below ``tui``.
            value: A checked value.

        Returns:
            The problems with this setting, in sentences.
        """
        tui = msgspec.structs.replace(self.options.tui, **{key.removeprefix("tui."): value})
        self.options = msgspec.structs.replace(self.options, tui=tui)
        match live_part(get_type_hints(type(tui), include_extras=True)[key.removeprefix("tui.")]):
            case "theme":
                self.use_theme(tui.theme)
            case "notify":
                self._attention.notify = tui.notify
            case "plain":
                self._change_plain()
            case "reasoning":
                self._transcript.document.shown.unfold_reasoning = tui.show_reasoning
            case "motion":
                self._use_motion()
            case "keys":
                self._use_keymap()
            case "vim":
                self._use_vim(tui.vim)
            case "sidebar":
                if self._sidebar.display != tui.sidebar:
                    self._sidebar.toggle()
            case _:
                self._draw_all()
        self._redraw()
        return [problem for problem in self.problems() if problem.startswith(f"{key}: ")]

    def _use_plain(self) -> None:
        plain = self.options.tui.plain
        self._app.set_class(plain, PLAIN)
        self._transcript.stream_painter.shortest_pause = UPDATE_SECONDS if plain else SHORTEST_PAUSE

    def _change_plain(self) -> None:
        """Switch to the plain mode, or back to the settings of the start."""
        start, plain = self.options.settings.tui, self.options.tui.plain
        self._use_plain()
        self.apply("tui.reduced_motion", plain or start.reduced_motion)
        self.apply("tui.sidebar", not plain and start.sidebar)
        self._draw_all()

    def _draw_all(self) -> None:
        """Draw everything again, as after a change of the theme, whose variables every renderer reads."""
        self._app.refresh_css(animate=False)
        self._app.theme_changed_signal.publish(self._app.current_theme)
        self._app.refresh(layout=True)

    def _use_motion(self) -> None:
        self._app.animation_level = "none" if self.options.tui.reduced_motion else "full"

    def _use_keymap(self) -> None:
        bind_keys(self._app, self.options.tui.keymap, self._registry)
        self._name_keys()

    def _name_keys(self) -> None:
        """Take over the user's keys into the texts that name them."""
        keymap = self.options.tui.keymap
        self.hints = foot_hints(self._registry, keymap)
        self.stop_key = stop_key(keymap, self._registry)
