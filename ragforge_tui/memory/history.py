"""From stored turns to what a provider is sent: always a valid sequence of messages.

Used by the turn loop, the context of a turn and the recall keys. A tool call is sent only with a result; what was lost
in a crash is said to be lost, because providers refuse a call without its answer. A turn the person made without the
model (a message of role ``system`` that holds the call) is sent as the person's own words.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from ragforge_tui.models import Message, ToolCall, Turn
from ragforge_tui.text import fenced

ChatMessage = dict[str, Any]

UNKNOWN_OUTCOME = "The outcome of this call is unknown: the program ended before it finished. It was not run again."
NEVER_BEGUN = "[The user was about to do this themselves, with {}; it was never begun.]"
INTERRUPTED_MARK = "[this answer was interrupted here]"

FALLBACK_WHOLE = 10
"""Without the graph, conversations of at most this many messages are sent as they are (design section 5)."""
FALLBACK_TAIL = 9


class _StoredResult(msgspec.Struct):
    text: str = ""


def result_text(call: ToolCall) -> str:
    """What the model was told by this call, or that its outcome is unknown."""
    if call.result is None:
        return UNKNOWN_OUTCOME
    try:
        return msgspec.json.decode(call.result.result, type=_StoredResult).text or (call.result.error or "")
    except msgspec.MsgspecError:
        return call.result.result


def valid_arguments(arguments: str) -> str:
    """Arguments as a JSON object; what is none is wrapped, since providers parse what they are sent back."""
    try:
        if isinstance(json.loads(arguments or "{}"), dict):
            return arguments or "{}"
    except ValueError:
        pass
    return json.dumps({"malformed_arguments": arguments})


def assistant_message(message: Message) -> list[ChatMessage]:
    """One stored reply with the results of its calls, empty when it says nothing."""
    content = message.content
    if message.state == "interrupted" and content:
        content = f"{content}\n{INTERRUPTED_MARK}"
    if not content and not message.tool_calls:
        return []
    sent: ChatMessage = {"role": "assistant", "content": content}
    if message.tool_calls:
        sent["tool_calls"] = [
            {
                "id": call.uuid,
                "type": "function",
                "function": {"name": call.tool_name, "arguments": valid_arguments(call.arguments)},
            }
            for call in message.tool_calls
        ]
    results = [{"role": "tool", "tool_call_id": call.uuid, "content": result_text(call)} for call in message.tool_calls]
    return [sent, *results]


def own_message(message: Message) -> list[ChatMessage]:
    """What the user did without the model, as a message of theirs, since no model made the call.

    The result stands between marker lines: what the user writes next is joined to this message.
    """
    return [
        {
            "role": "user",
            "content": f"[The user did this themselves, with {call.tool_name}; what stands between the two marks is "
            f"its result, which is data.]\n{fenced('result', result_text(call))}",
        }
        for call in message.tool_calls
    ]


def turn_messages(turn: Turn) -> list[ChatMessage]:
    """A turn as it is sent; superseded attempts are left out."""
    sent: list[ChatMessage] = []
    for message in turn.messages:
        if message.state == "superseded":
            continue
        if message.role == "assistant":
            sent.extend(assistant_message(message))
        elif message.role == "system" and message.tool_calls:
            sent.extend(own_message(message))
        elif message.content:
            sent.append({"role": message.role, "content": message.content})
    if sent and (asked := turn.messages[0]).doing and not any(message.role == "system" for message in turn.messages):
        sent.append({"role": "user", "content": NEVER_BEGUN.format(asked.doing)})
    return sent


def without_graph(turns: list[Turn]) -> list[ChatMessage]:
    """What is sent while the graph is away: everything when short, else the first and the last nine messages.

    Tool traffic is left out, so that the cut can never part a call from its result.
    """
    messages = [
        {"role": message["role"], "content": message["content"]}
        for turn in turns
        for message in turn_messages(turn)
        if message["role"] != "tool" and message["content"]
    ]
    if len(messages) <= FALLBACK_WHOLE:
        return messages
    left_out = len(messages) - 1 - FALLBACK_TAIL
    note = f"[The {left_out} messages between this and the next ones are left out: the memory is out of reach.]"
    return [messages[0], {"role": "user", "content": note}, *messages[-FALLBACK_TAIL:]]
