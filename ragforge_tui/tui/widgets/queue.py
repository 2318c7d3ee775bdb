"""The messages that wait to be sent, above the prompt: each can be edited, dropped, or sent to the running turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import msgspec
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from ragforge_tui.tui.drawing.lines import fit, one_line
from ragforge_tui.tui.keys import key_name
from ragforge_tui.tui.session.message_queue import Outgoing

SHOWN = 3
_STEERS = "next step"
_PLACES = {"waiting": "waiting for the engine", "sending": "sending", "queued": "queued"}

QueueAction = Literal["edit", "drop", "send"]


class Queue(Widget, can_focus=True):
    """Waiting messages, one line each; hidden when there are none. With the focus, one of them is chosen."""

    ALLOW_SELECT = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("down,j", "move(1)", "down", show=False),
        Binding("enter,e", "act('edit')", "edit", show=False),
        Binding("d,delete,backspace", "act('drop')", "remove, forget, delete", show=False),
        Binding("s", "act('send')", "send now", show=False),
    ]

    @dataclass
    class Chosen(Message):
        """The user wants to edit, drop or send a message now."""

        message_id: str
        action: QueueAction

    class Left(Message):
        """The user is done with the queue, or it is empty."""

    def __init__(self) -> None:
        super().__init__(id="queue")
        self.stop_key = "esc"
        self._items: list[Outgoing] = []
        self._at = 0
        self._covered = False
        self.display = False

    def show(self, items: list[Outgoing]) -> None:
        """Show these messages."""
        if items != self._items:
            self._items = [msgspec.structs.replace(item) for item in items]
            self._at = max(min(self._at, len(items) - 1), 0)
            self.refresh(layout=True)
        self.cover(self._covered)

    def cover(self, covered: bool) -> None:
        """Hide them while a question needs the room."""
        self._covered = covered
        self.display = bool(self._items) and not covered
        if self.has_focus and not self.display:
            self.post_message(self.Left())

    def on_focus(self) -> None:
        """Choose the newest message."""
        self._at = len(self._items) - 1
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def escape(self) -> bool:
        """Go back to the prompt."""
        if self.has_focus:
            self.post_message(self.Left())
        return self.has_focus

    def action_move(self, by: int) -> None:
        """Choose another message; below the last one is the prompt."""
        if self._at + by >= len(self._items):
            self.post_message(self.Left())
        else:
            self._at = max(self._at + by, 0)
            self.refresh()

    def action_act(self, action: QueueAction) -> None:
        if self._items:
            self.post_message(self.Chosen(self._items[self._at].message_id, action))

    def render(self) -> Content:
        """Return three messages, those around the chosen one, the number of others, and the keys."""
        first = max(min(self._at - 1, len(self._items) - SHOWN), 0) if self.has_focus else 0
        shown = list(enumerate(self._items))[first : first + SHOWN]
        lines = [self._line(item, chosen=self.has_focus and at == self._at) for at, item in shown]
        more = len(self._items) - len(shown)
        note = f"{more} more · " if more > 0 else ""
        lines.append(Content.styled(f"{note}{self._keys()}", "dim"))
        return Content("\n").join(lines)

    def _line(self, item: Outgoing, *, chosen: bool) -> Content:
        place = _STEERS if item.place == "queued" and item.steer else _PLACES[item.place]
        room = max(self.size.width - len(place) - 2, 4)
        text = fit(one_line(item.text[:400]), room).rstrip()
        return Content.assemble((f"{place}  ", "$accent"), (text, "reverse" if chosen else "dim"))

    def _keys(self) -> str:
        if self.has_focus:
            return "enter edit · d drop · s send now · esc back"
        # Before the engine has started there is nothing to stop.
        unsent = all(item.place == "waiting" for item in self._items)
        return f"↑ edit · {key_name('alt+up')} choose" + ("" if unsent else f" · {self.stop_key} stop and send")
