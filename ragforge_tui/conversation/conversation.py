"""One open conversation: it accepts messages, runs their turns one after another and emits events.

Part of the public Python API. `ConversationAgent` creates the instances.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager

import msgspec

from ragforge_tui.conversation.memory import ConversationMemory
from ragforge_tui.conversation.services import Services
from ragforge_tui.conversation.turn.inputs import InputBuilder
from ragforge_tui.conversation.turn.runner import TurnRunner
from ragforge_tui.conversation.turn.user_turn import QueuedTurn, UserCall, UserTurn
from ragforge_tui.conversation.turn.window import PAGE_TURNS, TurnWindow
from ragforge_tui.graph import writer_id
from ragforge_tui.llm.tokens import CHARS_PER_TOKEN
from ragforge_tui.memory.context import BuiltContext
from ragforge_tui.memory.history_source import called_from
from ragforge_tui.shared import records
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.events import (
    ConversationChanged,
    Event,
    MessageQueued,
    Notice,
    TurnCancelled,
    TurnCompleted,
    TurnEnd,
    TurnFailed,
    TurnStarted,
)
from ragforge_tui.shared.records import Message, ToolCall, Turn, Usage, now
from ragforge_tui.shared.redaction import mask_secrets
from ragforge_tui.shared.requests.work import FileDiff, Mode, UndoPlan
from ragforge_tui.shared.sanitize import storable
from ragforge_tui.tools.shell.run_command import RunCommand
from ragforge_tui.tools.undo.changes import RESTORE
from ragforge_tui.tools.undo.plan import ChangedFiles

log = logging.getLogger(__name__)

OPENING_TURNS = 12
"""Turns that fill a screen; opening a long conversation reads no more than these."""
TITLE_CHARS = 60


class Answer(msgspec.Struct, kw_only=True, frozen=True):
    """Result of `Conversation.send_message`: the turn's last text, its reasoning, tool calls and usage."""

    content: str
    turn_index: int
    reasoning: str = ""
    tool_calls: list[ToolCall] = []
    usage: Usage = Usage()


class Conversation:
    """A conversation that accepts messages. `ConversationAgent` creates it."""

    def __init__(self, services: Services, record: records.Conversation, turns: list[Turn]) -> None:
        self.record = record
        self._mode: Mode = "ask"
        self._services = services
        self._window = TurnWindow(record, turns, services.store)
        self.memory = ConversationMemory(services, record, turns)
        self._inputs = InputBuilder(services, record, self._window, self.memory, lambda: self.mode)
        self._closing = False
        self._active: Turn | None = None
        self._starting = False
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._queue: deque[QueuedTurn] = deque()
        self._own_ids: set[str] = set()
        self._opening = [msgspec.structs.replace(turn, messages=list(turn.messages)) for turn in turns]
        services.recorder.expect(record.uuid, record.next_turn)

    # --- talking -------------------------------------------------------------------------------------------------

    @property
    def mode(self) -> Mode:
        """Return what the agent may do without asking. A change also applies to a call that waits for approval."""
        return self._mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self._mode = mode
        self._services.approvals.mode_changed(self.record.uuid, mode)

    @property
    def busy(self) -> bool:
        """Return whether this process is running a turn."""
        return self._starting or (self._task is not None and not self._task.done())

    @property
    def active_turn(self) -> int | None:
        """Return the index of the turn that this process is running."""
        return self._active.turn_index if self.busy and self._active is not None else None

    async def submit(self, text: str, message_id: str | None = None) -> int:
        """Store a message and start its turn, or queue it behind the running turn.

        Args:
            message_id: Chosen by the caller; a repeated id is ignored.

        Returns:
            The turn's index, 0 if it was queued.
        """
        return await self._submit(QueuedTurn(text, message_id or uuid.uuid4().hex))

    async def run_command(self, command: str, message_id: str | None = None) -> int:
        """Run a shell command of the user in the workspace as a turn; arguments and result are those of `submit`."""
        call = UserCall(RunCommand.info.name, msgspec.json.encode({"command": storable(command)}).decode())
        return await self._submit(QueuedTurn(f"!{command}", message_id or uuid.uuid4().hex, call))

    async def _submit(self, queued: QueuedTurn) -> int:
        if queued.message_id in self._own_ids:
            return self.active_turn or 0
        self._own_ids.add(queued.message_id)
        if self.busy:
            self._queue.append(queued)
            self._services.emit(MessageQueued(conversation_id=self.record.uuid, text=queued.text))
            return 0
        return await self._start(queued)

    async def send_message(self, text: str) -> Answer:
        """Send a message and wait for the answer.

        Raises:
            RagforgeError: The turn failed; the partial answer is stored.
            asyncio.CancelledError: The caller was cancelled; the turn is stored as interrupted.
        """
        end: TurnEnd | None = None
        async for event in self.stream(text):
            if isinstance(event, TurnCompleted | TurnCancelled | TurnFailed):
                end = event
        return _answer_of(end, self._window.turns[-1])

    async def stream(self, text: str) -> AsyncGenerator[Event, None]:
        """Send a message and yield its turn's events up to the final one; leaving the loop early stops the turn."""
        if self.busy:
            await self.wait_idle()
        with self._services.events.subscribe() as events:
            index = await self.submit(text)
            try:
                while True:
                    event = await events.get()
                    if getattr(event, "conversation_id", "") != self.record.uuid:
                        continue
                    yield event
                    if isinstance(event, TurnEnd) and event.turn_index == index:
                        return
            finally:
                if self.active_turn == index:
                    self.cancel()
                    await self.wait_idle()

    async def retry(self) -> int:
        """Request the last turn's answer again; the new answer supersedes the earlier one.

        Raises:
            RagforgeError: A turn is running, there is no turn, or the graph is unreachable.
        """
        if self.busy:
            raise RagforgeError("A turn is still running.", todo="Stop it first, then retry.")
        with self._marked_busy():
            return await self._retry_newest()

    async def _retry_newest(self) -> int:
        store = await self._services.store()
        _, last = await store.turns.range(self.record.uuid)
        await self._window.catch_up(last + 1)  # another process may have added turns
        turn = self._window.newest
        if turn is None:
            raise RagforgeError("There is no turn to retry yet.")
        if turn.messages[0].doing or any(message.role == "system" for message in turn.messages):
            raise RagforgeError("Nothing to retry: the last turn was a command of yours.", todo="Send a new message.")
        self.memory.start()
        await store.messages.supersede(self.record.uuid, turn.turn_index, from_position=1)
        del turn.messages[1:]
        self._own_ids.add(turn.messages[0].uuid)  # even if another process asked first, this one answers now
        message = msgspec.structs.replace(turn.messages[0])
        self._services.emit(TurnStarted(conversation_id=self.record.uuid, turn_index=turn.turn_index, message=message))
        self._run(turn)
        return turn.turn_index

    async def set_persona(self, persona: str) -> None:
        """Use another persona from the next turn on."""
        self.record.persona = persona
        await self._services.recorder.save_persona(self.record)
        self._services.emit(ConversationChanged(conversation=msgspec.structs.replace(self.record)))

    def cancel(self) -> None:
        """Stop the turn that this process is running; its partial answer is stored."""
        if self.busy:
            self._stop.set()

    def answered_here(self, turn: Turn) -> bool:
        """Return whether this process wrote every message of a turn that is not superseded."""
        return all(message.uuid in self._own_ids for message in turn.messages if message.state != "superseded")

    async def reload(self, turn: Turn) -> None:
        """Reload a turn that another process changed."""
        self._window.refresh(turn)
        await asyncio.to_thread(self.memory.files.note, turn)

    def close(self) -> None:
        """Stop the running turn and start no further one."""
        self._closing = self.memory.closing = True
        self.unqueue()
        self.cancel()

    def unqueue(self, message_id: str = "") -> bool:
        """Drop one queued message, or all of them; return whether there was any."""
        dropped = [queued for queued in self._queue if not message_id or queued.message_id == message_id]
        for queued in dropped:
            self._queue.remove(queued)
        return bool(dropped)

    async def wait_idle(self) -> None:
        """Wait until this process runs no turn."""
        while self.busy:
            if self._task is None or self._task.done():
                await asyncio.sleep(0.01)  # the message is being stored; its turn starts next
            else:
                await asyncio.gather(self._task, return_exceptions=True)

    # --- reading -------------------------------------------------------------------------------------------------

    def take_opening(self) -> list[Turn]:
        """Return, once, the turns read while opening, so that the first display does not read them again."""
        opening, self._opening = self._opening, []
        return [] if self._own_ids else opening

    async def get_history(self, limit: int | None = None) -> list[Turn]:
        """Return the newest `limit` turns in ascending order, all of them by default."""
        store = await self._services.store()
        first, last = await store.turns.range(self.record.uuid)
        start = first if limit is None else max(first, last - limit + 1)
        turns: list[Turn] = []
        while start <= last:
            end = min(start + PAGE_TURNS, last + 1)
            turns += await store.turns.between(self.record.uuid, start=start, end=end)
            start = end
        return turns

    async def build_context(self, text: str) -> BuiltContext:
        """Build the context of a request for this message: sections, items with their sources, tokens and cuts."""
        if not self._services.recorder.journaling:
            await self._window.catch_up(self.record.next_turn)
        asked = Message(uuid="", conversation_id=self.record.uuid, role="user", content=storable(text), timestamp=now())
        return (await self._inputs.build(Turn(turn_index=self.record.next_turn, messages=[asked]))).context

    async def diff(self) -> list[FileDiff]:
        """Return the files that the agent changed during this conversation, with their diffs."""
        return await (await self._changed_files()).diff()

    async def plan_undo(self, turn_index: int = 0, *, redo: bool = False) -> UndoPlan:
        """Return the effects of undoing a turn, by default the last one that changed files.

        Args:
            redo: Undo the last undo instead.

        Raises:
            NotFoundError: There is no such turn.
        """
        return await (await self._changed_files()).plan(turn_index, redo=redo)

    async def undo(self, turn_index: int, message_id: str | None = None) -> int:
        """Restore the files to their state before a turn; return the index of the turn that does so.

        Raises:
            RagforgeError: A turn is running, or no file can be restored.
        """
        if message_id in self._own_ids:
            return self.active_turn or 0
        if self.busy:
            raise RagforgeError("A turn is still running.", todo="Stop it first, then undo.")
        arguments, redo = await (await self._changed_files()).restore_arguments(turn_index)
        typed = "/redo" if redo else f"/undo {turn_index}"
        return await self._submit(QueuedTurn(typed, message_id or uuid.uuid4().hex, UserCall(RESTORE, arguments)))

    async def _changed_files(self) -> ChangedFiles:
        toolbox = self._services.toolbox
        workspace = str(toolbox.workspace.root)
        return ChangedFiles(await self._services.store(), toolbox.kept, workspace, self.record.uuid)

    async def get_tool_calls(self) -> list[ToolCall]:
        """Return all tool calls with their results, in order."""
        history = await self.get_history()
        return [call for turn in history for message in turn.messages for call in message.tool_calls]

    # --- running -------------------------------------------------------------------------------------------------

    async def _start(self, queued: QueuedTurn) -> int:
        with self._marked_busy():
            try:
                return await self._store_and_run(queued)
            except RagforgeError:
                self._own_ids.discard(queued.message_id)  # the turn did not start, so the message may be sent again
                raise

    @contextmanager
    def _marked_busy(self) -> Iterator[None]:
        """Mark the conversation busy while a turn starts; run the next queued message if none did."""
        self._starting = True
        self._stop = asyncio.Event()
        try:
            yield
        finally:
            self._starting = False
            if self._queue and not self.busy and not self._closing:
                self._task = asyncio.create_task(self._start_queued(self._queue.popleft()))

    async def _store_and_run(self, queued: QueuedTurn) -> int:
        content = mask_secrets(storable(queued.text))
        message = Message(
            uuid=queued.message_id,
            conversation_id=self.record.uuid,
            role="user",
            content=content,
            doing=queued.call.tool if queued.call is not None else "",
            writer=writer_id(),
            timestamp=now(),
            char_count=len(content),
            token_count=len(content) // CHARS_PER_TOKEN,
        )
        self.memory.start()
        message = await self._services.recorder.begin_turn(message)
        if queued.call is not None:
            await self._reject_rerun(message)
        self._count(message)
        turn = Turn(turn_index=message.turn_index, messages=[message])
        if not self._services.recorder.journaling:
            await self._window.catch_up(turn.turn_index)
        self._window.add(turn)
        self._services.emit(TurnStarted(conversation_id=self.record.uuid, turn_index=turn.turn_index, message=message))
        self._run(turn, queued.call)
        if queued.call is None:
            await self._give_title(queued.text)
        return turn.turn_index

    async def _reject_rerun(self, message: Message) -> None:
        """Reject a command that an earlier engine process already started, because it may have run in part.

        Raises:
            RagforgeError: The turn already holds more than the user's message.
        """
        if self._services.recorder.journaling:
            return
        index = message.turn_index
        stored = await (await self._services.store()).turns.between(self.record.uuid, start=index, end=index + 1)
        if stored and len(stored[0].messages) > 1:
            raise RagforgeError(
                f"Turn {index} had already started, so it is not run again: {message.content[:80]}",
                todo="Check its effects, then enter it again if you still need it.",
            )

    def _run(self, turn: Turn, call: UserCall | None = None) -> None:
        self._active = turn
        with called_from(self.record.uuid, turn.turn_index):
            self._task = asyncio.create_task(self._run_turn(turn, call), name=f"turn {turn.turn_index}")

    async def _run_turn(self, turn: Turn, call: UserCall | None) -> None:
        runner: TurnRunner | UserTurn
        if call is not None:
            runner = UserTurn(self._services, turn, call, self._stop)
        else:
            runner = TurnRunner(
                self._services,
                turn,
                persona=self.record.persona,
                builder=self._inputs,
                mode=lambda: self.mode,
                stop=self._stop,
            )
        with self._services.memory.active_turns.running():
            end = await runner.run()
        for reply in turn.messages[1:]:
            self._own_ids.add(reply.uuid)
            self._count(reply)
        self.memory.turn_ended(turn)
        self._active = None
        self._task = None
        self._services.emit(end)
        if self._queue and not self._closing:
            await self._start_queued(self._queue.popleft())

    async def _start_queued(self, queued: QueuedTurn) -> None:
        """Start a queued turn; no caller awaits it, so a failure is reported as a notice."""
        try:
            await self._start(queued)
        except RagforgeError as error:
            text = f"A queued message was not sent: {error}"
            self._services.emit(Notice(text=text, level="error", conversation_id=self.record.uuid))

    def _count(self, message: Message) -> None:
        self.record.message_count += 1
        self.record.total_chars += message.char_count
        self.record.next_turn = max(self.record.next_turn, message.turn_index + 1)
        self.record.updated_at = message.timestamp

    async def _give_title(self, text: str) -> None:
        """Use the first line of a message as the title of an untitled conversation."""
        if self.record.title:
            return
        line = next((line.strip() for line in mask_secrets(storable(text)).splitlines() if line.strip()), "")
        self.record.title = line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1].rstrip() + "…"
        self.memory.given_title = self.record.title
        await self._services.recorder.save_title(self.record)
        self._services.emit(ConversationChanged(conversation=msgspec.structs.replace(self.record)))


def _answer_of(end: TurnEnd | None, turn: Turn) -> Answer:
    """Return the answer of a turn from its final event.

    Raises:
        RagforgeError: The turn failed or was cancelled.
    """
    if isinstance(end, TurnFailed):
        raise RagforgeError(end.error.what, todo=end.error.todo, kept=end.error.kept, kind=end.error.kind)
    if not isinstance(end, TurnCompleted):
        raise RagforgeError("The turn was cancelled.", kept="The partial answer is stored.", kind="cancelled")
    replies = [message for message in turn.messages if message.role == "assistant"]
    return Answer(
        content=end.text,
        turn_index=end.turn_index,
        reasoning="\n".join(reply.reasoning for reply in replies if reply.reasoning),
        tool_calls=[call for reply in replies for call in reply.tool_calls],
        usage=end.usage,
    )
