"""The modal screens' base: a framed dialog, one with a list below a search field, and a list to pick one item from.

The search field keeps the focus; the arrow keys move the cursor of the list.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, ClassVar, Protocol, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.tui import fuzzy
from ragforge_tui.tui.widgets.choice_list import Choice, ChoiceList
from ragforge_tui.tui.workers import start_worker

T = TypeVar("T")


class Dialog(ModalScreen[T]):
    """A frame over the chat, with a bold ``.title`` and a muted line of ``.keys``."""

    DEFAULT_CSS = """
    Dialog { align: center middle; }
    Dialog > Vertical { max-width: 98%; height: 92%; background: $surface; border: round $border; padding: 0 1; }
    Dialog Input { background: $panel; }
    Dialog KeyBar { padding: 0; }
    Dialog .title { text-style: bold; }
    Dialog .keys { color: $text-muted; }
    """

    def show_error(self, sentence: str) -> None:
        """Show the error of some background work, by default in place of the keys."""
        self.query_one(".keys", Static).update(Content.styled(sentence, "$error"))

    def run_guarded(self, work: Coroutine[Any, Any, None], *, group: str) -> None:
        """Run work in the background, in place of earlier work of the group; its errors are shown in the screen."""
        start_worker(self, self._guarded(work), group=group, exclusive=True, inner=work)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except RagforgeError as error:
            self.show_error(error.info.sentence())


class CursorList(Protocol):
    """A list with a cursor."""

    def move(self, step: int) -> None:
        """Move the cursor, stopping at the ends."""


class ListScreen(Dialog[T]):
    """A list to choose from; Escape leaves without a choice."""

    DEFAULT_CSS = "ListScreen ChoiceList { height: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False),
        Binding("up", "move(-1)", show=False, priority=True),
        Binding("down", "move(1)", show=False, priority=True),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
    ]

    @property
    @abstractmethod
    def cursor_list(self) -> CursorList:
        """The list that the arrow keys move in."""

    @property
    @abstractmethod
    def page(self) -> int:
        """Rows that a page key moves by."""

    def cursor_moved(self) -> None:
        """Hook: a key moved the cursor."""

    def action_move(self, step: int) -> None:
        """Move the cursor."""
        self.cursor_list.move(step)
        self.cursor_moved()

    def action_page(self, direction: int) -> None:
        self.action_move(direction * self.page)

    def action_leave(self) -> None:
        self.dismiss(None)


class Picker(ListScreen[str | None]):
    """Models, links, similar conversations: typing filters, Enter picks. Returns the key of the row, None for none.

    The rows are loaded while the picker is already visible.
    """

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
