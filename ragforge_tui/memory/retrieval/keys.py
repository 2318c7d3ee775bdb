"""Search keys of a turn, made from its original messages and tool calls.

A turn's key holds its messages, with a line for each call, which is what recall shows; behind a mark follow the
edges of the calls' results, which are only searched. The window key, for full-text search, adds the turn's neighbours,
its date and the facts a summary found in it. Used by recall and by search.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from hashlib import blake2b
from itertools import groupby

import msgspec

from ragforge_tui.memory.language import date_words
from ragforge_tui.memory.summaries.offline.actions import call_in_words
from ragforge_tui.memory.summaries.offline.phrases import phrases
from ragforge_tui.shared.look_alikes import unaccented
from ragforge_tui.shared.records import Message, ToolCall, Turn
from ragforge_tui.shared.tool_calls import result_text, tool_info

_WORD = re.compile(r"\w+")
RESULT_EDGE_CHARS = 300
"""Characters of a tool result's start, and of its end, that are indexed: paths and errors are there."""
MAX_PATHS = 20
MAX_RESULTS_CHARS = 20_000
RESULTS_MARK = "\n\x1e\n"
"""Separates messages from the edges of results; neither can contain it (see `indexable`)."""
MAX_WORD_CHARS = 256
"""Longer runs without a space are data, not words; Lucene drops terms above 32 766 bytes."""
MAX_TEXT_CHARS = 40_000
MAX_NEIGHBOUR_CHARS = 4_000
"""Most characters of a neighbour's text in a window key."""
KEYS_VERSION = 3
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
    """Return the key of a turn: its messages and calls, then the edges of its calls' results."""
    calls = [call for message in _current(turn) for call in message.tool_calls]
    if not calls:
        return said_text(turn)
    edges = "\n".join(edge for call in calls if (edge := _result_edges(call)))
    return f"{said_text(turn)}{RESULTS_MARK}{indexable(edges, MAX_RESULTS_CHARS)}"


def said_text(turn: Turn) -> str:
    """Return a turn as text: the user's messages, quoted with ``>``, the replies, a line for each call."""
    words = phrases("en")
    parts: list[str] = []
    for message in _current(turn):
        parts.append(quoted(message) if message.role == "user" else message.content.strip())
        for text, same in groupby(call_in_words(call, words) for call in message.tool_calls):
            count = len(list(same))
            parts.append(f"- {text} ({words.times.format(count)})" if count > 1 else f"- {text}")
    return indexable("\n".join(part for part in parts if part))


def shown(key: str) -> str:
    """Return the part of a turn's key that recall shows: messages and calls, without results."""
    return key.partition(RESULTS_MARK)[0]


def _current(turn: Turn) -> list[Message]:
    return [message for message in turn.messages if message.state != "superseded"]


def _result_edges(call: ToolCall) -> str:
    """Return files and result of a call, the start and end of a long one."""
    # Earlier turns that a result repeats have keys themselves.
    result = "" if tool_info(call.tool_name).repeats_turns else result_text(call).strip()
    if len(result) > 2 * RESULT_EDGE_CHARS:
        result = f"{result[:RESULT_EDGE_CHARS]} … {result[-RESULT_EDGE_CHARS:]}"
    return "\n".join(text for text in (", ".join(access.path for access in call.files[:MAX_PATHS]), result) if text)


def lex_key(
    text: str, *, previous: str = "", following: str = "", facts: Sequence[str] = (), moment: datetime, language: str
) -> str:
    """Return the window key: date, neighbours, the turn itself and the facts its summary cites it for.

    Words with accents follow without them, as many people type them.
    """
    neighbours = (previous[-MAX_NEIGHBOUR_CHARS:], text, following[:MAX_NEIGHBOUR_CHARS])
    parts = (f"{moment:%Y-%m-%d} {date_words(moment, language)}", *neighbours, *facts)
    key = "\n".join(part for part in parts if part)
    accented = dict.fromkeys(word for word in _WORD.findall(key) if unaccented(word) != word)
    return f"{key}\n{unaccented(' '.join(accented))}" if accented else key


def facts_digest(facts: Sequence[str]) -> str:
    """Return a digest that tells whether a window key holds these facts; empty without facts."""
    return blake2b("\n".join(facts).encode("utf-8", "replace"), digest_size=8).hexdigest() if facts else ""


def sitting_text(texts: Sequence[str], moment: datetime, language: str) -> str:
    """Return the key of a sitting: its date and the texts of its turns."""
    return "\n".join((f"{moment:%Y-%m-%d} {date_words(moment, language)}", *texts))


def quoted(message: Message) -> str:
    """Return a message with ``>`` before each line."""
    text = message.content.strip()
    return "> " + text.replace("\n", "\n> ") if text else ""


def indexable(text: str, most: int = MAX_TEXT_CHARS) -> str:
    """Return the head and tail of a text that fit into `most` characters, without words that are data."""
    if len(text) > most:
        text = f"{text[: most * 3 // 4]}\n{text[-most // 4 :]}"
    # `splitlines` splits at the mark's control character too: no text can contain the mark.
    return "\n".join(
        " ".join(word for word in line.split(" ") if len(word) <= MAX_WORD_CHARS) for line in text.splitlines()
    )
