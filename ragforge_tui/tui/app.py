"""The chat app: driver, theme, keys and type-ahead around one `ChatScreen`.

`run_chat` is all that `cli` needs. The app paints first and connects afterwards.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ClassVar

from rich.console import RenderableType
from textual import events
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.filter import LineFilter
from textual.screen import Screen

from ragforge_tui.shared.own_command import resume_command
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.shared.wire import Engine
from ragforge_tui.tui.alt_keys import teach_alt_keys
from ragforge_tui.tui.chat_driver import ChatDriver
from ragforge_tui.tui.chat_screen import ChatScreen
from ragforge_tui.tui.drawing.palette import frame_variables
from ragforge_tui.tui.hang_up import before_hang_up
from ragforge_tui.tui.host import FIND_BAR, HISTORY_BAR, AnswersEscape
from ragforge_tui.tui.keys import CTRL, key_name
from ragforge_tui.tui.session.state import ChatOptions
from ragforge_tui.tui.settings.live_settings import line_filters, theme_variables, with_plain_mode
from ragforge_tui.tui.terminal import copy_sequence
from ragforge_tui.tui.type_ahead import TypeAheadApp
from ragforge_tui.tui.widgets.status_bar import PALETTE

__all__ = ["ChatApp", "ChatOptions", "run_chat"]

SWITCH_SECONDS = 0.001
QUIT_HINT = f"{key_name('ctrl+c')} again quits"


def run_chat(connect: Callable[[], Awaitable[Engine]], options: ChatOptions) -> int:
    """Run the chat until the user leaves, then print how to resume.

    Args:
        connect: Starts an engine; called after the first paint, and again after a crash of the engine.
        options: How the chat starts.

    Returns:
        The exit status.
    """
    # Streaming text is drawn in a worker thread; a key must not wait for that thread's slices of 5 ms, the default.
    sys.setswitchinterval(SWITCH_SECONDS)
    app = ChatApp(connect, options)
    before_hang_up(app.chat.prompt.save_draft)
    conversation_id = app.run(mouse=options.tui.mouse)
    if conversation_id:
        sys.stdout.write(f"Conversation {conversation_id}\nResume: {resume_command(conversation_id)}\n")
        sys.stdout.flush()
    return app.return_code or 0


def chat_driver(*, served: bool) -> type[Driver] | None:
    """Return the driver of the chat's terminal or browser; None for one that the environment names."""
    if not served:
        return None if os.environ.get("TEXTUAL_DRIVER") else ChatDriver
    from ragforge_tui.tui.served_driver import ServedDriver

    return ServedDriver


class ChatApp(TypeAheadApp):
    """One chat."""

    TITLE = "ragforge-chat"
    CSS_PATH = "chat.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "interrupt", CTRL["ctrl+c"], show=False, priority=True, system=True),
        Binding("escape", "screen.escape", show=False, id="stop"),
        Binding("ctrl+q", "command('quit')", show=False, priority=True, id="quit"),
        Binding("ctrl+z", "suspend_process", CTRL["ctrl+z"], show=False, priority=True, id="suspend"),
    ]

    def __init__(self, connect: Callable[[], Awaitable[Engine]], options: ChatOptions) -> None:
        super().__init__(chat_driver(served=options.served))
        teach_alt_keys()
        self.chat = ChatScreen(self, connect, with_plain_mode(options))
        self.chat.settings.apply_all()

    def get_default_screen(self) -> ChatScreen:
        """Return the chat."""
        return self.chat

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        """Send what has changed on the terminal, instead of everything that was drawn."""
        if isinstance(self._driver, ChatDriver):
            renderable = self._driver.shown.only_changes(renderable)
        super()._display(screen, renderable)

    def on_resize(self) -> None:
        """Take nothing for shown: a terminal of another size may show anything."""
        if isinstance(self._driver, ChatDriver):
            self._driver.shown.forget()

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return the filters between the screen and the terminal."""
        return line_filters(self, super().get_line_filters())

    def get_css_variables(self) -> dict[str, str]:
        """Return the variables of the theme, with frames that can be seen."""
        variables, worn = super().get_css_variables(), self.current_theme
        self.theme_variables = variables | frame_variables(variables, dark=worn.dark, ansi=worn.ansi)
        return self.theme_variables

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return theme_variables(self)

    def refresh_css(self, animate: bool = True) -> None:
        """Apply changed variables; before there is a screen its styles, parsed later, only need to get them."""
        if self.screen_stack:
            super().refresh_css(animate)
        else:
            self.stylesheet.set_variables(self.get_css_variables())

    def on_mount(self) -> None:
        """Draw everything again once the shell has brought the chat back to its foreground."""
        self.app_resume_signal.subscribe(self, lambda _: self._draw_again())

    def _draw_again(self) -> None:
        self.chat.terminal_title.again()
        self.refresh(layout=True)

    # -- keys

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Pass keys on once the prompt has the focus; stop the cursor from blinking if motion is reduced."""
        if event.widget is self.chat.prompt:
            self.first_field_focused()
        self.chat.settings.calm(event.widget)

    @property
    def _covered(self) -> bool:
        """Whether a screen or the palette covers the chat."""
        return len(self.screen_stack) > 1

    @property
    def letters_move(self) -> bool:
        """Whether a letter moves the focus to the prompt."""
        return not self._covered and self.chat.letters_move

    @property
    def enter_moves(self) -> bool:
        """A submitted command may open a screen, and the keys after it belong there."""
        return not self._covered and self.focused is self.chat.prompt

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave shift+tab to a screen that covers the chat, and to the panes, where it moves the focus; and ctrl+z."""
        if action == "suspend_process":
            return not self._covered
        if action != "mode":
            return not (self._covered and parameters == ("mode",))
        return not (self._covered or (parameters == ("shift+tab",) and self.chat.sidebar.has_focus_within))

    def action_mode(self, _: str) -> None:
        """Switch to the next mode; its key is an argument for `check_action`."""
        self.action_command("mode")

    def action_command(self, name: str) -> None:
        if name == PALETTE:
            self.action_command_palette()
        elif not self._covered or name == "quit":
            self.chat.run_command(name)

    def action_command_palette(self) -> None:
        """Show all commands to choose from."""
        if not self._covered:
            self.chat.open_palette()

    async def action_quit(self) -> None:
        await self.chat.leave()

    def action_interrupt(self) -> None:
        """Copy a selection, else close what is open, else stop the turn, else quit when pressed twice."""
        session, armed = self.chat.session, self.chat.status_line.hint == QUIT_HINT
        prompt = self.chat.prompt
        selected = self.screen.get_selected_text() or ("" if self._covered else prompt.selected_text)
        if selected:
            self.copy_to_clipboard(plain_text(selected))
            self.screen.clear_selection()
            prompt.move_cursor(prompt.cursor_location)  # The next ctrl+c stops or quits.
            self.chat.hint("sent to the clipboard")
        elif self._covered and not armed:
            self.screen.dismiss()
        elif not armed and self._close_bar():
            pass
        elif session.state.busy:
            session.spawn(session.stop(), group="stop")
        elif armed:
            self.action_command("quit")
        else:
            self.chat.hint(QUIT_HINT)

    def _close_bar(self) -> bool:
        """Close the bar that has the keyboard, or the menu of the prompt; return whether there was one."""
        around = self.focused.ancestors_with_self if self.focused is not None else []
        bar = next((node for node in around if node.id in (FIND_BAR, HISTORY_BAR)), None)
        if isinstance(bar, AnswersEscape):
            return bar.escape()
        menu = self.chat.prompt.completing
        if was_open := menu.open:
            menu.close()
        return was_open

    def copy_to_clipboard(self, text: str) -> None:
        """Copy through the terminal (OSC 52), also inside tmux."""
        self._clipboard = text
        if self._driver is not None:
            self._driver.write(copy_sequence(text, os.environ))
