"""Turns of the open conversation that another process answers, shown as if they were answered here."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ragforge_tui.shared.events import Event, TurnElsewhere, TurnEvent, TurnStarted
from ragforge_tui.shared.records import Turn
from ragforge_tui.tui.session.listener import SessionListener
from ragforge_tui.tui.session.remote_turn_events import ending, events_between
from ragforge_tui.tui.session.state import ChatState


class RemoteTurns:
    """Remembers what was shown of remote turns, so that only what is new becomes an event.

    Args:
        take_in: Handles an event as if the engine of this chat had sent it.
    """

    def __init__(self, state: ChatState, listener: SessionListener, take_in: Callable[[Event], None]) -> None:
        self._state = state
        self._listener = listener
        self._take_in = take_in
        self._shown: dict[int, Turn] = {}
        """Active remote turns, as far as they were shown."""

    def forget(self) -> None:
        self._shown.clear()

    def follow(self, turn: Turn) -> None:
        """Start to follow a turn and tell the user about it."""
        self._shown[turn.turn_index] = turn
        self._state.followed = turn.turn_index
        text = "Another process is answering this turn; it is followed here."
        self._listener.notice(text, passing=True)

    def take_in(self, event: TurnElsewhere) -> None:
        """Show the current state of a remote turn of the open conversation."""
        shown = self._shown.get(event.turn_index)
        if shown is not None and _asked_again(shown, event.turn):
            shown = None
        if event.conversation_id in self._state.running:
            self._show_next_to_own(event, shown)
        else:
            self._show_alone(event, shown)

    def _show_next_to_own(self, event: TurnElsewhere, shown: Turn | None) -> None:
        """Show it from its records: the transcript would take its events for those of the turn that runs here."""
        self._listener.turn_read(event.turn)
        if event.active:
            self._listener.turn_continues(event.turn_index)
        self._update_panes(event, shown)
        self._remember(event)

    def _show_alone(self, event: TurnElsewhere, shown: Turn | None) -> None:
        turn, state = event.turn, self._state
        spent = msgspec.structs.replace(state.spent)
        if shown is None and self._listener.shows_turn(turn.turn_index):
            # It was retried, or it was shown before it was complete.
            self._listener.turn_read(turn)
            self._update_panes(event, None, ended=False)
            shown = turn
        elif shown is None:
            shown = _question_only(turn)
            self._listener.turn_read(shown)
            self._start_in_panes(shown)
        if event.active:
            self._listener.turn_continues(turn.turn_index)
            if state.followed != turn.turn_index:
                self.follow(shown)
        for change in events_between(event.conversation_id, shown, turn):
            self._take_in(change)
        self._remember(event)
        if not event.active:
            self._take_in(ending(event.conversation_id, turn))
        state.spent = spent  # The process that asked counts the tokens.

    def _remember(self, event: TurnElsewhere) -> None:
        if event.active:
            self._shown[event.turn_index] = event.turn
        else:
            self._shown.pop(event.turn_index, None)

    def _update_panes(self, event: TurnElsewhere, shown: Turn | None, *, ended: bool = True) -> None:
        """Pass what is new in a turn to the panes only."""
        if shown is None:
            shown = _question_only(event.turn)
            self._start_in_panes(shown)
        changes: list[TurnEvent] = list(events_between(event.conversation_id, shown, event.turn))
        if ended and not event.active:
            changes.append(ending(event.conversation_id, event.turn))
        for change in changes:
            self._listener.other_turn_event(change)

    def _start_in_panes(self, turn: Turn) -> None:
        uuid = self._state.conversation_id
        for message in turn.messages:
            started = TurnStarted(conversation_id=uuid, turn_index=turn.turn_index, message=message)
            self._listener.other_turn_event(started)


def _question_only(turn: Turn) -> Turn:
    return Turn(turn_index=turn.turn_index, messages=turn.messages[:1])


def _asked_again(shown: Turn, turn: Turn) -> bool:
    """Return whether a retry has replaced messages that were shown."""
    valid = {message.uuid for message in shown.messages if message.state != "superseded"}
    return any(message.state == "superseded" and message.uuid in valid for message in turn.messages)
