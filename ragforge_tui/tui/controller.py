"""What the chat does with the engine: connect, open, send, follow, start again after a crash.

Between `app.py` (widgets and keys) and the engine; holds no widgets of its own but calls the view it was given.
Slash commands are in `actions.py`, events come in through `dispatch.py`, questions are in `questions.py`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ragforge_tui.errors import EngineGoneError, ErrorInfo, NotFoundError, RagforgeError
from ragforge_tui.events import (
    Event,
    GraphChanged,
    ModelChanged,
    TurnCancelled,
    TurnCompleted,
    TurnEnd,
    TurnEvent,
    TurnStarted,
)
from ragforge_tui.models import Turn
from ragforge_tui.protocol import (
    CancelTurn,
    ChangeModelSettings,
    ConversationView,
    CreateConversation,
    Engine,
    FetchTurns,
    Hello,
    LeaveConversation,
    OpenConversation,
    RunShell,
    SendMessage,
    SetMode,
    Unqueue,
)
from ragforge_tui.tui.attention import Attention
from ragforge_tui.tui.dispatch import dispatch
from ragforge_tui.tui.elsewhere import Elsewhere
from ragforge_tui.tui.link import EngineLink, Level
from ragforge_tui.tui.listening import tell
from ragforge_tui.tui.looks import problems
from ragforge_tui.tui.options import ChatOptions
from ragforge_tui.tui.outbox import Outbox, Outgoing
from ragforge_tui.tui.state import ChatState, sent_tokens
from ragforge_tui.tui.transcript.widget import PAGE_TURNS

if TYPE_CHECKING:
    from ragforge_tui.tui.app import ChatApp

log = logging.getLogger(__name__)

KNOW_FILES_SECONDS = 2.0
"""After the start, when it holds up nothing, the engine gets to know the workspace's files."""


class ChatController(EngineLink):
    """One per chat screen."""

    def __init__(self, view: ChatApp, connect: Callable[[], Awaitable[Engine]], options: ChatOptions) -> None:
        super().__init__(view, connect, ChatState(persona=options.persona))
        self.options = options
        self.outbox = Outbox()
        self.attention = Attention(view, options.tui.notify)
        self._send_lock = asyncio.Lock()
        self._begin_lock = asyncio.Lock()
        self._taking_back = False
        self._pending_open = _first_ref(options)
        self.state.opening = self._pending_open is not None
        self._first_turn = 1
        self._was_lost = False
        self._model_changes: dict[str, int | float | None] = {}
        self._say_problems = options.resume is not None or options.continue_last
        """Whether the first conversation that is opened clears away what was said of the settings at the start."""
        self.elsewhere = Elsewhere(self)

    # -- connection

    def take_in(self, event: Event) -> None:
        """Make an event of the engine visible."""
        dispatch(self, event)

    def engine_lost(self, error: ErrorInfo | None, *, give_up: bool) -> None:
        """Say it; what was open is opened again by the next engine."""
        self._end_turn_shown()
        self.state.engine_lost()
        self.outbox.engine_lost()
        self.view.questions.clear()
        self.view.sidebar.due_changed()
        if self.state.conversation is not None:
            self._pending_open = self.state.conversation_id
            self._was_lost = True
        what = error.sentence() if error else "The engine ended unexpectedly; what had come is kept."
        again = "Send a message to try again." if give_up else "Starting it again."
        self.notice(f"{what} {again}", "error")
        self.view.refresh_chrome()

    async def change_model_setting(self, name: str, value: float | None) -> None:
        """Let the engine take up a setting of the model, and each engine that is started after a crash."""
        self._model_changes[name] = value
        if self.engine is not None:
            await self.ask(ChangeModelSettings(changes={name: value}))

    def _end_turn_shown(self) -> None:
        """Nothing is under way without an engine; a turn that others answer is only not followed any more."""
        state, uuid = self.state, self.state.conversation_id
        if (index := state.running.get(uuid)) is not None:
            end: TurnEnd = TurnCancelled(conversation_id=uuid, turn_index=index)
        elif state.followed is not None:
            end = TurnCompleted(conversation_id=uuid, turn_index=state.followed, text="")
        else:
            return
        self.show(end)
        self.view.sidebar.event(end)
        tell(self.view.screen_stack, end)

    async def greet(self, engine: Engine) -> None:
        """Learn what the engine is now."""
        said = await engine.request(Hello())
        if self._model_changes:
            await engine.request(ChangeModelSettings(changes=self._model_changes))
        self.state.connection = "up"
        self.model_changed(said.model)
        self.graph_changed(said.graph)
        self.view.refresh_chrome()
        await self.view.actions.learn_personas()
        self.view.set_timer(KNOW_FILES_SECONDS, lambda: self.spawn(self.view.actions.know_files(), group="files"))

    # -- conversations

    async def open(self, ref: str, *, turn: int = 0) -> None:
        """Open a conversation by id, prefix, or empty for the newest of the workspace.

        Args:
            turn: Bring this turn into view; 0: the end.
        """
        if not ref or ref != self.state.conversation_id or not turn:
            self.opened(await self.ask(OpenConversation(ref=ref)))
        if turn:
            await self.show_turn(turn)

    def opened(self, view: ConversationView) -> None:
        state = self.state
        state.leave_conversation()
        state.conversation = view.conversation
        state.context_used = sent_tokens(message for turn in view.page.turns for message in turn.messages)
        if not state.mode_unsent:
            state.mode = view.mode
        self._first_turn = view.page.first
        self.view.transcript.clear()
        self.view.transcript.load(view.page.turns, first=view.page.first, last=view.page.last)
        self.view.sidebar.conversation_changed()
        if self._say_problems:
            self._say_problems = False
            for problem in problems(self.view):
                self.notice(problem, "warning")
        if view.interrupted_turn is not None:
            self.offer_retry("The last answer was interrupted.")
        self.elsewhere.forget()
        if view.active_turn is not None:
            if state.conversation_id in state.running:
                state.stale = True  # Events between the stored checkpoint and now were missed.
            else:
                known = next((turn for turn in view.page.turns if turn.turn_index == view.active_turn), None)
                self.elsewhere.follow(known or Turn(turn_index=view.active_turn))
                self.view.transcript.go_on(view.active_turn)
        self.view.refresh_chrome()

    def leave_conversation(self) -> None:
        """Back to an empty screen; the next message starts a conversation."""
        self.state.leave_conversation()
        self.view.transcript.clear()
        self.elsewhere.forget()
        if self.engine is not None:
            self.spawn(self._let_go(), group="leave")
        self.view.sidebar.conversation_changed()
        self.view.refresh_chrome()

    async def fetch_turns(self, start: int, end: int) -> None:
        """Turns that are not loaded, for the transcript that has their place in view."""
        conversation_id = self.state.conversation_id
        if not conversation_id:
            return
        try:
            page = await self.ask(FetchTurns(conversation_id=conversation_id, start=start, end=end))
        except RagforgeError:
            self.view.transcript.not_inserted()
            raise
        if conversation_id == self.state.conversation_id:
            self.view.transcript.insert(page.turns, start=start, end=end)

    async def show_turn(self, turn_index: int, last: int = 0) -> None:
        """Bring a turn into view, wherever in the conversation it is, and mark it for a moment.

        Args:
            last: Turns up to this one are marked too.

        Raises:
            NotFoundError: The conversation has no such turn.
        """
        transcript = self.view.transcript
        if transcript.scroll_to_turn(turn_index, last):
            return
        document = transcript.document
        gap = document.gap_with(turn_index)
        low, high = (gap.first, gap.last + 1) if gap is not None else (self._first_turn, document.first_turn)
        if low <= turn_index < high:
            start = max(low, turn_index - PAGE_TURNS // 3)
            await self.fetch_turns(start, min(high, start + PAGE_TURNS))
        if not transcript.scroll_to_turn(turn_index, last):
            raise NotFoundError(f"There is no turn {turn_index} here.")

    async def _let_go(self) -> None:
        await self.ask(LeaveConversation())

    # -- messages

    def send(self, text: str) -> None:
        """Send a message, or keep it until the engine and the graph are ready."""
        self.outbox.add(text)
        self._start_again.set()
        self.view.show_queue()
        self.spawn(self.flush(), group="send")

    async def flush(self) -> None:
        """Give the engine what waits, in order."""
        async with self._send_lock:
            while self.state.ready and self._pending_open is None and (item := self.outbox.next_waiting()):
                item.place = "sending"
                self.view.show_queue_soon()
                try:
                    conversation_id = await self._conversation()
                    await self.send_mode()
                    queued = await self._give(conversation_id, item)
                except EngineGoneError:
                    item.place = "waiting"
                    return
                except (RagforgeError, asyncio.CancelledError):
                    self.outbox.drop(item.message_id)
                    self.view.give_back(item.text)
                    raise
                finally:
                    self.view.show_queue()
                self.outbox.accepted(item.message_id, queued=queued)
                self.view.show_queue()

    async def _conversation(self) -> str:
        """The open conversation; the first message makes one."""
        if self.state.conversation is None:
            view = await self.ask(CreateConversation(persona=self.state.persona))
            self.state.conversation = view.conversation
            self._first_turn = 1
            self.view.sidebar.conversation_changed()
            self.view.refresh_chrome()
        return self.state.conversation_id

    async def _give(self, conversation_id: str, item: Outgoing) -> bool:
        """Give the engine a message, or the person's own command; whether it waits there."""
        if command := item.command:
            shell = RunShell(conversation_id=conversation_id, message_id=item.message_id, command=command)
            return await self.ask(shell) == 0
        message = SendMessage(conversation_id=conversation_id, message_id=item.message_id, text=item.text)
        return (await self.ask(message)).queued

    async def send_mode(self) -> None:
        """Tell the engine of the mode chosen here; nothing it does for the person comes before."""
        state = self.state
        if state.mode_unsent and state.conversation is not None and self._pending_open is None:
            mode = state.mode
            await self.ask(SetMode(conversation_id=state.conversation_id, mode=mode))
            state.mode_unsent = state.mode != mode

    async def take_back(self) -> None:
        """The newest message that has not begun goes back into the prompt, alone; the others keep their places."""
        item = self.outbox.newest
        if item is None or self._taking_back:
            return
        self._taking_back = True
        try:
            unqueue = Unqueue(conversation_id=self.state.conversation_id, message_id=item.message_id)
            if item.place == "waiting" or await self.ask(unqueue):
                self.outbox.drop(item.message_id)
                self.view.give_back(item.text)
        finally:
            self._taking_back = False
        self.view.show_queue()

    async def stop(self) -> None:
        """Stop the turn; with messages queued the engine goes on with the first."""
        if self.state.busy:
            await self.ask(CancelTurn(conversation_id=self.state.conversation_id))

    # -- events

    def show(self, event: TurnEvent) -> None:
        """Hand a turn event to the transcript when its conversation is open."""
        if event.conversation_id == self.state.conversation_id:
            self.view.transcript.apply(event)

    def notice(self, text: str, level: Level) -> None:
        """A line for the person; its beginning also in the status line while the end of the chat is out of sight."""
        self.view.transcript.notice(text, level)
        if not self.view.transcript.follow:
            self.view.hint(text.partition(". ")[0])

    def offer_retry(self, what: str) -> None:
        """Say that the last answer can be asked for again, until an answer came."""
        self.view.transcript.notice(f"{what} /retry asks for it again.", "info", passing=True)

    def turn_started(self, event: TurnStarted) -> None:
        """A turn begins: its message is on its way no longer."""
        self.outbox.drop(event.message.uuid)
        self.view.show_queue()
        self.state.turn_begins(event.conversation_id, event.turn_index, self.view.clock())
        self.show(event)

    def turn_ended(self, event: TurnEnd) -> None:
        """A turn ends; when events of it were missed it is read again."""
        here = event.conversation_id == self.state.conversation_id
        self.show(event)
        if here and not isinstance(event, TurnCancelled):
            self.attention.turn_ended(self.state.turn_started)
        self.state.turn_ends(event.conversation_id)
        if here:
            self.state.followed = None
            if self.state.stale:
                self.state.stale = False
                self.spawn(self._read_again(event.conversation_id, event.turn_index), group="reread")

    async def _read_again(self, conversation_id: str, index: int) -> None:
        """Show a turn from its records, since events of it were missed."""
        page = await self.ask(FetchTurns(conversation_id=conversation_id, start=index, end=index + 1))
        if page.turns and conversation_id == self.state.conversation_id:
            self.view.transcript.replace_turn(page.turns[0])

    def graph_changed(self, event: GraphChanged) -> None:
        """The graph came, went, or refused."""
        before = self.state.graph
        self.state.graph = event
        if event.error is not None and (before is None or before.error != event.error):
            self.notice(event.error.sentence(), "error")
        elif event.phase == "ready" and before is not None and before.phase == "unreachable":
            self.notice("The graph is back.", "info")
        if self.state.ready:
            self.spawn(self._begin(), group="begin")

    async def _begin(self) -> None:
        """Now that the graph answers: open what was asked for, send what waits."""
        async with self._begin_lock:
            if (ref := self._pending_open) is not None:
                await self._open_pending("" if ref == NEWEST else ref)
        await self.flush()

    async def _open_pending(self, ref: str) -> None:
        try:
            await self.open(ref)
        except EngineGoneError:
            return  # It stays pending for the next engine.
        except RagforgeError as error:
            none_yet = not ref and isinstance(error, NotFoundError)
            self.notice(
                "There is no conversation in this folder yet." if none_yet else error.info.sentence(), "warning"
            )
        self._pending_open = None
        self.state.opening = False
        self.view.refresh_chrome()
        if self._was_lost:
            self._was_lost = False
            self.notice("The engine had ended and was started again; what had come is kept.", "warning")

    def model_changed(self, event: ModelChanged) -> None:
        """Another model answers next, or this one cannot."""
        before = self.state.model
        self.state.model = event
        if event.error is not None and (before is None or before.error != event.error):
            self.notice(event.error.sentence(), "error")


NEWEST = "\x00newest"


def _first_ref(options: ChatOptions) -> str | None:
    """What is opened first, None for nothing."""
    if options.resume is not None:
        return options.resume or None  # Without an id the person picks one.
    return NEWEST if options.continue_last else None
