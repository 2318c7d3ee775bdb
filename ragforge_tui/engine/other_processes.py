"""Changes by other processes: the state of turns they answer, and polling of the open conversation for events.

Polling costs one query for one node per second while no turn runs here, fewer once the conversation is quiet, and none
while the graph is unreachable. Turns that another process is answering are reloaded at that rate until they end. Only
user interfaces need it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Literal

import msgspec

from ragforge_tui.conversation import Conversation, ConversationAgent
from ragforge_tui.conversation.limits import CONVERSATION
from ragforge_tui.graph import Store, writer_alive, writer_id
from ragforge_tui.shared import records
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.events import ConversationChanged, Notice, SummaryCreated, TopicsChanged, TurnElsewhere
from ragforge_tui.shared.records import PURGE_AFTER_DAYS, Message, Turn, now

log = logging.getLogger(__name__)

MOST_TURNS = 30
"""If other processes add more turns at once, for example by an import, only the newest of them are reported. The user
interface fetches the others when it shows them."""
_REPORTED_FIELDS = ("title", "tags", "persona", "summary", "private", "status", "model")
_STATUS_NOTICES = {
    "deleted": f"Another terminal deleted this conversation. /undo-delete restores it within {PURGE_AFTER_DAYS} days.",
    "archived": "Another terminal archived this conversation. You can still continue it.",
    "active": "Another terminal restored this conversation.",
}
_PURGED_NOTICE = (
    "Another terminal removed this conversation permanently: new messages are not stored. /new starts another one."
)
_COUNTER_FIELDS = ("message_count", "total_chars", "next_turn", "updated_at", "deleted_at")


class ConversationWatcher:
    """Watcher of one conversation at a time, the last one opened."""

    def __init__(self, agent: ConversationAgent) -> None:
        self._agent = agent
        self._task: asyncio.Task[None] | None = None

    def start(self, conversation: Conversation, turns: Sequence[Turn], last: int) -> None:
        """Watch a conversation, starting from the turns the reader already has.

        Args:
            turns: The newest turns, as read.
            last: Index of the last turn at that time.
        """
        self.stop()
        watch = _Watch(self._agent, conversation, turns, last)
        self._task = asyncio.create_task(watch.run(), name=f"follow {conversation.record.uuid[:8]}")

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None


class _Watch:
    def __init__(self, agent: ConversationAgent, conversation: Conversation, turns: Sequence[Turn], last: int) -> None:
        self._agent = agent
        self._conversation = conversation
        self._last = last
        self._pending = {turn.turn_index for turn in turns[-1:] if self._foreign(turn) and answered_elsewhere(turn)}
        """Turns to read at the next poll: those being answered and those not read yet."""
        self._last_record = msgspec.structs.replace(conversation.record)
        """The stored record at the last poll."""
        self._last_counts: tuple[int, int] | None = None
        """Numbers of messages and summaries at the last completed poll."""
        self._answers = {turn.turn_index: _answer(turn) for turn in turns[-1:] if turn.turn_index not in self._pending}
        """Answers of the newest turns that were already reported."""
        self._exists = False
        """Whether the conversation was in the graph at the last poll."""
        self._changed = time.monotonic()
        """When the conversation last changed, here or elsewhere."""

    def _foreign(self, turn: Turn) -> bool:
        return not self._conversation.answered_here(turn)

    async def run(self) -> None:
        """Poll until cancelled or until this process deletes the conversation."""
        while self._open_here():
            if self._conversation.busy or self._pending:
                self._changed = time.monotonic()
            quiet = time.monotonic() - self._changed > CONVERSATION.quiet
            await asyncio.sleep(CONVERSATION.quiet_look if quiet else CONVERSATION.look)
            if self._agent.graph_state.phase != "ready" or self._conversation.busy or self._agent.closing:
                continue
            try:
                await self._poll(await self._agent.store())
            except RagforgeError as error:
                log.info("poll failed: %s", error)

    def _open_here(self) -> bool:
        return self._agent.opened(self._conversation.record.uuid) is self._conversation

    async def _poll(self, store: Store) -> None:
        pulse = await store.conversations.pulse(self._conversation.record.uuid)
        if self._conversation.busy or not self._open_here():
            return  # The result is outdated, or the change was made here.
        if pulse is None:
            self._report_missing()
            return
        self._exists = True
        stored, previous = pulse.conversation, self._last_record
        if previous != stored:
            self._record_changed(previous, stored)
            self._last_record, self._changed = stored, time.monotonic()
        last = stored.next_turn - 1
        self._pending.update(range(max(self._last + 1, last - MOST_TURNS + 1), last + 1))
        messages, summaries = self._last_counts or (previous.message_count, pulse.summaries)
        if messages != stored.message_count:
            # Both answers may have been retried, the earlier one before the later turn started.
            self._pending.update({self._last, last} - {0})
        self._last = max(self._last, last)
        for index in sorted(self._pending):
            await self._read(store, index)
        if summaries != pulse.summaries:
            await self._summaries_changed()
        self._last_counts = stored.message_count, pulse.summaries

    async def _read(self, store: Store, index: int) -> None:
        """Report the state of a turn; it stays pending until it is reported and no process is answering it."""
        uuid = self._conversation.record.uuid
        turns = await store.turns.between(uuid, start=index, end=index + 1)
        if self._conversation.busy:
            return  # This process may now be answering the same turn.
        if not turns or not self._foreign(turns[0]):
            self._pending.discard(index)
            return
        turn = turns[0]
        active = answered_elsewhere(turn)
        reported = self._answers.pop(index, None)
        if not active:
            self._pending.discard(index)
            self._remember_answer(turn)
            if reported == _answer(turn):
                return
        await self._conversation.reload(turn)
        interrupted = not active and interrupted_turn(turns) is not None
        self._agent.emit(
            TurnElsewhere(conversation_id=uuid, turn_index=index, turn=turn, active=active, interrupted=interrupted)
        )

    def _remember_answer(self, turn: Turn) -> None:
        """Remember a turn's answer; only the newest two turns are checked again."""
        self._answers = {index: answer for index, answer in self._answers.items() if index >= self._last - 1}
        self._answers[turn.turn_index] = _answer(turn)

    def _record_changed(self, previous: records.Conversation, stored: records.Conversation) -> None:
        """Copy changed fields into the open record, in place, because the conversation's memory shares it.

        Unchanged fields are not copied: this process may have changed them and not stored them yet.
        """
        record = self._conversation.record
        if stored.status not in (previous.status, record.status):
            self._notify(_STATUS_NOTICES[stored.status], "info" if stored.status == "active" else "warning")
        changed = [name for name in _REPORTED_FIELDS if getattr(previous, name) != getattr(stored, name)]
        for name in (*changed, *_COUNTER_FIELDS):
            setattr(record, name, getattr(stored, name))
        if changed:
            self._agent.emit(ConversationChanged(conversation=msgspec.structs.replace(record)))

    def _report_missing(self) -> None:
        """Report a purge by another process, unless the journal has not stored the conversation yet."""
        if self._exists:
            self._exists = False
            self._notify(_PURGED_NOTICE, "warning")

    def _notify(self, text: str, level: Literal["info", "warning"]) -> None:
        self._agent.emit(Notice(text=text, level=level, conversation_id=self._conversation.record.uuid))

    async def _summaries_changed(self) -> None:
        uuid = self._conversation.record.uuid
        added = await self._conversation.memory.summaries_elsewhere()
        for summary in added:
            self._agent.emit(SummaryCreated(conversation_id=uuid, summary=summary))
        if any(summary.topics for summary in added):
            self._agent.emit(TopicsChanged(conversation_id=uuid, topics=[]))


def _answer(turn: Turn) -> list[tuple[str, str]]:
    """Return a fingerprint of a turn's answer: the id and state of each message that counts."""
    return [(message.uuid, message.state) for message in turn.messages if message.state != "superseded"]


def foreign_active_turn(turns: list[Turn]) -> int | None:
    """Return the index of the last turn if a live process other than this one is answering it."""
    last = _last(turns)
    if last is None or not _unanswered(last) or not last.writer or last.writer == writer_id():
        return None
    return last.turn_index if writer_alive(last.writer, last.lease_until, now()) else None


def answered_elsewhere(turn: Turn) -> bool:
    """Return whether a live process is answering a turn that was not started here."""
    last = _last([turn])
    if last is None or not _unanswered(last) or not last.writer:
        return False
    return writer_alive(last.writer, last.lease_until, now())


def interrupted_turn(turns: list[Turn]) -> int | None:
    """Return the index of the last turn if it ended without a complete answer."""
    last = _last(turns)
    if last is None or last.role == "system" or last.doing:
        return None
    return last.turn_index if _unanswered(last) or last.state in ("interrupted", "failed") else None


def _last(turns: list[Turn]) -> Message | None:
    messages = [message for turn in turns[-1:] for message in turn.messages if message.state != "superseded"]
    return messages[-1] if messages else None


def _unanswered(message: Message) -> bool:
    """Return whether a turn that ends with this message is unfinished: a question, or calls without a reply."""
    if message.role == "user":
        return True
    if message.role == "system":
        # A turn that the user runs without the model waits for its result, but never for an answer.
        return any(call.result is None for call in message.tool_calls)
    return message.state == "streaming" or (message.state == "complete" and bool(message.tool_calls))
