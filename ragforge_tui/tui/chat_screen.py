"""The screen of one chat: its widgets, and what follows from what the user does in them.

Commands, panes and dialogs see it as their `Host`. What the engine reports is applied by `chat_events.py`; what
commands do is in `commands/`.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from functools import partial
from time import monotonic
from typing import ClassVar, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.reactive import Reactive
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from ragforge_tui.shared.wire import Engine
from ragforge_tui.tui.chat_column import ChatColumn
from ragforge_tui.tui.chat_events import ChatEvents, show_problems
from ragforge_tui.tui.command_registry import Command, Parsed, Registry
from ragforge_tui.tui.commands import all_commands
from ragforge_tui.tui.commands.chat_commands import pick_session
from ragforge_tui.tui.commands.conversation_commands import resend
from ragforge_tui.tui.commands.suggestions import suggest
from ragforge_tui.tui.engine_questions import EngineQuestions
from ragforge_tui.tui.features import Features
from ragforge_tui.tui.hint import Hint
from ragforge_tui.tui.host import FIND_BAR, HISTORY_BAR, AnswersEscape
from ragforge_tui.tui.limits import SCREEN
from ragforge_tui.tui.navigator import Navigator
from ragforge_tui.tui.prompt.completion import SlashMenu
from ragforge_tui.tui.prompt.draft import Draft
from ragforge_tui.tui.prompt.history import Entry, History
from ragforge_tui.tui.prompt.prompt import Prompt
from ragforge_tui.tui.questions.question_panel import Question, QuestionPanel
from ragforge_tui.tui.session.engine_session import EngineSession
from ragforge_tui.tui.session.state import ChatOptions, Level
from ragforge_tui.tui.settings.live_settings import LiveSettings
from ragforge_tui.tui.sidebar.sidebar import Body, Sidebar
from ragforge_tui.tui.terminal import PLAIN, Attention
from ragforge_tui.tui.terminal_title import TerminalTitle
from ragforge_tui.tui.transcript import Transcript
from ragforge_tui.tui.transcript.document import DisplayOptions
from ragforge_tui.tui.transcript.failure_block import failure_at
from ragforge_tui.tui.type_ahead import TypeAheadApp
from ragforge_tui.tui.welcome.welcome import Welcome
from ragforge_tui.tui.widgets.header import Header, header_contents
from ragforge_tui.tui.widgets.notice_strip import NoticeStrip
from ragforge_tui.tui.widgets.queue import Queue
from ragforge_tui.tui.widgets.status_bar import Focus, Situation, StatusLine

T = TypeVar("T")

SHOW_SENDING_SECONDS = 0.25
QUIET_SECONDS = 0.8
"""A question takes the focus after this long without a key: a letter meant for the prompt must not answer it."""
VIM_QUITS = frozenset({":q", ":q!", ":qa", ":wq", ":x"})
"""Messages that fingers used to vim type to leave."""
_MENTION = re.compile(r"(?<!\S)@[\w\"./~-]")


class ChatScreen(Screen[None]):
    """Header, first screen or chat, sidebar, questions, prompt and status line."""

    prompt: Prompt
    AUTO_FOCUS = "#prompt"
    # A change of focus draws the widgets that show it, not the whole screen.
    focused: Reactive[Widget | None] = Reactive(None, repaint=False)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pageup", "scroll_chat(-1)", show=False),
        Binding("pagedown", "scroll_chat(1)", show=False),
        Binding("end", "scroll_chat(0)", show=False),
    ]

    def __init__(self, app: TypeAheadApp, connect: Callable[[], Awaitable[Engine]], options: ChatOptions) -> None:
        super().__init__(id="chat-screen")
        self.clock: Callable[[], float] = monotonic
        self.now: Callable[[], datetime] = lambda: datetime.now().astimezone()
        self._chat_app = app
        self.registry = Registry(all_commands())
        self.features = Features(options.state_dir)
        self.session = EngineSession(connect, options, node=self, screen=self)
        self.transcript = Transcript(
            shown=DisplayOptions(unfold_reasoning=options.tui.show_reasoning, now=lambda: self.now())
        )
        self.sidebar = Sidebar(self, options.state_dir, wanted=options.tui.sidebar)
        self.navigator = Navigator(self.session, self.transcript, self.sidebar.uncover)
        self.attention = Attention(app, options.tui.notify)
        self.terminal_title = TerminalTitle(app, os.environ, shown=options.tui.terminal_title)
        self.settings = LiveSettings(
            app,
            options,
            self.registry,
            transcript=self.transcript,
            sidebar=self.sidebar,
            attention=self.attention,
            use_vim=lambda wanted: self.prompt.use_vim(wanted),
            redraw=self._redraw_bars,
        )
        self.header = Header()
        self.welcome = Welcome(self)
        self.column = ChatColumn(self, self.welcome)
        self.queue = Queue()
        self.questions = QuestionPanel()
        self.strip = NoticeStrip()
        self.menu = SlashMenu()
        workspace = options.state_dir, options.workspace
        self.prompt = Prompt(
            History(*workspace), Draft(*workspace), self.session.message_queue, self.registry, self.menu
        )
        self.questions.key_gap = lambda: self._chat_app.key_gap
        self.prompt.in_burst = lambda: bool(self.questions.waiting) and self._chat_app.key_gap < SCREEN.alone
        self.prompt.first_letter = self.questions.early
        self.prompt.may_queue = lambda: self.session.state.busy and not self.questions.waiting
        self.prompt.completing.source = partial(suggest, self)
        self.prompt_row = Horizontal(id="prompt-row")
        self.status_line = StatusLine(lambda: self.clock())
        self.engine_questions = EngineQuestions(self, self.attention)
        self.session.listener = ChatEvents(
            self,
            sidebar=self.sidebar,
            welcome=self.welcome,
            attention=self.attention,
            questions=self.engine_questions,
            clock=lambda: self.clock(),
        )

    def compose(self) -> ComposeResult:
        """Lay out the chat."""
        yield self.header
        yield self.sidebar.strip
        yield Body(self.column, self.sidebar)
        yield self.queue
        yield self.questions
        yield self.strip
        yield self.menu
        with self.prompt_row:
            yield Static(">", id="prompt-mark", markup=False)
            yield self.prompt
        yield self.status_line

    def on_mount(self) -> None:
        """Show what is known without an engine; everything else happens after the first paint."""
        self._redraw_bars()
        self.watch(self.transcript, "follow", lambda follow: self.strip.clear() if follow else None)
        self.call_after_refresh(self._begin)
        self.watch(self._chat_app, "app_focus", lambda _: self.state_changed(), init=False)

    def _begin(self) -> None:
        self.run_worker(self.session.run(), name="engine", group="engine", exclusive=True, exit_on_error=False)
        self.prompt.restore_draft()
        self.features.count_start()
        self.session.read_branch()
        self.sidebar.begin()
        if self.options.resume == "":
            pick_session(self)
        if self.options.message:
            self.session.send(self.options.message)
        show_problems(self)

    # -- what is shown of the engine's state

    def state_changed(self) -> None:
        """Update header, first screen, queue and status line; each redraws itself if that differs."""
        self.engine_questions.withdraw_plan()
        self.prompt.belongs_to(self.session.state.conversation, private=self.session.state.private)
        self.header.contents = header_contents(self.session.state)
        self.prompt_row.set_class(self.session.state.mode == "plan", "-plan")
        self.column.show_welcome()
        self.queue.cover(bool(self.questions.waiting))
        focus = self._part_in_use()
        situation = Situation(
            focus=focus,
            refusal=self.questions.refusal,
            drafting=not self.prompt.blank,
            newest_turn=self.transcript.newest_turn,
            chat_keys=self.transcript.cursor.keys if focus == "chat" else (),
            editing=self.prompt.editing,
            hints=self.settings.hints,
            stop=self.settings.stop_key,
        )
        self.status_line.show(self.session.state, situation)
        self.terminal_title.show(self.session.state, waiting=bool(self.questions.waiting))

    def _part_in_use(self) -> Focus:
        """Return the part of the screen that has the keyboard."""
        around = list(self.focused.ancestors_with_self) if self.focused is not None else []
        parts: tuple[tuple[Widget, Focus], ...] = (
            (self.questions, "question"),
            (self.transcript, "chat"),
            (self.sidebar, "sidebar"),
        )
        if (found := next((focus for part, focus in parts if part in around), None)) is not None:
            return found
        bars: dict[str | None, Focus] = {FIND_BAR: "find", HISTORY_BAR: "history"}
        return next((bars[node.id] for node in around if node.id in bars), "prompt")

    def _redraw_bars(self) -> None:
        self.queue.stop_key = self.settings.stop_key
        self.state_changed()
        self.header.refresh()
        self.status_line.refresh()

    def queue_changed(self) -> None:
        """Show the waiting messages, but none that is just being stored."""
        self.queue.show([item for item in self.session.message_queue.items if item.place != "sending"])
        self.prompt.save_draft_soon()

    def message_sending(self) -> None:
        """Show also a message that is being stored, if that takes long."""
        self.set_timer(SHOW_SENDING_SECONDS, lambda: self.queue.show(self.session.message_queue.items))

    def hint(self, text: str) -> None:
        """Show a word in place of the keys in the status line for a moment."""
        self.status_line.show_hint(text)

    def on_hint(self, event: Hint) -> None:
        """Show the result of a key, or why it has none."""
        event.stop()
        self.hint(event.text)

    def notice(self, text: str, level: Level = "info", *, passing: bool = False) -> None:
        """Show a sentence in the transcript, and over the prompt if the end of the chat is out of view."""
        self.transcript.notice(text, level, passing=passing)
        if not passing:
            self.column.show_welcome()
        if not self.transcript.follow:
            self.strip.say(text, level)

    # -- for commands, panes and dialogs

    @property
    def options(self) -> ChatOptions:
        """The options of the chat, with the settings as they are now."""
        return self.settings.options

    @property
    def plain(self) -> bool:
        return self._chat_app.has_class(PLAIN)

    def open_screen(self, screen: Screen[T | None], picked: Callable[[T], object] | None = None) -> None:
        """Show a screen over the chat; `picked` receives its result, unless it was left without one."""

        def closed(result: T | None) -> None:
            if result is not None and picked is not None:
                picked(result)

        self._chat_app.push_screen(screen, closed)

    def run_command(self, name: str, argument: str = "") -> None:
        """Run a command by name; its errors become notices."""
        if (command := self.registry.get(name)) is not None:
            self._chat_app.command_requested()
            self.session.spawn(self._run(command, argument), group="command")

    async def _run(self, command: Command, argument: str) -> None:
        self.features.add(command.name)
        with self._chat_app.command_running():
            await command.handler(self, argument)

    def open_palette(self) -> None:
        """Show all commands to choose from."""
        from ragforge_tui.tui.dialogs.command_palette import CommandPalette

        def picked(name: str) -> None:
            command = self.registry.get(name)
            if command is not None and command.needs_choice and not self.prompt.text.strip():
                self.prompt.put(Entry(f"/{name} "))
                return
            self.features.choose(name)
            self.run_command(name)

        self.open_screen(CommandPalette(self.registry, self.options.tui.keymap, self.features.most_chosen()), picked)

    async def leave(self) -> None:
        """End the engine in order and leave the chat; messages that were not sent stay as a draft."""
        self.prompt.save_draft()
        await self.session.close()
        self.prompt.save_draft()  # A message that was being stored may have been accepted meanwhile.
        self.terminal_title.clear()
        self._chat_app.exit(self.session.state.conversation_id or None)

    # -- the prompt

    def message_returned(self, text: str, materials: Sequence[str]) -> None:
        """Put a message that was not sent back into the prompt."""
        self.prompt.put_back(text, materials)

    def on_prompt_submitted(self, event: Prompt.Submitted) -> None:
        """Run a command or send a message."""
        event.stop()
        self.strip.clear()
        text = event.text
        if event.parsed is not None:
            self._command_submitted(event.parsed)
        elif text in VIM_QUITS:
            self.run_command("quit")
        elif not (self.welcome.pick(text) or resend(self, text, event.materials)):
            if text.startswith("!"):
                self.features.add("!")
            if _MENTION.search(text):
                self.features.add("@")
            self.transcript.leave()  # Esc Esc goes back from here, not from an earlier turn that was looked at.
            self.session.send(text, event.materials, queue=event.queue)
        self.offer_question()

    def _command_submitted(self, parsed: Parsed) -> None:
        command = parsed.command
        if command is None:
            near = self.registry.suggest(parsed.name)
            ask = f"Did you mean /{near.name}?" if near else "/help lists all commands."
            self.notice(f"There is no command /{parsed.name}. {ask}", "warning")
            self.prompt.select_all()  # What is typed next takes its place.
            return
        self.features.choose(command.name)
        if command.opens:
            self._chat_app.hold_until_moved()
        self.run_command(command.name, parsed.argument)

    def on_prompt_take_back(self, event: Prompt.TakeBack) -> None:
        """Put the newest queued message back into the prompt."""
        event.stop()
        self.session.spawn(self.session.take_back(), group="queue")

    def on_queue_chosen(self, event: Queue.Chosen) -> None:
        """Edit, drop or send one of the queued messages."""
        event.stop()
        done = {"edit": self.session.take_back, "drop": self.session.drop, "send": self.session.send_now}
        self.session.spawn(done[event.action](event.message_id), group="queue")

    def on_queue_left(self, event: Queue.Left) -> None:
        """Go back to the prompt."""
        event.stop()
        self.prompt.focus()

    def on_prompt_answer(self, event: Prompt.Answer) -> None:
        """Move the focus to the waiting question, else to the chat (and from there back)."""
        event.stop()
        # Not by `focus`, which draws all of the widget again.
        self.set_focus(self.questions if self.questions.waiting else self.transcript)

    def on_text_area_changed(self) -> None:
        """Let a question shrink when the prompt has grown, and take back hints about an empty prompt."""
        if self.status_line.hint in _idle_hints(self.settings.stop_key):
            self.hint("")
        if self.status_line.situation.drafting == self.prompt.blank:
            self.state_changed()
        self.call_after_refresh(self.questions.make_room)

    # -- questions

    def ask_user(self, question: Question) -> None:
        """Show a question; it gets the focus when the user is not typing."""
        self.questions.ask(question)
        self.state_changed()
        self.offer_question()

    def offer_question(self) -> None:
        """Move the focus to the waiting question, once no key has been pressed for a moment and the prompt is empty.

        The answer to the question before it is no such key.
        """
        if not self.questions.waiting or self.prompt.text.strip():
            return
        if self._part_in_use() in ("question", "find", "history"):
            return  # The next Enter may be meant for the bar, which says when it closes.
        quiet = monotonic() - self._chat_app.last_key
        if quiet < QUIET_SECONDS and self._chat_app.last_key > self.questions.last_answer:
            self.set_timer(QUIET_SECONDS - quiet, self.offer_question)
        else:
            self.questions.focus()

    def on_question_panel_emptied(self, event: Message) -> None:
        """Go back to the prompt from a question or a bar, unless another question arrived meanwhile."""
        event.stop()
        if not self.questions.waiting and self._part_in_use() not in ("find", "history"):
            self.prompt.focus()
        # Behind the change of focus, which is queued in the app.
        self._chat_app.call_later(self.offer_question)
        self.state_changed()

    on_find_bar_closed = on_history_search_closed = on_question_panel_emptied

    def on_question_panel_left(self, event: QuestionPanel.Left) -> None:
        """Go back to the prompt, and type letters that no question came for."""
        event.stop()
        self.prompt.focus()
        self.prompt.insert(event.letters, (0, 0))

    def on_question_panel_whole_requested(self, event: QuestionPanel.WholeRequested) -> None:
        """Show all that is asked about."""
        from ragforge_tui.tui.dialogs.detail import Section
        from ragforge_tui.tui.dialogs.text_viewer import DetailScreen

        async def load() -> tuple[str, list[Section]]:
            text = await asyncio.to_thread(event.text)
            if event.is_diff:
                return event.title, [Section(title="", text=text, kind="diff")]
            return event.title, [Section(title="command", text=text, numbered=True)]

        event.stop()
        screen = DetailScreen(event.title, load, actions={}, has_diff=event.is_diff)
        self._chat_app.push_screen(screen, lambda _: self.questions.let_read())

    # -- focus and keys

    def on_descendant_focus(self) -> None:
        """Update the hints, which depend on the focus."""
        self.state_changed()

    def on_transcript_cursor_moved(self, event: Transcript.CursorMoved) -> None:
        """Show what keys do with the block that is at the cursor now."""
        event.stop()
        self.state_changed()

    def on_key(self, event: events.Key) -> None:
        """Type a letter into the prompt while something else has the focus, unless it is a key there."""
        if not event.is_printable or not event.character or event.key in self.active_bindings:
            return
        if command := self._remedy(event.character):
            event.stop()
            self.run_command(command)
        elif self.letters_move:
            event.stop()
            self.prompt.focus()
            self.prompt.insert(self.questions.take_held() + event.character)

    def on_paste(self, event: events.Paste) -> None:
        """Put a paste into the prompt while something without a field has the focus."""
        event.stop()
        self.prompt.focus()
        self.prompt.post_message(events.Paste(event.text))

    def _remedy(self, letter: str) -> str:
        """Return the command of a letter that helps after a failed turn, while the chat has the keyboard."""
        transcript = self.transcript
        failed = failure_at(transcript.cursor.block, transcript.document.blocks) if transcript.has_focus else None
        remedies = failed.remedies if failed is not None else ()
        return next((one.command for one in remedies if one.key == letter), "")

    @property
    def letters_move(self) -> bool:
        """Outside of a text field a letter moves the focus to the prompt; the letters after it belong there."""
        if self.sidebar.has_focus_within:
            return not self._chat_app.in_field
        return self.focused in (self.transcript, self.questions, self.queue, None)

    def action_escape(self) -> None:
        """Ask the focused widget and those around it, then the other parts; else go back to the prompt, or stop there.

        A part that has something to close or to refuse answers; the others leave the key alone.
        """
        around = self.focused.ancestors_with_self if self.focused is not None else []
        parts = (*around, self.prompt, *self.query(f"#{FIND_BAR}"), self.sidebar, self.questions)
        if any(isinstance(part, AnswersEscape) and part.escape() for part in parts):
            self.state_changed()
        elif self.transcript.has_focus:
            self.transcript.leave()
            self.prompt.focus()
        elif self.session.state.busy:
            self.session.spawn(self.session.stop(), group="stop")
        elif self.prompt.has_focus and self.transcript.newest_turn:
            self._escape_idle()

    def _escape_idle(self) -> None:
        """Offer the turns to go back to when pressed twice, as in other chats of the terminal."""
        with_draft, once = _idle_hints(self.settings.stop_key)
        if self.prompt.text:
            self.hint(with_draft)
        elif self.status_line.hint == once:
            self.hint("")
            self.run_command("branch")
        else:
            self.hint(once)

    def action_scroll_chat(self, direction: int) -> None:
        """Page through the chat, or go to its end with 0, while the prompt keeps the focus."""
        if not direction:
            self.transcript.action_scroll_end()
            return
        step = max(self.transcript.size.height - 2, 1)
        self.transcript.scroll_relative(y=direction * step, animate=False)


def _idle_hints(key: str) -> tuple[str, str]:
    """Return what Escape says with a draft, and in an empty prompt."""
    return f"{key} {key} goes back when the prompt is empty", f"{key} again: go back to an earlier turn"
