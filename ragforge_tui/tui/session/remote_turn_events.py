"""Events of a turn that another process answers, derived from repeated reads of its records.

Pure. The screen draws events only, so a followed turn looks like one that is answered here.
"""

from __future__ import annotations

from collections.abc import Iterator

from ragforge_tui.shared.events import (
    MessageFinished,
    MessageStarted,
    ReasoningDelta,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
    TurnCancelled,
    TurnCompleted,
    TurnEvent,
)
from ragforge_tui.shared.records import Message, ToolCall, Turn


def events_between(conversation_id: str, before: Turn, after: Turn) -> Iterator[TurnEvent]:
    """Yield what happened between two reads of one turn."""
    known = {message.uuid: message for message in before.messages}
    for message in after.messages:
        if message.role != "user" and message.state != "superseded":
            yield from _message_changes(conversation_id, after.turn_index, known.get(message.uuid), message)


def _message_changes(
    conversation_id: str, turn_index: int, before: Message | None, after: Message
) -> Iterator[TurnEvent]:
    if before is None and after.role == "assistant":
        yield MessageStarted(
            conversation_id=conversation_id,
            turn_index=turn_index,
            message_id=after.uuid,
            persona=after.persona,
            persona_glyph=after.persona_glyph,
            persona_color=after.persona_color,
            model=after.model,
        )
    reasoning = _grown(before.reasoning if before else "", after.reasoning)
    text = _grown(before.content if before else "", after.content)
    if reasoning:
        yield ReasoningDelta(
            conversation_id=conversation_id, turn_index=turn_index, message_id=after.uuid, text=reasoning
        )
    if text:
        yield TextDelta(conversation_id=conversation_id, turn_index=turn_index, message_id=after.uuid, text=text)
    if after.state != "streaming" and (before is None or before.state == "streaming"):
        yield MessageFinished(conversation_id=conversation_id, turn_index=turn_index, message=after)
    known = {call.uuid: call for call in before.tool_calls} if before else {}
    for call in after.tool_calls:
        yield from _call_changes(conversation_id, turn_index, known.get(call.uuid), call)


def _call_changes(
    conversation_id: str, turn_index: int, before: ToolCall | None, after: ToolCall
) -> Iterator[TurnEvent]:
    if before is None:
        yield ToolCallStarted(conversation_id=conversation_id, turn_index=turn_index, call=after)
    if after.result is not None and (before is None or before.result is None):
        yield ToolCallFinished(conversation_id=conversation_id, turn_index=turn_index, call=after)


def _grown(before: str, after: str) -> str:
    """Return the added text; MessageFinished settles a text that changed in another way."""
    return after[len(before) :] if after.startswith(before) else ""


def ending(conversation_id: str, turn: Turn) -> TurnEvent:
    """Return the event that ends a turn."""
    replies = [message for message in turn.messages if message.role != "user" and message.state != "superseded"]
    text = replies[-1].content if replies else ""
    if replies and replies[-1].state == "complete":
        return TurnCompleted(conversation_id=conversation_id, turn_index=turn.turn_index, text=text)
    return TurnCancelled(conversation_id=conversation_id, turn_index=turn.turn_index, text=text)
