"""The user's messages until their turns start: not yet given to the engine, being stored, or behind a running turn.

Pure. `EngineSession` owns the queue, sends from it and takes messages back out of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal
from uuid import uuid4

import msgspec

Place = Literal["waiting", "sending", "queued"]


class Outgoing(msgspec.Struct):
    """One message of the user; `message_id` is created here, so that sending it twice stores it once.

    Attributes:
        materials: What of its text the user did not type.
        steer: It is for the running turn, before its next request, rather than for the turn after it.
    """

    message_id: str
    text: str
    materials: Sequence[str] = ()
    place: Place = "waiting"
    steer: bool = False

    @property
    def command(self) -> str:
        """The shell command without its exclamation mark; empty for a message to the model."""
        return self.text[1:].strip() if self.text.startswith("!") else ""


class MessageQueue:
    """Messages in the order they were typed."""

    def __init__(self) -> None:
        self._items: list[Outgoing] = []
        self._returned: dict[tuple[str, str], str] = {}
        """Ids of messages put back into the prompt, by conversation and text: the engine may have stored them."""

    def __len__(self) -> int:
        return len(self._items)

    @property
    def items(self) -> list[Outgoing]:
        return list(self._items)

    @property
    def queued(self) -> bool:
        """Whether the engine holds messages behind the running turn."""
        return any(item.place == "queued" for item in self._items)

    def add(
        self, text: str, conversation_id: str = "", *, materials: Sequence[str] = (), steer: bool = False
    ) -> Outgoing:
        """Append a message; one that came back from this conversation and is sent unchanged stays the same message."""
        message_id = self._returned.pop((conversation_id, text), "") or uuid4().hex
        item = Outgoing(message_id, text, materials, steer=steer)
        self._items.append(item)
        return item

    def give_back(self, message_id: str, conversation_id: str) -> bool:
        """Remove a message that returns to the prompt; return False if its turn has started, so that it does not."""
        for item in self._items:
            if item.message_id == message_id:
                self._items.remove(item)
                self._returned[conversation_id, item.text] = message_id
                return True
        return False

    def get(self, message_id: str) -> Outgoing | None:
        """Return a message, None if it has left the queue."""
        return next((item for item in self._items if item.message_id == message_id), None)

    def next_waiting(self) -> Outgoing | None:
        """Return the oldest message that the engine has not been given."""
        return next((item for item in self._items if item.place == "waiting"), None)

    def accepted(self, message_id: str, *, queued: bool) -> None:
        """Mark a message as queued by the engine, or remove it because its turn is starting."""
        for item in self._items:
            if item.message_id == message_id:
                if queued:
                    item.place = "queued"
                else:
                    self._items.remove(item)
                return

    def drop(self, message_id: str) -> None:
        """Remove a message: its turn started, or the engine refused it."""
        self._items = [item for item in self._items if item.message_id != message_id]

    def engine_lost(self) -> None:
        """Mark all messages as waiting for the next engine."""
        for item in self._items:
            item.place = "waiting"

    @property
    def newest(self) -> Outgoing | None:
        """The newest message that can be taken back; one that is being stored cannot."""
        return next((item for item in reversed(self._items) if item.place != "sending"), None)
