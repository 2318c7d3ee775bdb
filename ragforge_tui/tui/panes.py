"""What a part of the sidebar is, and the line above it. Panes derive from `Pane`; the sidebar arranges them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, cast

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from ragforge_tui.events import Event
from ragforge_tui.text import plain_text

if TYPE_CHECKING:
    from ragforge_tui.tui.app import ChatApp


class Pane(Widget):
    """One part of the sidebar.

    A pane fetches what it lacks when it is `opened` (also when it is asked for while it can be seen), forgets it when
    the conversation changes, after which it is opened again, and keeps itself up to date with events.
    """

    name_: ClassVar[str]
    label: ClassVar[str]
    DEFAULT_CSS = "Pane { height: 1fr; width: 1fr; }"
    ALLOW_SELECT = False

    note: reactive[str] = reactive("")
    """Said behind the label in the pane's title."""

    @property
    def chat(self) -> ChatApp:
        """The app."""
        return cast("ChatApp", self.app)

    def opened(self) -> None:
        """It became visible: fetch what is needed."""

    def conversation_changed(self) -> None:
        """Another conversation is open, or none."""

    def event(self, event: Event) -> None:
        """The engine said something of the open conversation, deltas excepted. Must be cheap."""

    def due_changed(self) -> None:
        """The summariser waits for something else than before."""

    def take_focus(self) -> None:
        """Focus what the keyboard is for."""
        target = next((child for child in self.query("*") if child.can_focus and child.display), None)
        (target or self).focus()


class PaneTitle(Widget):
    """The line above a pane; a click folds or opens it."""

    ALLOW_SELECT = False

    def __init__(self, pane: Pane, clicked: Callable[[Pane], None]) -> None:
        super().__init__(classes="pane-title")
        self._pane = pane
        self._clicked = clicked

    def on_mount(self) -> None:
        """Say what the pane says."""
        self.watch(self._pane, "note", self._redraw, init=False)
        self.watch(self._pane, "display", self._redraw, init=False)

    def _redraw(self) -> None:
        self.refresh()

    def render(self) -> Content:
        """Label and note."""
        arrow = "▾" if self._pane.display else "▸"
        note = " ".join(plain_text(self._pane.note).split())
        style = "$primary bold" if self._pane.has_focus_within else "bold"
        return Content.assemble((f"{arrow} ", "dim"), (self._pane.label.upper(), style), (f"  {note}", "dim"))

    def on_click(self) -> None:
        """Fold or open the pane."""
        self._clicked(self._pane)
