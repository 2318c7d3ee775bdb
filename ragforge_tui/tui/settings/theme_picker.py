"""The /theme list: the theme at the cursor is tried on at once. Enter keeps it, Escape goes back.

Loaded when first used.
"""

from __future__ import annotations

from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input, Static

from ragforge_tui.tui import fuzzy
from ragforge_tui.tui.style.theme import NAMES
from ragforge_tui.tui.widgets.choice_list import Choice, ChoiceList
from ragforge_tui.tui.widgets.list_screen import ListScreen


class ThemePicker(ListScreen[str | None]):
    """Returns the theme to keep, None to go back. It covers little, so that the chat stays visible."""

    CSS = """
    ThemePicker { align: right bottom; background: transparent; }
    ThemePicker > Vertical {
        width: 60; max-width: 96%; height: 15; max-height: 80%; margin: 0 1 4 0;
    }
    ThemePicker #theme-title { text-style: bold; }
    ThemePicker #theme-keys { color: $text-muted; }
    """
    page = 8

    def __init__(self, others: list[str], current: str, wear: Callable[[str], None]) -> None:
        """Create the list.

        Args:
            others: Names of themes that are not the chat's own.
            current: The current setting.
            wear: Tries a theme on.
        """
        super().__init__()
        self._rows = [Choice(key, f"{key}", description, "The chat's own") for key, description in NAMES.items()]
        self._rows += [Choice(name, name, "", "Textual's") for name in others]
        self._current = current
        self._wear = wear
        self._list = ChoiceList(detail_right=False)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static("Theme", id="theme-title", markup=False)
            yield Input(placeholder="type to filter", compact=True)
            yield self._list
            yield Static("enter save · esc back", id="theme-keys", markup=False)

    def on_mount(self) -> None:
        """Start at the current theme."""
        self.query_one(Input).focus()
        self._list.show(self._rows)
        self._list.move(next((index for index, row in enumerate(self._rows) if row.key == self._current), 0))

    def _try_on(self) -> None:
        if (choice := self._list.chosen) is not None:
            self._wear(choice.key)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while the user types."""
        event.stop()
        if event.value.strip() or len(self._list.rows) < len(self._rows):
            found = fuzzy.best(event.value, self._rows, lambda row: f"{row.key} {row.detail}")
            self._list.show(found, headings=not event.value.strip())
            self._try_on()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if (choice := self._list.chosen) is not None:
            self.dismiss(choice.key)

    def on_choice_list_picked(self, event: ChoiceList.Picked) -> None:
        """Try a theme on; a second click keeps it."""
        event.stop()
        self._try_on()
        if event.again:
            self.dismiss(event.choice.key)

    @property
    def cursor_list(self) -> ChoiceList:
        return self._list

    def cursor_moved(self) -> None:
        self._try_on()

    def show_error(self, sentence: str) -> None:
        """Show an error in place of the keys."""
        self.query_one("#theme-keys", Static).update(sentence)

    def action_leave(self) -> None:
        """Go back to the theme before."""
        self._wear(self._current)
        self.dismiss(None)
