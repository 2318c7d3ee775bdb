"""The widgets of one chat, and what the session and the commands do with them.

`ChatView` receives what changes in the `EngineSession` and offers commands, panes and dialogs what they need from the
screen, so that neither depends on the app.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar, get_args

from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget

from ragforge_tui.shared import events
from ragforge_tui.shared.errors import NotFoundError, RagforgeError
from ragforge_tui.shared.records import Conversation, ConversationFilter, Turn
from ragforge_tui.shared.requests.sessions import ListConversations
from ragforge_tui.shared.requests.turns import ConversationView, FetchTurns
from ragforge_tui.shared.requests.work import MODES, AnswerApproval, AnswerTrust
from ragforge_tui.shared.wire import Engine
from ragforge_tui.tui.command_registry import Command, Registry, effective_keys, stop_key
from ragforge_tui.tui.commands import all_commands
from ragforge_tui.tui.commands.persona_commands import restore_persona
from ragforge_tui.tui.commands.suggestions import suggest, warm_up_files
from ragforge_tui.tui.features import Features
from ragforge_tui.tui.host import FIND_BAR
from ragforge_tui.tui.prompt.completion import SlashMenu
from ragforge_tui.tui.prompt.history import Draft, History
from ragforge_tui.tui.prompt.prompt import Prompt
from ragforge_tui.tui.questions.question_panel import (
    PLAN_KEY,
    Question,
    QuestionPanel,
    approval_question,
    cost_question,
    plan_question,
    trust_question,
)
from ragforge_tui.tui.session.engine_session import EngineSession
from ragforge_tui.tui.session.state import ChatOptions, EventScreen, Focus, Level
from ragforge_tui.tui.settings.live_settings import LiveSettings
from ragforge_tui.tui.sidebar.sidebar import Sidebar
from ragforge_tui.tui.terminal import PLAIN, Attention
from ragforge_tui.tui.transcript import Transcript
from ragforge_tui.tui.transcript.document import DisplayOptions
from ragforge_tui.tui.transcript.transcript import PAGE_TURNS
from ragforge_tui.tui.type_ahead import TypeAheadApp
from ragforge_tui.tui.welcome.tips import chosen_tips, sign_of, spoken_key
from ragforge_tui.tui.welcome.welcome import SESSIONS, ChatColumn, Welcome, WelcomeContents
from ragforge_tui.tui.widgets.header import Header, Queue, header_contents
from ragforge_tui.tui.widgets.status_bar import StatusLine, foot_hints, status_parts

T = TypeVar("T")

DECISIONS: tuple[events.ApprovalDecision, ...] = get_args(events.ApprovalDecision)
HINT_SECONDS = 2.0
SHOW_SENDING_SECONDS = 0.25
DRAFT_SECONDS = 0.5
QUIET_SECONDS = 0.8
"""A question takes the focus after this long without a key: a letter meant for the prompt must not answer it."""
CARRY_OUT = "Carry out the plan."
CHAT_FEATURES = frozenset({"undo", "edit", "branch", "context", "recall"})
"""Tips about a conversation that does not exist yet, or about a command with an argument: a click runs nothing."""
_MENTION = re.compile(r"(?<!\S)@[\w\"./~-]")
LIST_FILES_SECONDS = 2.0
"""Delay after the start before the engine lists the workspace's files, so that it slows nothing down."""


class ChatView:
    """Listens to the session (`SessionListener`) and serves commands (`Host`).

    Attributes:
        quit_armed: Whether another ctrl+c quits.
        back_armed: Whether another press of `stop_key` offers the turns to go back to.
        stop_key: The user's key that stops an answer, as `key_name` returns it.

    Args:
        now: Gives the time in the user's time zone.
        clock: Gives monotonic seconds, for the duration of turns.
    """

    def __init__(
        self,
        app: TypeAheadApp,
        connect: Callable[[], Awaitable[Engine]],
        options: ChatOptions,
        *,
        now: Callable[[], datetime],
        clock: Callable[[], float],
    ) -> None:
        self.app = app
        self.now = now
        self._clock = clock
        self.registry = Registry(all_commands())
        self.session = EngineSession(connect, options, node=app, listener=self, clock=clock)
        self.transcript = Transcript(shown=DisplayOptions(unfold_reasoning=options.tui.show_reasoning, now=now))
        self.sidebar = Sidebar(self, options.state_dir, wanted=options.tui.sidebar)
        self.questions = QuestionPanel()
        self.menu = SlashMenu()
        self.prompt = Prompt(History(options.state_dir, options.workspace), self.registry, self.menu)
        self.prompt.first_letter = self.questions.early
        self.prompt.completing.source = partial(suggest, self)
        self.features = Features(options.state_dir)
        self.welcome = Welcome()
        self.column = ChatColumn(self.welcome, self.transcript)
        self._tips = self._chosen_tips(options)
        self._recent: tuple[Conversation, ...] | None = None
        self._parts: tuple[tuple[Widget, Focus], ...] = (
            (self.questions, "question"),
            (self.transcript, "chat"),
            (self.sidebar, "sidebar"),
        )
        self.header = Header()
        self.queue = Queue()
        self.status_line = StatusLine()
        self.attention = Attention(app, options.tui.notify)
        self.settings = LiveSettings(
            app,
            options,
            self.registry,
            transcript=self.transcript,
            sidebar=self.sidebar,
            attention=self.attention,
            redraw=self._redraw_bars,
        )
        self.quit_armed = self.back_armed = False
        self._planned = ""
        self._name_keys()
        self._elapsed: int | None = None
        self._ticker: Timer | None = None
        self._hint_timer: Timer | None = None
        self._draft = Draft(options.state_dir, options.workspace)
        self._draft_timer: Timer | None = None
        self._repeat_problems = options.resume is not None or options.continue_last
        """Whether the first conversation that is opened clears away the notices about the settings."""
        state = self.session.state
        state.folder = options.workspace
        self.welcome.set_reactive(Welcome.contents, self._welcome_contents(options))
        self._show_welcome()
        self.header.set_reactive(Header.contents, header_contents(state))
        self.status_line.set_reactive(StatusLine.parts, status_parts(state, None, self._hints, stop=self.stop_key))

    def state_changed(self) -> None:
        """Update what header and status line show; each redraws itself if that differs."""
        state = self.session.state
        self._withdraw_plan()
        if state.questions != len(self.questions.waiting):
            state.questions = len(self.questions.waiting)
            self.queue_changed()
        state.refusal = self.questions.refusal
        state.focus = self._focus()
        state.drafting = not self.prompt.blank
        state.newest_turn = self.transcript.newest_turn
        state.chat_keys = self.transcript.cursor_keys if state.focus == "chat" else ()
        self._count_seconds()
        self.header.contents = header_contents(state)
        self._show_welcome()
        self.status_line.parts = status_parts(state, self._elapsed, self._hints, stop=self.stop_key)

    def _focus(self) -> Focus:
        """Return the part of the screen that has the keyboard."""
        screens = self.app.screen_stack
        focused = screens[0].focused if screens else None
        around = list(focused.ancestors_with_self) if focused is not None else []
        for part, focus in self._parts:
            if part in around:
                return focus
        return "find" if any(node.id == FIND_BAR for node in around) else "prompt"

    # -- the first screen

    def _chosen_tips(self, options: ChatOptions) -> tuple[tuple[str, str, str], ...]:
        keymap = options.tui.keymap
        chosen = chosen_tips(self.features.used, self.features.starts)
        return tuple((sign_of(tip, self.registry, keymap), tip.text, self._tip_action(tip.feature)) for tip in chosen)

    def _tip_action(self, feature: str) -> str:
        """Return the command that a click on a tip runs: none if the command needs an argument or an open chat."""
        command = self.registry.get(feature)
        return feature if command is not None and feature not in CHAT_FEATURES else ""

    def _welcome_contents(self, options: ChatOptions) -> WelcomeContents:
        state = self.session.state
        glyph, color = state.persona_styles.get(state.speaker, ("", ""))
        keys = effective_keys(options.tui.keymap, self.registry)
        return WelcomeContents(
            version=options.version,
            glyph=glyph,
            color=color,
            greeting=state.greetings.get(state.speaker, ""),
            folder=state.folder,
            branch=state.branch,
            model=state.model,
            sessions=self._recent,
            tips=self._tips,
            continue_key=spoken_key(keys["continue"]) if "continue" in keys else "/continue",
            now=self.now().replace(second=0, microsecond=0) if self._recent else None,
        )

    def _show_welcome(self) -> None:
        state = self.session.state
        shown = state.conversation is None and not state.opening and not len(self.session.outbox)
        if shown:
            self.welcome.contents = self._welcome_contents(self.options)
        self.column.show_welcome(shown, notices=bool(self.transcript.document.blocks))

    def begin_welcome(self) -> None:
        """Read what the first paint did not wait for, and count the start."""
        self.features.count_start()
        self._read_branch()

    def _read_branch(self) -> None:
        if self.session.state.folder:
            self.session.spawn(self._fetch_branch(), group="branch", exclusive=True)

    async def _fetch_branch(self) -> None:
        from ragforge_tui.shared.git import current_branch

        state = self.session.state
        branch = await asyncio.to_thread(current_branch, Path(state.folder))
        if branch != state.branch:
            state.branch = branch
            self.state_changed()

    def _refresh_recent(self) -> None:
        """Fetch the newest conversations of the folder for the first screen, if it is shown and the graph answers."""
        state = self.session.state
        ready = state.graph is not None and state.graph.phase == "ready"
        if ready and state.conversation is None and not state.opening and state.folder:
            self.session.spawn(self._fetch_recent(), group="recent", exclusive=True)

    async def _fetch_recent(self) -> None:
        wanted = ConversationFilter(workspace=self.session.state.folder, limit=SESSIONS)
        try:
            found = await self.session.ask(ListConversations(filter=wanted))
        except RagforgeError:
            return  # The user did not ask for it: no notice.
        self._recent = tuple(found)
        self.state_changed()

    def pick_recent(self, text: str) -> bool:
        """Continue a conversation that the first screen lists, if a message is nothing but its number."""
        if not self.welcome.display or not self._recent:
            return False
        number = text.strip()
        if number not in [str(place) for place in range(1, len(self._recent) + 1)]:
            return False
        self.go_to_conversation(self._recent[int(number) - 1].uuid)
        return True

    def note_features(self, text: str) -> None:
        """Note which features a message uses."""
        if text.startswith("!"):
            self.features.add("!")
        if _MENTION.search(text):
            self.features.add("@")

    # -- header, queue and status line

    def _count_seconds(self) -> None:
        """Count the seconds of a running turn; no timer runs otherwise."""
        if self.session.state.turn_started is None:
            if self._ticker is not None:
                self._ticker.stop()
                self._ticker = None
            self._elapsed = None
        elif self._ticker is None and not self.options.tui.reduced_motion:
            self._ticker = self.app.set_interval(1.0, self._tick)

    def _tick(self) -> None:
        started = self.session.state.turn_started
        if started is not None:
            self._elapsed = int(self._clock() - started)
            self.state_changed()

    def _redraw_bars(self) -> None:
        self.header.refresh()
        self.status_line.refresh()

    def queue_changed(self) -> None:
        """Show the waiting messages, but none that is just being stored."""
        items = [item for item in self.session.outbox.items if item.place != "sending"]
        self.queue.show([] if self.questions.waiting else items)
        self.prompt.take_back_first = bool(items)
        self.save_draft_soon()

    def message_sending(self) -> None:
        """Show also a message that is being stored, if that takes long."""
        self.app.set_timer(SHOW_SENDING_SECONDS, self._show_all_queued)

    def _show_all_queued(self) -> None:
        if not self.questions.waiting:
            self.queue.show(self.session.outbox.items)

    def hint(self, text: str) -> None:
        """Show a word at the right of the status line for a moment."""
        self.session.state.hint = text
        self.state_changed()
        if self._hint_timer is not None:
            self._hint_timer.stop()
        self._hint_timer = self.app.set_timer(HINT_SECONDS, self._remove_hint)

    def _remove_hint(self) -> None:
        self.quit_armed = self.back_armed = False
        self.session.state.hint = ""
        self.state_changed()

    # -- reports of the session

    def notice(self, text: str, level: Level = "info", *, passing: bool = False) -> None:
        """Show a sentence in the transcript, and its beginning as a hint if the end of the chat is out of view."""
        if passing:
            self.transcript.notice(text, level, passing=True)
            return
        self.transcript.notice(text, level)
        self._show_welcome()
        if not self.transcript.follow:
            self.hint(text.partition(". ")[0])

    def event_received(self, event: events.Event) -> None:
        """Show an event in the transcript, in the panes, and in the screens over the chat."""
        if isinstance(event, events.TextDelta | events.ReasoningDelta):
            self._show_in_transcript(event)
            return
        match event:
            case events.CostLimitReached():
                self._ask_engine_question(cost_question(event, self._approval_sender(event.approval_id)))
            case events.TrustRequested():
                self._ask_trust(event)
            case events.TurnReset():
                pass
            case _ if isinstance(event, events.TurnEvent):
                self._show_in_transcript(event)
        match event:
            case events.GraphChanged():
                self._refresh_recent()
            case events.TurnCompleted() | events.TurnCancelled() | events.TurnFailed():
                self._read_branch()
                if isinstance(event, events.TurnCompleted):
                    self._offer_to_carry_out(event)
            case events.ApprovalRequested():
                self._ask_engine_question(approval_question(event, self._approval_sender(event.approval_id)))
            case events.ApprovalResolved():
                self.questions.withdraw(event.approval_id)
        self.sidebar.event(event)
        for screen in self.app.screen_stack:
            if isinstance(screen, EventScreen):
                screen.engine_event(event)

    def _show_in_transcript(self, event: events.TurnEvent) -> None:
        if event.conversation_id == self.session.state.conversation_id:
            self.transcript.apply(event)

    def other_turn_event(self, event: events.TurnEvent) -> None:
        """Pass an event of a turn in another process to the panes."""
        self.sidebar.event(event)

    def shows_turn(self, turn_index: int) -> bool:
        return self.transcript.document.holds(turn_index)

    def turn_read(self, turn: Turn) -> None:
        if self.shows_turn(turn.turn_index):
            self.transcript.replace_turn(turn)
        else:
            self.transcript.add_turn(turn)

    def turn_continues(self, turn_index: int) -> None:
        self.transcript.resume_turn(turn_index)

    def answer_finished(self, seconds: float) -> None:
        """Call the user back after a long answer."""
        self.attention.answer_finished(seconds)

    def due_changed(self) -> None:
        self.sidebar.due_changed()

    def conversation_opened(self, view: ConversationView) -> None:
        """Show a conversation from its newest turns."""
        self.transcript.clear()
        self.transcript.load(view.page.turns, first=view.page.first, last=view.page.last)
        called = any(message.tool_calls for turn in view.page.turns for message in turn.messages)
        self.sidebar.conversation_changed(filled=called or bool(view.conversation.summary))
        if self._repeat_problems:
            self._repeat_problems = False
            self.show_problems()

    def conversation_created(self) -> None:
        self.sidebar.conversation_changed()

    def conversation_closed(self) -> None:
        """Show an empty screen."""
        self.transcript.clear()
        self.sidebar.conversation_changed()
        self._tips = self._chosen_tips(self.options)
        self._refresh_recent()

    def engine_ready(self) -> None:
        """Let the engine list the workspace's files a little later, for the first completion."""
        self._refresh_recent()
        self.app.set_timer(LIST_FILES_SECONDS, lambda: self.session.spawn(warm_up_files(self.session), group="files"))

    def engine_lost(self) -> None:
        """Withdraw all questions: the engine that asked is gone."""
        self.questions.clear()
        self.sidebar.due_changed()

    # -- prompt and questions

    def message_returned(self, text: str) -> None:
        """Put a message that was not sent back into the prompt."""
        self.prompt.put_back(text)
        self.prompt.focus()

    def ask_user(self, question: Question) -> None:
        """Show a question; it gets the focus when the user is not typing."""
        self.questions.ask(question)
        self.state_changed()
        self.offer_question()

    def _ask_engine_question(self, question: Question) -> None:
        """Show a question of the engine, also about a conversation that is not open, and call the user to it."""
        self.attention.call(question.title)
        self.ask_user(question)

    def _approval_sender(self, approval_id: str) -> Callable[[str, str], None]:
        def send(decision: str, feedback: str) -> None:
            known: events.ApprovalDecision = next((one for one in DECISIONS if one == decision), "no")
            answer = AnswerApproval(approval_id=approval_id, decision=known, feedback=feedback)
            self.session.spawn(self.session.ask(answer), group="answer")

        return send

    def _ask_trust(self, event: events.TrustRequested) -> None:
        def answer(decision: str, _: str) -> None:
            request = AnswerTrust(root=event.root, allow=decision == "yes")
            self.session.spawn(self.session.ask(request), group="answer")
            if event.persona and decision != "yes":
                self.session.spawn(restore_persona(self, event.persona), group="persona")

        self._ask_engine_question(trust_question(event, answer))

    def _offer_to_carry_out(self, event: events.TurnCompleted) -> None:
        """Ask whether to carry out an answer in planning mode, unless the user has already sent something else."""
        session, state = self.session, self.session.state
        if state.mode != "plan" or not event.text or event.conversation_id != state.conversation_id:
            return
        if session.outbox.items or self.prompt.text.strip():
            return

        def answer(decision: str, _: str) -> None:
            mode = next(known for known in MODES if known == decision)
            if mode != "plan":
                state.mode, state.mode_unsent = mode, True
                session.send(CARRY_OUT)

        self._planned = event.conversation_id
        self.ask_user(plan_question(answer))

    def _withdraw_plan(self) -> None:
        """Drop the question about a plan once the user has continued without answering it."""
        state = self.session.state
        asked = any(question.key == PLAN_KEY for question in self.questions.waiting)
        if asked and (state.busy or state.mode != "plan" or state.conversation_id != self._planned):
            self.questions.withdraw(PLAN_KEY)

    def offer_question(self) -> None:
        """Move the focus to the waiting question, once no key has been pressed for a moment and the prompt is empty.

        The answer to the question before it is no such key.
        """
        if not self.questions.waiting or self.questions.has_focus or self.prompt.text.strip():
            return
        quiet = monotonic() - self.app.last_key
        if quiet < QUIET_SECONDS and self.app.last_key > self.questions.last_answer:
            self.app.set_timer(QUIET_SECONDS - quiet, self.offer_question)
        else:
            self.questions.focus()

    def restore_draft(self) -> None:
        """Put the draft of the last chat into the prompt, unless the user is already typing."""
        draft = self._draft.restore()
        if draft is not None and not self.prompt.text:
            self.prompt.put(draft)

    def save_draft(self) -> None:
        """Store the contents of the prompt and the messages that wait to be sent, to survive the end of the chat."""
        self._draft_timer = None
        self._draft.save(self.prompt.with_unsent([item.text for item in self.session.outbox.items]))

    def save_draft_soon(self) -> None:
        """Store the draft at most once per half second."""
        if self._draft_timer is None:
            self._draft_timer = self.app.set_timer(DRAFT_SECONDS, self.save_draft)

    # -- for commands, panes and dialogs

    @property
    def options(self) -> ChatOptions:
        """The options of the chat, with the settings as they are now."""
        return self.settings.options

    @property
    def plain(self) -> bool:
        return self.app.has_class(PLAIN)

    def open_screen(self, screen: Screen[T | None], picked: Callable[[T], object] | None = None) -> None:
        """Show a screen over the chat; `picked` receives its result, unless it was left without one."""

        def closed(result: T | None) -> None:
            if result is not None and picked is not None:
                picked(result)

        self.app.push_screen(screen, closed)

    def go_to_conversation(self, conversation_id: str, turn: int = 0) -> None:
        """Open a conversation in the background, at a turn or at its end."""
        self.session.spawn(self.open_conversation(conversation_id, turn=turn), group="open", exclusive=True)

    def run_command(self, name: str, argument: str = "") -> None:
        """Run a command by name; its errors become notices."""
        if (command := self.registry.get(name)) is not None:
            self.app.command_requested()
            self.session.spawn(self._run(command, argument), group="command")

    async def _run(self, command: Command, argument: str) -> None:
        self.features.add(command.name)
        with self.app.command_running():
            await command.handler(self, argument)

    def toggle_pane(self, name: str = "") -> None:
        """Show or leave a pane of the sidebar; without a name, show or hide the sidebar."""
        self.sidebar.toggle(name)

    def uncover_chat(self) -> None:
        if self.sidebar.overlaid:
            self.sidebar.fold()

    def go_to_turns(self, first: int, last: int = 0, *, conversation_id: str = "") -> None:
        """Bring turns into view, of the open conversation or another one."""
        if conversation_id in ("", self.session.state.conversation_id):
            self.uncover_chat()
            self.session.spawn(self.show_turn(first, last), group="turns", exclusive=True)
        else:
            self.go_to_conversation(conversation_id, first)

    async def open_conversation(self, ref: str, *, turn: int = 0) -> None:
        """Open a conversation by id or prefix, at a turn or at its end."""
        if not ref or ref != self.session.state.conversation_id or not turn:
            await self.session.open(ref)
        if turn:
            # The first screen leaves the chat no rows; it can scroll once it has its own again.
            if not self.transcript.size.height:
                laid_out = asyncio.Event()
                self.app.call_after_refresh(laid_out.set)
                await laid_out.wait()
            await self.show_turn(turn)

    async def fetch_turns(self, start: int, end: int) -> None:
        """Load turns [start, end) into the transcript."""
        conversation_id = self.session.state.conversation_id
        if not conversation_id:
            return
        try:
            page = await self.session.ask(FetchTurns(conversation_id=conversation_id, start=start, end=end))
        except RagforgeError:
            self.transcript.not_inserted()
            raise
        if conversation_id == self.session.state.conversation_id:
            self.transcript.insert(page.turns, start=start, end=end)

    async def show_turn(self, turn_index: int, last: int = 0) -> None:
        """Bring turns of the open conversation into view, loaded or not, and mark them for a moment.

        Args:
            last: Turns up to this one are marked too.

        Raises:
            NotFoundError: The conversation has no such turn.
        """
        transcript = self.transcript
        if transcript.scroll_to_turn(turn_index, last):
            return
        document = transcript.document
        gap = document.gap_with(turn_index)
        first = self.session.state.first_turn
        low, high = (gap.first, gap.last + 1) if gap is not None else (first, document.first_turn)
        if low <= turn_index < high:
            start = max(low, turn_index - PAGE_TURNS // 3)
            await self.fetch_turns(start, min(high, start + PAGE_TURNS))
        if not transcript.scroll_to_turn(turn_index, last):
            raise NotFoundError(f"This conversation has no turn {turn_index}.")

    def apply_setting(self, key: str, value: Any) -> list[str]:
        """Let a setting of the screen take effect now; return the problems with it."""
        problems = self.settings.apply(key, value)
        self._name_keys()
        self.state_changed()
        return problems

    def _name_keys(self) -> None:
        """Take over the user's keys into the texts that name them."""
        keymap = self.options.tui.keymap
        self._hints = foot_hints(self.registry, keymap)
        self.stop_key: str = stop_key(keymap, self.registry)
        self.queue.stop_key = self.stop_key

    def use_theme(self, setting: str) -> None:
        """Use the theme that a setting names, for now."""
        self.settings.use_theme(setting)

    def show_problems(self) -> None:
        """Show the problems with the settings of the screen."""
        for problem in self.settings.problems():
            self.notice(problem, "warning")

    async def leave(self) -> None:
        """End the engine in order and leave the chat; messages that were not sent stay as a draft."""
        self.save_draft()
        await self.session.close()
        self.save_draft()  # A message that was being stored may have been accepted meanwhile.
        self.app.exit(self.session.state.conversation_id or None)
