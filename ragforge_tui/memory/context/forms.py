"""A past turn as real messages, in one of four forms: whole, short, trimmed, text.

Used by the builder and, to show again what a request held, by the lookup: the same turn in the same form gives the
same messages. Real calls and results are kept in every form, since providers want valid sequences and a model shown
calls as prose begins to write them as prose.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from ragforge_tui.memory.history import ChatMessage, turn_messages
from ragforge_tui.models import Message, ToolCall, Turn
from ragforge_tui.text import cut_middle

WHOLE = "whole"
SHORT = "short"
LONG_ARGUMENT_CHARS = 200
"""Longer arguments (contents of files, old and new text) are left out of the short form; paths and patterns are not."""
REASON_CHARS = 160
OUTCOME_CHARS = 400


def trimmed(limit: int) -> str:
    """The form that also cuts each text to about `limit` characters, head and tail kept."""
    return f"trimmed:{limit}"


def text_only(limit: int) -> str:
    """The smallest form: what was said without the calls, each text cut to about `limit` characters."""
    return f"text:{limit}"


def sent_positions(turn: Turn) -> list[int]:
    """Positions of the messages a request would hold: all but superseded ones."""
    return [message.position for message in turn.messages if message.state != "superseded"]


def render_turn(turn: Turn, form: str = WHOLE, positions: list[int] | None = None) -> list[ChatMessage]:
    """The turn as it is sent.

    Args:
        positions: Messages to take, whatever their state is today; None: all that are not superseded.
    """
    if positions is not None:
        wanted = set(positions)
        taken = [msgspec.structs.replace(m, state=_seen(m)) for m in turn.messages if m.position in wanted]
        turn = Turn(turn_index=turn.turn_index, messages=taken)
    if form == WHOLE:
        return turn_messages(turn)
    name, _, number = form.partition(":")
    limit = int(number or 0)
    shorten = _text if name == "text" else _short
    return turn_messages(Turn(turn_index=turn.turn_index, messages=[shorten(m, limit) for m in turn.messages]))


def _seen(message: Message) -> Any:
    # An attempt that was replaced later was a complete one when it was sent.
    return "complete" if message.state == "superseded" else message.state


def _short(message: Message, limit: int) -> Message:
    content = cut_middle(message.content, limit) if limit else message.content
    calls = [_short_call(call) for call in message.tool_calls]
    return msgspec.structs.replace(message, content=content, tool_calls=calls)


def _text(message: Message, limit: int) -> Message:
    return msgspec.structs.replace(message, content=cut_middle(message.content, limit, " … "), tool_calls=[])


def _short_call(call: ToolCall) -> ToolCall:
    result = call.result
    if result is not None:
        result = msgspec.structs.replace(result, result=_short_result(result.result))
    return msgspec.structs.replace(call, arguments=short_arguments(call), result=result)


def short_arguments(call: ToolCall) -> str:
    """The call's arguments as JSON: short ones as they are, long ones by their size, and why the call was made."""
    try:
        arguments = json.loads(call.arguments or "{}")
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        return json.dumps({"malformed_arguments": cut_middle(call.arguments, LONG_ARGUMENT_CHARS)}, ensure_ascii=False)
    short = {name: _short_value(value) for name, value in arguments.items()}
    if call.reasoning:
        short["reason"] = cut_middle(" ".join(call.reasoning.split()), REASON_CHARS, " … ")
    return json.dumps(short, ensure_ascii=False)


def _short_value(value: Any) -> Any:
    written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return value if len(written) <= LONG_ARGUMENT_CHARS else f"[{len(written)} characters left out]"


def _short_result(result: str) -> str:
    try:
        stored = json.loads(result)
    except ValueError:
        return cut_middle(result, OUTCOME_CHARS)
    text = stored.get("text", "") if isinstance(stored, dict) else str(stored)
    return json.dumps({"text": cut_middle(text, OUTCOME_CHARS)}, ensure_ascii=False)
