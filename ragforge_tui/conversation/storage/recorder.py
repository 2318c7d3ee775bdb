"""Storage of records in the graph, or in the journal while the graph is unreachable or still starts.

The turn loop writes through the recorder and does not know the destination. After a record went to the journal, all
later ones follow until the journal is drained, which preserves their order. Every operation is idempotent.

A decision for the journal and the append that follows it must not be separated by an await: the journal could be
drained in between, and the record would wait in it until the next start.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from ragforge_tui.conversation.storage.graph_connection import GraphConnection
from ragforge_tui.conversation.storage.token_counts import Count, set_token_count
from ragforge_tui.graph import Journal, Store
from ragforge_tui.memory.context import StoredContext
from ragforge_tui.shared.errors import GraphError, NotFoundError
from ragforge_tui.shared.records import Conversation, Message, ToolCall

log = logging.getLogger(__name__)

T = TypeVar("T")


class Recorder:
    """Writer of records to the graph or the journal; without a graph to the journal only.

    While the journal is in use, the recorder guesses turn indexes and positions, so that there is something to show.
    The store allocates the real ones when the journal is drained; until then a turn is known by its first message only.
    """

    def __init__(self, journal: Journal, graph: GraphConnection | None = None, *, auto_save: bool = True) -> None:
        self._auto_save = auto_save
        self._journal = journal
        self._graph = graph
        self._journaling = False
        self._pending = 0
        self._appended = 0
        self._next_turn: dict[str, int] = {}
        self._next_position: dict[str, int] = {}
        """By the turn's first message."""
        self._guessed: set[str] = set()
        """First messages of the turns whose index is a guess."""
        self._corrections: set[asyncio.Task[None]] = set()

    @property
    def journaling(self) -> bool:
        """Return whether records currently go to the journal."""
        return self._journaling

    @property
    def knows_graph(self) -> bool:
        """Return whether its graph was reached before: one that is made now has nothing to search."""
        return self._journal.knows_graph

    async def drain(self, store: Store) -> dict[str, int]:
        """Write the journal into the graph, then write to the graph again.

        Returns:
            The indexes of the turns that began without the graph, by the uuid of their first message. The caller
            corrects them wherever they are held, before anything else runs.
        """
        appended = -1
        while appended != self._appended:
            # A turn may append to the journal during the drain; switch to the graph only when nothing was added.
            appended = self._appended
            await self._journal.drain(store)
            # Asked of the graph: an interrupted drain may have been finished by another process.
            places = await store.messages.places(sorted(self._guessed)) if self._guessed else {}
        self._journaling = False
        self._pending = 0
        self._guessed.clear()
        return places

    def forget(self, conversation_id: str) -> list[str]:
        """Remove a purged conversation from the journal, and return a sentence if that failed; blocks."""
        try:
            self._journal.forget(conversation_id)
        except OSError as error:
            return [f"The journal still holds records of it: {error}."]
        return []

    def left_behind(self) -> list[str]:
        """Return messages about records whose graph no chat opens automatically; blocks."""
        return [
            f"{info.name} was replaced by another graph; the journal still holds {info.amount()} for it. "
            "`ragforge-chat graph journal` lists and moves them."
            for info in self._journal.left_behind()
        ]

    def take_drained(self) -> set[str]:
        """Return the conversations drained from the journal since the last call."""
        drained, self._journal.touched = self._journal.touched, set()
        return drained

    async def _store(self) -> Store | None:
        """Return the store, or None if records go to the journal."""
        if self._graph is None or self._journaling:
            return None
        try:
            store = await self._graph.store_for_record()
        except GraphError as error:
            self._switch_to_journal(error)
            return None
        if store is None:
            log.info("writing to the journal until the graph has started")
            self._journaling = True
        return store

    def _switch_to_journal(self, error: GraphError) -> None:
        log.warning("writing to the journal: %s", error)
        self._journaling = True
        if self._graph is not None:
            self._graph.lost(error.info)

    def _append(self, op: str, record: object, **arguments: object) -> None:
        self._journal.starting = self._graph is not None and self._graph.state.phase == "starting"
        self._journal.append(op, record, **arguments)
        self._pending += 1
        self._appended += 1
        if self._graph is not None:
            self._graph.set_journaled(self._pending)

    async def _write(self, work: Callable[[Store], Awaitable[T]]) -> T | None:
        """Return the result of `work`, or None if the record has to go to the journal."""
        store = await self._store()
        if store is None:
            return None
        try:
            return await work(store)
        except NotFoundError:
            # Another graph may have replaced the one that holds the conversation.
            replaced = await self._replaced(store)
            if replaced is None:
                raise
            self._switch_to_journal(replaced)
            return None
        except GraphError as error:
            self._switch_to_journal(error)
            return None

    async def _replaced(self, store: Store) -> GraphError | None:
        """Return an error if the graph is not the one this process started with or cannot be reached."""
        try:
            self._journal.check(await store.graph.identify())
        except GraphError as error:
            return error
        return None

    async def create_conversation(self, conversation: Conversation) -> Conversation:
        """Store a new conversation."""
        stored = await self._write(lambda store: store.conversations.create(conversation))
        if stored is None:
            self._append("create_conversation", conversation)
        return stored or conversation

    async def begin_turn(self, message: Message) -> Message:
        """Store the user's message and allocate its turn index."""
        count = await set_token_count(message)
        stored = await self._write(lambda store: store.messages.begin_turn(message))
        if stored is None:
            index = self._next_turn.get(message.conversation_id, 1)
            stored = msgspec.structs.replace(message, turn_index=index, position=0)
            self._append("begin_turn", stored)
            self._guessed.add(stored.uuid)
        if count:
            self._correct(stored, stored.uuid, count)
        self._next_turn[stored.conversation_id] = stored.turn_index + 1
        self._next_position[stored.uuid] = 1
        return stored

    async def add_message(self, message: Message, turn_id: str) -> Message:
        """Store another message of the turn that `turn_id` begins, and allocate its position."""
        count = await set_token_count(message)
        stored = await self._write(lambda store: store.messages.add(message, turn_id))
        if stored is None:
            stored = msgspec.structs.replace(message, position=self._next_position.get(turn_id, 1))
            self._append("add_message", stored, turn_id=turn_id)
        if count:
            self._correct(stored, turn_id, count)
        self._next_position[turn_id] = stored.position + 1
        return stored

    async def checkpoint(
        self, message: Message, turn_id: str, *, content: str, reasoning: str, lease_until: datetime
    ) -> bool:
        """Update a streaming message; return False if another process requested that its turn stop.

        Without auto-save only the lease is renewed; the text is stored when the message is complete.
        """
        if not self._auto_save:
            content = reasoning = ""
        so_far = msgspec.structs.replace(message, content=content, reasoning=reasoning, tool_calls=[])
        await set_token_count(so_far)
        proceed = await self._write(
            lambda store: store.messages.checkpoint(
                message.uuid,
                content=content,
                reasoning=reasoning,
                token_count=so_far.token_count,
                lease_until=lease_until,
            )
        )
        if proceed is None:
            self._append("finish_message", so_far, turn_id=turn_id)
        return proceed is not False

    async def stop_requested(self, turn_id: str) -> bool:
        """Return whether another process requested a stop; False while the graph is unreachable."""
        store = await self._store()
        if store is None:
            return False
        try:
            return await store.messages.stop_requested(turn_id)
        except GraphError as error:
            log.debug("stop request not readable: %s", error)
            return False

    async def finish_message(self, message: Message, turn_id: str) -> None:
        """Store the final state of a message of the turn that `turn_id` begins."""
        count = await set_token_count(message)
        bare = msgspec.structs.replace(message, tool_calls=[])
        if not await self._write(lambda store: _stored(store.messages.finish(bare, turn_id))):
            self._append("finish_message", bare, turn_id=turn_id)
        if count:
            self._correct(message, turn_id, count)

    def _correct(self, message: Message, turn_id: str, count: Count) -> None:
        """Replace the estimated count of a stored message once its tokens are counted."""

        async def work() -> None:
            message.token_count = await count
            uuid, tokens = message.uuid, message.token_count
            if not await self._write(lambda store: _stored(store.messages.set_token_count(uuid, tokens))):
                self._append("finish_message", msgspec.structs.replace(message, tool_calls=[]), turn_id=turn_id)

        task = asyncio.create_task(work(), name=f"tokens {message.uuid[:8]}")
        self._corrections.add(task)
        task.add_done_callback(self._corrections.discard)

    async def settle(self) -> None:
        """Wait until the counts of all stored messages are correct."""
        await asyncio.gather(*self._corrections, return_exceptions=True)

    async def start_tool_call(self, call: ToolCall, message: Message) -> None:
        """Store the start of a call."""
        conversation_id = message.conversation_id
        if not await self._write(lambda store: _stored(store.tool_calls.start(call, conversation_id))):
            self._append("start_tool_call", call, conversation_id=conversation_id)

    async def finish_tool_call(self, call: ToolCall, workspace: str) -> None:
        """Store a call's result and the files it accessed."""
        if not await self._write(lambda store: _stored(store.tool_calls.finish(call, workspace))):
            self._append("finish_tool_call", call, workspace=workspace)

    async def save_title(self, conversation: Conversation) -> None:
        """Store a conversation's title."""
        uuid, title = conversation.uuid, conversation.title
        if await self._write(lambda store: store.conversations.update(uuid, title=title)) is None:
            self._append("update_conversation", None, uuid=uuid, title=title)

    async def save_persona(self, conversation: Conversation) -> None:
        """Store a conversation's current persona."""
        uuid, persona = conversation.uuid, conversation.persona
        if await self._write(lambda store: store.conversations.update(uuid, persona=persona)) is None:
            self._append("update_conversation", None, uuid=uuid, persona=persona)

    async def spoken_as(self, message: Message, *, digest: str, text: str) -> None:
        """Store the exact text of the persona that wrote a message."""
        spoken = {"message_uuid": message.uuid, "name": message.persona, "digest": digest, "text": text}
        if not await self._write(lambda store: _stored(store.messages.store_persona(**spoken))):
            self._append("store_persona", None, **spoken)

    async def store_context(self, message: Message, context: StoredContext) -> None:
        """Store the context of the request that a message answers."""
        fields: dict[str, Any] = {
            "message_uuid": message.uuid,
            "items": context.items,
            "tokens": context.tokens,
            "digest": context.digest,
            "texts": context.texts,
        }
        if not await self._write(lambda store: _stored(store.contexts.store(**fields))):
            self._append("store_context", None, **fields)

    def expect(self, conversation_id: str, next_turn: int) -> None:
        """Set the index of a conversation's next turn, used if the graph becomes unreachable before it."""
        self._next_turn.setdefault(conversation_id, next_turn)

    def close(self) -> None:
        """Close the journal's file; its records are written to the graph at the next start."""
        self._journal.close()


async def _stored(work: Awaitable[None]) -> bool:
    """Return True once `work` is done, to mark operations without a result as stored."""
    await work
    return True
