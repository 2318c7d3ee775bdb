"""Lines on their way to a reader that may be slow: deltas grow together, and a flood is cut off, never the engine.

Used by the child. Pure but for the wake-up event, so that the policy is tested without a pipe.
"""

from __future__ import annotations

import asyncio
from collections import deque

import msgspec

from ragforge_tui.events import Event, ReasoningDelta, TextDelta, TurnReset
from ragforge_tui.protocol import ReplyLine

MAX_PENDING_BYTES = 8 * 1024 * 1024
"""Waiting deltas past this are dropped, and the reader is told to fetch the turn again."""
MAX_JOINED_CHARS = 4_096


class Outbox:
    """A queue of lines for one reader."""

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
        """Queue an event; a delta joins the one before it when that belongs to the same block."""
        if isinstance(event, TextDelta | ReasoningDelta):
            if not self._take_delta(event):
                return
        else:
            self._pending.append(ReplyLine(event=event))
        self._ready.set()

    async def lines(self) -> list[bytes]:
        """Everything that waits, encoded, one line each; waits until there is something."""
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
        kept = (line for line in self._pending if not _is_delta_of(line, turn))
        self._pending = deque(kept)
        self._reset.add(turn)
        self._pending.append(ReplyLine(event=TurnReset(conversation_id=turn[0], turn_index=turn[1])))


def _continues(last: Event | None, event: TextDelta | ReasoningDelta) -> bool:
    """Whether `event` can join `last`. Long ones are not grown further: copying them again and again would add up."""
    if not isinstance(last, TextDelta | ReasoningDelta) or type(last) is not type(event):
        return False
    return last.message_id == event.message_id and len(last.text) < MAX_JOINED_CHARS


def _is_delta_of(line: ReplyLine, turn: tuple[str, int]) -> bool:
    event = line.event
    return isinstance(event, TextDelta | ReasoningDelta) and (event.conversation_id, event.turn_index) == turn
