"""Base classes of the modal screens: a framed dialog, and one with a list below a search field.

The search field keeps the focus; the arrow keys move the cursor of the list.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Coroutine
from typing import Any, ClassVar, Protocol, TypeVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from ragforge_tui.shared.errors import RagforgeError
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
