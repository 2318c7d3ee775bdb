"""What recall gives back, and how it reads. Shared words of this package and of the context of a turn."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from ragforge_tui.models import Summary

TITLE_CHARS = 60


class RecalledTurn(msgspec.Struct, kw_only=True):
    """A turn that was recalled.

    Attributes:
        date: When its sitting began: turns of one sitting share it, and with it their heading.
        text: As it was packed, maybe cut.
        cut: Characters of the turn's text that are not in it.
        own: It is of the conversation that asked.
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
    """A summary that was recalled. `score` is its similarity with the factors of level and age."""

    summary: Summary
    title: str = ""
    score: float = 0.0
    own: bool = True


class Recalled(msgspec.Struct, kw_only=True):
    """What was recalled: turns in order of time, summaries best first.

    Attributes:
        text: The turns as one text: a heading for each conversation and sitting, ``[t12]`` before each turn.
        tokens: Of `text`.
        reason: Why meaning was not searched though it is switched on; empty when it was.
    """

    turns: list[RecalledTurn] = []
    summaries: list[RecalledSummary] = []
    tokens: int = 0
    text: str = ""
    reason: str = ""
    sources: dict[tuple[str, int], str] = {}
    """Whole texts of the turns by conversation and turn."""

    def source_of(self, turn: RecalledTurn) -> str:
        """The whole text of a recalled turn."""
        return self.sources.get((turn.conversation_id, turn.turn_index), turn.text)


def heading(date: datetime, *, title: str, own: bool) -> str:
    """The line above the turns of a sitting; other conversations are named, so that nobody takes them for this one."""
    day = f"{date.day} {date:%B %Y}"
    return (
        f"# {day}" if own else f"# {day}, another conversation: {' '.join(title.split())[:TITLE_CHARS] or 'untitled'}"
    )


def render_turns(turns: Sequence[RecalledTurn]) -> str:
    """Turns as one text, under a heading wherever conversation or sitting changes."""
    lines: list[str] = []
    group: tuple[str, datetime] | None = None
    for turn in turns:
        here = ("" if turn.own else turn.conversation_id, turn.date)
        if here != group:
            group = here
            lines.append(heading(turn.date, title=turn.title, own=turn.own))
        lines.append(label(turn.turn_index) + turn.text)
    return "\n".join(lines)


def label(turn_index: int) -> str:
    """What stands before a turn, so that it can be named and opened."""
    return f"[t{turn_index}] "
