"""What chat templates of current local models refuse, with their own words.

A server with a local model renders each request with the template that came with the model; what the template raises
comes back as an error, and the user gets no answer. The rules are those of Qwen 3.5 and later, of Mistral (7B v0.3,
Nemo, Small 3.1, Ministral 3) and of Gemma 3; of Llama 3.1 all but its limit of one call a reply, since what a model
did is sent back as it did it.
"""

from __future__ import annotations

import re
from typing import Any

Messages = list[dict[str, Any]]

SYSTEM_FIRST = "System message must be at the beginning."
NO_QUERY = "No user query found in messages."
ALTERNATE = "Conversation roles must alternate user/assistant/user/assistant/..."
ALTERNATE_BUT_CALLS = (
    "After the optional system message, conversation roles must alternate user and assistant roles except for tool "
    "calls and results."
)
EMPTY_REPLY = "Assistant message must have a string or a list of chunks in content or a list of tool calls."
CALL_ID = "Tool call IDs should be alphanumeric strings with length 9!"
FIRST_USER = "Cannot put tools in the first user message when there's no first user message!"
UNANSWERED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
)
UNKNOWN_FIELD = "Extra inputs are not permitted: "
FIELDS = {"role", "content", "tool_calls", "tool_call_id", "cache_control"}
FIELDS |= {"reasoning", "reasoning_content", "reasoning_details", "thinking_blocks"}
UNCALLED = "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'."


def refusal(body: dict[str, Any]) -> str:
    """Return the first error of a server or a template for this request, empty when all take it."""
    messages: Messages = body.get("messages", [])
    errors = (_openai(messages), _qwen(messages), _mistral(messages), _gemma(messages), _llama(messages, body))
    return next((error for error in errors if error), "")


def _qwen(messages: Messages) -> str:
    if not messages:
        return "No messages provided."
    if any(message["role"] == "system" for message in messages[1:]):
        return SYSTEM_FIRST
    if any(message["role"] not in ("system", "user", "assistant", "tool") for message in messages):
        return "Unexpected message role."
    return "" if any(message["role"] == "user" for message in messages) else NO_QUERY


def _mistral(messages: Messages) -> str:
    counted = [m["role"] for m in _spoken(messages) if m["role"] != "tool" and not m.get("tool_calls")]
    if not _alternates(counted):
        return ALTERNATE_BUT_CALLS
    if any(m["role"] == "assistant" and not m.get("content") and not m.get("tool_calls") for m in messages):
        return EMPTY_REPLY
    ids = [call["id"] for message in messages for call in message.get("tool_calls") or []]
    ids += [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    return "" if all(re.fullmatch(r"[0-9a-zA-Z]{9}", one) for one in ids) else CALL_ID


def _gemma(messages: Messages) -> str:
    """It knows no calls: servers write them into the assistant's text, and a reply's results as one user message."""
    roles = ["user" if message["role"] == "tool" else message["role"] for message in _spoken(messages)]
    results = [message["role"] == "tool" for message in _spoken(messages)]
    counted = [role for at, role in enumerate(roles) if not (at and results[at] and results[at - 1])]
    return "" if _alternates(counted) else ALTERNATE


def _llama(messages: Messages, body: dict[str, Any]) -> str:
    return FIRST_USER if body.get("tools") and not _spoken(messages) else ""


def _openai(messages: Messages) -> str:
    """No template: what every server checks."""
    waiting: set[str] = set()
    for message in messages:
        if unknown := message.keys() - FIELDS:
            return f"{UNKNOWN_FIELD}{', '.join(unknown)}"
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return UNCALLED
            waiting.remove(message["tool_call_id"])
        elif waiting:
            return UNANSWERED
        else:
            waiting = {call["id"] for call in message.get("tool_calls") or []}
    return UNANSWERED if waiting else ""


def _spoken(messages: Messages) -> Messages:
    return messages[1:] if messages and messages[0]["role"] == "system" else messages


def _alternates(roles: list[str]) -> bool:
    return all((role == "user") == (at % 2 == 0) for at, role in enumerate(roles))
