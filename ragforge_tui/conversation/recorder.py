"""Stores each record the moment it exists: in the graph, or in the journal while the graph is away.

The turn loop writes through here and never learns which it was. Once a record went to the journal all later ones
follow it there until the journal is written in, so that their order holds. Every operation may be applied twice.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from ragforge_tui.conversation.graph_link import GraphLink
from ragforge_tui.errors import GraphError, NotFoundError
from ragforge_tui.graph import UNKNOWN, Journal, Store
from ragforge_tui.memory.context import StoredContext
from ragforge_tui.models import Conversation, Message, ToolCall

log = logging.getLogger(__name__)

T = TypeVar("T")


class Recorder:
    """Writes records to the graph or the journal.

    While the journal is used, turn indexes and positions are counted here; the drain gives records whose place was
    taken meanwhile a new one.
    """

    def __init__(self, journal: Journal, *, auto_save: bool = True) -> None:
        self._auto_save = auto_save
        self._journal = journal
        self._link: GraphLink | None = None
        self._journaling = False
        self._pending = 0
        self._appended = 0
        self._next_turn: dict[str, int] = {}
        self._next_position: dict[tuple[str, int], int] = {}

    def attach(self, link: GraphLink) -> None:
        """Name the graph to write to; done once, since the link drains this recorder when it opens."""
        self._link = link

    @property
    def journaling(self) -> bool:
        """Whether records go to the journal now."""
        return self._journaling

    async def drain(self, store: Store) -> int:
        """Write the journal into the graph; returns how many records are left (none, unless it raises)."""
        appended = -1
        while appended != self._appended:
            # A turn may go on writing to the journal while it is drained; only when nothing came may it go past it.
            appended = self._appended
            await self._journal.drain(store)
        self._journaling = False
        self._pending = 0
        return 0

    def forget(self, conversation_id: str) -> None:
        """Drop what the journal holds of a conversation that was purged; blocks."""
        try:
            self._journal.forget(conversation_id)
        except OSError as error:
            log.warning("the journal still holds records of %s: %s", conversation_id, error)

    def left_behind(self) -> list[str]:
        """Return, in words, what waits for no graph that a chat would reach by itself; blocks."""
        told = []
        for info in self._journal.left_behind():
            if info.key == UNKNOWN:
                what = f"{info.amount()} of an earlier release in the journal: which graph they are for is not known."
            else:
                what = f"{info.name} was replaced by another graph; {info.amount()} for it in the journal."
            told.append(f"{what} `ragforge-chat graph journal` lists and moves what waits.")
        return told

    def take_drained(self) -> set[str]:
        """Conversations that came out of the journal since this was last asked."""
        drained, self._journal.touched = self._journal.touched, set()
        return drained

    async def _store(self) -> Store | None:
        """The store, or None when records go to the journal."""
        if self._link is None or self._journaling:
            return None
        try:
            return await self._link.store()
        except GraphError as error:
            self._turn_to_journal(error)
            return None

    def _turn_to_journal(self, error: GraphError) -> None:
        log.warning("writing to the journal: %s", error)
        self._journaling = True
        if self._link is not None:
            self._link.lost(error.info)

    def _append(self, op: str, record: object, **arguments: object) -> None:
        self._journal.append(op, record, **arguments)
        self._pending += 1
        self._appended += 1
        if self._link is not None:
            self._link.set_journaled(self._pending)

    async def _write(self, work: Callable[[Store], Awaitable[T]]) -> T | None:
        """What the store gave back, or None when the record has to go to the journal."""
        store = await self._store()
        if store is None:
            return None
        try:
            return await work(store)
        except NotFoundError:
            # Another graph may have taken the place of the one that has the conversation.
            replaced = await self._replaced(store)
            if replaced is None:
                raise
            self._turn_to_journal(replaced)
            return None
        except GraphError as error:
            self._turn_to_journal(error)
            return None

    async def _replaced(self, store: Store) -> GraphError | None:
        """The error of a graph that is not the one this process began with, or went away while it was asked."""
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
        """Store the person's message; its turn index is allocated here."""
        stored = await self._write(lambda store: store.messages.begin_turn(message))
        if stored is None:
            index = self._next_turn.get(message.conversation_id, 1)
            stored = msgspec.structs.replace(message, turn_index=index, position=0)
            self._append("begin_turn", stored)
        self._next_turn[stored.conversation_id] = stored.turn_index + 1
        self._next_position[(stored.conversation_id, stored.turn_index)] = 1
        return stored

    async def add_message(self, message: Message) -> Message:
        """Store a further message of its turn; its position is allocated here."""
        key = (message.conversation_id, message.turn_index)
        stored = await self._write(lambda store: store.messages.add(message))
        if stored is None:
            stored = msgspec.structs.replace(message, position=self._next_position.get(key, 1))
            self._append("add_message", stored)
        self._next_position[key] = stored.position + 1
        return stored

    async def checkpoint(self, message: Message, *, content: str, reasoning: str, lease_until: datetime) -> bool:
        """Bring a streaming message up to date; False when somebody asked that its turn stop.

        Without auto-save only its lease is renewed: the text follows when the message is whole.
        """
        if not self._auto_save:
            content = reasoning = ""
        go_on = await self._write(
            lambda store: store.messages.checkpoint(
                message.uuid, content=content, reasoning=reasoning, lease_until=lease_until
            )
        )
        if go_on is None:
            so_far = msgspec.structs.replace(message, content=content, reasoning=reasoning, tool_calls=[])
            self._append("finish_message", so_far)
        return go_on is not False

    async def stop_requested(self, conversation_id: str, turn_index: int) -> bool:
        """Whether another process asked this turn to stop; nobody can while the graph is away."""
        store = await self._store()
        if store is None:
            return False
        try:
            return await store.messages.stop_requested(conversation_id, turn_index)
        except GraphError as error:
            log.debug("not known whether a stop is asked for: %s", error)
            return False

    async def finish_message(self, message: Message) -> None:
        """Store the final state of a message."""
        message = msgspec.structs.replace(message, tool_calls=[])
        if not await self._write(lambda store: _done(store.messages.finish(message))):
            self._append("finish_message", message)

    async def start_tool_call(self, call: ToolCall, message: Message) -> None:
        """Store that a call begins."""
        conversation_id = message.conversation_id
        if not await self._write(lambda store: _done(store.tool_calls.start(call, conversation_id))):
            self._append("start_tool_call", call, conversation_id=conversation_id)

    async def finish_tool_call(self, call: ToolCall, workspace: str) -> None:
        """Store a call's result and the files it touched."""
        if not await self._write(lambda store: _done(store.tool_calls.finish(call, workspace))):
            self._append("finish_tool_call", call, workspace=workspace)

    async def save_title(self, conversation: Conversation) -> None:
        """Store a conversation's title."""
        uuid, title = conversation.uuid, conversation.title
        if await self._write(lambda store: store.conversations.update(uuid, title=title)) is None:
            self._append("update_conversation", None, uuid=uuid, title=title)

    async def save_persona(self, conversation: Conversation) -> None:
        """Store which persona speaks from here on."""
        uuid, persona = conversation.uuid, conversation.persona
        if await self._write(lambda store: store.conversations.update(uuid, persona=persona)) is None:
            self._append("update_conversation", None, uuid=uuid, persona=persona)

    async def spoken_as(self, message: Message, *, digest: str, text: str) -> None:
        """Store the very text of the persona that speaks a message."""
        spoken = {"message_uuid": message.uuid, "name": message.persona, "digest": digest, "text": text}
        if not await self._write(lambda store: _done(store.messages.store_persona(**spoken))):
            self._append("store_persona", None, **spoken)

    async def store_context(self, message: Message, context: StoredContext) -> None:
        """Store what the request held that a message answers."""
        held: dict[str, Any] = {
            "message_uuid": message.uuid,
            "items": context.items,
            "tokens": context.tokens,
            "digest": context.digest,
            "texts": context.texts,
        }
        if not await self._write(lambda store: _done(store.contexts.store(**held))):
            self._append("store_context", None, **held)

    def expect(self, conversation_id: str, next_turn: int) -> None:
        """Tell where a conversation's turns go on, should the graph go away before the next one."""
        self._next_turn.setdefault(conversation_id, next_turn)

    def close(self) -> None:
        """Close the journal's file; what waits in it is written in at the next start."""
        self._journal.close()


async def _done(work: Awaitable[None]) -> bool:
    """True once `work` is done: tells "stored" from "not stored" for operations that give nothing back."""
    await work
    return True
