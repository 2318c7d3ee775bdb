"""The chat app: layout, keys and messages of the widgets.

`run_chat` is all that `cli` needs. The app paints first and connects afterwards. What the engine reports is shown by
`chat_view.py`; what commands do is in `commands/`.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from datetime import datetime
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.filter import LineFilter
from textual.widgets import Static

from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.shared.wire import Engine
from ragforge_tui.tui.chat_driver import ChatDriver, driver_after, keep_first_screen
from ragforge_tui.tui.chat_view import ChatView
from ragforge_tui.tui.commands.chat_commands import pick_session
from ragforge_tui.tui.commands.conversation_commands import cancel_edit, close_find, find_step, resend, view_block
from ragforge_tui.tui.commands.link_commands import choose_link, open_link
from ragforge_tui.tui.early_prompt import EarlyPrompt
from ragforge_tui.tui.hang_up import before_hang_up
from ragforge_tui.tui.prompt.history import Entry
from ragforge_tui.tui.prompt.prompt import Prompt, teach_alt_enter
from ragforge_tui.tui.questions.question_panel import QuestionPanel
from ragforge_tui.tui.session.state import ChatOptions
from ragforge_tui.tui.settings.live_settings import line_filters, theme_variables, with_plain_mode
from ragforge_tui.tui.sidebar.sidebar import Body
from ragforge_tui.tui.terminal import copy_sequence
from ragforge_tui.tui.transcript import Transcript
from ragforge_tui.tui.type_ahead import TypeAheadApp
from ragforge_tui.tui.welcome.welcome import Welcome
from ragforge_tui.tui.widgets.status_bar import PALETTE

__all__ = ["ChatApp", "ChatOptions", "run_chat"]

SWITCH_SECONDS = 0.001
MAX_UNPAINTED_SECONDS = 0.2
"""Longest wait of the first paint for the keys that were typed before it."""


def run_chat(connect: Callable[[], Awaitable[Engine]], options: ChatOptions, early: EarlyPrompt | None = None) -> int:
    """Run the chat until the user leaves, then print how to resume.

    Args:
        connect: Starts an engine; called after the first paint, and again after a crash of the engine.
        options: How the chat starts.
        early: The prompt that has accepted keys until now.

    Returns:
        The exit status.
    """
    # Streaming text is drawn in a worker thread; a key must not wait for that thread's slices of 5 ms, the default.
    sys.setswitchinterval(SWITCH_SECONDS)
    # Nothing is garbage before the first paint; a collection would delay it.
    gc.disable()
    app = ChatApp(connect, options, early)
    before_hang_up(app.view.save_draft)
    conversation_id = app.run()
    if conversation_id:
        sys.stdout.write(f"Conversation {conversation_id}\nResume: ragforge-chat --resume {conversation_id[:8]}\n")
        sys.stdout.flush()
    return app.return_code or 0


class ChatApp(TypeAheadApp):
    """One chat."""

    TITLE = "ragforge-chat"
    CSS_PATH = "chat.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "interrupt", show=False, priority=True, system=True),
        Binding("escape", "escape", show=False, id="stop"),
        Binding("ctrl+q", "command('quit')", show=False, priority=True, id="quit"),
        Binding("pageup", "scroll_chat(-1)", show=False),
        Binding("pagedown", "scroll_chat(1)", show=False),
    ]

    def __init__(
        self, connect: Callable[[], Awaitable[Engine]], options: ChatOptions, early: EarlyPrompt | None = None
    ) -> None:
        super().__init__(driver_after(early))
        self.clock: Callable[[], float] = time.monotonic
        self.now: Callable[[], datetime] = lambda: datetime.now().astimezone()
        self._unpainted: ExitStack | None = None
        teach_alt_enter()
        self.view = ChatView(
            self, connect, with_plain_mode(options), now=lambda: self.now(), clock=lambda: self.clock()
        )
        self.session = self.view.session
        self.transcript = self.view.transcript
        self.sidebar = self.view.sidebar
        self.questions = self.view.questions
        self.prompt = self.view.prompt
        self.view.settings.apply_all()

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return the filters between the screen and the terminal."""
        return line_filters(self, super().get_line_filters())

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return theme_variables(self)

    def refresh_css(self, animate: bool = True) -> None:
        """Apply changed variables; before there is a screen its styles, parsed later, only need to get them."""
        if self.screen_stack:
            super().refresh_css(animate)
        else:
            self.stylesheet.set_variables(self.get_css_variables())

    def compose(self) -> ComposeResult:
        """Lay out the chat."""
        view = self.view
        yield view.header
        yield Body(view.column, view.sidebar)
        yield view.queue
        yield view.questions
        yield view.menu
        with Horizontal(id="prompt-row"):
            yield Static(">", id="prompt-mark", markup=False)
            yield view.prompt
        yield view.status_line

    def on_mount(self) -> None:
        """Accept typing from the first paint on; everything else happens after it."""
        self.prompt.focus()
        if isinstance(self._driver, ChatDriver):
            self.call_later(self._driver.prompt_focused)  # after `focus`, which is queued too
            if self._driver.typed_before:
                self._unpainted = ExitStack()
                self._unpainted.enter_context(self.batch_update())
                self.set_timer(MAX_UNPAINTED_SECONDS, self._paint)
        self.call_after_refresh(self._after_first_paint)

    def _paint(self) -> None:
        """Paint for the first time, now that the prompt holds the keys typed before, so that they do not vanish."""
        held, self._unpainted = self._unpainted, None
        if held is not None:
            held.close()
            self.screen.refresh()

    def _after_first_paint(self) -> None:
        keep_first_screen(self, self.prompt)
        self.run_worker(self.session.run(), name="engine", group="engine", exclusive=True, exit_on_error=False)
        self.view.restore_draft()
        self.view.begin_welcome()
        self.sidebar.begin()
        if self.view.options.resume == "":
            pick_session(self.view)
        self.view.show_problems()
        gc.freeze()  # Everything loaded so far is permanent, so the collector need not scan it again.
        gc.enable()

    def action_command_palette(self) -> None:
        """Show all commands to choose from."""
        if self._covered:
            return
        from ragforge_tui.tui.dialogs.command_palette import CommandPalette

        view = self.view
        palette = CommandPalette(view.registry, view.options.tui.keymap, view.features.most_chosen())
        view.open_screen(palette, self._palette_picked)

    def _palette_picked(self, name: str) -> None:
        command = self.view.registry.get(name)
        if command is not None and command.needs_choice and not self.prompt.text.strip():
            self.prompt.put(Entry(f"/{name} "))
            return
        self.view.features.choose(name)
        self.view.run_command(name)

    # -- the prompt

    def on_prompt_submitted(self, event: Prompt.Submitted) -> None:
        """Run a command or send a message."""
        event.stop()
        text, registry = event.text, self.view.registry
        parsed = registry.parse(text)
        if parsed is not None and parsed.command is None:
            near = registry.suggest(parsed.name)
            ask = f"Did you mean /{near.name}?" if near else "/help lists all commands."
            self.session.notice(f"There is no command /{parsed.name}. {ask}", "warning")
            self.prompt.select_all()  # What is typed next takes its place.
            return
        if parsed is not None and parsed.command is not None:
            self.view.features.choose(parsed.command.name)
            if parsed.command.opens:
                self.hold_until_moved()
            self.view.run_command(parsed.command.name, parsed.argument)
        elif not (self.view.pick_recent(text) or resend(self.view, text)):
            self.view.note_features(text)
            self.session.send(text)
        self.view.offer_question()

    def on_prompt_take_back(self, event: Prompt.TakeBack) -> None:
        """Put the newest queued message back into the prompt."""
        event.stop()
        self.session.spawn(self.session.take_back(), group="queue")

    def on_prompt_answer(self, event: Prompt.Answer) -> None:
        """Move the focus to the waiting question, else to the chat (and from there back)."""
        event.stop()
        if self.questions.waiting:
            self.questions.focus()
        else:
            self.transcript.focus()

    def on_text_area_changed(self) -> None:
        """Save the draft, and let a question shrink when the prompt has grown."""
        self._paint()
        self.view.back_armed = False
        if self.session.state.hint == self._draft_hint:
            self.view.hint("")
        elif self.session.state.drafting == self.prompt.blank:
            self.view.state_changed()
        self.call_after_refresh(self.questions.make_room)
        self.view.save_draft_soon()

    # -- questions

    def on_question_panel_emptied(self, event: QuestionPanel.Emptied) -> None:
        """Go back to the prompt, unless another question arrived meanwhile."""
        event.stop()
        if self.questions.waiting:
            self.view.offer_question()
        else:
            self.prompt.focus()
        self.view.state_changed()

    def on_question_panel_left(self, event: QuestionPanel.Left) -> None:
        """Go back to the prompt for a moment."""
        event.stop()
        self.prompt.focus()

    def on_question_panel_dropped(self, event: QuestionPanel.Dropped) -> None:
        """Show that letters answered nothing."""
        event.stop()
        self.view.hint(f"{event.letters[:1]} came too early: press it again")

    def on_question_panel_returned(self, event: QuestionPanel.Returned) -> None:
        """Type letters that no question came for."""
        event.stop()
        self.prompt.insert(event.letters, (0, 0))

    def on_question_panel_command_view_requested(self, event: QuestionPanel.CommandViewRequested) -> None:
        """Show the whole command with numbered lines."""
        from ragforge_tui.tui.dialogs.detail import Section
        from ragforge_tui.tui.dialogs.text_viewer import DetailScreen

        async def load() -> tuple[str, list[Section]]:
            text = await asyncio.to_thread(event.command.numbered)
            return event.title, [Section(title="command", text=text, numbered=True)]

        event.stop()
        self.push_screen(DetailScreen(event.title, load, actions={}), lambda _: self.questions.let_read())

    def on_welcome_clicked(self, event: Welcome.Clicked) -> None:
        """Run the command of a line of the first screen."""
        event.stop()
        name, _, argument = event.action.partition(" ")
        self.view.run_command(name, argument)

    # -- the transcript

    def on_transcript_need_turns(self, event: Transcript.NeedTurns) -> None:
        """Load turns that scrolled into view."""
        event.stop()
        self.session.spawn(self.view.fetch_turns(event.start, event.end), group="turns", exclusive=True)

    def on_transcript_want_turn(self, event: Transcript.WantTurn) -> None:
        """Bring a turn into view that is not loaded."""
        event.stop()
        self.session.spawn(self.view.show_turn(event.turn_index), group="turns", exclusive=True)

    def on_transcript_turn_command(self, event: Transcript.TurnCommand) -> None:
        """Run a command for the turn at the cursor."""
        event.stop()
        self.view.run_command(event.command, str(event.turn_index))

    def on_transcript_find_step(self, event: Transcript.FindStep) -> None:
        """Go to the next or previous match."""
        event.stop()
        find_step(self.view, event.by)

    def on_transcript_link_clicked(self, event: Transcript.LinkClicked) -> None:
        """Open a link."""
        event.stop()
        self.session.spawn(open_link(self.view, event.target), group="link", exclusive=True)

    def on_transcript_place_clicked(self, event: Transcript.PlaceClicked) -> None:
        """Go to a turn that was recalled from another conversation."""
        event.stop()
        self.view.go_to_turns(event.turn_index, conversation_id=event.conversation_id)

    def on_transcript_links_wanted(self, event: Transcript.LinksWanted) -> None:
        """Open one of the links near the cursor."""
        event.stop()
        choose_link(self.view, event.links)

    def on_transcript_view_requested(self, event: Transcript.ViewRequested) -> None:
        """Show a whole block."""
        event.stop()
        view_block(self.view, event.block)

    def on_transcript_cursor_moved(self, event: Transcript.CursorMoved) -> None:
        """Show what keys do with the block that is at the cursor now."""
        event.stop()
        self.view.state_changed()

    def on_transcript_hint(self, event: Transcript.Hint) -> None:
        """Show the result of a key, or why it has none."""
        event.stop()
        self.view.hint(event.text)

    # -- focus and keys

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Stop the cursor from blinking if motion is reduced; update the hints, which depend on the focus."""
        self.view.settings.calm(event.widget)
        self.view.state_changed()

    def on_key(self, event: events.Key) -> None:
        """Type a letter into the prompt while the chat or a question has the focus, unless it is a key there.

        Not from a pane: most letters are keys there, so that of a sentence only the rest would arrive.
        """
        if self._covered or not event.is_printable or not event.character or event.key in self.active_bindings:
            return
        if self.sidebar.has_focus_within:
            self.view.hint(f"{plain_text(event.character)} does nothing in this pane · esc back to prompt")
        elif self.letters_move:
            event.stop()
            self.prompt.focus()
            self.prompt.insert(self.questions.take_held() + event.character)

    @property
    def letters_move(self) -> bool:
        """In the chat and in a question a letter moves the focus to the prompt; the letters after it belong there."""
        return not self._covered and self.focused in (self.transcript, self.questions, None)

    @property
    def enter_moves(self) -> bool:
        """A submitted command may open a screen, and the keys after it belong there."""
        return not self._covered and self.focused is self.prompt

    @property
    def _covered(self) -> bool:
        """Whether a screen or the palette covers the chat."""
        return len(self.screen_stack) > 1

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave shift+tab to a screen that covers the chat, and to the panes, where it moves the focus."""
        if action != "mode":
            return not (self._covered and parameters == ("mode",))
        return not (self._covered or (parameters == ("shift+tab",) and self.sidebar.has_focus_within))

    def action_mode(self, _: str) -> None:
        """Switch to the next mode; its key is an argument for `check_action`."""
        self.action_command("mode")

    def action_command(self, name: str) -> None:
        if name == PALETTE:
            self.action_command_palette()
        elif not self._covered or name == "quit":
            self.view.run_command(name)

    async def action_quit(self) -> None:
        await self.view.leave()

    def action_escape(self) -> None:
        """Close the menu or the search, else refuse a question, stop the turn, go to the prompt, or back a turn."""
        if self.prompt.completing.open:
            self.prompt.completing.close()
        elif cancel_edit(self.view) or close_find(self.view):
            pass
        elif self.sidebar.overlaid:
            self.sidebar.fold()
        elif self.questions.waiting:
            self.questions.action_refuse()
        elif self.session.state.busy:
            self.session.spawn(self.session.stop(), group="stop")
        elif self.transcript.has_focus:
            self.transcript.leave()
            self.prompt.focus()
        elif self.prompt.has_focus and self.transcript.newest_turn:
            self._escape_idle()

    def _escape_idle(self) -> None:
        """Offer the turns to go back to when pressed twice, as in other chats of the terminal."""
        if self.prompt.text:
            self.view.hint(self._draft_hint)
        elif self.view.back_armed:
            self.view.back_armed = False
            self.view.hint("")
            self.view.run_command("branch")
        else:
            self.view.back_armed = True
            self.view.hint(f"{self.view.stop_key} again: go back to an earlier turn")

    @property
    def _draft_hint(self) -> str:
        return f"{self.view.stop_key} {self.view.stop_key} goes back when the prompt is empty"

    def action_interrupt(self) -> None:
        """Copy a selection, else close a screen, else stop the turn, else quit when pressed twice."""
        selected = self.screen.get_selected_text() or self.prompt.selected_text
        if selected:
            self.copy_to_clipboard(plain_text(selected))
            self.screen.clear_selection()
            self.view.hint("sent to the clipboard")
        elif self._covered and not self.view.quit_armed:
            self.pop_screen()
        elif self.session.state.busy:
            self.session.spawn(self.session.stop(), group="stop")
        elif self.view.quit_armed:
            self.action_command("quit")
        else:
            self.view.quit_armed = True
            self.view.hint("^c again quits")

    def action_scroll_chat(self, direction: int) -> None:
        """Page through the chat while the prompt keeps the focus."""
        step = max(self.transcript.size.height - 2, 1)
        self.transcript.scroll_relative(y=direction * step, animate=False)

    def copy_to_clipboard(self, text: str) -> None:
        """Copy through the terminal (OSC 52), also inside tmux."""
        self._clipboard = text
        if self._driver is not None:
            self._driver.write(copy_sequence(text, os.environ))
