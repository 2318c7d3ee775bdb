"""Search keys of a turn, made from its original messages and tool calls.

Recall displays a turn's text and takes its terms from it. The window key, for full-text search, adds its neighbours,
its date and the facts a summary found in it. Used by recall and by search.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from ragforge_tui.memory.language import date_words
from ragforge_tui.shared.records import Message, ToolCall, Turn
from ragforge_tui.shared.tool_calls import main_argument, result_text, tool_info

RESULT_EDGE_CHARS = 300
"""Characters of a tool result's start, and of its end, that are indexed: paths and errors are there."""
MAX_PATHS = 20
MAX_WORD_CHARS = 256
"""Longer runs without a space are data, not words; Lucene drops terms above 32 766 bytes."""
MAX_TEXT_CHARS = 40_000
MAX_NEIGHBOUR_CHARS = 4_000
"""Most characters of a neighbour's text in a window key."""
KEYS_VERSION = 1
"""Stored with the keys; keys of a turn with another version are made again."""


class TurnKeys(msgspec.Struct, kw_only=True, frozen=True):
    """Search keys of one turn.

    Attributes:
        ended: Time of the turn's last message; the silence before the next turn is counted from it.
    """

    turn_index: int
    text: str
    timestamp: datetime
    ended: datetime


def keys_of(turn: Turn) -> TurnKeys:
    """Return the keys of one turn, without those its neighbours add."""
    times = [message.timestamp for message in turn.messages]
    return TurnKeys(
        turn_index=turn.turn_index, text=turn_text(turn), timestamp=times[0], ended=max(times[-1], times[0])
    )


def turn_text(turn: Turn) -> str:
    """Return a turn as text: the user's messages, quoted with ``>``, the replies, and the tool calls in short."""
    parts: list[str] = []
    for message in turn.messages:
        if message.state == "superseded":
            continue
        parts.append(_quoted(message) if message.role == "user" else message.content.strip())
        parts += [call_text(call) for call in message.tool_calls]
    return _indexable("\n".join(part for part in parts if part))


def call_text(call: ToolCall) -> str:
    """Return a tool call in short: name, main argument, files, start and end of its result."""
    line = f"[{call.tool_name} {main_argument(call)}".rstrip()
    paths = [access.path for access in call.files[:MAX_PATHS] if access.path not in line]
    if paths:
        line = f"{line} ({', '.join(paths)})"
    line += "]" if call.success is not False else " failed]"
    # Earlier turns that a result repeats have keys themselves.
    result = "" if tool_info(call.tool_name).repeats_turns else result_text(call).strip()
    if len(result) > 2 * RESULT_EDGE_CHARS:
        result = f"{result[:RESULT_EDGE_CHARS]} … {result[-RESULT_EDGE_CHARS:]}"
    return f"{line}\n{result}" if result else line


def lex_key(
    text: str, *, previous: str = "", following: str = "", facts: Sequence[str] = (), moment: datetime, language: str
) -> str:
    """Return the window key: date, neighbours, the turn itself and the facts its summary cites it for."""
    neighbours = (previous[-MAX_NEIGHBOUR_CHARS:], text, following[:MAX_NEIGHBOUR_CHARS])
    parts = (f"{moment:%Y-%m-%d} {date_words(moment, language)}", *neighbours, *facts)
    return "\n".join(part for part in parts if part)


def sitting_text(texts: Sequence[str], moment: datetime, language: str) -> str:
    """Return the key of a sitting: its date and the texts of its turns."""
    return "\n".join((f"{moment:%Y-%m-%d} {date_words(moment, language)}", *texts))


def _quoted(message: Message) -> str:
    text = message.content.strip()
    return "> " + text.replace("\n", "\n> ") if text else ""


def _indexable(text: str) -> str:
    if len(text) > MAX_TEXT_CHARS:
        text = f"{text[: MAX_TEXT_CHARS * 3 // 4]}\n{text[-MAX_TEXT_CHARS // 4 :]}"
    return "\n".join(
        " ".join(word for word in line.split(" ") if len(word) <= MAX_WORD_CHARS) for line in text.splitlines()
    )
