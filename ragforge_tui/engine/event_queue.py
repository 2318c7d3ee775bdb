"""Queue of answers and events for the screen: deltas are joined, and dropped for a reader that is too slow."""

from __future__ import annotations

import asyncio
from collections import deque

import msgspec

from ragforge_tui.shared.events import Event, ReasoningDelta, TextDelta, TurnReset
from ragforge_tui.shared.wire import ReplyLine

MAX_PENDING_BYTES = 8 * 1024 * 1024
"""Limit of queued deltas. Beyond it they are dropped, and the reader is notified to fetch the turn again."""
MAX_JOINED_CHARS = 4_096


class EventQueue:
    """Queue of lines for one reader."""

    def __init__(self) -> None:
        self._pending: deque[ReplyLine] = deque()
        self._delta_bytes = 0
        self._reset: set[tuple[str, int]] = set()
        self._ready = asyncio.Event()
        self._encoder = msgspec.json.Encoder()

    def reply(self, line: ReplyLine) -> None:
        """Queue an answer; answers are never dropped."""
        self._pending.append(line)
        self._ready.set()

    def event(self, event: Event) -> None:
        """Queue an event; a delta is joined to the previous one of the same block."""
        if isinstance(event, TextDelta | ReasoningDelta):
            if not self._take_delta(event):
                return
        else:
            self._pending.append(ReplyLine(event=event))
        self._ready.set()

    async def lines(self) -> list[bytes]:
        """Return all queued lines, encoded; wait until there is at least one."""
        await self._ready.wait()
        self._ready.clear()
        lines = [self._encoder.encode(line) + b"\n" for line in self._pending]
        self._pending.clear()
        self._delta_bytes = 0
        self._reset.clear()
        return lines

    def _take_delta(self, event: TextDelta | ReasoningDelta) -> bool:
        turn = (event.conversation_id, event.turn_index)
        if turn in self._reset:
            return False
        if self._delta_bytes + len(event.text) > MAX_PENDING_BYTES:
            self._cut_off(turn)
            return True
        self._delta_bytes += len(event.text)
        last = self._pending[-1].event if self._pending else None
        if _continues(last, event):
            assert isinstance(last, TextDelta | ReasoningDelta)
            event = msgspec.structs.replace(last, text=last.text + event.text)
            self._pending.pop()
        self._pending.append(ReplyLine(event=event))
        return True

    def _cut_off(self, turn: tuple[str, int]) -> None:
        remaining = (line for line in self._pending if not _is_delta_of(line, turn))
        self._pending = deque(remaining)
        self._reset.add(turn)
        self._pending.append(ReplyLine(event=TurnReset(conversation_id=turn[0], turn_index=turn[1])))


def _continues(last: Event | None, event: TextDelta | ReasoningDelta) -> bool:
    """Return whether `event` can be joined to `last`. Long deltas stop growing, to bound the cost of copying them."""
    if not isinstance(last, TextDelta | ReasoningDelta) or type(last) is not type(event):
        return False
    return last.message_id == event.message_id and len(last.text) < MAX_JOINED_CHARS


def _is_delta_of(line: ReplyLine, turn: tuple[str, int]) -> bool:
    event = line.event
    return isinstance(event, TextDelta | ReasoningDelta) and (event.conversation_id, event.turn_index) == turn
