"""Main argument and result of a tool call as short text, for exports and for summaries of calls."""

from __future__ import annotations

import json
from typing import Any

from ragforge_tui.shared.records import CallEnd, ToolCall
from ragforge_tui.shared.sanitize import plain_text

_MAIN_ARGUMENTS = ("path", "command", "pattern", "query", "message")

CALL_MARKS: dict[CallEnd, str] = {"ok": "✓", "failed": "✗", "refused": "⊘", "stopped": "■", "unknown": "?"}


def main_argument(call: ToolCall) -> str:
    """Return the argument that identifies what a call acted on, on one line; empty without one."""
    arguments = _object(call.arguments)
    for name in _MAIN_ARGUMENTS:
        if isinstance(value := arguments.get(name), str):
            return " ".join(plain_text(value).split())[:200]
    turn = arguments.get("turn")
    return f"t{turn}" if isinstance(turn, int) else ""


def result_text(call: ToolCall) -> str:
    """Return the text of a call's result that the model received, or its error; empty without a result."""
    if call.result is None:
        return ""
    text = _object(call.result.result).get("text")
    return plain_text(text if isinstance(text, str) else call.result.error or "")


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):  # a model may have written anything
        return {}
    return value if isinstance(value, dict) else {}
