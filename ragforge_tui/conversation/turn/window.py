"""Cache of the newest turns of an open conversation, for requests that quote them verbatim.

Opening reads a screenful. Sending a message reads more, and turns too old to be sent are dropped again.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from ragforge_tui.graph import Store
from ragforge_tui.shared.errors import GraphError
from ragforge_tui.shared.records import Conversation, Message, Turn

log = logging.getLogger(__name__)

PAGE_TURNS = 50
"""Number of turns before a new one that are loaded when a message is sent."""
MOST_SMALL_TURNS = 2_000
"""A conversation small enough to be sent whole is also read whole, unless it has more turns than this."""
KEPT_FACTOR = 4
"""Turns are dropped once their text exceeds this multiple of the text a request may hold."""


class TurnWindow:
    """Turns in ascending order, without gaps, up to the newest.

    Args:
        turns: The turns read so far.
        max_chars: Most characters of past turns in a request.
    """

    def __init__(
        self,
        record: Conversation,
        turns: list[Turn],
        store: Callable[[], Awaitable[Store]],
        max_chars: int,
    ) -> None:
        self.turns = turns
        self._record = record
        self._store = store
        self._max_chars = max_chars
        self._first: Message | None = None

    @property
    def newest(self) -> Turn | None:
        """Return the last turn, including a running one."""
        return self.turns[-1] if self.turns else None

    async def catch_up(self, index: int) -> None:
        """Read the missing turns before `index`: older ones, and those that other processes added."""
        small = self._record.total_chars <= self._max_chars and index <= MOST_SMALL_TURNS
        start = 1 if small else max(1, index - PAGE_TURNS)
        oldest = self.turns[0].turn_index if self.turns else index
        newest = self.turns[-1].turn_index if self.turns else index - 1
        if oldest <= start and newest + 1 >= index:
            return
        try:
            store = await self._store()
            earlier = await store.turns.between(self._record.uuid, start=start, end=oldest) if start < oldest else []
            later_start = max(newest + 1, start)
            later = (
                await store.turns.between(self._record.uuid, start=later_start, end=index)
                if later_start < index
                else []
            )
            self.turns = [*earlier, *self.turns, *later]
        except GraphError as error:
            log.warning("turns before turn %d not read: %s", index, error)

    def add(self, turn: Turn) -> None:
        """Append a new turn, and drop the oldest once they hold far more text than a request."""
        self.turns.append(turn)
        if len(self.turns) <= 2 * PAGE_TURNS:
            return
        keep_count, characters = len(self.turns), 0
        for position, old in enumerate(reversed(self.turns), start=1):
            characters += sum(message.char_count for message in old.messages)
            if characters > KEPT_FACTOR * self._max_chars and position > PAGE_TURNS:
                keep_count = position
                break
        if keep_count < len(self.turns) - PAGE_TURNS:
            del self.turns[:-keep_count]

    def refresh(self, turn: Turn) -> None:
        """Replace a turn that was read before another process finished it."""
        for position, cached in enumerate(self.turns):
            if cached.turn_index == turn.turn_index:
                self.turns[position] = turn

    async def first_message(self) -> Message | None:
        """Return the user's first message, read once; None if there is none or the graph is unreachable."""
        if self._first is None and self.turns:
            first = self.turns[0]
            if first.turn_index != 1:
                try:
                    turns = await (await self._store()).turns.between(self._record.uuid, start=1, end=2)
                except GraphError as error:
                    log.warning("first turn not read: %s", error)
                    return None
                if not turns:
                    return None
                first = turns[0]
            self._first = first.messages[0]
        return self._first
