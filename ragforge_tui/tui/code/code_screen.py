"""Search for code: scopes as you type, with a preview; Enter opens one.

Loaded when first used. Without words it lists the scopes that the conversation touched, or those of a file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import ClassVar, Protocol

import msgspec
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.widgets import Input, Static

from ragforge_tui.shared.code_records import Scope, ScopeTalk
from ragforge_tui.shared.code_views import ScopeView, scope_name, scope_place
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.requests.code import FetchScope, ListTouchedCode, SearchCode
from ragforge_tui.shared.wire import R, Request
from ragforge_tui.tui.code.scope_rows import code_section
from ragforge_tui.tui.code.scope_screen import ScopeScreen
from ragforge_tui.tui.dialogs.text_viewer import Viewer, prepared_blocks
from ragforge_tui.tui.limits import SCREEN
from ragforge_tui.tui.widgets.choice_list import Choice, ChoiceList
from ragforge_tui.tui.widgets.key_bar import KeyBar, KeyHint
from ragforge_tui.tui.widgets.list_screen import BACK, ListScreen
from ragforge_tui.tui.workers import start_worker

MOST_HITS = 50
WIDE = 110
"""Cells of a screen from which the preview is next to the list."""
FEWEST_LINES = 18
"""Lines of a screen below which there is no preview."""
HINT = "type a name, or words for what it does · path:FOLDER limits the search"


class Ask(Protocol):
    """Sends a request to the engine."""

    async def __call__(self, request: Request[R]) -> R: ...


class Words(msgspec.Struct, frozen=True):
    """A query taken apart: words, and the folder or file after ``path:``."""

    words: str
    path: str = ""


def parse_words(text: str) -> Words:
    """Return the words of a query and its path; a path with blanks is in double quotes."""
    before, mark, after = text.partition("path:")
    if not mark or (before and not before.endswith(" ")):
        return Words(" ".join(text.split()))
    if after.startswith('"'):
        path, _, rest = after[1:].partition('"')
    else:
        path, _, rest = after.partition(" ")
    return Words(" ".join(f"{before} {rest}".split()), path)


def in_file(path: str) -> str:
    """Return the query that lists the scopes of a file."""
    return f'path:"{path}" ' if " " in path else f"path:{path} "


class CodeScreen(ListScreen[ScopeTalk | None]):
    """Returns the turn that the user wants to see, None if it was closed.

    Args:
        conversation_id: The open conversation, empty for none.
        query: Initial search words.
    """

    CSS = """
    CodeScreen > Vertical { width: 100%; max-width: 160; height: 100%; }
    CodeScreen Input { margin-bottom: 1; }
    CodeScreen #code-both { height: 1fr; layout: vertical; }
    CodeScreen #code-both.wide { layout: horizontal; }
    CodeScreen ChoiceList { height: 1fr; width: 1fr; }
    CodeScreen Viewer { background: $surface; height: 1fr; border-top: solid $border; }
    CodeScreen .wide Viewer { width: 55%; border-top: none; border-left: solid $border; padding-left: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("shift+up", "read(-1)", show=False, priority=True),
        Binding("shift+down", "read(1)", show=False, priority=True),
    ]

    def __init__(self, ask: Ask, *, conversation_id: str, query: str = "") -> None:
        super().__init__()
        self._ask = ask
        self._conversation_id = conversation_id
        self.cursor_list = self._list = ChoiceList(detail_right=True)
        self._input = Input(query, placeholder="name, or words for what it does", compact=True, select_on_focus=False)
        self._preview = Viewer()
        self._preview.can_focus = False
        self._views: dict[str, ScopeView] = {}
        self._keys = KeyBar(self, lines=2)
        self._keys.show_keys([BACK], lead=HINT)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static("Code", classes="title", markup=False)
            yield self._input
            with Container(id="code-both"):
                yield self._list
                yield self._preview
            yield self._keys

    def on_mount(self) -> None:
        """List the touched scopes, or search at once if there are words."""
        self._input.focus()
        self._arrange()
        self._search_soon()

    def on_resize(self, event: events.Resize) -> None:
        self._arrange()

    def _arrange(self) -> None:
        size = self.app.size
        self._preview.display = size.height >= FEWEST_LINES
        self.query_one("#code-both").set_class(size.width >= WIDE, "wide")

    # -- searching

    def on_input_changed(self) -> None:
        """Search after a pause in typing, without waiting for the search before."""
        self._search_soon()

    def _search_soon(self) -> None:
        self.run_guarded(self._search(parse_words(self._input.value)), group="search")

    async def _search(self, wanted: Words) -> None:
        if wanted.words:
            await asyncio.sleep(SCREEN.settle)
            self._keys.show_keys([BACK], lead="searching …")
        rows, empty = await self._rows(wanted)
        self._list.show(rows, headings=True)
        if rows:
            hints = [KeyHint("open", "enter", "open"), KeyHint("read(1)", "shift+down", "scroll the code")]
            self._keys.show_keys([*hints, BACK])
        else:
            self._keys.show_keys([BACK], lead=empty)
        self._preview_soon()

    async def _rows(self, wanted: Words) -> tuple[list[Choice], str]:
        if wanted.words or wanted.path:
            found = await self._ask(SearchCode(query=wanted.words, path=wanted.path, limit=MOST_HITS))
            empty = "no match" if wanted.words else "the index has nothing of this file"
            return [_row(scope) for scope in found], empty
        if not self._conversation_id:
            return [], HINT
        touched = await self._ask(ListTouchedCode(conversation_id=self._conversation_id))
        heading = "Touched or named in this conversation"
        return [_row(one.scope, f"t{one.turn_index}", heading) for one in touched], HINT

    def show_error(self, sentence: str) -> None:
        """Show an error in place of the rows and keys."""
        self._list.show([])
        super().show_error(sentence)

    # -- the preview

    def cursor_moved(self) -> None:
        self._preview_soon()

    def _preview_soon(self) -> None:
        chosen = self._list.chosen
        if chosen is None:
            self._preview.view([])
        elif self._preview.display:
            start_worker(self, self._show_preview(chosen.key), group="preview", exclusive=True)

    async def _show_preview(self, uuid: str) -> None:
        if uuid not in self._views:
            await asyncio.sleep(SCREEN.rest)
            try:
                self._views[uuid] = await self._ask(FetchScope(uuid=uuid))
            except RagforgeError as error:
                self._keys.show_note(error.info.sentence(), "$error")
                return
        view = self._views[uuid]
        blocks = await asyncio.to_thread(prepared_blocks, code_section(view.scope, view.code), self._preview.palette)
        self._preview.scroll_home(animate=False)
        self._preview.view(blocks)

    def action_read(self, direction: int) -> None:
        self._preview.scroll_relative(y=direction * 3, animate=False)

    # -- one scope

    def on_input_submitted(self) -> None:
        self.action_open()

    def action_open(self) -> None:
        """Show the chosen scope."""
        if self._list.chosen is not None:
            self._open(self._list.chosen)

    def on_choice_list_picked(self, event: ChoiceList.Picked) -> None:
        """Choose a scope; a click on the chosen one opens it."""
        if event.again:
            self._open(event.choice)
        else:
            self._preview_soon()

    def _open(self, choice: Choice) -> None:
        def closed(talk: ScopeTalk | None) -> None:
            if talk is not None:
                self.dismiss(talk)

        self.app.push_screen(ScopeScreen(scope_loader(self._ask), choice.key, choice.label), closed)


def scope_loader(ask: Ask) -> Callable[[str], Awaitable[ScopeView]]:
    """Return a function that asks the engine for a scope."""

    async def load(uuid: str) -> ScopeView:
        return await ask(FetchScope(uuid=uuid))

    return load


def _row(scope: Scope, detail: str = "", heading: str = "") -> Choice:
    path = scope_place(scope)
    return Choice(scope.uuid, scope_name(scope), detail, heading, lead=f"{scope.kind:<9} ", path=path)
