"""A past turn as real messages, whole or with long parts shortened.

Used by the builder and, to show a stored context again, by the lookup: the same turn in the same form gives the same
messages. A model takes its own past calls as examples of how to write calls. So they stay calls, which providers
require too, and their arguments stay as the model wrote them, with the same types: a long text keeps its head and
tail, and a call that cannot be shortened like that is sent whole or left out with its result. Nothing is added.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from ragforge_tui.memory.context.truncation import place_of
from ragforge_tui.memory.history import ChatMessage, result_text, turn_messages
from ragforge_tui.shared.json_text import decode_json
from ragforge_tui.shared.records import Message, ToolCall, ToolResult, Turn
from ragforge_tui.shared.truncation import cut_lines, cut_middle

WHOLE = "whole"
REASONED = "reasoned"
"""The whole turn with the model's reasoning, for a model that takes it back."""
SHORT = "short"
RESULT_CHARS = 1_000
"""Results are not cut below this: the rest of a file or a command's output would mean nothing."""
TIGHT_RESULT_CHARS = 300
"""Results are cut to this before what the user and the model said is cut below 1 000 characters."""
ARGUMENT_CHARS = 600
"""Longer texts in arguments (contents of files, old and new text) are shortened; paths and patterns never are."""
FEWEST_ARGUMENT_CHARS = 200
Places = dict[str, str]
"""What a mark names, by the id of a call; for the texts of the turn by the empty one."""
LONGEST_OTHER_CHARS = 2_000
"""A list or object in the arguments is sent whole up to this many characters, such as a plan of 20 steps."""


def short_results(limit: int) -> str:
    """Return the form that only cuts results, each to about `limit` characters."""
    return f"results:{limit}"


def short_texts(limit: int) -> str:
    """Return the form that also cuts each text to about `limit` characters of head and tail."""
    return f"texts:{limit}"


def tight(limit: int) -> str:
    """Return the form that cuts each text to about `limit` characters and results to `TIGHT_RESULT_CHARS` at most."""
    return f"tight:{limit}"


def text_only(limit: int) -> str:
    """Return the smallest form: the texts without the calls, each cut to about `limit` characters."""
    return f"text:{limit}"


def sent_positions(turn: Turn) -> list[int]:
    """Return the positions of the messages a request would hold: all but superseded ones."""
    return [message.position for message in turn.messages if message.state != "superseded"]


def render_turn(turn: Turn, form: str = WHOLE, positions: list[int] | None = None) -> list[ChatMessage]:
    """Return the messages of a turn in a form.

    Args:
        positions: Messages to take, whatever their state is today; None for all that are not superseded.
    """
    if positions is not None:
        chosen = set(positions)
        messages = [
            msgspec.structs.replace(m, state=_state_when_sent(m)) for m in turn.messages if m.position in chosen
        ]
        turn = Turn(turn_index=turn.turn_index, messages=messages)
    if form in (WHOLE, REASONED):
        return turn_messages(turn, reasoning=form == REASONED)
    name, _, number = form.partition(":")
    limit = int(number or 0)
    shorten = {"text": _text, "results": _with_short_results, "tight": _tight}.get(name, _short)
    places = _places(turn)
    short = Turn(turn_index=turn.turn_index, messages=[shorten(m, limit, places) for m in turn.messages])
    return turn_messages(short)


def _places(turn: Turn) -> Places:
    """Return what marks name: for each call the turn and its number, as `open_turn` counts them; else the turn."""
    calls = (call for message in turn.messages if message.state != "superseded" for call in message.tool_calls)
    numbered = {call.uuid: place_of(turn.turn_index, number) for number, call in enumerate(calls, start=1)}
    return {"": place_of(turn.turn_index), **numbered}


def _state_when_sent(message: Message) -> Any:
    # An attempt that was replaced later was complete when it was sent.
    return "complete" if message.state == "superseded" else message.state


def _with_short_results(message: Message, limit: int, places: Places) -> Message:
    calls = [msgspec.structs.replace(call, result=_short_result(call, limit, places)) for call in message.tool_calls]
    return msgspec.structs.replace(message, tool_calls=calls, note=cut_lines(message.note, max(limit, RESULT_CHARS)))


def _tight(message: Message, limit: int, places: Places) -> Message:
    return _short(message, limit, places, TIGHT_RESULT_CHARS)


def _short(message: Message, limit: int, places: Places, most: int = RESULT_CHARS) -> Message:
    """Return the message with short calls; a `limit` of 0 leaves its text whole.

    Args:
        most: Characters that results are cut to at most.
    """
    results = min(limit or most, most)
    content = cut_lines(message.content, limit, places[""]) if limit else message.content
    if message.role == "system":
        # The user's own call: only its result is sent.
        return _with_short_results(msgspec.structs.replace(message, content=content), results, places)
    arguments = limit or RESULT_CHARS
    shortened = (_short_call(call, arguments, results, places) for call in message.tool_calls)
    calls = [call for call in shortened if call is not None]
    note = cut_lines(message.note, max(limit, RESULT_CHARS))
    return msgspec.structs.replace(message, content=content, note=note, tool_calls=calls)


def _text(message: Message, limit: int, _: Places) -> Message:
    return msgspec.structs.replace(message, content=cut_middle(message.content, limit, " … "), note="", tool_calls=[])


def _short_call(call: ToolCall, limit: int, results: int, places: Places) -> ToolCall | None:
    arguments = short_arguments(call.arguments, min(max(limit, FEWEST_ARGUMENT_CHARS), ARGUMENT_CHARS))
    if arguments is None:
        return None
    return msgspec.structs.replace(call, arguments=arguments, result=_short_result(call, results, places))


def short_arguments(written: str, limit: int) -> str | None:
    """Return a call's arguments with head and tail of long texts; None when they cannot be shortened honestly."""
    if len(written) <= limit:
        return written
    try:
        arguments = decode_json(written)
    except msgspec.DecodeError:
        return None
    if not isinstance(arguments, dict):
        return None
    for name, value in arguments.items():
        if isinstance(value, str):
            arguments[name] = cut_lines(value, limit)
        elif len(json.dumps(value, ensure_ascii=False)) > LONGEST_OTHER_CHARS:
            return None
    return json.dumps(arguments, ensure_ascii=False)


def longest_result(turn: Turn) -> int:
    """Return the characters of the turn's longest result, as stored."""
    results = (call.result for message in turn.messages for call in message.tool_calls)
    return max((len(result.result) for result in results if result is not None), default=0)


def longest_text(turn: Turn) -> int:
    """Return the characters of the turn's longest message."""
    return max(len(message.content) for message in turn.messages)


def _short_result(call: ToolCall, limit: int, places: Places) -> ToolResult | None:
    if call.result is None:
        return None
    text = cut_lines(result_text(call), limit, places.get(call.uuid, places[""]))
    return msgspec.structs.replace(call.result, result=json.dumps({"text": text}))
