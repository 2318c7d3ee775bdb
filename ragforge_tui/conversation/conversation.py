"""One open conversation: messages go in, turns run one after another, events come out.

Part of the public Python API together with `ConversationAgent`, which makes these.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from ragforge_tui import models
from ragforge_tui.conversation.answer import Answer, answer_of
from ragforge_tui.conversation.memory import ConversationMemory
from ragforge_tui.conversation.own_turns import Doing, Waiting
from ragforge_tui.conversation.turn import Stopped, error_info, reply_that_never_came, until_stopped
from ragforge_tui.conversation.turn_maker import TurnMaker
from ragforge_tui.conversation.turn_window import PAGE_TURNS, TurnWindow
from ragforge_tui.conversation.undoing import ChangedFiles
from ragforge_tui.errors import RagforgeError
from ragforge_tui.events import (
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
from ragforge_tui.graph import writer_id
from ragforge_tui.memory.context import BuiltContext
from ragforge_tui.memory.history_source import speaking
from ragforge_tui.models import Message, MessageState, ToolCall, Turn, now
from ragforge_tui.redaction import mask_secrets
from ragforge_tui.requests.work import FileDiff, Mode, UndoPlan
from ragforge_tui.text import storable

if TYPE_CHECKING:
    from ragforge_tui.conversation.agent import ConversationAgent

log = logging.getLogger(__name__)

CHARS_PER_TOKEN = 4
OPENING_TURNS = 12
"""Fill a screen; opening a long conversation reads no more."""
TITLE_CHARS = 60


class Conversation:
    """A conversation that can be talked in. Made by `ConversationAgent`, not by hand."""

    def __init__(self, agent: ConversationAgent, record: models.Conversation, turns: list[Turn]) -> None:
        self.record = record
        self._mode: Mode = "ask"
        self._agent = agent
        self._window = TurnWindow(record, turns, agent.store, agent.settings.agent.memory.max_context_chars)
        self.memory = ConversationMemory(agent, record, turns)
        self._maker = TurnMaker(agent, record, self._window, self.memory, lambda: self.mode)
        self._active: Turn | None = None
        self._starting = False
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._queue: deque[Waiting] = deque()
        self._seen: set[str] = set()
        self._opening = [msgspec.structs.replace(turn, messages=list(turn.messages)) for turn in turns]
        agent.recorder.expect(record.uuid, record.next_turn)

    # --- talking -------------------------------------------------------------------------------------------------

    @property
    def mode(self) -> Mode:
        """What the agent may do without asking; may be set at any time and holds for a call that waits as well."""
        return self._mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self._mode = mode
        self._agent.approvals.mode_changed(self.record.uuid, mode)

    @property
    def busy(self) -> bool:
        """Whether a turn is under way here."""
        return self._starting or (self._task is not None and not self._task.done())

    @property
    def active_turn(self) -> int | None:
        """Index of the turn under way here."""
        return self._active.turn_index if self.busy and self._active is not None else None

    async def submit(self, text: str, message_id: str | None = None) -> int:
        """Store a message and begin its turn, or queue it behind the one under way.

        Args:
            message_id: Made by the caller; the same id is taken once.

        Returns:
            The turn's index, 0 when it was queued.
        """
        return await self._submit(Waiting(text, message_id or uuid.uuid4().hex))

    async def run_command(self, command: str, message_id: str | None = None) -> int:
        """Run the person's own command in the workspace as a turn; arguments and result as of `submit`."""
        doing = Doing("run_command", msgspec.json.encode({"command": storable(command)}).decode())
        return await self._submit(Waiting(f"!{command}", message_id or uuid.uuid4().hex, doing))

    async def _submit(self, waiting: Waiting) -> int:
        if waiting.message_id in self._seen:
            return self.active_turn or 0
        self._seen.add(waiting.message_id)
        if self.busy:
            self._queue.append(waiting)
            self._agent.emit(MessageQueued(conversation_id=self.record.uuid, text=waiting.text))
            return 0
        return await self._begin(waiting)

    async def send_message(self, text: str) -> Answer:
        """Send a message and wait for the answer.

        Raises:
            RagforgeError: When the turn failed; what had come is stored.
            asyncio.CancelledError: When the caller is cancelled; the turn is stored as interrupted.
        """
        end: TurnEnd | None = None
        async for event in self.stream(text):
            if isinstance(event, TurnCompleted | TurnCancelled | TurnFailed):
                end = event
        return answer_of(end, self._window.turns[-1])

    async def stream(self, text: str) -> AsyncGenerator[Event, None]:
        """Send a message; yields the events of its turn, the last one being its end. Leaving early stops the turn."""
        if self.busy:
            await self.wait_idle()
        with self._agent.subscribe() as events:
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
        """Ask again for the last turn's answer; the earlier attempt is superseded.

        Raises:
            RagforgeError: When a turn is under way, there is none, or the graph is away.
        """
        if self.busy:
            raise RagforgeError("A turn is under way.", todo="Stop it first, then retry.")
        with self._beginning():
            return await self._retry_newest()

    async def _retry_newest(self) -> int:
        store = await self._agent.store()
        _, last = await store.turns.range(self.record.uuid)
        await self._window.catch_up(last + 1)  # another process may have asked last
        turn = self._window.newest
        if turn is None:
            raise RagforgeError("There is nothing to retry yet.")
        if turn.messages[0].doing or any(message.role == "system" for message in turn.messages):
            raise RagforgeError("The last turn was your own doing; nobody answers it.", todo="Ask in a new message.")
        await store.messages.supersede(self.record.uuid, turn.turn_index, from_position=1)
        del turn.messages[1:]
        self._seen.add(turn.messages[0].uuid)  # whoever asked first, it is answered here
        message = msgspec.structs.replace(turn.messages[0])
        self._agent.emit(TurnStarted(conversation_id=self.record.uuid, turn_index=turn.turn_index, message=message))
        self._run(turn)
        return turn.turn_index

    async def set_persona(self, persona: str) -> None:
        """Let another persona speak from the next turn on."""
        self.record.persona = persona
        await self._agent.recorder.save_persona(self.record)
        self._agent.emit(ConversationChanged(conversation=msgspec.structs.replace(self.record)))

    def cancel(self) -> None:
        """Stop the turn under way here; what came is kept."""
        if self.busy:
            self._stop.set()

    def answered_here(self, turn: Turn) -> bool:
        """Whether all that counts of a turn was said here, and nothing by another process."""
        return all(message.uuid in self._seen for message in turn.messages if message.state != "superseded")

    async def take_in(self, turn: Turn) -> None:
        """Know what another process has said in a turn."""
        self._window.refresh(turn)
        await asyncio.to_thread(self.memory.files.note, turn)

    def unqueue(self, message_id: str = "") -> bool:
        """Drop a message that waits, or all of them; whether there was any."""
        dropped = [waiting for waiting in self._queue if not message_id or waiting.message_id == message_id]
        for waiting in dropped:
            self._queue.remove(waiting)
        return bool(dropped)

    async def wait_idle(self) -> None:
        """Wait until no turn is under way here."""
        while self.busy:
            if self._task is None or self._task.done():
                await asyncio.sleep(0.01)  # the message is being stored; its turn begins next
            else:
                await asyncio.gather(self._task, return_exceptions=True)

    # --- reading -------------------------------------------------------------------------------------------------

    def take_opening(self) -> list[Turn]:
        """The turns just read to open this, once: whoever shows it first need not read them again."""
        opening, self._opening = self._opening, []
        return [] if self._seen else opening

    async def get_history(self, limit: int | None = None) -> list[Turn]:
        """The newest `limit` turns in ascending order, all of them by default."""
        store = await self._agent.store()
        first, last = await store.turns.range(self.record.uuid)
        start = first if limit is None else max(first, last - limit + 1)
        turns: list[Turn] = []
        while start <= last:
            end = min(start + PAGE_TURNS, last + 1)
            turns += await store.turns.between(self.record.uuid, start=start, end=end)
            start = end
        return turns

    async def build_context(self, text: str) -> BuiltContext:
        """What a request for this message would hold now: sections, items with their sources, tokens, cuts."""
        if not self._agent.recorder.journaling:
            await self._window.catch_up(self.record.next_turn)
        asked = Message(uuid="", conversation_id=self.record.uuid, role="user", content=storable(text), timestamp=now())
        return await self._maker.context(Turn(turn_index=self.record.next_turn, messages=[asked]))

    async def diff(self) -> list[FileDiff]:
        """What the agent changed in files during this conversation."""
        return await (await self._changed()).diff()

    async def plan_undo(self, turn_index: int = 0, *, redo: bool = False) -> UndoPlan:
        """What taking a turn back would do: by default the last one that changed files; `redo`: the last undo.

        Raises:
            NotFoundError: There is no such turn.
        """
        return await (await self._changed()).plan(turn_index, redo=redo)

    async def undo(self, turn_index: int, message_id: str | None = None) -> int:
        """Put files back to what they were before a turn, as a turn of its own, whose index it gives.

        Raises:
            RagforgeError: A turn is under way, or nothing can be put back.
        """
        if message_id in self._seen:
            return self.active_turn or 0
        if self.busy:
            raise RagforgeError("A turn is under way.", todo="Stop it first, then undo.")
        doing = await (await self._changed()).undoing(turn_index)
        return await self._submit(Waiting(f"/undo {turn_index}", message_id or uuid.uuid4().hex, doing))

    async def _changed(self) -> ChangedFiles:
        return ChangedFiles(await self._agent.store(), self._agent.toolbox, self.record.uuid)

    async def get_tool_calls(self) -> list[ToolCall]:
        """All tool calls with their results, in order."""
        history = await self.get_history()
        return [call for turn in history for message in turn.messages for call in message.tool_calls]

    # --- running -------------------------------------------------------------------------------------------------

    async def _begin(self, waiting: Waiting) -> int:
        """Store a message and begin its turn."""
        with self._beginning():
            try:
                return await self._store_and_run(waiting)
            except RagforgeError:
                self._seen.discard(waiting.message_id)  # it did not begin, so it may be sent again
                raise

    @contextmanager
    def _beginning(self) -> Iterator[None]:
        """Busy from the first line on: what comes meanwhile waits behind the turn, or goes on when there is none."""
        self._starting = True
        self._stop = asyncio.Event()
        try:
            yield
        finally:
            self._starting = False
            if self._queue and not self.busy and not self._agent.closing:
                self._task = asyncio.create_task(self._begin_queued(self._queue.popleft()))

    async def _store_and_run(self, waiting: Waiting) -> int:
        content = mask_secrets(storable(waiting.text))
        message = Message(
            uuid=waiting.message_id,
            conversation_id=self.record.uuid,
            role="user",
            content=content,
            doing=waiting.doing.tool if waiting.doing is not None else "",
            writer=writer_id(),
            timestamp=now(),
            char_count=len(content),
            token_count=len(content) // CHARS_PER_TOKEN,
        )
        self.memory.start()
        message = await self._agent.recorder.begin_turn(message)
        if waiting.doing is not None:
            await self._refuse_twice(message)
        self._count(message)
        turn = Turn(turn_index=message.turn_index, messages=[message])
        if not self._agent.recorder.journaling:
            await self._window.catch_up(turn.turn_index)
        self._window.add(turn)
        self._agent.emit(TurnStarted(conversation_id=self.record.uuid, turn_index=turn.turn_index, message=message))
        self._run(turn, waiting.doing)
        if waiting.doing is None:
            await self._give_title(waiting.text)
        return turn.turn_index

    async def _refuse_twice(self, message: Message) -> None:
        """What an engine began that ended meanwhile is not done again: a command may have done half of it."""
        if self._agent.recorder.journaling:
            return
        index = message.turn_index
        stored = await (await self._agent.store()).turns.between(self.record.uuid, start=index, end=index + 1)
        if stored and len(stored[0].messages) > 1:
            raise RagforgeError(
                f"Turn {index} was begun before and is not done again: {message.content[:80]}",
                todo="See what became of it, then enter it anew if it is still wanted.",
            )

    def _run(self, turn: Turn, doing: Doing | None = None) -> None:
        self._active = turn
        with speaking(self.record.uuid, turn.turn_index):
            self._task = asyncio.create_task(self._run_turn(turn, doing), name=f"turn {turn.turn_index}")

    async def _run_turn(self, turn: Turn, doing: Doing | None) -> None:
        with self._agent.memory.quiet.broken():
            end = await (self._turn_end(turn) if doing is None else self._maker.own(turn, doing, self._stop).run())
        for reply in turn.messages[1:]:
            self._seen.add(reply.uuid)
            self._count(reply)
        self.memory.turn_ended(turn)
        self._active = None
        self._task = None
        self._agent.emit(end)
        if self._queue and not self._agent.closing:
            await self._begin_queued(self._queue.popleft())

    async def _begin_queued(self, waiting: Waiting) -> None:
        """Begin a turn that waited; nobody waits for its answer here, so a failure is said as a notice."""
        try:
            await self._begin(waiting)
        except RagforgeError as error:
            text = f"A message that waited was not sent: {error}"
            self._agent.emit(Notice(text=text, level="error", conversation_id=self.record.uuid))

    async def _turn_end(self, turn: Turn) -> TurnEnd:
        conversation_id, index = self.record.uuid, turn.turn_index
        try:
            runner = await until_stopped(self._maker.replies(turn, self._stop), self._stop)
        except Stopped:
            await self._store_unasked(turn, "interrupted", "")
            return TurnCancelled(conversation_id=conversation_id, turn_index=index)
        except Exception as error:
            info = error_info(error)
            await self._store_unasked(turn, "failed", info.sentence())
            return TurnFailed(error=info, conversation_id=conversation_id, turn_index=index)
        return await runner.run()

    async def _store_unasked(self, turn: Turn, state: MessageState, error: str) -> None:
        """Store that a turn ended before the model was asked, so that a resume shows it and offers a retry."""
        message = reply_that_never_came(turn, self.record.uuid, self.record.persona, state, error)
        turn.messages.append(await self._agent.recorder.add_message(message))

    def _count(self, message: Message) -> None:
        self.record.message_count += 1
        self.record.total_chars += message.char_count
        self.record.next_turn = max(self.record.next_turn, message.turn_index + 1)
        self.record.updated_at = message.timestamp

    async def _give_title(self, text: str) -> None:
        """An untitled conversation is named by the first line said in it."""
        if self.record.title:
            return
        line = next((line.strip() for line in mask_secrets(storable(text)).splitlines() if line.strip()), "")
        self.record.title = line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1].rstrip() + "…"
        self.memory.given_title = self.record.title
        await self._agent.recorder.save_title(self.record)
        self._agent.emit(ConversationChanged(conversation=msgspec.structs.replace(self.record)))
