"""The modal screens' base: a framed dialog, ones with a list or a tree below a search field, a list to pick from.

Above a list, the search field keeps the focus, and the arrow keys move the cursor of the list. A tree has the focus
itself, since its lines open and close by key; ``/`` moves to the field.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, ClassVar, Protocol, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Input, Static

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.tui import fuzzy
from ragforge_tui.tui.limits import LEAST_BESIDE, SCREEN
from ragforge_tui.tui.widgets.choice_list import Choice, ChoiceList
from ragforge_tui.tui.widgets.key_bar import KeyBar, KeyHint
from ragforge_tui.tui.widgets.virtual_list import TreeList, VirtualList
from ragforge_tui.tui.workers import start_worker

T = TypeVar("T")

BACK = KeyHint("leave", "esc", "back")
PICKER_CHROME = 8
"""Lines of a picker besides its rows: frame, title, field with margins, a blank line, keys."""
PICKER_SHARE = 80
"""Most percent of the height that a picker takes."""
NEARLY_ALL = 90
"""Percent of the height from which a dialog that covers the width covers the height too."""


class Dialog(ModalScreen[T]):
    """A frame over the chat, with a bold ``.title`` and a bar of keys."""

    DEFAULT_CSS = """
    Dialog { align: center middle; }
    Dialog > Vertical { max-width: 100%; height: 92%; background: $surface; border: round $border; padding: 0 1; }
    Dialog Input { background: $panel; }
    Dialog KeyBar { padding: 0; }
    Dialog .title { text-style: bold; }
    """

    def on_resize(self, event: events.Resize) -> None:
        """Cover the chat where only fragments of its lines would stay in view."""
        frame = self.query(Vertical).first()
        css, inline = frame.styles.base, frame.styles.inline
        widest = next((one for one in (css.max_width, css.width) if one is not None and one.is_cells), None)
        if widest is not None and event.size.width - widest.value < LEAST_BESIDE:
            inline.width = inline.max_width = "100%"
            if css.height is not None and not css.height.is_cells and css.height.value >= NEARLY_ALL:
                inline.height = "100%"
        else:
            for rule in ("width", "max_width", "height"):
                inline.clear_rule(rule)

    def show_error(self, sentence: str) -> None:
        """Show the error of some background work, by default in place of the keys."""
        self.query_one(KeyBar).show_note(sentence, "$error")

    def switch(self, load: Callable[[], Coroutine[Any, Any, None]], *, group: str, **choice: Any) -> None:
        """Load with other values of attributes, which are taken back if that fails.

        What is shown about the choice is drawn by `load`, with the data: a title never names what is not below it.
        """
        before = {name: getattr(self, name) for name in choice}

        async def work() -> None:
            try:
                await load()
            except RagforgeError:
                for name, value in before.items():
                    setattr(self, name, value)
                raise

        for name, value in choice.items():
            setattr(self, name, value)
        self.run_guarded(work(), group=group)

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

    @property
    def page(self) -> int:
        """Rows that a page key moves by."""


class ListScreen(Dialog[T]):
    """A list to choose from; Escape leaves without a choice.

    Attributes:
        cursor_list: The list that the arrow keys move in.
    """

    DEFAULT_CSS = "ListScreen ChoiceList { height: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False),
        Binding("up", "move(-1)", show=False, priority=True),
        Binding("down", "move(1)", show=False, priority=True),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
    ]

    cursor_list: CursorList

    @property
    def page(self) -> int:
        return self.cursor_list.page

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


class FilterScreen(ListScreen[T]):
    """A list that typing filters; Enter and a click pick. Its rows are loaded while the screen is already visible.

    Args:
        empty: Shown if there are no rows.
        verb: What Enter does with a row.
        at: The key of the row at which the cursor starts.
    """

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
        self._rows: list[Choice] = []
        self.cursor_list = self._list = ChoiceList(detail_right=detail_right)
        self._keys = KeyBar(self)
        self._keys.show_note("loading …")

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(self._title, classes="title", markup=False)
            yield Input(placeholder="type to filter", compact=True)
            yield from self.compose_list()
            yield self._keys

    def compose_list(self) -> ComposeResult:
        yield self._list

    def on_mount(self) -> None:
        """Fetch the rows while the screen is already visible."""
        self.query_one(Input).focus()
        self.run_guarded(self._fill(), group="rows")

    async def _fill(self) -> None:
        self._rows = await self._load()
        self.narrow(self._at)

    def narrow(self, at: str = "") -> None:
        """Show the rows that match the typed words, with the cursor at a key."""
        query = self.query_one(Input).value
        rows = self.matching(query)
        self._list.show(rows, headings=not query.strip())
        self._list.go_to(at)
        if rows:
            self._keys.show_keys([KeyHint("choose", "enter", self._verb), *self.more_keys(), BACK])
        else:
            self._keys.show_keys([BACK], lead="no match" if self._rows else self._empty)

    def more_keys(self) -> list[KeyHint]:
        """Return the keys for a row besides Enter."""
        return []

    def matching(self, query: str) -> list[Choice]:
        """Return the rows that match a query, best first."""
        return fuzzy.best(query, self._rows, self.searched)

    def searched(self, row: Choice) -> str:
        """Return the text of a row that is searched."""
        return f"{row.label} {row.key[:8]}"

    @abstractmethod
    def pick(self, key: str) -> None:
        """Leave with the row of a key."""

    def on_input_changed(self) -> None:
        self.narrow()

    def on_input_submitted(self) -> None:
        self.action_choose()

    def action_choose(self) -> None:
        if (choice := self._list.chosen) is not None:
            self.pick(choice.key)

    def on_choice_list_picked(self, event: ChoiceList.Picked) -> None:
        self.pick(event.choice.key)


class Picker(FilterScreen[str | None]):
    """Models, links, topics, similar conversations. Returns the key of the picked row, None if none was picked."""

    DEFAULT_CSS = """
    Picker > Vertical { width: 90; height: 80%; }
    Picker Input { margin: 1 0 1 0; }
    """
    page = 10

    async def _fill(self) -> None:
        """Show the rows, in a frame no taller than they need."""
        await super()._fill()
        needed = self._list.get_content_height(self.size, self.size, 0) + PICKER_CHROME
        if needed < self.app.size.height * PICKER_SHARE // 100:
            self.query_one(Vertical).styles.max_height = needed

    def pick(self, key: str) -> None:
        self.dismiss(key)


class TreeScreen(Dialog[T]):
    """A tree below a line of words that filter it, with its keys. A subclass shows the lines and opens them.

    Args:
        query: Initial words.
    """

    DEFAULT_CSS = """
    TreeScreen Input { margin-bottom: 1; }
    TreeScreen TreeList { background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False),
        Binding("slash", "narrow", "filter by words", show=False),
        Binding("r", "read", "read", show=False),
        Binding("g", "go", "go to its turn", show=False),
    ]

    def __init__(self, title: str, tree: TreeList[Any], *, query: str) -> None:
        super().__init__()
        self._title = title
        self._tree = tree
        self._words = Input(value=query, placeholder="/ filters by words", compact=True)
        self._keys = KeyBar(self)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(self._title, classes="title", markup=False)
            yield self._words
            yield from self.above_tree()
            yield self._tree
            yield from self.below_tree()
            yield self._keys

    def above_tree(self) -> Iterable[Widget]:
        """Return the widgets between the search field and the tree."""
        return ()

    def below_tree(self) -> Iterable[Widget]:
        """Return the widgets between the tree and its keys."""
        return ()

    def show_error(self, sentence: str) -> None:
        self.show_note(sentence, "$error")

    def show_note(self, text: str, style: str = "dim") -> None:
        """Show a sentence in place of the keys."""
        self._keys.show_note(plain_text(text), style, seconds=SCREEN.key_note)

    @abstractmethod
    def filter_tree(self) -> None:
        """Show the lines that match the words."""

    @abstractmethod
    def toggle(self, key: str, wanted: bool | None) -> bool:
        """Open or close a line and return whether it changed; None toggles it."""

    @abstractmethod
    def action_go(self) -> None:
        """Go to the turn of the chosen line."""

    @abstractmethod
    def action_read(self) -> None:
        """Show all about the chosen line."""

    def action_leave(self) -> None:
        if self._words.has_focus:
            self._tree.focus()
        else:
            self.leave()

    def leave(self) -> None:
        self.dismiss(None)

    def action_narrow(self) -> None:
        self._words.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while the user types."""
        event.stop()
        self.filter_tree()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go to the tree."""
        event.stop()
        self._tree.focus()

    def on_virtual_list_opened(self, event: VirtualList.Opened) -> None:
        """Open a line, or go to its turn."""
        event.stop()
        if not self.toggle(event.key, None):
            self.action_go()

    def on_tree_list_folded(self, event: TreeList.Folded) -> None:
        """Open or close a line, or go to its parent."""
        event.stop()
        if not self.toggle(event.key, event.wanted) and event.wanted is False:
            self._tree.choose(event.key.partition("|")[0])


class EditLine(Horizontal):
    """A label and a line to edit, hidden until `begin`. The screen handles its `Input.Submitted`."""

    DEFAULT_CSS = """
    EditLine { height: 1; display: none; }
    EditLine Static { width: auto; color: $accent; }
    EditLine Input { width: 1fr; }
    """

    def __init__(self, *, line_id: str, select: bool) -> None:
        super().__init__()
        self._label = Static(markup=False)
        self._line = Input(compact=True, select_on_focus=select, id=line_id)

    def compose(self) -> ComposeResult:
        yield self._label
        yield self._line

    def begin(self, label: str, value: str, *, password: bool = False) -> None:
        """Edit a value and take the focus."""
        self._label.update(label)
        self._line.password = password
        self._line.value = value
        self._line.cursor_position = len(value)
        self.display = True
        self._line.focus()

    @property
    def value(self) -> str:
        return self._line.value

    def end(self) -> None:
        """Hide the line."""
        self.display = False
        self._line.value = ""
