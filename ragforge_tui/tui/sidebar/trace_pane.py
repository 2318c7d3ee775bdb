"""The trace pane: one live row per tool call, with arguments, reason, result and diff when opened.

`Trace` is the pure list. Earlier calls are fetched when the user scrolls up or filters.
"""

from __future__ import annotations

import logging
import re
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from typing import ClassVar

import msgspec
from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from ragforge_tui.shared import events
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.records import ToolCall
from ragforge_tui.shared.requests.work import CallEntry, FetchCall, ListCalls
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.shared.tool_calls import argument_names, tool_info, tool_label
from ragforge_tui.tui.code.opening import open_call_code
from ragforge_tui.tui.drawing.lines import Run, clip, one_line, short_path
from ragforge_tui.tui.drawing.palette import Palette
from ragforge_tui.tui.host import Host
from ragforge_tui.tui.sidebar.pane import Pane
from ragforge_tui.tui.transcript.tool_block import (
    CallState,
    ToolBlock,
    arguments_of,
    duration_text,
    failure_of,
    state_of,
    state_sign,
)
from ragforge_tui.tui.widgets.key_bar import KeyBar, KeyHint
from ragforge_tui.tui.widgets.virtual_list import VirtualList

log = logging.getLogger(__name__)

_CUT_ARGUMENT = re.compile(r'"(\w+)"\s*:\s*"((?:[^"\\]|\\.){1,400})')

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
    label: str
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

    def apply(self, event: events.Event) -> bool:
        """Take in an event; return whether a row changed."""
        match event:
            case events.TurnStarted():
                self.newest_turn = max(self.newest_turn, event.turn_index)
            case events.MessageFinished(message=message):
                self._positions[message.uuid] = message.position
                return False
            case events.ApprovalRequested() | events.QuestionAsked():
                self._of_approval[event.approval_id] = event.call.uuid
                self._put(event.turn_index, event.call, waiting=True)
            case events.ApprovalResolved():
                row = self._by_key.get(self._of_approval.pop(event.approval_id, ""))
                if row is None or row.state != "waiting":
                    return False
                row.state = "running"
            case events.ToolCallStarted() | events.ToolCallFinished():
                self._put(event.turn_index, event.call)
            case events.TurnCompleted() | events.TurnCancelled() | events.TurnFailed():
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
            rows = (row for row in rows if _matches(row, words))
        return list(rows)

    def count(self) -> tuple[int, int]:
        """Return the number of calls of the newest turn and of all known turns."""
        start = bisect_left(self.rows, self.newest_turn, key=lambda row: row.turn)
        return len(self.rows) - start, len(self.rows)


def _matches(row: TraceRow, words: Sequence[str]) -> bool:
    text = f"{row.name} {row.label} {row.argument} {row.reason} {row.state} t{row.turn}".casefold()
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
        label=one_line(tool_label(call.tool_name)),
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
    names = argument_names(tool_info(call.tool_name))
    found = next((found[2] for found in _CUT_ARGUMENT.finditer(call.arguments) if found[1] in names), call.arguments)
    return one_line(found[:400])


def size_text(size: int) -> str:
    """Return a number of bytes in short form."""
    if size < 1000:
        return f"{size} B"
    value, unit = size / 1000, "k"
    while value >= 999.5 and unit != "G":
        value, unit = value / 1000, {"k": "M", "M": "G"}[unit]
    return f"{value:.1f}{unit}" if value < 9.95 else f"{value:.0f}{unit}"


PAGE_CALLS = 200
MOST_CALLS = 2000
"""Pages grow with the number of known calls: the first of ten thousand calls is a dozen pages away."""
_NAME_CELLS = 8
_WITHOUT_SIZE = 36
"""Below this width a row shows no size."""


class TraceRows(VirtualList[TraceLine]):
    """The list of calls."""

    def key_of(self, line: TraceLine) -> str:
        return line.row.key if line.row is not None else ""

    def draw(self, line: TraceLine, width: int, palette: Palette) -> list[Run]:
        """Draw a heading, a call, or why it failed or was refused."""
        if line.row is None:
            return [(f"turn {line.turn}", palette.muted)]
        if line.why:
            return [("  ", palette.text), (clip(line.row.reason, width - 2), palette.muted)]
        return _row(line.row, width, palette)


def _row(row: TraceRow, width: int, palette: Palette) -> list[Run]:
    """Draw glyph, name and argument, with the outcome on the right."""
    glyph, style = state_sign(row.state, palette)
    right = _right(row, width, palette)
    cells = sum(cell_len(text) for text, _ in right)
    name = clip(row.label, max(4, min(width - cells - 4, _NAME_CELLS)))
    name += " " * max(0, _NAME_CELLS - cell_len(name)) if width >= _WITHOUT_SIZE else " "
    room = max(0, width - 2 - cell_len(name) - cells - 2)
    path = "/" in row.argument and " " not in row.argument
    argument = short_path(row.argument, room) if path else clip(row.argument, room)
    gap = max(1, width - 2 - cell_len(name) - 1 - cell_len(argument) - cells)
    left: list[Run] = [
        ("  " if palette.plain else f"{glyph} ", style),
        (f"{name} ", palette.text),
        (argument, palette.muted),
    ]
    return [*left, (" " * gap, palette.text), *right]


def _right(row: TraceRow, width: int, palette: Palette) -> list[Run]:
    time = duration_text(row.duration_ms) if row.duration_ms is not None else ""
    match row.state:
        case "running":
            return [("running" if palette.plain else "…", palette.muted)]
        case "waiting":
            return [("waits for you", palette.running)]
        case "unknown":
            return [("unknown", palette.muted)]
        case "failed" | "refused" | "stopped":
            return [(row.state, state_sign(row.state, palette)[1])]
        case "ok":
            size = f" {size_text(row.size):>5}" if width >= _WITHOUT_SIZE else ""
            return [(f"{'ok ' if palette.plain else ''}{time}{size}", palette.muted)]


def hints_of(wanted: Filter) -> list[KeyHint]:
    """Return the filters with their keys; active ones are highlighted."""
    hints = [
        KeyHint("switch('failed')", "1", "refused" if wanted.refused else "failed", wanted.failed or wanted.refused),
        KeyHint("switch('turn')", "2", "this turn", wanted.turn),
        KeyHint("switch('tool')", "3", tool_label(wanted.tool) if wanted.tool else "tool", bool(wanted.tool)),
        KeyHint("switch('text')", "/", wanted.text or "text", bool(wanted.text)),
    ]
    return [*hints, KeyHint("switch('all')", "0", "all")] if wanted else hints


class TextFilter(Input):
    """Field for words to search. Enter goes back to the rows, Escape clears the words."""

    DEFAULT_CSS = "TextFilter { display: none; background: $panel; margin: 0 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "forget", show=False)]

    def __init__(self) -> None:
        super().__init__(placeholder="name, argument, failure", compact=True)

    async def action_submit(self) -> None:
        if isinstance(pane := self.parent, TracePane):
            pane.text_done()

    def action_forget(self) -> None:
        """Clear the words."""
        self.value = ""
        if isinstance(pane := self.parent, TracePane):
            pane.text_done()


class TracePane(Pane):
    """Lists calls, with keys to filter and open them."""

    name_: ClassVar[str] = "trace"
    label: ClassVar[str] = "Trace"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "switch('failed')", "list, filter or finding of that number", show=False),
        Binding("2", "switch('turn')", "list, filter or finding of that number", show=False),
        Binding("3", "switch('tool')", "list, filter or finding of that number", show=False),
        Binding("slash", "switch('text')", "filter by words", show=False),
        Binding("0", "switch('all')", "all", show=False),
        Binding("g", "show_turn", "go to its turn", show=False),
        Binding("v", "show_code", "view: whole, its code, as it was sent", show=False),
    ]

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.trace = Trace()
        self._filter = Filter()
        self.rows = TraceRows(empty="loading …", follow=True)
        self._bar = KeyBar(self)
        self._text = TextFilter()
        self._fetching = False

    def compose(self) -> ComposeResult:
        """Lay out the rows, the search field and the filters."""
        yield self.rows
        yield self._text
        yield self._bar

    # -- calls of the sidebar

    def opened(self) -> None:
        """Fetch the newest calls."""
        if self.trace.first_turn == 0:
            self._fetch()
        self.show()

    def conversation_changed(self) -> None:
        """Drop the list and its filter."""
        self.trace = Trace()
        self._filter, self._text.value, self._text.display = Filter(), "", False
        self._fetching = False
        self.show()

    def event(self, event: events.Event) -> None:
        if self.trace.apply(event):
            self.show_soon()

    def take_focus(self) -> None:
        """Focus the rows; from a call in the chat, go to its row."""
        block = self.host.transcript.cursor.block
        if self.host.transcript.has_focus and isinstance(block, ToolBlock):
            self.rows.choose(block.call.uuid)
        self.rows.focus()

    # -- rows

    def show(self, *, empty: str = "") -> None:
        trace = self.trace
        # The newest turn may have no call.
        trace.newest_turn = max(trace.newest_turn, self.host.transcript.newest_turn)
        rows = trace.matching(self._filter)
        here, known = trace.count()
        missing = trace.first_turn > 1
        every = f"{known}{'+' if missing else ''}"
        self.note = f"{len(rows)} of {every}" if self._filter else f"this turn {here} · all {every}" if known else ""
        if not empty:
            empty = "loading …" if self._fetching else "no matching call" if self._filter else "no tool calls yet"
        self.rows.show(lines_of(rows), empty=empty)
        self._bar.show_keys(hints_of(self._filter))
        self._bar.display = known > 0
        self.tally = every if known else ""
        self.needed = max(self.rows.count, 1) + 1 + self._text.display if known else 0

    def _fetch(self) -> None:
        if self.session.state.conversation_id and not self._fetching:
            self._fetching = True
            self.session.spawn(self._fetch_page(), group="trace", exclusive=True)

    async def _fetch_page(self) -> None:
        session, trace = self.session, self.trace
        uuid = session.state.conversation_id
        request = ListCalls(
            conversation_id=uuid, before=trace.first_turn, limit=min(max(PAGE_CALLS, len(trace.rows)), MOST_CALLS)
        )
        try:
            page = await session.ask(request)
        except RagforgeError as error:
            # No notice, since the user did not ask. Shown in place of the calls; opening the pane again retries.
            log.info("calls not fetched: %s", error)
            if trace is self.trace:
                self._fetching = False
                self.show(empty=plain_text(error.info.what))
            return
        if trace is self.trace:
            self._fetching = False
            running = session.state.running.get(uuid, session.state.followed)
            trace.add_page(page.calls, page.first_turn, running_turn=running)
            self.show()

    def on_virtual_list_top_seen(self, event: VirtualList.TopSeen) -> None:
        """Fetch earlier calls."""
        event.stop()
        if self.trace.first_turn > 1:
            self._fetch()

    # -- filters

    def action_switch(self, name: str) -> None:
        """Switch a filter on or off."""
        wanted = self._filter
        match name:
            case "failed":
                # Failed calls, then refused and stopped ones, then all.
                failed, refused = not wanted.failed and not wanted.refused, wanted.failed
                wanted = msgspec.structs.replace(wanted, failed=failed, refused=refused)
            case "turn":
                wanted = msgspec.structs.replace(wanted, turn=not wanted.turn)
            case "tool":
                row = self.trace.row(self.rows.chosen)
                tool = "" if wanted.tool or row is None else row.name
                wanted = msgspec.structs.replace(wanted, tool=tool)
            case "text":
                self._text.display = True
                self._text.focus()
                return
            case _:
                wanted = Filter()
                self._text.value = ""
                self._text.display = False
        self._filter = wanted
        self.show()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while the user types."""
        event.stop()
        self._filter = msgspec.structs.replace(self._filter, text=event.value.strip())
        self.show()

    def text_done(self) -> None:
        """Go back from the search field to the rows."""
        self._text.display = bool(self._text.value.strip())
        self.rows.focus()

    # -- one call

    def action_show_turn(self) -> None:
        """Bring the turn of the chosen call into view."""
        row = self.trace.row(self.rows.chosen)
        if row is not None:
            self.host.navigator.go_to_turns(row.turn)

    def action_show_code(self) -> None:
        """Show the code that the chosen call was about."""
        if (row := self.trace.row(self.rows.chosen)) is not None:
            self._show_code_of(row)

    def _show_code_of(self, row: TraceRow) -> None:
        async def show() -> None:
            open_call_code(self.host, await self._call_of(row))

        self.session.spawn(show(), group="code", exclusive=True)

    async def _call_of(self, row: TraceRow) -> ToolCall:
        uuid = self.session.state.conversation_id
        return await self.session.ask(FetchCall(conversation_id=uuid, turn_index=row.turn, call_id=row.key))

    def on_virtual_list_opened(self, event: VirtualList.Opened) -> None:
        """Show a whole call."""
        event.stop()
        row = self.trace.row(event.key)
        if row is None:
            return

        from ragforge_tui.tui.dialogs.text_viewer import CODE_ACTION, call_screen

        def closed(action: str | None) -> None:
            if action == "turn":
                self.host.navigator.go_to_turns(row.turn)
            elif action == CODE_ACTION:
                self._show_code_of(row)

        def state() -> CallState:
            return (self.trace.row(row.key) or row).state

        async def fetch() -> ToolCall:
            return await self._call_of(row)

        self.app.push_screen(call_screen(self.host, row.key, row.name, row.turn, fetch=fetch, state=state), closed)
