"""Queue of messages that the engine has not started on.

Pure. A message is `waiting` while the engine or the graph is not ready, `sending` while the engine stores it, and
`queued` behind the running turn. It leaves the queue when its turn starts.
"""

from __future__ import annotations

from typing import Literal
from uuid import uuid4

import msgspec

Place = Literal["waiting", "sending", "queued"]


class Outgoing(msgspec.Struct):
    """One message of the user; `message_id` is created here, so that sending it twice stores it once."""

    message_id: str
    text: str
    place: Place = "waiting"

    @property
    def command(self) -> str:
        """The shell command without its exclamation mark; empty for a message to the model."""
        return self.text[1:].strip() if self.text.startswith("!") else ""


class Outbox:
    """Messages in the order they were typed."""

    def __init__(self) -> None:
        self._items: list[Outgoing] = []

    def __len__(self) -> int:
        return len(self._items)

    @property
    def items(self) -> list[Outgoing]:
        return list(self._items)

    @property
    def queued(self) -> bool:
        """Whether the engine holds messages behind the running turn."""
        return any(item.place == "queued" for item in self._items)

    def add(self, text: str) -> Outgoing:
        """Append a new message."""
        item = Outgoing(uuid4().hex, text)
        self._items.append(item)
        return item

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
