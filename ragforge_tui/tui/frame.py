"""What stands around the chat, kept up to date: header, queue and status line, and the word that goes by itself.

The base of `app.py`. All of it is drawn from the controller's state, and only when it would say something else.
"""

from __future__ import annotations

from collections.abc import Callable

from textual.timer import Timer

from ragforge_tui.tui.actions import ChatActions
from ragforge_tui.tui.chrome import Header, Queue
from ragforge_tui.tui.commands import Command, Registry
from ragforge_tui.tui.controller import ChatController
from ragforge_tui.tui.key_order import KeysInOrder
from ragforge_tui.tui.options import ChatOptions
from ragforge_tui.tui.panel import QuestionPanel
from ragforge_tui.tui.prompt import Prompt
from ragforge_tui.tui.status import StatusLine

HINT_SECONDS = 2.0
SHOW_SENDING_SECONDS = 0.25


class ChatFrame(KeysInOrder):
    """An app with the frame of a chat; what is in it, the subclass makes."""

    options: ChatOptions
    controller: ChatController
    questions: QuestionPanel
    prompt: Prompt
    registry: Registry
    actions: ChatActions
    clock: Callable[[], float]

    def __init__(self) -> None:
        super().__init__()
        self.quit_armed = False
        self._drawn: object = None
        self._ticker: Timer | None = None
        self._hint_timer: Timer | None = None

    def make_frame(self, hints: list[str]) -> None:
        """Make header, queue and status line; `hints` are the keys that the status line names."""
        state = self.controller.state
        self.header = Header(state, id="header")
        self.queue_line = Queue()
        self.status_line = StatusLine(state, hints)

    def refresh_chrome(self) -> None:
        """Draw header and status again when what they show has changed."""
        state = self.controller.state
        if state.questions != len(self.questions.waiting):
            state.questions = len(self.questions.waiting)
            self.show_queue()
        state.asked_now = self.questions.has_focus
        conversation = state.conversation
        drawn = (
            state.connection,
            state.activity,
            state.model,
            state.graph,
            state.spent.tokens,
            state.spent.cost,
            state.asked_now,
            state.hint,
            state.editing,
            state.context_used,
            frozenset(state.summarising),
            state.due,
            conversation and (conversation.title, conversation.persona, conversation.private),
            state.opening,
            state.persona,
            dict(state.looks),
            state.mode,
        )
        self._tick_while_busy()
        if drawn != self._drawn:
            self._drawn = drawn
            self.header.update()
            self.status_line.update()

    def _tick_while_busy(self) -> None:
        """Seconds are counted while a turn is under way; no timer runs otherwise."""
        started = self.controller.state.turn_started
        if started is None:
            if self._ticker is not None:
                self._ticker.stop()
                self._ticker = None
            if self.status_line.elapsed is not None:
                self.status_line.elapsed = None
                self.status_line.update()
        elif self._ticker is None and not self.options.tui.reduced_motion:
            self._ticker = self.set_interval(1.0, self._tick)

    def _tick(self) -> None:
        started = self.controller.state.turn_started
        if started is not None:
            self.status_line.elapsed = int(self.clock() - started)
            self.status_line.update()

    def show_queue(self) -> None:
        """Show messages that wait. One that is just being stored is not worth a line."""
        items = [item for item in self.controller.outbox.items if item.place != "sending"]
        self.queue_line.show([] if self.questions.waiting else items)
        self.prompt.take_back_first = bool(items)

    def show_queue_soon(self) -> None:
        """Show also what is being stored, when that takes long."""
        self.set_timer(SHOW_SENDING_SECONDS, self._show_all_queued)

    def _show_all_queued(self) -> None:
        if not self.questions.waiting:
            self.queue_line.show(self.controller.outbox.items)

    def hint(self, text: str) -> None:
        """A word at the right of the status line, for a moment."""
        self.controller.state.hint = text
        self.refresh_chrome()
        if self._hint_timer is not None:
            self._hint_timer.stop()
        self._hint_timer = self.set_timer(HINT_SECONDS, self._forget_hint)

    def _forget_hint(self) -> None:
        self.quit_armed = False
        self.controller.state.hint = ""
        self.refresh_chrome()

    def run_command(self, command: Command, argument: str) -> None:
        """Do what a command says; its errors become notices."""
        self.command_asked_for()
        self.controller.spawn(self._await_command(command, argument), group="command")

    async def _await_command(self, command: Command, argument: str) -> None:
        with self.command_runs():
            await command.handler(self.actions, argument)
