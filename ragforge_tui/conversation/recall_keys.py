"""The keys a turn is found by, made when it ends: its own text, and what full-text search reads.

Recall proper builds richer keys over neighbouring turns; these make every turn searchable at once.
"""

from __future__ import annotations

from ragforge_tui.memory.history import result_text
from ragforge_tui.models import ToolCall, Turn

RESULT_EDGE_CHARS = 300
"""Kept of a tool result's beginning and of its end: paths and errors stand there."""
MAX_WORD_CHARS = 256
"""Longer runs without a space are data, not words; Lucene drops terms above 32 766 bytes."""
MAX_KEY_CHARS = 40_000


def turn_keys(turn: Turn) -> tuple[str, str]:
    """(text of the turn, lexical key: date and text) of a finished turn."""
    parts: list[str] = []
    for message in turn.messages:
        if message.state == "superseded":
            continue
        parts.append(message.content)
        parts += [_call_text(call) for call in message.tool_calls]
    text = _indexable("\n".join(part for part in parts if part))
    date = turn.messages[0].timestamp.strftime("%Y-%m-%d %B %A")
    return text, f"{date}\n{text}"


def _call_text(call: ToolCall) -> str:
    result = result_text(call)
    if len(result) > 2 * RESULT_EDGE_CHARS:
        result = f"{result[:RESULT_EDGE_CHARS]}\n{result[-RESULT_EDGE_CHARS:]}"
    paths = " ".join(access.path for access in call.files[:20])
    return f"{call.tool_name} {call.arguments[:RESULT_EDGE_CHARS]} {paths}\n{result}"


def _indexable(text: str) -> str:
    if len(text) > MAX_KEY_CHARS:
        text = f"{text[: MAX_KEY_CHARS * 3 // 4]}\n{text[-MAX_KEY_CHARS // 4 :]}"
    return "\n".join(
        " ".join(word for word in line.split(" ") if len(word) <= MAX_WORD_CHARS) for line in text.splitlines()
    )
