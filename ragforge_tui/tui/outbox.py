"""Messages on their way to the engine: what waits, where, and how it is taken back.

Pure. A message is `waiting` while the engine or the graph is not ready, `sending` while the engine stores it, and
`queued` while it stands behind the turn under way. It leaves when its turn starts.
"""

from __future__ import annotations

from typing import Literal
from uuid import uuid4

import msgspec

Place = Literal["waiting", "sending", "queued"]


class Outgoing(msgspec.Struct):
    """One message of the person; `message_id` is made here, so that sending twice stores once."""

    message_id: str
    text: str
    place: Place = "waiting"

    @property
    def command(self) -> str:
        """The shell command it is, without its exclamation mark; empty for a message to the model."""
        return self.text[1:].strip() if self.text.startswith("!") else ""


class Outbox:
    """Messages in the order they were typed."""

    def __init__(self) -> None:
        self._items: list[Outgoing] = []

    def __len__(self) -> int:
        return len(self._items)

    @property
    def items(self) -> list[Outgoing]:
        """What is on its way, oldest first."""
        return list(self._items)

    @property
    def queued(self) -> bool:
        """Whether the engine holds messages behind the turn under way."""
        return any(item.place == "queued" for item in self._items)

    def add(self, text: str) -> Outgoing:
        """A new message, waiting."""
        item = Outgoing(uuid4().hex, text)
        self._items.append(item)
        return item

    def next_waiting(self) -> Outgoing | None:
        """The oldest message the engine has not been given."""
        return next((item for item in self._items if item.place == "waiting"), None)

    def accepted(self, message_id: str, *, queued: bool) -> None:
        """The engine took it: it stands in the engine's queue, or its turn is starting."""
        for item in self._items:
            if item.message_id == message_id:
                if queued:
                    item.place = "queued"
                else:
                    self._items.remove(item)
                return

    def drop(self, message_id: str) -> None:
        """It is no longer on its way (its turn started, or it was refused)."""
        self._items = [item for item in self._items if item.message_id != message_id]

    def engine_lost(self) -> None:
        """The engine ended: what it had not started is to be given to the next one."""
        for item in self._items:
            item.place = "waiting"

    @property
    def newest(self) -> Outgoing | None:
        """What was typed last of what can be taken back; what is being stored cannot."""
        return next((item for item in reversed(self._items) if item.place != "sending"), None)
