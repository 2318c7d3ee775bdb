"""A list to pick one item from: models, links, similar conversations. Typing filters, Enter picks, Escape leaves.

Loaded when first used. Its rows are loaded while it is already visible.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input, Static

from ragforge_tui.tui import fuzzy
from ragforge_tui.tui.widgets.choice_list import Choice, ChoiceList
from ragforge_tui.tui.widgets.list_screen import ListScreen


class Picker(ListScreen[str | None]):
    """Returns the key of the picked row, None if none was picked."""

    DEFAULT_CSS = """
    Picker > Vertical { width: 90; max-width: 96%; height: 80%; }
    Picker Input { margin: 1 0 1 0; }
    """
    page = 10

    def __init__(
        self,
        title: str,
        load: Callable[[], Awaitable[list[Choice]]],
        *,
        empty: str,
        verb: str,
        at: str = "",
        detail_right: bool = True,
    ) -> None:
        super().__init__()
        self._title = title
        self._load = load
        self._empty = empty
        self._verb = verb
        self._at = at
        """The key of the row at which the cursor starts."""
        self._rows: list[Choice] = []
        self._list = ChoiceList(detail_right=detail_right)
        self._note = Static("loading …", classes="keys", markup=False)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(self._title, classes="title", markup=False)
            yield Input(placeholder="type to filter", compact=True)
            yield self._list
            yield self._note

    def on_mount(self) -> None:
        """Fetch the rows while the picker is already visible."""
        self.query_one(Input).focus()
        self.run_guarded(self._fill(), group="rows")

    async def _fill(self) -> None:
        self._rows = await self._load()
        self._narrow()
        at = next((place for place, row in enumerate(self._rows) if row.key == self._at), 0)
        self._list.move(at)

    def _narrow(self) -> None:
        query = self.query_one(Input).value
        rows = fuzzy.best(query, self._rows, self.searched)
        self._list.show(rows, headings=not query.strip())
        keys = f"enter {self._verb} · esc back"
        self._note.update(keys if rows else f"{'no match' if self._rows else self._empty} · esc back")

    def searched(self, row: Choice) -> str:
        """Return the text of a row that is searched."""
        return f"{row.label} {row.key[:8]}"

    def on_input_changed(self) -> None:
        self._narrow()

    def on_input_submitted(self) -> None:
        if (choice := self._list.chosen) is not None:
            self.dismiss(choice.key)

    def on_choice_list_picked(self, event: ChoiceList.Picked) -> None:
        self.dismiss(event.choice.key)

    @property
    def cursor_list(self) -> ChoiceList:
        return self._list
