"""What other processes do to the conversation that is looked at here, said as events.

One query of one node a second while nothing runs here, and none while the graph is away. Turns that are being
answered elsewhere are read again at that rate until they end. Made by `EngineService`, for screens only.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Literal

import msgspec

from ragforge_tui import models
from ragforge_tui.conversation import Conversation, ConversationAgent
from ragforge_tui.engine.turn_state import answered_elsewhere, interrupted_turn
from ragforge_tui.errors import RagforgeError
from ragforge_tui.events import ConversationChanged, Notice, SummaryCreated, TopicsChanged, TurnElsewhere
from ragforge_tui.graph import Store
from ragforge_tui.models import Turn

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
MOST_TURNS = 30
"""Of more turns made elsewhere at once, an import say, only the newest are told; the others are fetched when wanted."""
_TOLD = ("title", "tags", "persona", "summary", "private", "status", "model")
_SAID = {
    "deleted": "This conversation was deleted in another terminal; it is kept for 7 days. /undo-delete brings it back.",
    "archived": "This conversation was archived in another terminal. It can be gone on with all the same.",
    "active": "This conversation was brought back in another terminal.",
}
_GONE = "This conversation was removed for good in another terminal: nothing said here is kept. /new starts another."
_COUNTED = ("message_count", "total_chars", "next_turn", "updated_at", "deleted_at")


class Following:
    """Follows one conversation at a time, the last one opened."""

    def __init__(self, agent: ConversationAgent) -> None:
        self._agent = agent
        self._task: asyncio.Task[None] | None = None

    def begin(self, conversation: Conversation, turns: Sequence[Turn], last: int) -> None:
        """Follow a conversation from what its reader has of it.

        Args:
            turns: The newest turns, as they were read.
            last: Index of the last turn there was.
        """
        self.end()
        followed = _Followed(self._agent, conversation, turns, last)
        self._task = asyncio.create_task(followed.run(), name=f"follow {conversation.record.uuid[:8]}")

    def end(self) -> None:
        """Follow none."""
        if self._task is not None:
            self._task.cancel()
            self._task = None


class _Followed:
    def __init__(self, agent: ConversationAgent, conversation: Conversation, turns: Sequence[Turn], last: int) -> None:
        self._agent = agent
        self._conversation = conversation
        self._last = last
        self._wanted = {turn.turn_index for turn in turns[-1:] if self._foreign(turn) and answered_elsewhere(turn)}
        """Turns to be read at the next look: those being answered, and those that were not read yet."""
        self._known = msgspec.structs.replace(conversation.record)
        """The record as it was stored when it was looked at last."""
        self._counted: tuple[int, int] | None = None
        """Messages and summaries there were at the last look that was carried through."""
        self._settled = {turn.turn_index: _answer(turn) for turn in turns[-1:] if turn.turn_index not in self._wanted}
        """How the newest turns were answered, as far as that was told."""
        self._there = False
        """Whether the conversation was found in the graph, and was not said to be gone."""

    def _foreign(self, turn: Turn) -> bool:
        return not self._conversation.answered_here(turn)

    async def run(self) -> None:
        """Look again and again, until cancelled or the conversation is deleted here."""
        while self._open_here():
            await asyncio.sleep(LOOK_SECONDS)
            if self._agent.graph_state.phase != "ready" or self._conversation.busy or self._agent.closing:
                continue
            try:
                await self._look(await self._agent.store())
            except RagforgeError as error:
                log.info("not followed: %s", error)

    def _open_here(self) -> bool:
        return self._agent.opened(self._conversation.record.uuid) is self._conversation

    async def _look(self, store: Store) -> None:
        pulse = await store.sessions.pulse(self._conversation.record.uuid)
        if self._conversation.busy or not self._open_here():
            return  # What was read is not the whole story any more, or was done here.
        if pulse is None:
            self._not_there()
            return
        self._there = True
        stored, known = pulse.conversation, self._known
        if known != stored:
            self._record_changed(known, stored)
            self._known = stored
        last = stored.next_turn - 1
        self._wanted.update(range(max(self._last + 1, last - MOST_TURNS + 1), last + 1))
        messages, summaries = self._counted or (known.message_count, pulse.summaries)
        if messages != stored.message_count:
            # Their answers may have been asked for again, the earlier one's before the later turn began.
            self._wanted.update({self._last, last} - {0})
        self._last = max(self._last, last)
        for index in sorted(self._wanted):
            await self._read(store, index)
        if summaries != pulse.summaries:
            await self._summaries_changed()
        self._counted = stored.message_count, pulse.summaries

    async def _read(self, store: Store, index: int) -> None:
        """Say how a turn stands. It stays wanted until that was done and nobody answers it."""
        uuid = self._conversation.record.uuid
        turns = await store.turns.between(uuid, start=index, end=index + 1)
        if self._conversation.busy:
            return  # It may be this very turn that is answered here now.
        if not turns or not self._foreign(turns[0]):
            self._wanted.discard(index)
            return
        turn = turns[0]
        active = answered_elsewhere(turn)
        settled = self._settled.pop(index, None)
        if not active:
            self._wanted.discard(index)
            self._settle(turn)
            if settled == _answer(turn):
                return
        await self._conversation.take_in(turn)
        interrupted = not active and interrupted_turn(turns) is not None
        self._agent.emit(
            TurnElsewhere(conversation_id=uuid, turn_index=index, turn=turn, active=active, interrupted=interrupted)
        )

    def _settle(self, turn: Turn) -> None:
        """Remember how a turn was answered; only the newest two are looked at again."""
        self._settled = {known: said for known, said in self._settled.items() if known >= self._last - 1}
        self._settled[turn.turn_index] = _answer(turn)

    def _record_changed(self, known: models.Conversation, stored: models.Conversation) -> None:
        """Take over what changed in the graph, in place: the conversation's memory holds the same record.

        What did not change there may have been changed here a moment ago, and is on its way there.
        """
        record = self._conversation.record
        if stored.status not in (known.status, record.status):
            self._say(_SAID[stored.status], "info" if stored.status == "active" else "warning")
        told = [name for name in _TOLD if getattr(known, name) != getattr(stored, name)]
        for name in (*told, *_COUNTED):
            setattr(record, name, getattr(stored, name))
        if told:
            self._agent.emit(ConversationChanged(conversation=msgspec.structs.replace(record)))

    def _not_there(self) -> None:
        """Purged by another process; else it is not written in from the journal yet."""
        if self._there:
            self._there = False
            self._say(_GONE, "warning")

    def _say(self, text: str, level: Literal["info", "warning"]) -> None:
        self._agent.emit(Notice(text=text, level=level, conversation_id=self._conversation.record.uuid))

    async def _summaries_changed(self) -> None:
        uuid = self._conversation.record.uuid
        fresh = await self._conversation.memory.summaries_elsewhere()
        for summary in fresh:
            self._agent.emit(SummaryCreated(conversation_id=uuid, summary=summary))
        if any(summary.topics for summary in fresh):
            self._agent.emit(TopicsChanged(conversation_id=uuid, topics=[]))


def _answer(turn: Turn) -> list[tuple[str, str]]:
    """What tells one answer of a turn, at its end, from another."""
    return [(message.uuid, message.state) for message in turn.messages if message.state != "superseded"]
