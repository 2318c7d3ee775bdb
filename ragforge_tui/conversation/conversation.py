"""One open conversation: it accepts messages, runs their turns one after another and emits events.

Part of the public Python API. `ConversationAgent` creates the instances.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, suppress
from typing import Protocol

import msgspec

from ragforge_tui.conversation.answer import Answer, answer_of
from ragforge_tui.conversation.reading import StoredConversation
from ragforge_tui.conversation.services import Services
from ragforge_tui.conversation.turn.helpers import Helpers
from ragforge_tui.conversation.turn.inputs import InputBuilder
from ragforge_tui.conversation.turn.runner import TurnRunner
from ragforge_tui.conversation.turn.steering import InputQueue, QueuedTurn, UserCall
from ragforge_tui.conversation.turn.user_turn import UserTurn
from ragforge_tui.conversation.turn.window import TurnWindow
from ragforge_tui.graph import Store
from ragforge_tui.memory.context import BuiltContext, ContextOptions, Strategy
from ragforge_tui.memory.retrieval.reach import called_from
from ragforge_tui.shared import records
from ragforge_tui.shared.errors import STORED_ALREADY, NotFoundError, RagforgeError
from ragforge_tui.shared.events import (
    ConversationChanged,
    Event,
    MessageQueued,
    Notice,
    TurnCancelled,
    TurnCompleted,
    TurnEnd,
    TurnFailed,
    TurnsMoved,
    TurnStarted,
)
from ragforge_tui.shared.records import TITLE_CHARS, ContextRecord, Message, Turn, now
from ragforge_tui.shared.redaction import mask_secrets
from ragforge_tui.shared.requests.sessions import Deleted
from ragforge_tui.shared.requests.turns import TurnLimits
from ragforge_tui.shared.requests.work import Mode
from ragforge_tui.shared.sanitize import storable
from ragforge_tui.tools.delegate import run_helper
from ragforge_tui.tools.shell.run_command import RunCommand
from ragforge_tui.tools.undo.changes import RESTORE

log = logging.getLogger(__name__)

SETTLE_SECONDS = 3.0
"""Longest wait of closing for the memory; the next start finishes the remaining work."""
NO_LIMITS = TurnLimits()

OPENING_TURNS = 12
"""Turns that fill a screen; opening a long conversation reads no more than these."""


class ConversationOwner(Protocol):
    """The agent, as far as a conversation needs it for what concerns other conversations too."""

    async def branch_conversation(self, ref: str, turn_index: int, *, title: str = "") -> Conversation: ...

    async def archive_conversation(self, ref: str, *, archived: bool = True) -> records.Conversation: ...

    async def delete_conversation(
        self, ref: str, *, immediately: bool = False, with_branches: bool = False
    ) -> Deleted: ...


class Conversation(StoredConversation):
    """A conversation that accepts messages. `ConversationAgent` creates it.

    Examples:
        ```python
        conversation = await agent.create_conversation("Greetings")
        answer = await conversation.send_message("Read greeting.py")
        print(answer.content)
        print(answer.reasoning)
        for call in answer.tool_calls:
            print(call.tool_name, call.arguments, call.success)
        for section in answer.context_used.sections:
            print(section.title, section.tokens, [item.source for item in section.items])
        ```
    """

    def __init__(
        self, services: Services, record: records.Conversation, turns: list[Turn], owner: ConversationOwner
    ) -> None:
        super().__init__(services, record, turns)
        self._owner = owner
        self.title_is_parents = False
        self._mode: Mode = "ask"
        self._window = TurnWindow(record, turns, services.store)
        self._inputs = InputBuilder(services, record, self._window, self.memory, lambda: self.mode)
        self._closing = False
        self._active: Turn | None = None
        self._starting = False
        self._sending = asyncio.Lock()
        """Held by a caller that waits for its turn: its message must not end up in the queue."""
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._queue = InputQueue()
        self._context: tuple[str, ContextRecord | None] = ("", None)
        """First message of the last finished turn, and the context that was sent."""
        self._own_ids: set[str] = set()
        self._preparing: asyncio.Task[None] | None = None
        self._opening = [msgspec.structs.replace(turn, messages=list(turn.messages)) for turn in turns]
        services.recorder.expect(record.uuid, record.next_turn)

    def prepare(self) -> None:
        """Load in the background what the next message needs: the memory, and the turns that its request may hold."""
        self.memory.start()
        self._preparing = asyncio.create_task(self._inputs.prepare(), name=f"prepare {self.record.uuid[:8]}")

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

    async def submit(
        self,
        text: str,
        message_id: str | None = None,
        *,
        materials: Sequence[str] = (),
        steer: bool = False,
        limits: TurnLimits = NO_LIMITS,
    ) -> int:
        """Store a message and start its turn, or queue it behind the running turn.

        Args:
            message_id: Chosen by the caller; a repeated id is ignored.
            materials: Texts in the message that are not the user's own words, such as a file: they become no wish.
            steer: Hand it to the running turn before its next request to the model, if there is one.
            limits: Limits of this turn alone.

        Returns:
            The turn's index, 0 if it was queued.
        """
        message_id = message_id or uuid.uuid4().hex
        return await self._submit(QueuedTurn(text, message_id, steer=steer, limits=limits, materials=materials))

    async def run_command(self, command: str, message_id: str | None = None) -> int:
        """Run a shell command of the user in the workspace as a turn; arguments and result are those of `submit`."""
        call = UserCall(RunCommand.info.name, msgspec.json.encode({"command": storable(command)}).decode())
        return await self._submit(QueuedTurn(f"!{command}", message_id or uuid.uuid4().hex, call))

    async def _submit(self, queued: QueuedTurn) -> int:
        if queued.message_id in self._own_ids:
            return self.active_turn or 0
        self._own_ids.add(queued.message_id)
        if self.busy:
            self._queue.add(queued)
            self._services.emit(MessageQueued(conversation_id=self.record.uuid, text=queued.text))
            return 0
        return await self._start(queued)

    async def send_message(self, text: str) -> Answer:
        """Send a message and wait for the answer.

        Raises:
            RagforgeError: The turn failed; the partial answer is stored.
            asyncio.CancelledError: The caller was cancelled; the turn is stored as interrupted.

        Examples:
            ```python
            answer = await conversation.send_message("Where is `greet` defined?")
            assert "greeting.py" in answer.content
            ```
        """
        end: TurnEnd | None = None
        message_id = uuid.uuid4().hex
        async with aclosing(self._stream(text, message_id)) as events:
            async for event in events:
                if isinstance(event, TurnCompleted | TurnCancelled | TurnFailed):
                    end = event
        if not self._services.recorder.journaling:
            await self._services.exports.written(self.record.uuid)
        # By its message: the turn's index may have changed since the event.
        known = (turn for turn in reversed(self._window.turns) if turn.messages[0].uuid == message_id)
        turn = next(known, None) or Turn(turn_index=end.turn_index if end is not None else 0)
        answered, sent = self._context
        return answer_of(end, turn, sent if answered == message_id else None)

    async def stream(self, text: str) -> AsyncGenerator[Event, None]:
        """Send a message and yield its turn's events up to the final one; leaving the loop early stops the turn.

        Examples:
            ```python
            from ragforge_tui.shared.events import TextDelta, ToolCallFinished

            async for event in conversation.stream("Which files are here?"):
                if isinstance(event, TextDelta):
                    print(event.text, end="")
                elif isinstance(event, ToolCallFinished):
                    print(event.call.tool_name)
            ```
        """
        async with aclosing(self._stream(text, uuid.uuid4().hex)) as events:
            async for event in events:
                yield event

    async def _stream(self, text: str, message_id: str) -> AsyncGenerator[Event, None]:
        async with self._sending:
            if self.busy:
                await self.wait_idle()
            async with aclosing(self._events_of(text, message_id)) as events:
                async for event in events:
                    yield event

    async def _events_of(self, text: str, message_id: str) -> AsyncGenerator[Event, None]:
        index = 0
        with self._services.events.subscribe() as events:
            await self.submit(text, message_id)
            try:
                while True:
                    event = await events.get()
                    if getattr(event, "conversation_id", "") != self.record.uuid:
                        continue
                    if isinstance(event, TurnStarted) and event.message.uuid == message_id:
                        index = event.turn_index
                    elif isinstance(event, TurnsMoved):
                        index = event.moved.get(index, index)
                    yield event
                    if isinstance(event, TurnEnd) and event.turn_index == index:
                        return
            finally:
                if self._active is not None and self._active.messages[0].uuid == message_id:
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
        self._inputs.begin(turn.messages[0].content)
        await store.messages.supersede(self.record.uuid, turn.messages[0].uuid, from_position=1)
        turn.messages[1:] = [message for message in turn.messages[1:] if message.role == "user"]
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

    def turns_placed(self, places: Mapping[str, int]) -> None:
        """Correct the indexes of turns that began without the graph, which has stored them by now.

        Args:
            places: Indexes of turns by the uuid of their first message.
        """
        moved = self._window.place(places)
        if not moved:
            return
        log.info("turns of %s have other indexes than assumed: %s", self.record.uuid, moved)
        self.record.next_turn = max(self.record.next_turn, *(index + 1 for index in moved.values()))
        self._services.approvals.turns_moved(self.record.uuid, moved)
        self.memory.turns_moved(moved)
        self._services.emit(TurnsMoved(conversation_id=self.record.uuid, moved=moved))

    async def reload(self, turn: Turn) -> None:
        """Reload a turn that another process changed."""
        self._window.refresh(turn)
        await asyncio.to_thread(self.memory.files.note, turn)

    def close(self) -> None:
        """Stop the running turn and start no further one."""
        self._closing = self.memory.closing = self.memory.readers.closing = True
        if self._preparing is not None:
            self._preparing.cancel()
        self._window.close()
        self.unqueue()
        self.cancel()

    async def end(self) -> None:
        """Close it and its memory while the process continues; the memory reads the ended turns first."""
        self.close()
        if not self.record.helper_of:
            with suppress(TimeoutError):
                async with asyncio.timeout(SETTLE_SECONDS):
                    await self.wait_idle()
                    await self.memory.settle(turns_only=True)
        await self.memory.close()

    def unqueue(self, message_id: str = "") -> bool:
        """Drop one queued message, or all of them; return whether there was any."""
        dropped = self._queue.drop(message_id)
        self._own_ids.difference_update(dropped)  # each may be sent again
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

    async def summarize(self) -> str:
        """Rewrite the conversation's summary now and return it: two or three sentences on its subjects and results.

        Without a model the sentences are extracted.

        Examples:
            ```python
            print(await conversation.summarize())
            ```
        """
        return await self.memory.summarise_conversation()

    async def build_context(
        self,
        text: str,
        *,
        strategy: Strategy | None = None,
        recent_messages: int | None = None,
        relevant_messages: int | None = None,
        include_summary: bool = True,
    ) -> BuiltContext:
        """Return what a request for a message would hold, without sending it: sections, items with sources, tokens.

        The arguments apply to this context only, in place of the settings under ``agent.memory``.

        Args:
            text: The message.
            strategy: ``hybrid`` sends newest and relevant turns, ``recent`` the newest alone, ``relevant`` the relevant
                ones with the last two.
            recent_messages: Most messages of the newest turns, sent as they were; turns are kept whole.
            relevant_messages: Most turns to recall: a message is recalled together with its answer.
            include_summary: Whether to send summaries, their findings and topics.

        Examples:
            ```python
            context = await conversation.build_context(
                "And the greeting?", strategy="hybrid", recent_messages=5, relevant_messages=10, include_summary=True
            )
            print(context.tokens, [section.name for section in context.sections])
            ```
        """
        chosen = ContextOptions(
            strategy=strategy,
            recent_messages=recent_messages,
            relevant_turns=relevant_messages,
            summaries=include_summary,
        )
        if not self._services.recorder.journaling:
            await self.memory.ready()
            await self._window.catch_up(self.record.next_turn)
        asked = Message(uuid="", conversation_id=self.record.uuid, role="user", content=storable(text), timestamp=now())
        turn = Turn(turn_index=self.record.next_turn, messages=[asked])
        await self._inputs.prepare()
        self._inputs.begin(asked.content)
        return (await self._inputs.build(turn, None if chosen == ContextOptions() else chosen)).context

    async def branch(
        self, from_message: str = "", *, turn: int | None = None, title: str = "", from_message_id: str = ""
    ) -> Conversation:
        """Create a conversation that continues from a point of this one, which stays unchanged.

        Args:
            from_message: Id of a message; the branch shares the turns up to and including the message's own.
            turn: The last turn both share, 0 for none. Without message and turn: the newest one.
            title: Title of the branch; empty for that of this conversation, until its own first message gives it one.
            from_message_id: The same as `from_message`, under the specification's name.

        Raises:
            NotFoundError: The conversation has no such message or turn.
            RagforgeError: The turn is still being answered.

        Examples:
            ```python
            answer = await conversation.send_message("Read greeting.py")
            branch = await conversation.branch(turn=answer.turn_index, title="Alternative approach")
            await branch.send_message("Which files are here?")
            ```
        """
        if from_message := from_message or from_message_id:
            turn = await self._turn_of(from_message)
        if turn is None:
            turn = (self.active_turn or self.record.next_turn) - 1
        return await self._owner.branch_conversation(self.record.uuid, turn, title=title)

    async def _turn_of(self, message_id: str) -> int:
        store = await self._services.store()
        message = await store.messages.find(message_id)
        if message is not None:
            index = message.turn_index
            shared = await store.turns.between(self.record.uuid, start=index, end=index + 1)
            if any(one.uuid == message_id for turn in shared for one in turn.messages):
                return index
        raise NotFoundError(f"The conversation {self.record.uuid[:8]} has no message {message_id!r}.")

    async def archive(self, *, archived: bool = True) -> None:
        """Archive the conversation, or make it active again."""
        await self._owner.archive_conversation(self.record.uuid, archived=archived)

    async def delete(self, *, immediately: bool = False, with_branches: bool = False) -> Deleted:
        """Hide the conversation; see `ConversationAgent.delete_conversation`."""
        return await self._owner.delete_conversation(
            self.record.uuid, immediately=immediately, with_branches=with_branches
        )

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

    # --- running -------------------------------------------------------------------------------------------------

    async def _start(self, queued: QueuedTurn) -> int:
        with self._marked_busy(), self._services.memory.pace.urgent():
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
                self._task = asyncio.create_task(self._start_queued(self._queue.next()))

    async def _store_and_run(self, queued: QueuedTurn) -> int:
        message = queued.message(self.record.uuid)
        self.memory.start()
        if queued.call is None:
            self._inputs.begin(message.content)
        asked = message.timestamp
        message = await self._services.recorder.begin_turn(message)
        if message.timestamp != asked:
            await _reject_repetition(await self._services.store(), message)
        self._count(message)
        turn = Turn(turn_index=message.turn_index, messages=[message])
        if not self._services.recorder.journaling:
            await self._window.catch_up(turn.turn_index)
        self._window.add(turn)
        if queued.call is None:
            self.memory.wishes.said(message)
        self._services.emit(TurnStarted(conversation_id=self.record.uuid, turn_index=turn.turn_index, message=message))
        self._run(turn, queued.call, queued.limits)
        if queued.call is None:
            await self._give_title(queued.text)
        return turn.turn_index

    def _run(self, turn: Turn, call: UserCall | None = None, limits: TurnLimits = NO_LIMITS) -> None:
        self._active = turn
        with called_from(self.record.uuid, turn.turn_index):
            self._task = asyncio.create_task(self._run_turn(turn, call, limits), name=f"turn {turn.turn_index}")

    async def _run_turn(self, turn: Turn, call: UserCall | None, limits: TurnLimits) -> None:
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
                queue=self._queue,
                stop=self._stop,
                limits=limits,
            )
        counted = len(turn.messages)
        if isinstance(runner, TurnRunner):
            helpers = Helpers(
                self._services,
                self.record,
                opened=lambda services, record: Conversation(services, record, [], self._owner),
                on_usage=runner.note_helper,
                mode=lambda: self.mode,
            )
            run_helper.set(helpers.run)
        memory = self._services.memory
        with memory.active_turns.running(), memory.pace.turn():
            end = await runner.run()
        if isinstance(runner, TurnRunner):
            self._context = turn.messages[0].uuid, runner.context
        else:
            self._inputs.outdated()
        for message in turn.messages[counted:]:
            self._own_ids.add(message.uuid)
            self._count(message)
        if not self._services.recorder.journaling:
            await self._services.exports.turn_ended(self.record.uuid)
        self.memory.turn_ended(turn)
        self._active = None
        self._task = None
        self._services.emit(end)
        if self._queue and not self._closing:
            await self._start_queued(self._queue.next())

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
        """Use the first line of a message as the title of an untitled conversation, or of a branch without one."""
        if self.record.title and not self.title_is_parents:
            return
        self.title_is_parents = False
        line = next((line.strip() for line in mask_secrets(storable(text)).splitlines() if line.strip()), "")
        self.record.title = line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1].rstrip() + "…"
        self.memory.given_title = self.record.title
        await self._services.recorder.save_title(self.record)
        self._services.emit(ConversationChanged(conversation=msgspec.structs.replace(self.record)))


async def _reject_repetition(store: Store, message: Message) -> None:
    """Reject a message that an earlier engine process already started to answer, or ran as a command.

    Raises:
        RagforgeError: The turn already holds more than the user's message.
    """
    index = message.turn_index
    stored = await store.turns.between(message.conversation_id, start=index, end=index + 1)
    if stored and len(stored[0].messages) > 1:
        todo = "Check its effects, then enter it again if you still need it."
        raise RagforgeError(
            f"Turn {index} had already started, so it is not run again: {message.content[:80]}",
            todo=todo if message.doing else "/retry asks for its answer again.",
            kind=STORED_ALREADY,
        )
