"""The trace pane: one live row per tool call, with arguments, reason, result and diff when opened.

`trace.py` decides what is listed. Earlier calls are fetched when the user scrolls up or filters.
"""

from __future__ import annotations

import logging
from typing import ClassVar

import msgspec
from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.events import Event
from ragforge_tui.shared.records import ToolCall
from ragforge_tui.shared.requests.calls import FetchCall, ListCalls
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.tui.dialogs.block_screen import block_of_call, call_screen
from ragforge_tui.tui.drawing.lines import Run, clip
from ragforge_tui.tui.host import Host
from ragforge_tui.tui.sidebar.pane import Pane
from ragforge_tui.tui.sidebar.touched_files import short_path
from ragforge_tui.tui.sidebar.trace import Filter, Trace, TraceLine, TraceRow, lines_of, size_text
from ragforge_tui.tui.style.palette import Palette
from ragforge_tui.tui.transcript.model.tool_block import ToolBlock
from ragforge_tui.tui.transcript.render.tool_text import CallState, duration_text, state_sign
from ragforge_tui.tui.widgets.key_bar import KeyBar, KeyHint
from ragforge_tui.tui.widgets.virtual_list import VirtualList

log = logging.getLogger(__name__)

PAGE_CALLS = 200
MOST_CALLS = 2000
"""Pages grow with the number of known calls: the first of ten thousand calls is a dozen pages away."""
REDRAW_SECONDS = 0.1
"""Calls in a burst are drawn together."""
_NAME_CELLS = 12
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
    name = clip(row.name, max(4, min(width - cells - 4, _NAME_CELLS)))
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
        KeyHint("failed", "x", "refused" if wanted.refused else "failed", wanted.failed or wanted.refused),
        KeyHint("turn", "t", "this turn", wanted.turn),
        KeyHint("tool", "o", wanted.tool or "tool", bool(wanted.tool)),
        KeyHint("text", "/", wanted.text or "text", bool(wanted.text)),
    ]
    return [*hints, KeyHint("all", "a", "all")] if wanted else hints


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
    DEFAULT_CSS = "TracePane { layout: vertical; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x", "switch('failed')", show=False),
        Binding("t", "switch('turn')", show=False),
        Binding("o", "switch('tool')", show=False),
        Binding("slash", "switch('text')", show=False),
        Binding("a", "switch('all')", show=False),
        Binding("g", "show_turn", show=False),
    ]

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.trace = Trace()
        self._filter = Filter()
        self.rows = TraceRows(empty="loading …", follow=True)
        self._bar = KeyBar(self.action_switch)
        self._text = TextFilter()
        self._fetching = False
        self._due = False

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
        self._show()

    def conversation_changed(self) -> None:
        """Forget what was listed."""
        self.trace = Trace()
        self._fetching = False
        self._show()

    def event(self, event: Event) -> None:
        if self.trace.apply(event) and self.display and not self._due:
            self._due = True
            self.set_timer(REDRAW_SECONDS, self._show)

    def take_focus(self) -> None:
        """Focus the rows; from a call in the chat, go to its row."""
        block = self.host.transcript.cursor_block
        if self.host.transcript.has_focus and isinstance(block, ToolBlock):
            self.rows.choose(block.call.uuid)
        self.rows.focus()

    # -- rows

    def _show(self, *, empty: str = "") -> None:
        self._due = False
        trace = self.trace
        rows = trace.matching(self._filter)
        here, known = trace.count()
        missing = trace.first_turn > 1
        every = f"{known}{'+' if missing else ''}"
        self.note = f"{len(rows)} of {every}" if self._filter else f"this turn {here} · all {every}" if known else ""
        if not empty:
            empty = "loading …" if self._fetching else "no matching call" if self._filter else "no tool calls yet"
        self.rows.show(lines_of(rows), empty=empty)
        self._bar.show_keys(hints_of(self._filter))

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
                self._show(empty=plain_text(error.info.what))
            return
        if trace is self.trace:
            self._fetching = False
            running = session.state.running.get(uuid, session.state.followed)
            trace.add_page(page.calls, page.first_turn, running_turn=running)
            self._show()

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
        self._show()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while the user types."""
        event.stop()
        self._filter = msgspec.structs.replace(self._filter, text=event.value.strip())
        self._show()

    def text_done(self) -> None:
        """Go back from the search field to the rows."""
        self._text.display = bool(self._text.value.strip())
        self.rows.focus()

    # -- one call

    def action_show_turn(self) -> None:
        """Bring the turn of the chosen call into view."""
        row = self.trace.row(self.rows.chosen)
        if row is not None:
            self.host.go_to_turns(row.turn)

    def on_virtual_list_opened(self, event: VirtualList.Opened) -> None:
        """Show a whole call."""
        event.stop()
        row = self.trace.row(event.key)
        if row is None:
            return

        def closed(action: str | None) -> None:
            if action == "turn":
                self.host.go_to_turns(row.turn)

        def state() -> CallState:
            return (self.trace.row(row.key) or row).state

        screen = call_screen(self.host, row.key, row.name, row.turn, whole=lambda: self._whole(row), state=state)
        self.app.push_screen(screen, closed)

    async def _whole(self, row: TraceRow) -> ToolCall:
        """Return the call with its result, from the chat or from the engine."""
        if (block := block_of_call(self.host, row.key)) is not None:
            return block.call
        uuid = self.session.state.conversation_id
        return await self.session.ask(FetchCall(conversation_id=uuid, turn_index=row.turn, call_id=row.key))
