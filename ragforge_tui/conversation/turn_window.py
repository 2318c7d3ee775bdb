"""The newest turns of an open conversation, in memory: what a request may hold as it was said.

Opening reads a screenful; more is read when something is said, and forgotten again when it can no longer be sent.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from ragforge_tui.errors import GraphError
from ragforge_tui.graph import Store
from ragforge_tui.models import Conversation, Message, Turn

log = logging.getLogger(__name__)

PAGE_TURNS = 50
"""How many turns before the new one are there when something is said."""
MOST_SMALL_TURNS = 2_000
"""A conversation that may be sent whole is read whole, but not when it is made of more turns than this."""
KEPT_FACTOR = 4
"""Turns are forgotten once their text is this often what a request may hold."""


class TurnWindow:
    """Turns in ascending order, without gaps, up to the newest.

    Args:
        turns: Those just read.
        max_chars: Text of past turns that a request holds at most.
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
        """The last turn, the one under way included."""
        return self.turns[-1] if self.turns else None

    async def catch_up(self, index: int) -> None:
        """Read what is not here of the turns before `index`: opening reads a screenful, others may have written."""
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
        """Take the turn that begins in, and forget the oldest once they are much more than can be sent."""
        self.turns.append(turn)
        if len(self.turns) <= 2 * PAGE_TURNS:
            return
        kept, characters = len(self.turns), 0
        for position, old in enumerate(reversed(self.turns), start=1):
            characters += sum(message.char_count for message in old.messages)
            if characters > KEPT_FACTOR * self._max_chars and position > PAGE_TURNS:
                kept = position
                break
        if kept < len(self.turns) - PAGE_TURNS:
            del self.turns[:-kept]

    def refresh(self, turn: Turn) -> None:
        """Take over what another process made of a turn that was read when it was not at its end."""
        for position, known in enumerate(self.turns):
            if known.turn_index == turn.turn_index:
                self.turns[position] = turn

    async def first_message(self) -> Message | None:
        """The person's first message of the conversation, read once; None while there is none or no graph."""
        if self._first is None and self.turns:
            first = self.turns[0]
            if first.turn_index != 1:
                try:
                    found = await (await self._store()).turns.between(self._record.uuid, start=1, end=2)
                except GraphError as error:
                    log.warning("first turn not read: %s", error)
                    return None
                if not found:
                    return None
                first = found[0]
            self._first = first.messages[0]
        return self._first
