"""The screen as the engine session sees it.

The session calls these methods directly, one event after the other, instead of posting Textual messages: an answer
streams hundreds of deltas a second, and each message would wait in the same queue as the user's keys.
"""

from __future__ import annotations

from typing import Literal, Protocol, runtime_checkable

from ragforge_tui.shared.events import Event, TurnEvent
from ragforge_tui.shared.records import Turn
from ragforge_tui.shared.wire import ConversationView

Level = Literal["info", "warning", "error"]


class SessionListener(Protocol):
    """Receives what changes in an `EngineSession`."""

    def state_changed(self) -> None:
        """Redraw whatever depends on the `ChatState`."""

    def due_changed(self) -> None:
        """Redraw what the summarizer is waiting for."""

    def queue_changed(self) -> None:
        """Redraw the messages that wait to be sent."""

    def message_sending(self) -> None:
        """Note that a message is being stored; it is worth showing only if that takes long."""

    def message_returned(self, text: str) -> None:
        """Put a message that was not sent back into the prompt."""

    def notice(self, text: str, level: Level = "info", *, passing: bool = False) -> None:
        """Show a sentence in the transcript; a `passing` one disappears with the next answer."""

    def event_received(self, event: Event) -> None:
        """Show an event, after the state has taken it in."""

    def other_turn_event(self, event: TurnEvent) -> None:
        """Pass an event of a turn in another process to the panes only: the transcript shows a turn of its own."""

    def shows_turn(self, turn_index: int) -> bool:
        """Return whether the transcript holds a turn."""
        ...

    def turn_read(self, turn: Turn) -> None:
        """Show a turn from its records, in place of an earlier state of it."""

    def turn_continues(self, turn_index: int) -> None:
        """Show a turn as still being answered."""

    def answer_finished(self, seconds: float) -> None:
        """Call the user back if the answer took long enough for them to have left."""

    def conversation_opened(self, view: ConversationView) -> None:
        """Show another conversation."""

    def conversation_created(self) -> None:
        """Note that the first message of the empty screen started a conversation."""

    def conversation_closed(self) -> None:
        """Show an empty screen."""

    def engine_ready(self) -> None:
        """Start what needs an engine but nobody waits for."""

    def engine_lost(self) -> None:
        """Drop what only the lost engine could have answered."""


@runtime_checkable
class EventScreen(Protocol):
    """A screen over the chat that updates itself while it is open."""

    def engine_event(self, event: Event) -> None:
        """Take in an event of any conversation, except for deltas. Must be cheap."""
