"""Inputs that wait for the running turn: some for its end, some for its next request to the model.

A message that steers is stored in the running turn right before the next request, after the results of the calls that
the model made meanwhile. That is also its place in later requests. If the turn needs no further request, the message
starts the next turn, before those that were queued for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import msgspec

from ragforge_tui.graph import writer_id
from ragforge_tui.shared.records import Message, material_ranges, now
from ragforge_tui.shared.redaction import mask_secrets
from ragforge_tui.shared.requests.turns import TurnLimits
from ragforge_tui.shared.sanitize import storable

STEERED = "[The user sent this while you were working. Take it into account and continue.]"
"""Note of a message that was handed to a running turn."""


class UserCall(msgspec.Struct, frozen=True):
    """A tool call that the user makes: the tool and its arguments as JSON."""

    tool: str
    arguments: str


class QueuedTurn(msgspec.Struct, frozen=True):
    """Input whose turn has not started; with `call` no model is asked, with `steer` it may join the running turn."""

    text: str
    message_id: str
    call: UserCall | None = None
    steer: bool = False
    limits: TurnLimits = TurnLimits()
    materials: Sequence[str] = ()

    def message(self, conversation_id: str) -> Message:
        """Return the message to store."""
        content, *materials = (mask_secrets(storable(text)) for text in (self.text, *self.materials))
        return Message(
            uuid=self.message_id,
            conversation_id=conversation_id,
            role="user",
            content=content,
            doing=self.call.tool if self.call is not None else "",
            material=material_ranges(content, materials),
            writer=writer_id(),
            timestamp=now(),
            char_count=len(content),
        )


class InputQueue:
    """Inputs in the order in which they will be used: those that steer first."""

    def __init__(self) -> None:
        self._items: deque[QueuedTurn] = deque()

    def __bool__(self) -> bool:
        return bool(self._items)

    def add(self, item: QueuedTurn) -> None:
        """Add an input behind the others of its kind."""
        steering = sum(each.steer for each in self._items)
        self._items.insert(steering if item.steer else len(self._items), item)

    def next(self) -> QueuedTurn:
        """Remove and return the first input."""
        return self._items.popleft()

    def steering(self) -> QueuedTurn | None:
        """Remove and return the first message for the running turn; None if there is none."""
        return self.next() if self._items and self._items[0].steer else None

    def drop(self, message_id: str = "") -> list[str]:
        """Remove one input, or all of them; return the ids of those removed."""
        dropped = [item for item in self._items if not message_id or item.message_id == message_id]
        for item in dropped:
            self._items.remove(item)
        return [item.message_id for item in dropped]
