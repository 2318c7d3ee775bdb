"""The chat's connection to the engine and the state of the conversation, without any widgets.

One `EngineSession` per chat screen starts an engine, reads its events, starts another when it ends, and is handed
down to everything that asks the engine something. What the engine reports is applied by `chat_events.py`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from textual.dom import DOMNode

from ragforge_tui.shared import events
from ragforge_tui.shared.errors import STORED_ALREADY, EngineGoneError, ErrorInfo, NotFoundError, RagforgeError
from ragforge_tui.shared.persona_records import PersonaList
from ragforge_tui.shared.records import Conversation
from ragforge_tui.shared.requests.personas import ListPersonas
from ragforge_tui.shared.requests.sessions import LeaveConversation, UpdateConversation
from ragforge_tui.shared.requests.turns import (
    CancelTurn,
    ConversationView,
    CreateConversation,
    OpenConversation,
    SendMessage,
    Unqueue,
)
from ragforge_tui.shared.requests.work import ChangeModelSettings, RunShell, SetMode
from ragforge_tui.shared.tool_calls import describe_tools
from ragforge_tui.shared.wire import CLOSE_SECONDS, Engine, Hello, Request
from ragforge_tui.tui.drawing.lines import one_line
from ragforge_tui.tui.session.message_queue import MessageQueue, Outgoing
from ragforge_tui.tui.session.state import (
    ChatOptions,
    EngineState,
    Level,
    SessionListener,
    SessionScreen,
    sent_tokens,
)
from ragforge_tui.tui.workers import start_worker

log = logging.getLogger(__name__)

R = TypeVar("R")

STEADY_SECONDS = 30.0
"""An engine that lived this long starts a new count of crashes."""
MAX_CRASHES = 3
NEWEST = "\x00newest"
"""In place of an id: the newest conversation of the workspace."""


class EngineSession:
    """Owns the connection to the engine, the `EngineState` and the messages that wait to be sent.

    Attributes:
        connected: Set while there is an engine to ask.
        listener: Receives the events of the engine; set before `run`.

    Args:
        connect: Starts an engine; called again after a crash.
        node: Owns the workers: they end with it.
        screen: Shows notices and changes of the state.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[Engine]],
        options: ChatOptions,
        *,
        node: DOMNode,
        screen: SessionScreen,
    ) -> None:
        self.state = EngineState(persona=options.persona, folder=options.workspace)
        self.message_queue = MessageQueue()
        self.engine: Engine | None = None
        self.connected = asyncio.Event()
        self.listener: SessionListener
        self.connect = connect
        self._node = node
        self._screen = screen
        self._start_again = asyncio.Event()
        self._send_lock = asyncio.Lock()
        self._open_lock = asyncio.Lock()
        self._taking_back = False
        self._pending_open = _first_reference(options)
        self.state.opening = self._pending_open is not None
        self._was_lost = False
        self._model_settings: dict[str, int | float | str | None] = {}

    # -- connection

    async def run(self) -> None:
        """Keep an engine running as long as the chat does: connect, read its events, start another when it ends."""
        crashes = 0
        loop = asyncio.get_running_loop()
        while not self.state.closing:
            since = loop.time()
            error = await self._run_engine()
            if self.state.closing:
                return
            crashes = 1 if loop.time() - since > STEADY_SECONDS else crashes + 1
            self._engine_lost(error, give_up=crashes > MAX_CRASHES)
            if crashes > MAX_CRASHES:
                self._start_again.clear()
                await self._start_again.wait()
                crashes = 0
            self.state.connection = "starting"
            self.changed()
            await asyncio.sleep(0.1 * crashes)

    async def _run_engine(self) -> ErrorInfo | None:
        """Run one engine from start to end; return the error if it could not be started."""
        try:
            engine = await self.connect()
        except RagforgeError as error:
            return error.info
        except Exception as error:
            log.exception("engine not started")
            return ErrorInfo(kind="engine", what=f"The engine could not be started: {error}.", todo="See the log.")
        self.engine = engine
        self.connected.set()
        self.spawn(self._greet(engine), group="greet", exclusive=True)
        try:
            async for event in engine.events():
                self.listener.handle(event)
        except RagforgeError as error:
            log.warning("events ended: %s", error)
        finally:
            self.engine = None
            self.connected.clear()
        return None

    async def _greet(self, engine: Engine) -> None:
        hello = await engine.request(Hello())
        if self.state.closing:
            return
        describe_tools(hello.tools)
        if self._model_settings:
            await engine.request(ChangeModelSettings(changes=self._model_settings))
        self.state.connection = "up"
        self.model_changed(hello.model)
        self.graph_changed(hello.graph)
        self.changed()
        await self.load_personas()
        self.listener.engine_ready()

    def _engine_lost(self, error: ErrorInfo | None, *, give_up: bool) -> None:
        """Report the loss; the open conversation is opened again by the next engine."""
        ended = self._shown_end()
        self.state.engine_lost()
        self.message_queue.engine_lost()
        self.listener.engine_lost(ended)
        self._screen.queue_changed()
        if self.state.conversation is not None:
            self._pending_open = self.state.conversation_id
            self._was_lost = True
        what = error.sentence() if error else "The engine ended unexpectedly; its answer is kept."
        again = "Send a message to try again." if give_up else "It is restarting."
        self.notice(f"{what} {again}", "error")
        self.changed()

    def _shown_end(self) -> events.TurnEvent | None:
        """Return what ends the turn on the screen: without an engine no turn runs or is followed."""
        state, uuid = self.state, self.state.conversation_id
        if (index := state.running.get(uuid)) is not None:
            return events.TurnCancelled(conversation_id=uuid, turn_index=index)
        if state.followed is not None:
            return events.TurnCompleted(conversation_id=uuid, turn_index=state.followed, text="")
        return None

    async def ask(self, request: Request[R]) -> R:
        """Ask the engine.

        Raises:
            RagforgeError: As the engine raised it; `EngineGoneError` also while there is no engine.
        """
        if self.engine is None:
            raise EngineGoneError("The engine is not ready yet.", todo="Try again in a moment.")
        return await self.engine.request(request)

    def spawn(self, work: Coroutine[Any, Any, Any], *, group: str, exclusive: bool = False) -> None:
        """Run something in the background; its errors become notices."""
        start_worker(self._node, self._guarded(work), group=group, exclusive=exclusive, inner=work)

    async def _guarded(self, work: Awaitable[Any]) -> None:
        try:
            await work
        except EngineGoneError as error:
            if not self.state.closing and (self.engine is not None or self.state.connection == "starting"):
                self.notice(error.info.sentence(), "error")
        except RagforgeError as error:
            self.notice(error.info.sentence(), "error")
        except Exception as error:
            log.exception("request failed")
            self.notice(f"The request failed: {error}. See the log.", "error")

    async def close(self) -> None:
        """End the engine in order; a running turn is stored as interrupted."""
        self.state.connection = "closing"
        self.changed()
        if self.engine is not None:
            try:
                await asyncio.wait_for(self.engine.close(), CLOSE_SECONDS)
            except (TimeoutError, RagforgeError) as error:
                log.warning("engine did not close in order: %r", error)

    # -- reports to the screen

    def changed(self) -> None:
        """Report that the state has changed; for everybody who changes it."""
        self._screen.state_changed()

    def notice(self, text: str, level: Level = "info", *, passing: bool = False) -> None:
        """Show a sentence in the transcript; a `passing` one disappears with the next answer."""
        self._screen.notice(text, level, passing=passing)

    # -- the engine's graph and model

    def graph_changed(self, event: events.GraphChanged) -> None:
        """Note what the graph does; send and open what waited for it."""
        before = self.state.graph
        self.state.graph = event
        if event.error is not None and (before is None or before.error != event.error):
            self.notice(event.error.sentence(), "error")
        elif event.phase == "ready" and before is not None and before.phase == "unreachable":
            self.notice("The graph is reachable again.")
        if self.state.ready:
            self.spawn(self._resume_work(), group="begin")

    async def change_model_setting(self, name: str, value: float | str | None) -> None:
        """Apply a setting of the model to the engine, and to every engine that is started after a crash."""
        self._model_settings[name] = value
        if self.engine is not None:
            await self.ask(ChangeModelSettings(changes={name: value}))

    def model_changed(self, event: events.ModelChanged) -> None:
        """Use another model from the next message on, or report that it is unavailable."""
        before = self.state.model
        self.state.model = event
        if event.error is not None and (before is None or before.error != event.error):
            self.notice(event.error.sentence(), "error")

    # -- personas

    async def load_personas(self) -> PersonaList:
        """Fetch the personas, for the header and the session list, and choose the one of the next conversation."""
        state = self.state
        found = await self.ask(ListPersonas())
        state.persona_styles = {info.name: (info.glyph, info.color) for info in found.personas}
        state.greetings = {info.name: info.greeting for info in found.personas if info.greeting}
        names = {info.name.casefold(): info.name for info in found.personas}
        wanted = state.persona or found.default
        state.persona = names.get(wanted.casefold(), found.default)
        if wanted.casefold() not in names:
            missing, used = (one_line(name) for name in (wanted, state.persona))
            self.notice(f"There is no persona named {missing}; {used} answers instead.")
        self.changed()
        return found

    # -- conversations

    async def open(self, ref: str) -> None:
        """Open a conversation by id, prefix, or empty for the newest of the workspace."""
        self.show(await self.ask(OpenConversation(ref=ref)))

    def open_newest(self) -> None:
        """Open the newest conversation of the workspace, as soon as the graph answers."""
        self._pending_open = NEWEST
        self.state.opening = True
        self.changed()
        if self.state.ready:
            self.spawn(self._resume_work(), group="begin")

    def show(self, view: ConversationView) -> None:
        """Make a conversation the open one."""
        state = self.state
        state.leave_conversation()
        state.conversation = view.conversation
        state.first_turn = view.page.first
        state.context_used = sent_tokens(message for turn in view.page.turns for message in turn.messages)
        if not state.mode_unsent:
            state.mode = view.mode
        self.listener.conversation_opened(view)
        self.changed()

    def conversation_changed(self, conversation: Conversation) -> Conversation:
        """Take in the new record of a conversation, if it is the open one."""
        if conversation.uuid == self.state.conversation_id:
            self.state.conversation = conversation
            self.changed()
        return conversation

    def leave_conversation(self) -> None:
        """Go back to an empty screen; the next message starts a conversation."""
        self.state.leave_conversation()
        if self.engine is not None:
            self.spawn(self.ask(LeaveConversation()), group="leave")
        self.listener.conversation_closed()
        self.changed()

    async def _resume_work(self) -> None:
        """Open the requested conversation as soon as the graph answers, then send the waiting messages."""
        async with self._open_lock:
            if self.state.can_open and (ref := self._pending_open) is not None:
                await self._open_pending("" if ref == NEWEST else ref)
        await self.flush()

    async def _open_pending(self, ref: str) -> None:
        try:
            await self.open(ref)
        except EngineGoneError:
            return  # It stays pending for the next engine.
        except RagforgeError as error:
            if self._was_lost and error.info.kind.startswith("graph"):
                return  # Conversation and messages wait for the graph: the lost engine may have stored them.
            none_yet = not ref and isinstance(error, NotFoundError)
            self.notice(
                "There is no conversation in this folder yet." if none_yet else error.info.sentence(), "warning"
            )
        self._pending_open = None
        self.state.opening = False
        self.changed()
        if self._was_lost:
            self._was_lost = False
            self.notice("The engine was restarted; the answer so far is kept.", "warning")

    def read_branch(self) -> None:
        """Find out the git branch of the folder."""
        if self.state.folder:
            self.spawn(self._read_branch(), group="branch", exclusive=True)

    async def _read_branch(self) -> None:
        from ragforge_tui.shared.git import current_branch

        branch = await asyncio.to_thread(current_branch, Path(self.state.folder))
        if branch != self.state.branch:
            self.state.branch = branch
            self.changed()

    # -- messages

    def message_started(self, event: events.TurnStarted | events.Steered) -> None:
        """Drop a message whose turn has started, or that has joined one: it is in the transcript now."""
        self.message_queue.drop(event.message.uuid)
        self._screen.queue_changed()

    def send(self, text: str, materials: Sequence[str] = (), *, queue: bool = False) -> None:
        """Send a message, or keep it until the engine is ready and the requested conversation is open.

        Args:
            materials: What of the text the user did not type.
            queue: Let it wait for the end of a running turn, which would otherwise get it before its next request.
        """
        steer = self.state.busy and not queue
        self.message_queue.add(text, self.state.conversation_id, materials=materials, steer=steer)
        self._start_again.set()
        self._screen.queue_changed()
        self.spawn(self.flush(), group="send")

    async def flush(self) -> None:
        """Give the engine the waiting messages, in order."""
        async with self._send_lock:
            while self.state.ready and self._pending_open is None and (item := self.message_queue.next_waiting()):
                item.place = "sending"
                self._screen.message_sending()
                try:
                    conversation_id = await self._conversation()
                    await self.send_mode()
                    queued = await self._give(conversation_id, item)
                except EngineGoneError:
                    item.place = "waiting"
                    return
                except (RagforgeError, asyncio.CancelledError) as error:
                    if isinstance(error, RagforgeError) and error.info.kind == STORED_ALREADY:
                        self.message_queue.drop(item.message_id)
                    elif self.message_queue.give_back(item.message_id, self.state.conversation_id):
                        self._screen.message_returned(item.text, item.materials)
                    raise
                finally:
                    self._screen.queue_changed()
                self.message_queue.accepted(item.message_id, queued=queued)
                self._screen.queue_changed()

    async def _conversation(self) -> str:
        """Return the id of the open conversation; the first message creates one."""
        if self.state.conversation is None:
            state = self.state
            view = await self.ask(CreateConversation(persona=state.persona, private=state.next_private))
            conversation = view.conversation
            while conversation.private != (private := state.next_private):  # The user changed it meanwhile.
                conversation = await self.ask(UpdateConversation(conversation_id=conversation.uuid, private=private))
            state.conversation, state.next_private = conversation, False
            self.state.first_turn = 1
            self.listener.conversation_created()
            self.changed()
        return self.state.conversation_id

    async def _give(self, conversation_id: str, item: Outgoing) -> bool:
        """Give the engine a message or a shell command; return whether the engine queued it."""
        if command := item.command:
            shell = RunShell(conversation_id=conversation_id, message_id=item.message_id, command=command)
            return await self.ask(shell) == 0
        message = SendMessage(
            conversation_id=conversation_id,
            message_id=item.message_id,
            text=item.text,
            materials=item.materials,
            steer=item.steer,
        )
        return (await self.ask(message)).queued

    async def send_mode(self) -> None:
        """Send the chosen mode to the engine, before anything else that it does for the user."""
        state = self.state
        if state.mode_unsent and state.conversation is not None and self._pending_open is None:
            mode = state.mode
            await self.ask(SetMode(conversation_id=state.conversation_id, mode=mode))
            state.mode_unsent = state.mode != mode

    async def take_back(self, message_id: str = "") -> None:
        """Put an unstarted message back into the prompt, by default the newest; the others keep their places."""
        item = self.message_queue.get(message_id) if message_id else self.message_queue.newest
        if item is not None and await self._unqueued(item):
            if self.message_queue.give_back(item.message_id, self.state.conversation_id):
                self._screen.message_returned(item.text, item.materials)
            self._screen.queue_changed()

    async def drop(self, message_id: str) -> None:
        """Drop a message that has not started."""
        item = self.message_queue.get(message_id)
        if item is not None and await self._unqueued(item):
            self.message_queue.drop(message_id)
            self._screen.queue_changed()

    async def send_now(self, message_id: str) -> None:
        """Hand a queued message to the running turn, before its next request."""
        item = self.message_queue.get(message_id)
        if item is None or item.steer or item.command:
            self.notice("A command waits for the end of the turn." if item and item.command else "It is next already.")
        elif await self._unqueued(item):
            item.steer, item.place = True, "waiting"
            await self.flush()

    async def _unqueued(self, item: Outgoing) -> bool:
        """Take a message from the engine's queue; return False if it has started, or another one is being taken."""
        if item.place == "waiting":
            return True
        if self._taking_back or item.place == "sending":
            return False
        self._taking_back = True
        try:
            unqueue = Unqueue(conversation_id=self.state.conversation_id, message_id=item.message_id)
            return await self.ask(unqueue)
        finally:
            self._taking_back = False

    async def stop(self) -> None:
        """Stop the turn; the engine continues with the first queued message."""
        if self.state.busy:
            await self.ask(CancelTurn(conversation_id=self.state.conversation_id))


def _first_reference(options: ChatOptions) -> str | None:
    """Return the conversation to open at the start, None for none."""
    if options.resume is not None:
        return options.resume or None  # Without an id the user picks one.
    return NEWEST if options.continue_last else None
