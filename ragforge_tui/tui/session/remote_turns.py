"""Turns of the open conversation that another process answers, shown as if they were answered here."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from ragforge_tui.shared import events
from ragforge_tui.shared.records import Message, ToolCall, Turn
from ragforge_tui.tui.session.engine_session import EngineSession
from ragforge_tui.tui.transcript import Transcript


class RemoteTurns:
    """Follows remote turns and turns each change since the last one into events.

    Args:
        handle: Handles an event as if the engine of this chat had sent it.
        show_in_panes: Shows an event in the panes only: the transcript shows a turn of its own.
    """

    def __init__(
        self,
        session: EngineSession,
        transcript: Transcript,
        *,
        handle: Callable[[events.Event], None],
        show_in_panes: Callable[[events.Event], None],
    ) -> None:
        self._session = session
        self._state = session.state
        self._transcript = transcript
        self._handle = handle
        self._show_in_panes = show_in_panes
        self._shown: dict[int, Turn] = {}
        """Active remote turns, as far as they were shown."""

    def forget(self) -> None:
        self._shown.clear()

    def follow(self, turn: Turn) -> None:
        """Start to follow a turn, with a notice."""
        self._shown[turn.turn_index] = turn
        self._state.followed = turn.turn_index
        text = "Another process is answering this turn; its answer is shown here."
        self._session.notice(text, passing=True)

    def show(self, event: events.TurnElsewhere) -> None:
        """Show the current state of a remote turn of the open conversation."""
        shown = self._shown.get(event.turn_index)
        if shown is not None and _was_retried(shown, event.turn):
            shown = None
        if event.conversation_id in self._state.running:
            self._show_next_to_own(event, shown)
        else:
            self._show_alone(event, shown)

    def _show_next_to_own(self, event: events.TurnElsewhere, shown: Turn | None) -> None:
        """Show it from its records: the transcript would take its events for those of the turn that runs here."""
        self._transcript.show_turn(event.turn)
        if event.active:
            self._transcript.resume_turn(event.turn_index)
        self._update_panes(event, shown)
        self._remember(event)

    def _show_alone(self, event: events.TurnElsewhere, shown: Turn | None) -> None:
        turn, state = event.turn, self._state
        spent = msgspec.structs.replace(state.spent)
        if shown is None and self._transcript.document.holds(turn.turn_index):
            # It was retried, or it was shown before it was complete.
            self._transcript.show_turn(turn)
            self._update_panes(event, None, ended=False)
            shown = turn
        elif shown is None:
            shown = _question_only(turn)
            self._transcript.show_turn(shown)
            self._start_in_panes(shown)
        if event.active:
            self._transcript.resume_turn(turn.turn_index)
            if state.followed != turn.turn_index:
                self.follow(shown)
        for change in events_between(event.conversation_id, shown, turn):
            self._handle(change)
        self._remember(event)
        if not event.active:
            self._handle(ending(event.conversation_id, turn))
        state.spent = spent  # The process that asked counts the tokens.

    def _remember(self, event: events.TurnElsewhere) -> None:
        if event.active:
            self._shown[event.turn_index] = event.turn
        else:
            self._shown.pop(event.turn_index, None)

    def _update_panes(self, event: events.TurnElsewhere, shown: Turn | None, *, ended: bool = True) -> None:
        """Pass the changes of a turn to the panes only."""
        if shown is None:
            shown = _question_only(event.turn)
            self._start_in_panes(shown)
        changes: list[events.TurnEvent] = list(events_between(event.conversation_id, shown, event.turn))
        if ended and not event.active:
            changes.append(ending(event.conversation_id, event.turn))
        for change in changes:
            self._show_in_panes(change)

    def _start_in_panes(self, turn: Turn) -> None:
        uuid = self._state.conversation_id
        for message in turn.messages:
            started = events.TurnStarted(conversation_id=uuid, turn_index=turn.turn_index, message=message)
            self._show_in_panes(started)


def _question_only(turn: Turn) -> Turn:
    return Turn(turn_index=turn.turn_index, messages=turn.messages[:1])


def _was_retried(shown: Turn, turn: Turn) -> bool:
    """Return whether a retry has replaced messages that were shown."""
    valid = {message.uuid for message in shown.messages if message.state != "superseded"}
    return any(message.state == "superseded" and message.uuid in valid for message in turn.messages)


def events_between(conversation_id: str, before: Turn, after: Turn) -> Iterator[events.TurnEvent]:
    """Yield what happened between two reads of one turn."""
    known = {message.uuid: message for message in before.messages}
    for message in after.messages:
        if message.role == "user":
            if message.uuid not in known and message is not after.messages[0]:
                yield events.Steered(conversation_id=conversation_id, turn_index=after.turn_index, message=message)
        elif message.state != "superseded":
            yield from _message_changes(conversation_id, after.turn_index, known.get(message.uuid), message)


def _message_changes(
    conversation_id: str, turn_index: int, before: Message | None, after: Message
) -> Iterator[events.TurnEvent]:
    if before is None and after.role == "assistant":
        yield events.MessageStarted(
            conversation_id=conversation_id,
            turn_index=turn_index,
            message_id=after.uuid,
            persona=after.persona,
            persona_glyph=after.persona_glyph,
            persona_color=after.persona_color,
            model=after.model,
            recalled=after.recalled,
        )
    reasoning = _grown(before.reasoning if before else "", after.reasoning)
    text = _grown(before.content if before else "", after.content)
    if reasoning:
        yield events.ReasoningDelta(
            conversation_id=conversation_id, turn_index=turn_index, message_id=after.uuid, text=reasoning
        )
    if text:
        yield events.TextDelta(conversation_id=conversation_id, turn_index=turn_index, message_id=after.uuid, text=text)
    if after.state != "streaming" and (before is None or before.state == "streaming"):
        yield events.MessageFinished(conversation_id=conversation_id, turn_index=turn_index, message=after)
    known = {call.uuid: call for call in before.tool_calls} if before else {}
    for call in after.tool_calls:
        yield from _call_changes(conversation_id, turn_index, known.get(call.uuid), call)


def _call_changes(
    conversation_id: str, turn_index: int, before: ToolCall | None, after: ToolCall
) -> Iterator[events.TurnEvent]:
    if before is None:
        yield events.ToolCallStarted(conversation_id=conversation_id, turn_index=turn_index, call=after)
    if after.result is not None and (before is None or before.result is None):
        yield events.ToolCallFinished(conversation_id=conversation_id, turn_index=turn_index, call=after)


def _grown(before: str, after: str) -> str:
    """Return the added text; MessageFinished settles a text that changed in another way."""
    return after[len(before) :] if after.startswith(before) else ""


def ending(conversation_id: str, turn: Turn) -> events.TurnEvent:
    """Return the event that ends a turn."""
    replies = [message for message in turn.messages if message.role != "user" and message.state != "superseded"]
    text = replies[-1].content if replies else ""
    if replies and replies[-1].state == "complete":
        return events.TurnCompleted(conversation_id=conversation_id, turn_index=turn.turn_index, text=text)
    return events.TurnCancelled(conversation_id=conversation_id, turn_index=turn.turn_index, text=text)
