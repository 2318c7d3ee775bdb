"""The keys a turn is found by, made of what was originally said and done in it.

The text of a turn is what recall shows and what its own words are taken from; the window key, which full-text search
reads, puts it beside its neighbours, its date and the facts a summary found in it. Used by recall and by search.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from ragforge_tui.export import main_argument, result_text
from ragforge_tui.memory.language import date_words
from ragforge_tui.models import Message, Summary, ToolCall, Turn

RESULT_EDGE_CHARS = 300
"""Kept of a tool result's beginning and of its end: paths and errors stand there."""
MAX_PATHS = 20
MAX_WORD_CHARS = 256
"""Longer runs without a space are data, not words; Lucene drops terms above 32 766 bytes."""
MAX_TEXT_CHARS = 40_000
MAX_NEIGHBOUR_CHARS = 4_000
"""Of a neighbour's text in a window key."""
KEYS_VERSION = 1
"""Stored with the keys; turns with another one are given keys anew."""

MEMORY_TOOLS = frozenset({"search_history", "open_turn"})
"""What they give back was said elsewhere and is found there."""


class TurnKeys(msgspec.Struct, kw_only=True, frozen=True):
    """What is stored of a turn to find it by.

    Attributes:
        ended: When the last word of the turn came; silence is counted from then.
    """

    turn_index: int
    text: str
    timestamp: datetime
    ended: datetime


def keys_of(turn: Turn) -> TurnKeys:
    """The keys of one turn, without what its neighbours add."""
    times = [message.timestamp for message in turn.messages]
    return TurnKeys(
        turn_index=turn.turn_index, text=turn_text(turn), timestamp=times[0], ended=max(times[-1], times[0])
    )


def turn_text(turn: Turn) -> str:
    """A turn as text: what the person said, quoted with ``>``, the replies, and the tool calls in short."""
    parts: list[str] = []
    for message in turn.messages:
        if message.state == "superseded":
            continue
        parts.append(_quoted(message) if message.role == "user" else message.content.strip())
        parts += [call_text(call) for call in message.tool_calls]
    return _indexable("\n".join(part for part in parts if part))


def call_text(call: ToolCall) -> str:
    """A tool call in short: name, main argument, files, the first and last lines of its result."""
    line = f"[{call.tool_name} {main_argument(call)}".rstrip()
    paths = [access.path for access in call.files[:MAX_PATHS] if access.path not in line]
    if paths:
        line = f"{line} ({', '.join(paths)})"
    line += "]" if call.success is not False else " failed]"
    result = "" if call.tool_name in MEMORY_TOOLS else result_text(call).strip()
    if len(result) > 2 * RESULT_EDGE_CHARS:
        result = f"{result[:RESULT_EDGE_CHARS]} … {result[-RESULT_EDGE_CHARS:]}"
    return f"{line}\n{result}" if result else line


def lex_key(
    text: str, *, previous: str = "", following: str = "", facts: Sequence[str] = (), moment: datetime, language: str
) -> str:
    """The window key: date, neighbours, the turn itself and the facts its summary cites it for."""
    neighbours = (previous[-MAX_NEIGHBOUR_CHARS:], text, following[:MAX_NEIGHBOUR_CHARS])
    parts = (f"{moment:%Y-%m-%d} {date_words(moment, language)}", *neighbours, *facts)
    return "\n".join(part for part in parts if part)


def sitting_text(texts: Sequence[str], moment: datetime, language: str) -> str:
    """The key of a sitting: its date and what was said in it."""
    return "\n".join((f"{moment:%Y-%m-%d} {date_words(moment, language)}", *texts))


def _quoted(message: Message) -> str:
    said = message.content.strip()
    return "> " + said.replace("\n", "\n> ") if said else ""


def _indexable(text: str) -> str:
    if len(text) > MAX_TEXT_CHARS:
        text = f"{text[: MAX_TEXT_CHARS * 3 // 4]}\n{text[-MAX_TEXT_CHARS // 4 :]}"
    return "\n".join(
        " ".join(word for word in line.split(" ") if len(word) <= MAX_WORD_CHARS) for line in text.splitlines()
    )


def summary_key(summary: Summary) -> str:
    """What of a summary is compared with a question."""
    return "\n".join(
        part
        for part in (
            summary.conversation_summary,
            summary.actions_summary,
            *(finding.text for finding in summary.key_findings),
        )
        if part
    )
