"""The menu above the prompt: commands, arguments or files that match the typed text."""

from __future__ import annotations

from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import Container

from ragforge_tui.tui.prompt.completion import Suggestion
from ragforge_tui.tui.widgets.choice_list import Choice, ChoiceList


class SlashMenu(Container):
    """Hidden while there is nothing to offer; the prompt keeps the focus and moves the cursor.

    Attributes:
        moved: Whether the user moved in the rows, which makes the row at the cursor their choice.
        picked: Called with a clicked row.
    """

    def __init__(self) -> None:
        super().__init__(id="menu")
        self._list = ChoiceList(max_rows=8)
        self._rows: dict[str, Suggestion] = {}
        self.moved = False
        self.picked: Callable[[Suggestion], None] | None = None

    def compose(self) -> ComposeResult:
        yield self._list

    @property
    def chosen(self) -> Suggestion | None:
        """The row at the cursor; None while the menu is closed."""
        choice = self._list.chosen if self.display else None
        return self._rows[choice.key] if choice else None

    def offer(self, rows: list[Suggestion]) -> None:
        """Show rows; none closes the menu. The cursor stays on a row that the user moved to."""
        self._rows = {row.text: row for row in rows}
        self.display = bool(rows)
        self._list.show([Choice(row.text, row.label, row.detail) for row in rows], keep=self.moved)
        chosen = self._list.chosen
        self.moved = self.moved and chosen is not None and self._list.rows[0] is not chosen

    def move(self, step: int) -> None:
        """Move the cursor, wrapping around."""
        self.moved = True
        self._list.move(step, wrap=True)

    def close(self) -> None:
        """Hide the menu until the text changes."""
        self.moved = False
        self.offer([])

    def on_choice_list_picked(self, event: ChoiceList.Picked) -> None:
        """Insert a clicked row."""
        event.stop()
        if self.picked is not None:
            self.picked(self._rows[event.choice.key])
