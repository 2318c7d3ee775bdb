"""Messages in the one order that every chat template takes.

Servers of local models render messages with the model's own template, and a template refuses what its model was not
trained on: Gemma's and Mistral's a user message after another user message, Mistral's also one after tool results and a
call id that is not nine letters or digits. The conversation room puts a request together from parts (past turns, the
memory block, the new message, notes) and need not know this; the client brings every request into this order.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from ragforge_tui.llm.base import Messages

NO_ANSWER = "[No answer was given to these results.]"
"""Sent between tool results and a user message: the turn was interrupted, or a note follows."""
LEFT_OUT = "[Earlier messages are left out.]"
"""Sent first in a conversation that starts with the assistant's message, as some imported ones do."""
SEPARATOR = "\n\n"
_TAKEN_BY_ALL = re.compile(r"[0-9a-zA-Z]{9}")


def alternating(messages: Messages) -> Messages:
    """Return the messages with user and assistant in turn, the user first; no text is left out.

    Runs of one role are joined. Tool results stay after the calls they answer.
    """
    ordered: Messages = []
    for message in messages:
        role, before = message["role"], ordered[-1]["role"] if ordered else "system"
        if role == before and role in ("user", "assistant"):
            ordered[-1] = _joined(ordered[-1], message)
            continue
        if role == "assistant" and before == "system":
            ordered.append({"role": "user", "content": LEFT_OUT})
        elif role == "user" and before == "tool":
            ordered.append({"role": "assistant", "content": NO_ANSWER})
        ordered.append(message)
    return [_with_short_ids(message) for message in ordered]


def _joined(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Return both as one message; of two replies only the second has calls, whose results follow it."""
    texts = [text for text in (first["content"], second["content"]) if text]
    return {**first, **second, "content": SEPARATOR.join(texts)}


def _with_short_ids(message: dict[str, Any]) -> dict[str, Any]:
    if calls := message.get("tool_calls"):
        return {**message, "tool_calls": [{**call, "id": _short_id(call["id"])} for call in calls]}
    if call_id := message.get("tool_call_id"):
        return {**message, "tool_call_id": _short_id(call_id)}
    return message


def _short_id(call_id: str) -> str:
    """Return an id of nine letters and digits, the same for the same call in every request."""
    if _TAKEN_BY_ALL.fullmatch(call_id):
        return call_id
    return hashlib.sha256(call_id.encode("utf-8", "replace")).hexdigest()[:9]
