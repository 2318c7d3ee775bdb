"""Turns of the open conversation that another process begins, answers or answers anew, shown as if it were done here.

A part of the controller, which gives it what the engine says of them; `follow.py` makes events of what was read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ragforge_tui.events import TurnElsewhere, TurnEvent, TurnStarted
from ragforge_tui.models import Turn
from ragforge_tui.tui import follow
from ragforge_tui.tui.dispatch import dispatch

if TYPE_CHECKING:
    from ragforge_tui.tui.controller import ChatController


class Elsewhere:
    """What was shown of such turns, and what of them is to be shown next."""

    def __init__(self, chat: ChatController) -> None:
        self._chat = chat
        self._known: dict[int, Turn] = {}
        """Turns that other processes are answering, as far as they were told."""

    def forget(self) -> None:
        """Another conversation is open, or none."""
        self._known.clear()

    def follow(self, turn: Turn) -> None:
        """Another process answers this turn, which is shown as far as it goes."""
        self._known[turn.turn_index] = turn
        self._chat.state.followed = turn.turn_index
        text = "This turn is being answered by another process; it is followed here."
        self._chat.view.transcript.notice(text, "info", passing=True)

    def take_in(self, event: TurnElsewhere) -> None:
        """Show how a turn stands."""
        if event.conversation_id != self._chat.state.conversation_id:
            return
        known = self._known.get(event.turn_index)
        if known is not None and _asked_again(known, event.turn):
            known = None
        if event.conversation_id in self._chat.state.running:
            self._take_in_beside(event, known)
        else:
            self._take_in_alone(event, known)

    def _take_in_beside(self, event: TurnElsewhere, known: Turn | None) -> None:
        """A turn runs here: events of another would be taken for those of this one, except by the panes."""
        turn, transcript = event.turn, self._chat.view.transcript
        held = transcript.document.holds(turn.turn_index)
        (transcript.replace_turn if held else transcript.add_turn)(turn)
        if event.active:
            transcript.go_on(turn.turn_index)
        self._tell_panes(event, known)
        self._keep(event)

    def _take_in_alone(self, event: TurnElsewhere, known: Turn | None) -> None:
        turn, transcript, state = event.turn, self._chat.view.transcript, self._chat.state
        spent = msgspec.structs.replace(state.spent)
        if known is None and transcript.document.holds(turn.turn_index):
            # Its answer was asked for again, or it was shown before it was whole.
            transcript.replace_turn(turn)
            self._tell_panes(event, None, ended=False)
            known = turn
        elif known is None:
            known = _asked(turn)
            transcript.add_turn(known)
            self._begin_in_panes(known)
        if event.active:
            transcript.go_on(turn.turn_index)
            if state.followed != turn.turn_index:
                self.follow(known)
        for change in follow.changes(event.conversation_id, known, turn):
            dispatch(self._chat, change)
        self._keep(event)
        if not event.active:
            dispatch(self._chat, follow.ending(event.conversation_id, turn))
            if event.interrupted:
                self._chat.offer_retry("That answer was interrupted.")
        state.spent = spent  # It is counted where it was asked for.

    def _keep(self, event: TurnElsewhere) -> None:
        """Know what was shown of a turn: the next time only what is more is told."""
        if event.active:
            self._known[event.turn_index] = event.turn
        else:
            self._known.pop(event.turn_index, None)

    def _tell_panes(self, event: TurnElsewhere, known: Turn | None, *, ended: bool = True) -> None:
        """What happened in a turn, for the panes alone."""
        changes: list[TurnEvent] = []
        if known is None:
            known = _asked(event.turn)
            self._begin_in_panes(known)
        changes += follow.changes(event.conversation_id, known, event.turn)
        if ended and not event.active:
            changes.append(follow.ending(event.conversation_id, event.turn))
        for change in changes:
            self._chat.view.sidebar.event(change)

    def _begin_in_panes(self, turn: Turn) -> None:
        """The panes take a turn in at its beginning; the chat does not jump to it."""
        uuid = self._chat.state.conversation_id
        for message in turn.messages:
            self._chat.view.sidebar.event(
                TurnStarted(conversation_id=uuid, turn_index=turn.turn_index, message=message)
            )


def _asked(turn: Turn) -> Turn:
    """A turn when nothing was answered yet."""
    return Turn(turn_index=turn.turn_index, messages=turn.messages[:1])


def _asked_again(known: Turn, turn: Turn) -> bool:
    """Whether what was shown of its answer counts no more."""
    shown = {message.uuid for message in known.messages if message.state != "superseded"}
    return any(message.state == "superseded" and message.uuid in shown for message in turn.messages)
