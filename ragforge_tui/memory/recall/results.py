"""Results of recall and their text. Shared by this package and the context of a turn."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from ragforge_tui.shared.records import Summary

TITLE_CHARS = 60


class RecalledTurn(msgspec.Struct, kw_only=True):
    """Turn that was recalled.

    Attributes:
        date: Start of its sitting: turns of one sitting share it, and with it their heading.
        text: Text as packed, possibly cut.
        cut: Characters of the turn's text that are missing in `text`.
        own: Whether it belongs to the conversation that asked.
    """

    conversation_id: str
    title: str = ""
    turn_index: int
    date: datetime
    text: str
    cut: int = 0
    score: float = 0.0
    own: bool = True


class RecalledSummary(msgspec.Struct, kw_only=True):
    """Summary that was recalled. `score` is its similarity times the factors of level and age."""

    summary: Summary
    title: str = ""
    score: float = 0.0
    own: bool = True


class Recalled(msgspec.Struct, kw_only=True):
    """Result of recall: turns in order of time, summaries best first.

    Attributes:
        text: The turns as one text: a heading for each conversation and sitting, ``[t12]`` before each turn.
        tokens: Tokens of `text`.
        reason: Why vectors were not searched although they are enabled; empty if they were.
    """

    turns: list[RecalledTurn] = []
    summaries: list[RecalledSummary] = []
    tokens: int = 0
    text: str = ""
    reason: str = ""
    sources: dict[tuple[str, int], str] = {}
    """Whole texts of the turns by conversation and turn."""

    def source_of(self, turn: RecalledTurn) -> str:
        """Return the whole text of a recalled turn."""
        return self.sources.get((turn.conversation_id, turn.turn_index), turn.text)


def heading(date: datetime, *, title: str, own: bool) -> str:
    """Return the line above the turns of a sitting; it names another conversation, so that the two are not confused."""
    day = f"{date.day} {date:%B %Y}"
    return (
        f"# {day}" if own else f"# {day}, another conversation: {' '.join(title.split())[:TITLE_CHARS] or 'untitled'}"
    )


def render_turns(turns: Sequence[RecalledTurn]) -> str:
    """Return turns as one text, with a heading wherever conversation or sitting changes."""
    lines: list[str] = []
    group: tuple[str, datetime] | None = None
    for turn in turns:
        current = ("" if turn.own else turn.conversation_id, turn.date)
        if current != group:
            group = current
            lines.append(heading(turn.date, title=turn.title, own=turn.own))
        lines.append(label(turn.turn_index) + turn.text)
    return "\n".join(lines)


def label(turn_index: int) -> str:
    """Return the prefix by which a turn can be cited and opened."""
    return f"[t{turn_index}] "
