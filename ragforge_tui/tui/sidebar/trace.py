"""The tool calls of a conversation as rows: listed, filtered and counted.

Pure. Rows come from pages of stored calls and from events of the running turn; either may be first, and a call makes
one row. The pane draws them.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence

import msgspec

from ragforge_tui.shared.events import (
    ApprovalRequested,
    ApprovalResolved,
    Event,
    MessageFinished,
    ToolCallFinished,
    ToolCallStarted,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
)
from ragforge_tui.shared.records import ToolCall
from ragforge_tui.shared.requests.calls import CallEntry
from ragforge_tui.tui.drawing.lines import one_line
from ragforge_tui.tui.transcript.render.tool_text import CallState, arguments_of, failure_of, state_of

_CUT_ARGUMENT = re.compile(r'"(?:path|query|pattern|command|message)"\s*:\s*"((?:[^"\\]|\\.){1,400})')

Order = tuple[int, int, int, int, float, str]


class TraceRow(msgspec.Struct, kw_only=True):
    """One call.

    Attributes:
        order: Its place among all calls.
        argument: Its main argument in short.
        reason: Why it failed or was refused, else empty.
        waiting: It waits for the user.
    """

    key: str
    order: Order
    turn: int
    name: str
    argument: str = ""
    state: CallState = "running"
    duration_ms: int | None = None
    size: int = 0
    reason: str = ""


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """The filter of the list; all calls by default.

    Attributes:
        refused: Only calls that were refused or stopped.
        turn: Only calls of the newest turn.
    """

    failed: bool = False
    refused: bool = False
    turn: bool = False
    tool: str = ""
    text: str = ""

    def __bool__(self) -> bool:
        return self.failed or self.refused or self.turn or bool(self.tool or self.text)


class TraceLine(msgspec.Struct, frozen=True):
    """A line of the list: the heading of a turn, a row, or why the row above failed."""

    turn: int
    row: TraceRow | None = None
    why: bool = False


class Trace:
    """All known calls of one conversation.

    Attributes:
        first_turn: Stored calls are known from this turn on; 0: none yet; 1: all of them.
        newest_turn: The running turn, else the last one.
    """

    def __init__(self) -> None:
        self.rows: list[TraceRow] = []
        self.first_turn = 0
        self.newest_turn = 0
        self._by_key: dict[str, TraceRow] = {}
        self._positions: dict[str, int] = {}
        self._of_approval: dict[str, str] = {}

    def row(self, key: str) -> TraceRow | None:
        return self._by_key.get(key)

    def add_page(self, entries: Sequence[CallEntry], first_turn: int, *, running_turn: int | None) -> None:
        """Take in stored calls.

        Args:
            first_turn: Calls are known from this turn on.
            running_turn: The turn that is being answered: its calls without a result may still get one.
        """
        for entry in entries:
            over = entry.turn_index != running_turn
            known = self._by_key.get(entry.call.uuid)
            self._positions[entry.call.message_id] = entry.position  # Stored, where it was a guess.
            if known is not None:
                known.order = _order(entry.turn_index, entry.position, entry.call)
            if known is None or known.state in ("running", "waiting", "unknown"):
                fresh = row_of(entry.turn_index, entry.position, entry.call, over=over)
                if known is not None and known.state == "waiting" and fresh.state == "running":
                    continue
                self._by_key[fresh.key] = fresh
            self.newest_turn = max(self.newest_turn, entry.turn_index)
        self.rows = sorted(self._by_key.values(), key=lambda row: row.order)
        self.first_turn = first_turn

    def apply(self, event: Event) -> bool:
        """Take in an event; return whether a row changed."""
        match event:
            case TurnStarted():
                self.newest_turn = max(self.newest_turn, event.turn_index)
            case MessageFinished(message=message):
                self._positions[message.uuid] = message.position
                return False
            case ApprovalRequested():
                self._of_approval[event.approval_id] = event.call.uuid
                self._put(event.turn_index, event.call, waiting=True)
            case ApprovalResolved():
                row = self._by_key.get(self._of_approval.pop(event.approval_id, ""))
                if row is None or row.state != "waiting":
                    return False
                row.state = "running"
            case ToolCallStarted() | ToolCallFinished():
                self._put(event.turn_index, event.call)
            case TurnCompleted() | TurnCancelled() | TurnFailed():
                for row in reversed(self.rows):
                    if row.turn == event.turn_index and row.state in ("running", "waiting"):
                        row.state = "unknown"
            case _:
                return False
        return True

    def _put(self, turn: int, call: ToolCall, *, waiting: bool = False) -> None:
        fresh = row_of(turn, self._position_of(turn, call.message_id), call, waiting=waiting)
        known = self._by_key.get(fresh.key)
        if known is not None:
            fresh.order = known.order
            self.rows[bisect_left(self.rows, known.order, key=lambda row: row.order)] = fresh
        else:
            insort(self.rows, fresh, key=lambda row: row.order)
        self._by_key[fresh.key] = fresh
        self.newest_turn = max(self.newest_turn, turn)

    def _position_of(self, turn: int, message_id: str) -> int:
        """Return the position of a message in its turn; one that has not finished is after all known ones."""
        if message_id not in self._positions:
            self._positions[message_id] = max((row.order[1] for row in self.rows if row.turn == turn), default=0) + 1
        return self._positions[message_id]

    def matching(self, wanted: Filter) -> list[TraceRow]:
        """Return the rows that pass a filter."""
        rows: Iterable[TraceRow] = self.rows
        if wanted.failed:
            rows = (row for row in rows if row.state == "failed")
        if wanted.refused:
            rows = (row for row in rows if row.state in ("refused", "stopped"))
        if wanted.turn:
            rows = (row for row in rows if row.turn == self.newest_turn)
        if wanted.tool:
            rows = (row for row in rows if row.name == wanted.tool)
        if wanted.text:
            words = wanted.text.casefold().split()
            rows = (row for row in rows if _says(row, words))
        return list(rows)

    def count(self) -> tuple[int, int]:
        """Return the number of calls of the newest turn and of all known turns."""
        start = bisect_left(self.rows, self.newest_turn, key=lambda row: row.turn)
        return len(self.rows) - start, len(self.rows)


def _says(row: TraceRow, words: Sequence[str]) -> bool:
    text = f"{row.name} {row.argument} {row.reason} {row.state} t{row.turn}".casefold()
    return all(word in text for word in words)


def lines_of(rows: Sequence[TraceRow]) -> list[TraceLine]:
    """Return rows below headings of their turns, with the reasons of failures and refusals."""
    lines: list[TraceLine] = []
    turn = 0
    for row in rows:
        if row.turn != turn:
            turn = row.turn
            lines.append(TraceLine(turn))
        lines.append(TraceLine(turn, row))
        if row.reason:
            lines.append(TraceLine(turn, row, why=True))
    return lines


def row_of(turn: int, position: int, call: ToolCall, *, waiting: bool = False, over: bool = False) -> TraceRow:
    """Return the row of a call, whose arguments may be truncated."""
    state = state_of(call, waiting=waiting, over=over)
    return TraceRow(
        key=call.uuid,
        order=_order(turn, position, call),
        turn=turn,
        name=one_line(call.tool_name),
        argument=_argument(call),
        state=state,
        duration_ms=call.duration_ms,
        size=call.result.result_size_bytes if call.result is not None else 0,
        reason=failure_of(call) if state in ("failed", "refused") else "",
    )


def _order(turn: int, position: int, call: ToolCall) -> Order:
    """Return the sort key: the order in which the model made the calls."""
    return turn, position, call.iteration, call.ordinal, call.timestamp.timestamp(), call.uuid


def _argument(call: ToolCall) -> str:
    if call.arguments.rstrip().endswith("}"):
        return "".join(part.text for part in arguments_of(call))
    # Truncated JSON: the first argument may be complete.
    found = _CUT_ARGUMENT.search(call.arguments)
    return one_line((found[1] if found else call.arguments)[:400])


def size_text(size: int) -> str:
    """Return a number of bytes in short form."""
    if size < 1000:
        return f"{size} B"
    value, unit = size / 1000, "k"
    while value >= 999.5 and unit != "G":
        value, unit = value / 1000, {"k": "M", "M": "G"}[unit]
    return f"{value:.1f}{unit}" if value < 9.95 else f"{value:.0f}{unit}"
