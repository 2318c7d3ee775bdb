"""Base class of the panes in the sidebar, their registry, and the title line above each.

A pane is a class in a file of its own and one entry in `PANES`: sidebar, command, key and /help follow from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import msgspec
from rich.cells import cell_len
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.timer import Timer
from textual.widget import Widget

from ragforge_tui.shared.events import Event
from ragforge_tui.tui.drawing.lines import clip, fit, one_line
from ragforge_tui.tui.host import Host


class PaneEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One pane.

    Attributes:
        name: Names the pane, and the command that shows it.
        place: Module and class, imported when the sidebar is first shown.
        help: Describes the command.
        command: Name of the command, if another one has the pane's name.
        key: The default key of the command.
        keys: The pane's own keys and their meanings, for /help; empty for none.
    """

    name: str
    place: str
    help: str
    key: str
    command: str = ""
    keys: tuple[str, str] = ("", "")


PANES = [
    PaneEntry(
        name="trace",
        place="ragforge_tui.tui.sidebar.trace_pane:TracePane",
        help="Show tool calls: arguments, results, diffs",
        key="f4",
        keys=("1 2 3 0", "in the trace: failed, this turn, one tool, all"),
    ),
    PaneEntry(
        name="memory",
        place="ragforge_tui.tui.memory.memory_pane:MemoryPane",
        help="Show the tree of summaries and the topics of this conversation",
        command="tree",
        key="f3",
        keys=("1 2", "in the memory: findings, topics"),
    ),
    PaneEntry(
        name="files",
        place="ragforge_tui.tui.sidebar.files_pane:FilesPane",
        help="Show files that were read, changed or found",
        key="f5",
    ),
]
"""All panes, from top to bottom."""


BACK = "esc back"
FOCUSED = "$primary reverse"
"""Style of the title of the pane that has the keyboard: a bar that is there without colors too."""
REDRAW_SECONDS = 0.1
"""Changes in a burst are drawn together."""


class Pane(Widget):
    """One pane of the sidebar.

    A pane fetches missing data when it is `opened` (also when its command runs while it is visible) and keeps it up to
    date with events. When the conversation changes it drops the data and is opened again.
    """

    name_: ClassVar[str]
    label: ClassVar[str]
    DEFAULT_CSS = "Pane { height: 1fr; width: 1fr; }"
    ALLOW_SELECT = False

    note: reactive[str] = reactive("")
    """Shown after the label in the pane's title."""
    mode: reactive[str] = reactive("")
    """Name of the list it shows now, as part of its title; empty for the usual one."""
    needed: reactive[int] = reactive(0, init=False)
    """Rows that all of it would fill; 0 without entries: then it is only its title, and has no keys."""
    tally: reactive[str] = reactive("", init=False)
    """The count that the closed sidebar tells; empty for nothing to tell."""
    own_column = False
    """Whether it fills a column of its own where there are two."""

    @dataclass
    class Changed(Message):
        """It needs more or fewer rows, or counts something else."""

    def __init__(self, host: Host) -> None:
        super().__init__()
        self.host = host
        self.session = host.session
        self._show_timer: Timer | None = None

    def watch_needed(self) -> None:
        self.post_message(self.Changed())

    def watch_tally(self) -> None:
        self.post_message(self.Changed())

    @property
    def unfolded(self) -> bool:
        """Whether more than its title is shown."""
        return self.display and self.styles.height is not None and self.styles.height.value > 0

    def opened(self) -> None:
        """Fetch missing data, since the pane became visible."""

    def conversation_changed(self) -> None:
        """Drop the data: another conversation is open, or none."""

    def event(self, event: Event) -> None:
        """Take in an event of the open conversation, except for deltas. Must be cheap."""

    def due_changed(self) -> None:
        """Show what the summarizer is waiting for now."""

    def show(self) -> None:
        """Draw the contents again."""

    def show_soon(self) -> None:
        """Draw the contents again in a moment, together with other changes."""
        if self._show_timer is None:
            self._show_timer = self.set_timer(REDRAW_SECONDS, self._show_now)

    def _show_now(self) -> None:
        self._show_timer = None
        self.show()

    def take_focus(self) -> None:
        """Focus the widget that takes the keys."""
        target = next((child for child in self.query("*") if child.can_focus and child.display), None)
        (target or self).focus()


class PaneTitle(Widget):
    """Title line of a pane; a click folds or opens it."""

    ALLOW_SELECT = False

    def __init__(self, pane: Pane, clicked: Callable[[Pane], None]) -> None:
        super().__init__(classes="pane-title")
        self.pane = pane
        self._clicked = clicked

    def on_mount(self) -> None:
        """Follow the note and the focus of the pane."""
        self.watch(self.pane, "note", self._redraw, init=False)
        self.watch(self.pane, "mode", self._redraw, init=False)
        self.watch(self.pane, "display", self._redraw, init=False)

    def _redraw(self) -> None:
        self.refresh()

    def render(self) -> Content:
        """Return label and note over a rule; with the keyboard in the pane, a bar with the way back."""
        arrow = "▾" if self.pane.unfolded else "▸"
        label, note = self.pane.label.upper(), one_line(self.pane.note)
        note = note or ("" if self.pane.unfolded else "nothing yet")
        if self.pane.mode:
            label = f"{label} · {self.pane.mode}"
        width = self.size.width
        left = width - cell_len(arrow) - cell_len(label) - 3
        if self.pane.has_focus_within:
            back = f" {BACK} " if left > cell_len(BACK) + 2 else ""
            note = fit(f"  {note}", max(left - cell_len(back) + 1, 0))
            return Content.assemble((f" {arrow} {label}", f"{FOCUSED} bold"), (f"{note}{back}", FOCUSED))
        note = f"  {clip(note, max(left - 2, 0))}" if note else ""
        rule = "" if self.pane.host.plain else "─" * max(left - cell_len(note) - 1, 0)
        return Content.assemble((f" {arrow} ", "dim"), (label, "bold"), (f"{note} ", "dim"), (rule, "$border"))

    def on_click(self) -> None:
        self._clicked(self.pane)
