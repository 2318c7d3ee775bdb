"""One open conversation: messages go in, turns run one after another, events come out.

Part of the public Python API together with `ConversationAgent`, which makes these.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import deque
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

import msgspec

from ragforge_tui import models
from ragforge_tui.conversation.prompt import system_messages
from ragforge_tui.conversation.recall_keys import turn_keys
from ragforge_tui.conversation.tool_runner import ToolRunner
from ragforge_tui.conversation.turn import Stopped, TurnRunner, error_info, until_stopped
from ragforge_tui.errors import GraphError, RagforgeError
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
from ragforge_tui.llm import ChatModel
from ragforge_tui.memory.history import ChatMessage, newest_that_fit, without_graph
from ragforge_tui.models import Message, MessageState, ToolCall, Turn, Usage, now
from ragforge_tui.text import mask_secrets, storable
from ragforge_tui.tools.narrowed import NarrowedTools

if TYPE_CHECKING:
    from ragforge_tui.conversation.agent import ConversationAgent

log = logging.getLogger(__name__)

CHARS_PER_TOKEN = 4
ANSWER_RESERVE_TOKENS = 4_096
"""Kept free in the model's window for its answer."""
PAGE_TURNS = 50
OPENING_TURNS = 12
"""Fill a screen; opening a long conversation reads no more."""
TITLE_CHARS = 60


class Answer(msgspec.Struct, kw_only=True, frozen=True):
    """What `Conversation.send_message` returns: the turn's last text, with all it took to get there."""

    content: str
    turn_index: int
    reasoning: str = ""
    tool_calls: list[ToolCall] = []
    usage: Usage = Usage()


class Conversation:
    """A conversation that can be talked in. Made by `ConversationAgent`, not by hand."""

    def __init__(self, agent: ConversationAgent, record: models.Conversation, turns: list[Turn]) -> None:
        self.record = record
        self._agent = agent
        self._recent = turns
        """The newest turns, ascending and without gaps; earlier ones are read when a request has room for them."""
        self._active: Turn | None = None
        self._starting = False
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._queue: deque[tuple[str, str]] = deque()
        self._seen: set[str] = set()
        self._opening = [msgspec.structs.replace(turn, messages=list(turn.messages)) for turn in turns]
        agent.recorder.expect(record.uuid, record.next_turn)

    # --- talking -------------------------------------------------------------------------------------------------

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
        message_id = message_id or uuid.uuid4().hex
        if message_id in self._seen:
            return self.active_turn or 0
        self._seen.add(message_id)
        if self.busy:
            self._queue.append((text, message_id))
            self._agent.emit(MessageQueued(conversation_id=self.record.uuid, text=text))
            return 0
        return await self._begin(text, message_id)

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
        if isinstance(end, TurnFailed):
            raise RagforgeError(end.error.what, todo=end.error.todo, kept=end.error.kept, kind=end.error.kind)
        if not isinstance(end, TurnCompleted):
            raise RagforgeError("The turn was cancelled.", kept="What had come is stored.", kind="cancelled")
        turn = self._recent[-1]
        replies = [message for message in turn.messages if message.role == "assistant"]
        return Answer(
            content=end.text,
            turn_index=end.turn_index,
            reasoning="\n".join(reply.reasoning for reply in replies if reply.reasoning),
            tool_calls=[call for reply in replies for call in reply.tool_calls],
            usage=end.usage,
        )

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
        if not self._recent:
            raise RagforgeError("There is nothing to retry yet.")
        turn = self._recent[-1]
        store = await self._agent.store()
        await store.supersede(self.record.uuid, turn.turn_index, from_position=1)
        del turn.messages[1:]
        await self._catch_up(turn.turn_index)
        self._stop = asyncio.Event()
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

    def unqueue(self) -> None:
        """Drop the messages that wait."""
        self._queue.clear()

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
        first, last = await store.turn_range(self.record.uuid)
        start = first if limit is None else max(first, last - limit + 1)
        turns: list[Turn] = []
        while start <= last:
            end = min(start + PAGE_TURNS, last + 1)
            turns += await store.turns(self.record.uuid, start=start, end=end)
            start = end
        return turns

    async def get_tool_calls(self) -> list[ToolCall]:
        """All tool calls with their results, in order."""
        history = await self.get_history()
        return [call for turn in history for message in turn.messages for call in message.tool_calls]

    # --- running -------------------------------------------------------------------------------------------------

    async def _begin(self, text: str, message_id: str) -> int:
        """Store a message and begin its turn. Busy from the first line on: what comes meanwhile waits behind it."""
        self._starting = True
        self._stop = asyncio.Event()
        try:
            return await self._store_and_run(text, message_id)
        finally:
            self._starting = False

    async def _store_and_run(self, text: str, message_id: str) -> int:
        content = mask_secrets(storable(text))
        message = Message(
            uuid=message_id,
            conversation_id=self.record.uuid,
            role="user",
            content=content,
            writer=writer_id(),
            timestamp=now(),
            char_count=len(content),
            token_count=len(content) // CHARS_PER_TOKEN,
        )
        message = await self._agent.recorder.begin_turn(message)
        self._count(message)
        turn = Turn(turn_index=message.turn_index, messages=[message])
        await self._catch_up(turn.turn_index)
        self._recent.append(turn)
        self._agent.emit(TurnStarted(conversation_id=self.record.uuid, turn_index=turn.turn_index, message=message))
        self._run(turn)
        await self._give_title(text)
        return turn.turn_index

    def _run(self, turn: Turn) -> None:
        self._active = turn
        self._task = asyncio.create_task(self._run_turn(turn), name=f"turn {turn.turn_index}")

    async def _run_turn(self, turn: Turn) -> None:
        end = await self._turn_end(turn)
        for reply in turn.messages[1:]:
            self._count(reply)
        turn_text, lex_key = turn_keys(turn)
        await self._agent.recorder.index_turn(self.record.uuid, turn.turn_index, turn_text=turn_text, lex_key=lex_key)
        self._active = None
        self._task = None
        self._agent.emit(end)
        if self._queue and not self._agent.closing:
            await self._begin_queued(*self._queue.popleft())

    async def _begin_queued(self, text: str, message_id: str) -> None:
        """Begin a turn that waited; nobody waits for its answer here, so a failure is said as a notice."""
        try:
            await self._begin(text, message_id)
        except RagforgeError as error:
            self._seen.discard(message_id)
            self._agent.emit(
                Notice(
                    text=f"A message that waited was not sent: {error}", level="error", conversation_id=self.record.uuid
                )
            )

    async def _turn_end(self, turn: Turn) -> TurnEnd:
        conversation_id, index = self.record.uuid, turn.turn_index
        try:
            runner = await until_stopped(self._prepare(turn), self._stop)
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
        message = Message(
            uuid=uuid.uuid4().hex,
            conversation_id=self.record.uuid,
            turn_index=turn.turn_index,
            role="assistant",
            state=state,
            error=mask_secrets(error),
            timestamp=now(),
            persona=self.record.persona,
        )
        turn.messages.append(await self._agent.recorder.add_message(message))

    async def _prepare(self, turn: Turn) -> TurnRunner:
        agent = self._agent
        instructions = await agent.workspace_instructions()
        persona = await agent.personas.for_turn(self.record.persona)
        model = await agent.model_for(persona)
        system = system_messages(agent.workspace, persona, agent.user_name, instructions)
        past = await self._past(model)
        tools = NarrowedTools(agent.toolbox, persona.fields.tools, f"The persona {persona.name}")
        return TurnRunner(
            turn=turn,
            prefix=[*system, *past],
            stable=len(system),
            persona=persona,
            model=model,
            tools=ToolRunner(
                toolbox=tools,
                recorder=agent.recorder,
                approvals=agent.approvals,
                workspace=agent.workspace,
                emit=agent.emit,
            ),
            schemas=tools.schemas(),
            recorder=agent.recorder,
            emit=agent.emit,
            max_iterations=agent.settings.model.max_iterations,
            stop=self._stop,
        )

    async def _past(self, model: ChatModel) -> list[ChatMessage]:
        """The past that is sent: the newest turns within the budget of `max_context_chars` and the model's window."""
        memory = self._agent.settings.agent.memory
        budget = min(
            memory.max_context_chars // CHARS_PER_TOKEN, max(model.context_window - ANSWER_RESERVE_TOKENS, 1_024) // 2
        )
        earlier = self._recent[:-1]
        if self._agent.recorder.journaling:
            return without_graph(earlier)
        sent = newest_that_fit(earlier, budget)
        if memory.max_context_messages is not None:
            sent = _last_messages(sent, memory.max_context_messages)
        return sent

    async def _catch_up(self, index: int) -> None:
        """Read what is not here of the turns before `index`: opening reads a screenful, others may have written."""
        start = max(1, index - PAGE_TURNS)
        oldest = self._recent[0].turn_index if self._recent else index
        newest = self._recent[-1].turn_index if self._recent else index - 1
        if (oldest <= start and newest + 1 >= index) or self._agent.recorder.journaling:
            return
        try:
            store = await self._agent.store()
            earlier = await store.turns(self.record.uuid, start=start, end=oldest) if start < oldest else []
            later_start = max(newest + 1, start)
            later = await store.turns(self.record.uuid, start=later_start, end=index) if later_start < index else []
            self._recent = [*earlier, *self._recent, *later]
        except GraphError as error:
            log.warning("turns before turn %d not read: %s", index, error)

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
        await self._agent.recorder.save_title(self.record)
        self._agent.emit(ConversationChanged(conversation=msgspec.structs.replace(self.record)))


def _last_messages(messages: list[ChatMessage], limit: int) -> list[ChatMessage]:
    """At most the last `limit` messages, beginning with one of the person's so that no call loses its reply."""
    kept = messages[-limit:]
    first = next((position for position, message in enumerate(kept) if message["role"] == "user"), len(kept))
    return kept[first:]
