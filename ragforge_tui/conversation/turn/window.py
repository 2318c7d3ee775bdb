"""Cache of the newest turns of an open conversation, for requests that quote them verbatim.

Opening reads a screenful, and then in the background as many more as a request may hold with their results cut; turns
too old to be sent are dropped again. A message waits a moment for that and is sent with the turns read by then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from ragforge_tui.graph import Store
from ragforge_tui.memory.context.turn_formats import RESULT_CHARS
from ragforge_tui.shared.errors import GraphError
from ragforge_tui.shared.records import Conversation, Message, Turn

log = logging.getLogger(__name__)

PAGE_TURNS = 50
"""Number of turns read at once at least."""
READ_TURNS = 100
"""Number of turns read at once at most, so that a message that cannot wait for all has some of them."""
MOST_TURNS = 2_000
"""Turns that are read at most, however small they are."""
CHARS_PER_TOKEN = 5
"""Rather too many, so that no turn is missing that a request could hold."""
KEPT_FACTOR = 2
"""Turns are dropped once their text exceeds this multiple of the text a request may hold."""


class TurnWindow:
    """Turns in ascending order up to the newest, without gaps once they have caught up.

    Args:
        turns: The turns read so far.
    """

    def __init__(
        self,
        record: Conversation,
        turns: list[Turn],
        store: Callable[[], Awaitable[Store]],
    ) -> None:
        self.turns = turns
        self._record = record
        self._store = store
        self._max_chars = 0
        self._first: Message | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def newest(self) -> Turn | None:
        """Return the last turn, including a running one."""
        return self.turns[-1] if self.turns else None

    async def catch_up(self, index: int) -> None:
        """Read the turns before `index` that other processes added, or the newest if none are read yet."""
        held = {turn.turn_index for turn in self.turns}
        first = self.turns[0].turn_index if self.turns else max(1, index - PAGE_TURNS)
        missing = [turn for turn in range(first, index) if turn not in held]
        if missing:
            read = await self._between(missing[0], missing[-1] + 1)
            self.turns = sorted(
                [*self.turns, *(turn for turn in read if turn.turn_index not in held)], key=lambda turn: turn.turn_index
            )

    def place(self, places: Mapping[str, int]) -> dict[int, int]:
        """Correct guessed indexes of turns; `catch_up` reads what other processes put between them.

        Args:
            places: Indexes of turns by the uuid of their first message.

        Returns:
            The new indexes of the turns that moved, by the guessed ones.
        """
        moved: dict[int, int] = {}
        for turn in self.turns:
            index = places.get(turn.messages[0].uuid, turn.turn_index)
            if index != turn.turn_index:
                moved[turn.turn_index] = index
                turn.turn_index = index
                for message in turn.messages:
                    message.turn_index = index
        return moved

    async def extend(self, tokens: int, *, seconds: float | None = None) -> None:
        """Read older turns until they could fill `tokens` in a request.

        Args:
            seconds: Most seconds to wait, while reading continues; None waits for all.
        """
        self._max_chars = tokens * CHARS_PER_TOKEN
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._extend(), name=f"turns {self._record.uuid[:8]}")
        done, _ = await asyncio.wait({self._reading}, timeout=seconds)
        for task in done:
            task.result()

    async def _extend(self) -> None:
        held = sum(map(_least_chars, self.turns))
        while self.turns and self.turns[0].turn_index > 1 and held < self._max_chars and len(self.turns) < MOST_TURNS:
            # As many as fill the rest if they are as long as those read so far.
            missing = (self._max_chars - held) * len(self.turns) // max(held, 1)
            count = min(max(missing, PAGE_TURNS), READ_TURNS, MOST_TURNS - len(self.turns))
            first = self.turns[0].turn_index
            earlier = await self._between(max(1, first - count), first)
            if not earlier:
                return
            self.turns = [*earlier, *self.turns]
            held += sum(map(_least_chars, earlier))

    def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()

    async def _between(self, start: int, end: int) -> list[Turn]:
        try:
            return await (await self._store()).turns.between(self._record.uuid, start=start, end=end)
        except GraphError as error:
            log.warning("turns %d to %d not read: %s", start, end - 1, error)
            return []

    def add(self, turn: Turn) -> None:
        """Append a new turn, and drop the oldest once they hold far more text than a request."""
        self.turns.append(turn)
        if not self._max_chars or len(self.turns) <= 2 * PAGE_TURNS:
            return
        keep_count, characters = len(self.turns), 0
        for position, old in enumerate(reversed(self.turns), start=1):
            characters += _least_chars(old)
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


def _least_chars(turn: Turn) -> int:
    """Return the characters of a turn with its results cut as far as requests cut them."""
    calls = [call for message in turn.messages for call in message.tool_calls]
    results = sum(min(len(call.result.result), RESULT_CHARS) for call in calls if call.result is not None)
    return sum(message.char_count for message in turn.messages) + results
