"""The chat screen: widgets, keys and what they lead to.

`run_chat` is all that `cli` needs. The app paints first and connects after; what it does with the engine is in
`controller.py`, what slash commands do in `actions.py`.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import ClassVar

from textual import events
from textual.app import ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.filter import LineFilter
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Static

from ragforge_tui.protocol import Engine
from ragforge_tui.text import plain_text
from ragforge_tui.tui import looks
from ragforge_tui.tui.actions import ChatActions
from ragforge_tui.tui.clipboard import copy_sequence
from ragforge_tui.tui.commands import COMMANDS, Command, Registry, key_name
from ragforge_tui.tui.controller import ChatController
from ragforge_tui.tui.history import Draft, History
from ragforge_tui.tui.keymap import effective_keys, opening_keys
from ragforge_tui.tui.menu import SlashMenu
from ragforge_tui.tui.options import ChatOptions
from ragforge_tui.tui.panel import Question, QuestionPanel
from ragforge_tui.tui.prompt import Prompt, teach_alt_enter
from ragforge_tui.tui.sidebar import Body, Sidebar
from ragforge_tui.tui.status import foot_hints
from ragforge_tui.tui.transcript import Transcript
from ragforge_tui.tui.transcript.document import Shown
from ragforge_tui.tui.transcript_handlers import TranscriptHandlers

__all__ = ["ChatApp", "ChatOptions", "run_chat"]

DRAFT_SECONDS = 0.5
QUIET_SECONDS = 0.8
"""A question takes the focus only when no key came for this long: a letter meant for the prompt must not answer."""
SWITCH_SECONDS = 0.001


def run_chat(connect: Callable[[], Awaitable[Engine]], options: ChatOptions) -> int:
    """Run the chat until the person leaves; says afterwards how to resume.

    Args:
        connect: Starts an engine; called after the first paint, and again after a crash of the engine.
        options: How it starts.

    Returns:
        The exit status.
    """
    # Text that streams is drawn in a worker thread; a key must not wait for that thread's slices of 5 ms, the default.
    sys.setswitchinterval(SWITCH_SECONDS)
    # Nothing is garbage before the first paint; looking for it would hold that up.
    gc.disable()
    app = ChatApp(connect, options)
    conversation_id = app.run()
    if conversation_id:
        sys.stdout.write(f"Conversation {conversation_id}\nResume: ragforge-chat --resume {conversation_id[:8]}\n")
        sys.stdout.flush()
    return app.return_code or 0


class ChatApp(TranscriptHandlers):
    """One chat."""

    TITLE = "ragforge-chat"
    CSS_PATH = "chat.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "interrupt", show=False, priority=True, system=True),
        *(
            Binding(
                command.key,
                f"command('{command.name}')",
                command.help,
                show=False,
                id=command.name,
                priority=command.key == "shift+tab",
            )
            for command in COMMANDS
            if command.key and command.name not in ("stop", "quit")
        ),
        Binding("escape", "escape", show=False, id="stop"),
        Binding("ctrl+q", "command('quit')", show=False, priority=True, id="quit"),
        Binding("pageup", "scroll_chat(-1)", show=False),
        Binding("pagedown", "scroll_chat(1)", show=False),
    ]

    def __init__(self, connect: Callable[[], Awaitable[Engine]], options: ChatOptions) -> None:
        super().__init__()
        self.options = options = looks.as_asked(options)
        self.registry = Registry()
        self.controller = ChatController(self, connect, options)
        self.actions = ChatActions(self)
        self.clock: Callable[[], float] = time.monotonic
        self.now: Callable[[], datetime] = lambda: datetime.now().astimezone()
        self.transcript = Transcript(shown=Shown(unfold_reasoning=options.tui.show_reasoning, now=lambda: self.now()))
        self.sidebar = Sidebar(options.state_dir, wanted=options.tui.sidebar)
        self.questions = QuestionPanel()
        self._menu = SlashMenu()
        teach_alt_enter()
        self.prompt = Prompt(History(options.state_dir, options.workspace), self.registry, self._menu)
        self.prompt.completing.source = self.actions.suggest
        self._draft = Draft(options.state_dir, options.workspace)
        self.make_frame(foot_hints(self.registry, options.tui.keymap))
        self.opening_keys = opening_keys(options.tui.keymap, self.registry)
        self._draft_timer: Timer | None = None
        looks.set_up(self)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Without colours none is sent, not even a grey one."""
        return looks.filters(self, super().get_line_filters())

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """What renderers that draw for themselves have to know besides the colours."""
        return looks.variables(self)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """A cursor that blinks is motion too; what Tab and Escape do depends on who has the keyboard."""
        looks.calm(self, event.widget)
        self.refresh_chrome()

    def compose(self) -> ComposeResult:
        """Header, chat, what waits, prompt, status."""
        yield self.header
        yield Body(self.transcript, self.sidebar)
        yield self.queue_line
        yield self.questions
        yield self._menu
        with Horizontal(id="prompt-row"):
            yield Static(">", id="prompt-mark", markup=False)
            yield self.prompt
        yield self.status_line

    def on_mount(self) -> None:
        """Typing is possible from the first paint on; everything else comes after it."""
        self.prompt.focus()
        self.call_after_refresh(self._after_first_paint)

    def _after_first_paint(self) -> None:
        self.run_worker(self.controller.run_link(), name="engine", group="engine", exclusive=True, exit_on_error=False)
        draft = self._draft.restore()
        if draft is not None and not self.prompt.text:
            self.prompt.put(draft)
        self.sidebar.begin()
        if self.options.resume == "":
            self.actions.pick_session_soon()
        for problem in looks.problems(self):
            self.controller.notice(problem, "warning")
        gc.freeze()  # What is loaded by now stays; the collector need not look at it again.
        gc.enable()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The palette: our commands."""
        keys = effective_keys(self.options.tui.keymap, self.registry)
        for command in self.registry.commands:
            key = f" · {key_name(keys[command.name])}" if command.name in keys else ""
            run = partial(self._from_palette, command)
            yield SystemCommand(command.usage, f"{command.help}{key}", run)

    def _from_palette(self, command: Command) -> None:
        self.run_command(command, "")

    # -- what the controller asks for

    def give_back(self, text: str) -> None:
        """A message that was not sent goes back into the prompt."""
        self.prompt.put_back(text)
        self.prompt.focus()

    def cancel_group(self, group: str) -> None:
        """Cancel workers."""
        self.workers.cancel_group(self, group)

    def ask(self, question: Question) -> None:
        """Show a question; it gets the focus when nobody is typing."""
        self.questions.ask(question)
        self.refresh_chrome()
        self._offer_question()

    def _offer_question(self) -> None:
        if not self.questions.waiting or self.questions.has_focus or self.prompt.text.strip():
            return
        quiet = time.monotonic() - self.last_key
        if quiet < QUIET_SECONDS:
            self.set_timer(QUIET_SECONDS - quiet, self._offer_question)
        else:
            self.questions.focus()

    async def leave(self) -> None:
        """End the engine in order and leave."""
        self._draft.save(self.prompt.entry)
        await self.controller.close()
        self.exit(self.controller.state.conversation_id or None)

    # -- the prompt

    def on_prompt_submitted(self, event: Prompt.Submitted) -> None:
        """Enter: a command runs, a message is sent."""
        event.stop()
        text = event.text
        parsed = self.registry.parse(text)
        if parsed is not None and parsed.command is None:
            meant = self.registry.suggest(parsed.name)
            ask = f"Did you mean /{meant.name}?" if meant else "/help lists all commands."
            self.controller.notice(f"There is no command /{parsed.name}. {ask}", "warning")
            return
        if parsed is not None and parsed.command is not None:
            if parsed.command.opens:
                self.hold_until_moved()
            self.run_command(parsed.command, parsed.argument)
        elif not self.actions.resend(text):
            self.controller.send(text)
        self._offer_question()

    def on_prompt_take_back(self, event: Prompt.TakeBack) -> None:
        """The newest queued message is wanted back."""
        event.stop()
        self.controller.spawn(self.controller.take_back(), group="queue")

    def on_prompt_answer(self, event: Prompt.Answer) -> None:
        """Tab: to the question that waits, else to the chat (and from there back)."""
        event.stop()
        if self.questions.waiting:
            self.questions.focus()
        else:
            self.transcript.focus()

    def on_text_area_changed(self) -> None:
        """Keep the draft, a little later; a question makes room for a prompt that grew."""
        self.call_after_refresh(self.questions.make_room)
        if self._draft_timer is None:
            self._draft_timer = self.set_timer(DRAFT_SECONDS, self.save_draft)

    def save_draft(self) -> None:
        """Keep what stands in the prompt, for after a crash."""
        self._draft_timer = None
        self._draft.save(self.prompt.entry)

    # -- questions and transcript

    def on_question_panel_emptied(self, event: QuestionPanel.Emptied) -> None:
        """All answered: back to the prompt, unless another question came meanwhile."""
        event.stop()
        if self.questions.waiting:
            self._offer_question()
        else:
            self.prompt.focus()
        self.refresh_chrome()

    def on_question_panel_left(self, event: QuestionPanel.Left) -> None:
        """Back to the prompt for a moment."""
        event.stop()
        self.prompt.focus()

    def on_key(self, event: events.Key) -> None:
        """A letter typed in the chat or a question is meant for the prompt, unless it is a key there."""
        if not self.letters_move or event.key in self.active_bindings:
            return
        if event.is_printable and event.character:
            event.stop()
            self.prompt.focus()
            self.prompt.insert(event.character)

    @property
    def letters_move(self) -> bool:
        """In the chat and in a question a letter goes to the prompt, and those typed behind it with it."""
        return not self._covered and self.focused in (self.transcript, self.questions, None)

    @property
    def enter_moves(self) -> bool:
        """A command that is sent may open something, and what is typed behind it is meant for that."""
        return not self._covered and self.focused is self.prompt

    @property
    def _covered(self) -> bool:
        """Whether a picker, help or the palette stands over the chat."""
        return len(self.screen_stack) > 1

    # -- keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """shift+tab moves the focus in whatever stands over the chat."""
        return not (self._covered and parameters == ("mode",))

    def action_command(self, name: str) -> None:
        """A command by its key."""
        command = self.registry.get(name)
        if command is not None and (not self._covered or name == "quit"):
            self.run_command(command, "")

    async def action_quit(self) -> None:
        """Leave in order."""
        await self.leave()

    def action_escape(self) -> None:
        """Close the menu or the search, else say no to a question, else stop, after which the first that is queued goes
        on; with nothing to do, back to the prompt."""
        if self.prompt.completing.open:
            self.prompt.completing.close()
        elif self.actions.cancel_edit() or self.actions.close_find():
            pass
        elif self.sidebar.overlaid:
            self.sidebar.fold()
        elif self.questions.waiting:
            self.questions.action_refuse()
        elif self.controller.state.busy:
            self.controller.spawn(self.controller.stop(), group="stop")
        elif self.transcript.has_focus:
            self.transcript.leave()
            self.prompt.focus()

    def action_interrupt(self) -> None:
        """ctrl+c: copy a selection, else close, else stop, else quit when pressed twice."""
        selected = self.screen.get_selected_text() or self.prompt.selected_text
        if selected:
            self.copy_to_clipboard(plain_text(selected))
            self.screen.clear_selection()
            self.hint("sent to the clipboard")
        elif self._covered and not self.quit_armed:
            self.pop_screen()
        elif self.controller.state.busy:
            self.controller.spawn(self.controller.stop(), group="stop")
        elif self.quit_armed:
            self.action_command("quit")
        else:
            self.quit_armed = True
            self.hint("^c again quits")

    def action_scroll_chat(self, direction: int) -> None:
        """Page through the chat while the prompt keeps the focus."""
        step = max(self.transcript.size.height - 2, 1)
        self.transcript.scroll_relative(y=direction * step, animate=False)

    def copy_to_clipboard(self, text: str) -> None:
        """Through the terminal (OSC 52), also from inside tmux."""
        self._clipboard = text
        if self._driver is not None:
            self._driver.write(copy_sequence(text, os.environ))
