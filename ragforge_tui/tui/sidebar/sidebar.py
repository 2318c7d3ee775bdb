"""The sidebar: panes about tools, memory and files, next to the chat or, on a narrow screen, over it.

The app composes it empty at its final width, so that the first paint is fast and the chat is not wrapped twice; panes
are imported and mounted when it is first shown. Unless the user opened or hid it, it is shown from the moment it has
something to show. The layout is stored; a damaged file counts as missing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta
from rich.segment import Segment
from textual import events
from textual import layout as textual_layout
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal, Vertical
from textual.css.query import NoMatches
from textual.geometry import Size
from textual.layout import ArrangeResult
from textual.layouts.vertical import VerticalLayout
from textual.strip import Strip
from textual.widget import Widget

from ragforge_tui.shared.events import (
    Event,
    FilesAccessed,
    ReasoningDelta,
    SummaryCreated,
    TextDelta,
    ToolCallStarted,
)
from ragforge_tui.shared.files import STATE_BYTES, atomic_write, read_regular
from ragforge_tui.shared.json_text import decode_json
from ragforge_tui.tui.command_registry import effective_keys
from ragforge_tui.tui.drawing.lines import one_line
from ragforge_tui.tui.host import Host
from ragforge_tui.tui.keys import key_name
from ragforge_tui.tui.sidebar.heights import heights
from ragforge_tui.tui.sidebar.pane import PANES, Pane, PaneTitle
from ragforge_tui.tui.sidebar.strip import PaneStrip, Tally
from ragforge_tui.tui.widgets.new_size import on_new_size

log = logging.getLogger(__name__)

FILE_NAME = "layout.json"
SIDE_BY_SIDE_COLUMNS = 120
"""Screen width from which the sidebar is next to the chat."""
STACKED_ROWS = 24
"""With fewer rows only one pane is open at a time."""
TWO_COLUMNS = 200
"""Screen width from which the panes have two columns, once there are summaries: memory, and the others."""
EMPTY_ROWS = 2
"""Height of a pane without entries that the user asked for."""
ASKED_WEIGHT = 4
"""How many times its share the pane that the user asked for gets of rows that do not suffice."""
OPENS_BY_ITSELF = 140
"""Screen width from which the sidebar opens by itself; below, a line counts what is in it."""
STRIP_ROWS = 20
"""Screen height from which there is room for that line."""
MAIN_SHARE = 0.56
SMALLEST_WIDTH = 24
USUAL_WIDTH = 46
LARGEST_USUAL_WIDTH = 110
CHAT_COLUMNS = 56
"""Columns that the chat keeps next to the sidebar."""
USUAL_SHARE = 4
LARGEST_SHARE = 12

Share = Annotated[int, Meta(ge=0, le=LARGEST_SHARE)]


class Layout(msgspec.Struct, kw_only=True):
    """Open panes and their sizes.

    Attributes:
        open: Whether the sidebar is shown next to the chat if there is room; None: once it has something to show.
        width: Its columns there; None: they grow with the screen.
        active: The last used pane; the only open one when it is alone or when there is little height.
        shares: The relative height of each pane; 0 is folded to its title.
    """

    open: bool | None = None
    width: Annotated[int, Meta(ge=1, le=2000)] | None = None
    active: str = "trace"
    shares: dict[str, Share] = {}

    def share(self, pane: str) -> int:
        return self.shares.get(pane, USUAL_SHARE)

    def grow(self, pane: str, by: int) -> None:
        """Give a pane more or less height; with none left it is folded."""
        self.shares[pane] = max(0, min(LARGEST_SHARE, self.share(pane) + by))

    def fold(self, pane: str) -> None:
        """Fold a pane to its title, or unfold it."""
        self.shares[pane] = 0 if self.share(pane) else USUAL_SHARE

    def columns(self, available: int) -> int:
        """Return the columns of the sidebar next to the chat; over it, it covers all of it."""
        if available < SIDE_BY_SIDE_COLUMNS:
            return available
        # The chat gets half of what a larger screen adds: longer lines of text are hard to read.
        usual = min(USUAL_WIDTH + (available - SIDE_BY_SIDE_COLUMNS) // 2, LARGEST_USUAL_WIDTH)
        return max(SMALLEST_WIDTH, min(self.width or usual, available - CHAT_COLUMNS))

    def opened(self, panes: Sequence[str], rows: int, *, alone: bool = False) -> list[str]:
        """Return the panes that are open in so many rows, in order."""
        if alone or rows < STACKED_ROWS:
            return [self.active] if self.active in panes else list(panes[:1])
        return [pane for pane in panes if self.share(pane)]


def load_layout(state_dir: Path) -> Layout:
    """Load the stored layout, or the default one."""
    try:
        return decode_json(read_regular(state_dir / FILE_NAME, STATE_BYTES), Layout)
    except FileNotFoundError:
        return Layout()
    except (OSError, msgspec.DecodeError) as error:
        log.warning("layout not read: %s", error)
        return Layout()


def save_layout(state_dir: Path, layout: Layout) -> None:
    """Store a layout. Failure is logged, never shown: the chat matters more."""
    try:
        atomic_write(state_dir / FILE_NAME, msgspec.json.encode(layout), sync=False)
    except OSError as error:
        log.warning("layout not saved: %s", error)


class Divider(Widget):
    """The line between chat and sidebar, which can be dragged."""

    ALLOW_SELECT = False
    _dragged = False

    def __init__(self, sidebar: Sidebar) -> None:
        super().__init__(id="sidebar-divider")
        self._sidebar = sidebar

    def render_line(self, y: int) -> Strip:
        """Draw a hairline; text laid out line by line would slow down the first paint."""
        return Strip([Segment("│", self.rich_style)], 1)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Start dragging."""
        event.stop()
        self._dragged = True
        self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._dragged:
            event.stop()
            self._sidebar.widen_to(self.app.size.width - event.screen_x)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Stop dragging and store the width."""
        event.stop()
        if self._dragged:
            self._dragged = False
            self.release_mouse()
            self._sidebar.store_layout()


class PaneColumns(textual_layout.Layout):
    """Places panes and their titles one above the other, in one column or in two.

    Attributes:
        second: The panes of the second column; empty: one column.
    """

    name = "panes"

    def __init__(self) -> None:
        self.second: frozenset[Widget] = frozenset()

    def arrange(self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True) -> ArrangeResult:
        """Place both columns as the framework places one."""
        one = VerticalLayout()
        if not self.second:
            return one.arrange(parent, children, size, greedy)
        left = round(size.width * MAIN_SHARE)
        first = one.arrange(
            parent, [child for child in children if child not in self.second], size.with_width(left), greedy
        )
        second = [child for child in children if child in self.second]
        placed = one.arrange(parent, second, size.with_width(size.width - left), greedy)
        return [*first, *(place._replace(region=place.region.translate((left, 0))) for place in placed)]


class PaneStack(Vertical):
    """The panes and their titles."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.columns = PaneColumns()

    @property
    def layout(self) -> PaneColumns:
        """The placement of the panes; styles know only the framework's own layouts."""
        return self.columns


class Sidebar(Horizontal):
    """All panes, one above the other, on a wide screen in two columns.

    Args:
        state_dir: Folder of the stored layout.
        wanted: Whether it is shown by default if there is room.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False),
        Binding("less_than_sign,ctrl+left", "widen(2)", "wider sidebar", show=False),
        Binding("greater_than_sign,ctrl+right", "widen(-2)", "narrower sidebar", show=False),
        Binding("plus", "grow(1)", "taller pane", show=False),
        Binding("minus", "grow(-1)", "lower pane", show=False),
        Binding("z", "zoom", "one pane alone", show=False),
        Binding("tab", "next_pane(1)", show=False),
        Binding("shift+tab", "next_pane(-1)", show=False),
    ]

    def __init__(self, host: Host, state_dir: Path, *, wanted: bool) -> None:
        super().__init__(id="sidebar")
        self._host = host
        self._state_dir = state_dir
        self.pane_layout = load_layout(state_dir)
        self._choice = self.pane_layout.open if wanted else False
        """Whether the user wants it next to the chat; None: once there is something to show."""
        self._called = False
        """Whether the key of a pane opened it: it closes it again, and what the user wants stays."""
        self._filled = False
        self._over = False
        self._alone = False
        """Whether only the last used pane is open, until the sidebar is hidden."""
        self.body: Body | None = None
        self._painted = False
        self._mounted = False
        self._ready = False
        self._early: list[Event] = []
        """Events from when it appeared until its panes are mounted, such as that of the call that let it appear."""
        self._stack = PaneStack(id="sidebar-panes")
        self._active: set[str] = set()
        self._asked = ""
        """The pane that the user asked for by a key: it gets more of the rows, and some even without entries."""
        self.strip = PaneStrip()

    def compose(self) -> ComposeResult:
        """Lay out the divider and the stack of panes."""
        yield Divider(self)
        yield self._stack

    # -- what the app and the commands ask for

    @property
    def _open(self) -> bool:
        by_itself = self._filled and self.app.size.width >= OPENS_BY_ITSELF
        return self._called or (by_itself if self._choice is None else self._choice)

    @property
    def _counted(self) -> bool:
        """Whether a line counts what is in it, in its place."""
        # Over the chat it covers no line, which would move the chat when it goes.
        wanted = self._filled and self._choice is not False and (self._over or not self.display)
        return wanted and self.app.size.height >= STRIP_ROWS

    def fit(self, columns: int) -> None:
        """Place the sidebar for a screen width; when there is no room next to the chat it is hidden."""
        over = columns < SIDE_BY_SIDE_COLUMNS
        if over != self._over:
            self._over = over
            self.set_class(over, "-over")
            if over and not self.has_focus_within:
                self._appear(False)
        self._appear(self.display if over else self._open)
        self.styles.width = self.pane_layout.columns(columns)
        if (self.display or self._counted) and self._painted:
            self.call_after_refresh(self._mount_panes)
        self._count()

    def begin(self) -> None:
        """Show the panes, if it is open, now that the first paint is over."""
        self._painted = True
        if self.display or self._counted:
            self._mount_panes()

    def show(self, pane: str) -> None:
        """Show a pane and focus it."""
        self._called = self._called or not self.display
        self._set_shown(True)
        self.pane_layout.active = self._asked = pane
        if not self.pane_layout.share(pane):
            self.pane_layout.fold(pane)
        self._mount_panes()
        again = pane in self._active
        self._arrange()
        if again and (shown := self.pane(pane)) is not None:
            shown.opened()
        self.store_layout()
        self.call_after_refresh(self._focus, pane)

    def fold(self) -> None:
        """Hide the sidebar; the prompt gets the focus."""
        self._asked, self._called = "", False
        self._set_shown(False)
        self.store_layout()
        self._leave_to_prompt()

    def uncover(self) -> bool:
        """Hide the sidebar if it covers the chat; return whether it did."""
        if not (self._over and self.display):
            return False
        self.fold()
        return True

    escape = uncover

    def toggle(self, pane: str = "") -> None:
        """Show a pane; from that pane close what its key opened, else go back to the prompt.

        Without a name, show or hide the whole sidebar, and keep it that way.
        """
        if not pane:
            wanted = not self.display
            if not self._over:
                self._choice = self.pane_layout.open = wanted
            if wanted:
                self.show(self.pane_layout.active)
                self._called = False
            else:
                self.fold()
        elif not self.display or (found := self.pane(pane)) is None or not found.has_focus_within:
            self.show(pane)
        elif self._called:
            self.fold()
        else:
            self.action_leave()

    def pane(self, name: str) -> Pane | None:
        try:
            return self._stack.get_child_by_id(f"pane-{name}", Pane)
        except NoMatches:
            return None

    @property
    def panes(self) -> Iterator[Pane]:
        return (child for child in self._stack.children if isinstance(child, Pane))

    def event(self, event: Event) -> None:
        """Pass an event of the open conversation to the panes."""
        if isinstance(event, TextDelta | ReasoningDelta):
            return
        of = getattr(event, "conversation_id", "")
        if of == "" or of == self._host.session.state.conversation_id:
            if isinstance(event, ToolCallStarted | FilesAccessed | SummaryCreated):
                self._fill(True)
            if (self.display or self._counted) and not self._ready:
                self._early.append(event)
            for pane in self.panes if self._ready else ():
                pane.event(event)

    def due_changed(self) -> None:
        """Let the panes show what the summarizer is waiting for now."""
        for pane in self.panes:
            pane.due_changed()

    def conversation_changed(self, *, filled: bool = False) -> None:
        """Let the panes drop their data: another conversation is open, or none.

        Args:
            filled: Whether it has something to show, such as calls of tools.
        """
        self._fill(filled)
        for pane in self.panes:
            pane.conversation_changed()
            if pane.name_ in self._active:
                pane.opened()

    # -- layout

    def widen_to(self, columns: int) -> None:
        """Take so many columns, as far as the chat leaves them."""
        if self._over:
            return
        screen = self.app.size.width
        self.pane_layout.width = max(SMALLEST_WIDTH, columns)
        self.pane_layout.width = max(SMALLEST_WIDTH, min(columns, self.pane_layout.columns(screen)))
        self.styles.width = self.pane_layout.columns(screen)

    def store_layout(self) -> None:
        save_layout(self._state_dir, self.pane_layout)

    def _fill(self, filled: bool) -> None:
        """Note whether there is something to show; it appears or disappears unless the user decided that."""
        if filled != self._filled:
            self._filled = filled
            if self._choice is not False and self.is_mounted:
                self.fit(self.app.size.width)

    def _appear(self, wanted: bool) -> None:
        self.display = wanted
        self._alone = self._alone and wanted
        if self.body is not None:
            self.body.set_class(wanted and not self._over, "-side-by-side")

    def _set_shown(self, wanted: bool) -> None:
        self._appear(wanted)
        if not wanted and not self._counted:
            self._active.clear()
        self._count()

    def _mount_panes(self) -> None:
        if self._mounted:
            self.call_after_refresh(self._arrange)
            return
        self._mounted = True
        for pane in _make_panes(self._host):
            self._stack.mount(PaneTitle(pane, self._title_clicked), pane)
        self.call_after_refresh(self._panes_mounted)

    def _panes_mounted(self) -> None:
        """Show the panes, and give them the events that arrived while they were made."""
        self._ready = True
        early, self._early = self._early, []
        for event in early:
            self.event(event)
        self._arrange()

    def _arrange(self) -> None:
        """Set the height of each pane and open those that are visible, if only by their titles.

        A title shows the contents of its pane even if there is no room for the pane: those panes are opened too that a
        sidebar of the screen's height would show. Its own height is still unknown when it is first shown.
        """
        panes = list(self.panes)
        names, screen = [pane.name_ for pane in panes], self.app.size.height
        layout, alone = self.pane_layout, self._alone
        shown = layout.opened(names, self.size.height or screen, alone=alone) if self.display else []
        active = {*shown, *layout.opened(names, screen, alone=alone)} if self.display else set()
        if self._counted:
            active = set(names)
        for pane in panes:
            pane.display = pane.name_ in shown
        self._place_columns(shown)
        for second in (False, True):
            column = [pane for pane in panes if (pane in self._stack.columns.second) is second]
            self._share_rows(column, alone=len(shown) == 1)
        self._redraw_titles()
        fresh = [pane for pane in panes if pane.name_ in active and pane.name_ not in self._active]
        self._active = active
        for pane in fresh:
            pane.opened()

    def _share_rows(self, column: Sequence[Pane], *, alone: bool) -> None:
        """Give the panes of a column their heights; one that is alone takes all there is."""
        shown = [pane for pane in column if pane.display]
        if alone:
            for pane in shown:
                pane.styles.height = "1fr"
            return
        needed = [pane.needed or (EMPTY_ROWS if pane.name_ == self._asked else 0) for pane in shown]
        weights = [
            max(self.pane_layout.share(pane.name_), 1) * (ASKED_WEIGHT if pane.name_ == self._asked else 1)
            for pane in shown
        ]
        for pane, rows in zip(shown, heights(needed, weights, self.size.height - len(column)), strict=True):
            pane.styles.height = rows

    def on_pane_changed(self, event: Pane.Changed) -> None:
        """Give a pane the room that it needs now, and count what is in it."""
        event.stop()
        self._count()
        if self.display:
            self._arrange()

    def _count(self) -> None:
        """Count what is in the panes in a line, while they are not shown."""
        told = [pane for pane in self.panes if pane.tally] if self._counted else []
        keys = effective_keys(self._host.options.tui.keymap, self._host.registry) if told else {}
        self.strip.tallies = [
            Tally(pane.name_, command, key_name(keys.get(command, "")), one_line(pane.tally))
            for pane in told
            if (command := next(one.command or one.name for one in PANES if one.name == pane.name_))
        ]

    def _place_columns(self, shown: Sequence[str]) -> None:
        """On a wide screen give the memory the first column, once it has summaries, and the others the second."""
        wide = self.app.size.width >= TWO_COLUMNS and len(shown) > 1
        others: set[Widget] = set()
        if wide and any(pane.own_column and pane.name_ in shown for pane in self.panes):
            for title in self._stack.query_children(PaneTitle):
                if not title.pane.own_column:
                    others |= {title, title.pane}
        for child in self._stack.children:
            child.set_class(child in others, "-second")
        if self._stack.columns.second != others:
            self._stack.columns.second = frozenset(others)
            self._stack.refresh(layout=True)

    def on_mount(self) -> None:
        """Open or close panes for each new height."""
        on_new_size(self, lambda: self._arrange() if self._mounted else None)

    def _title_clicked(self, pane: Pane) -> None:
        names = [one.name_ for one in self.panes]
        stacked = not self._alone and self.size.height >= STACKED_ROWS
        if stacked and len(names) > 1 and pane.unfolded:
            self.pane_layout.fold(pane.name_)
            self._arrange()
            self.store_layout()
            if self.app.focused is None:
                self._leave_to_prompt()
        else:
            self.show(pane.name_)

    def _focus(self, name: str) -> None:
        pane = self.pane(name)
        if pane is not None and self.display:
            pane.take_focus()

    def _leave_to_prompt(self) -> None:
        self._host.prompt.focus()

    # -- keys

    @property
    def _focused_pane(self) -> Pane | None:
        return next((pane for pane in self.panes if pane.has_focus_within), None)

    def on_descendant_focus(self) -> None:
        """Remember the pane in use as the one that is shown first."""
        if (pane := self._focused_pane) is not None:
            self.pane_layout.active = pane.name_
        self._redraw_titles()

    def on_descendant_blur(self) -> None:
        self._redraw_titles()

    def _redraw_titles(self) -> None:
        for title in self._stack.query_children(PaneTitle):
            title.refresh()

    def action_leave(self) -> None:
        """Go back to the prompt; hide a sidebar that covers the chat."""
        if self._over:
            self.fold()
        else:
            self.store_layout()
            self._leave_to_prompt()

    def action_next_pane(self, by: int) -> None:
        """Go to the next or previous open pane; if only one is open, show the next one in its place."""
        names = [pane.name_ for pane in self.panes]
        opened = [pane.name_ for pane in self.panes if pane.display]
        if len(opened) > 1:
            names = opened
        if (now := self._focused_pane) is None:
            return
        name = names[(names.index(now.name_) + by) % len(names)]
        if name in opened:
            self._asked = name
            self._arrange()
            self._focus(name)
        else:
            self.show(name)

    def action_widen(self, by: int) -> None:
        """Make the sidebar wider or narrower."""
        self.widen_to(self.pane_layout.columns(self.app.size.width) + by)
        self.store_layout()

    def action_grow(self, by: int) -> None:
        if (pane := self._focused_pane) is not None:
            self.pane_layout.grow(pane.name_, by)
            self._arrange()
            self.store_layout()
            if not pane.display:
                self._leave_to_prompt()

    def action_zoom(self) -> None:
        """Show only the focused pane until the sidebar is hidden, or all of them."""
        self._alone = not self._alone
        self._arrange()


class Body(Container):
    """The chat and the sidebar."""

    def __init__(self, chat: Widget, sidebar: Sidebar) -> None:
        super().__init__(chat, sidebar, id="body")
        self._sidebar = sidebar
        # Before anything is styled: a change later would hold up the first paint.
        sidebar.body = self
        sidebar.fit(self.app.size.width)

    def on_mount(self) -> None:
        on_new_size(self, lambda: self._sidebar.fit(self.app.size.width))


def _make_panes(host: Host) -> Iterator[Pane]:
    for entry in PANES:
        module, _, name = entry.place.partition(":")
        made: Pane = getattr(import_module(module), name)(host)
        made.id = f"pane-{made.name_}"
        yield made
