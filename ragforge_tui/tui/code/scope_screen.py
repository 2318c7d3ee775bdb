"""One scope: its code, what refers to it, what it refers to, and the turns about it.

Loaded when first used. Enter on a reference shows that scope in the same screen; Escape goes back to the one before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from ragforge_tui.shared.code_records import ScopeTalk
from ragforge_tui.shared.code_views import ScopeView, scope_name
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.tui.code.scope_rows import ScopeRows, code_section, lines_of
from ragforge_tui.tui.dialogs.text_viewer import Viewer, prepared_blocks
from ragforge_tui.tui.drawing.lines import one_line
from ragforge_tui.tui.limits import SCREEN
from ragforge_tui.tui.widgets.key_bar import KeyBar, KeyHint
from ragforge_tui.tui.widgets.list_screen import Dialog
from ragforge_tui.tui.widgets.virtual_list import VirtualList

LoadScope = Callable[[str], Awaitable[ScopeView]]
"""Returns all about a scope by its uuid."""
READ_LINES = 3


class ScopeScreen(Dialog[ScopeTalk | None]):
    """Returns the turn that the user wants to see, None if it was closed.

    Args:
        uuid: The first scope to show.
    """

    CSS = """
    ScopeScreen > Vertical { width: 130; }
    ScopeScreen .title { height: 1; }
    ScopeScreen Viewer { background: $surface; height: 4fr; }
    ScopeScreen ScopeRows { background: $surface; height: 3fr; border-top: solid $border; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "back", "leave", show=False),
        Binding("tab", "switch", show=False, priority=True),
        Binding("shift+up", "read(-1)", show=False, priority=True),
        Binding("shift+down", "read(1)", show=False, priority=True),
        Binding("y", "copy", "copy", show=False),
    ]

    def __init__(self, load: LoadScope, uuid: str, title: str = "") -> None:
        super().__init__()
        self._load = load
        self._trail = [uuid]
        self.view: ScopeView | None = None
        self._title = Static(plain_text(title) or "Code", classes="title", markup=False)
        self._viewer = Viewer()
        self.rows = ScopeRows(empty="loading …")
        self._keys = KeyBar(self)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self._title
            yield self._viewer
            yield self.rows
            yield self._keys

    def on_mount(self) -> None:
        """Fetch the scope while the screen is already visible."""
        self.rows.focus()
        self._keys.show_note("loading …")
        self._fill_soon()

    def _fill_soon(self) -> None:
        self.run_guarded(self._fill(), group="scope")

    async def _fill(self) -> None:
        view = await self._load(self._trail[-1])
        sections = code_section(view.scope, view.code)
        blocks = await asyncio.to_thread(prepared_blocks, sections, self._viewer.palette)
        self.view = view
        self._title.update(Content(one_line(f"{scope_name(view.scope)}  {view.scope.signature}")))
        self._viewer.scroll_home(animate=False)
        self._viewer.view(blocks)
        self.rows.show(lines_of(view), empty="nothing refers to it")
        self._show_keys()

    def _show_keys(self) -> None:
        back = "previous" if len(self._trail) > 1 else "back"
        hints = [KeyHint("back", "esc", back), KeyHint("open", "enter", "open"), KeyHint("switch", "tab", "code, list")]
        hints.append(KeyHint("read(1)", "shift+↓", "scroll"))
        self._keys.show_keys([*hints, KeyHint("copy", "y", "copy")])

    def show_error(self, sentence: str) -> None:
        """Show an error in place of the keys."""
        self._keys.show_note(plain_text(sentence), "$error")

    # -- keys

    def action_back(self) -> None:
        """Go back to the scope before; from the first one, leave."""
        if len(self._trail) == 1:
            self.dismiss(None)
            return
        self._trail.pop()
        self._fill_soon()

    def action_switch(self) -> None:
        """Move the focus between the code and the list."""
        (self._viewer if self.rows.has_focus else self.rows).focus()

    def action_read(self, direction: int) -> None:
        self._viewer.scroll_relative(y=direction * READ_LINES, animate=False)

    def action_open(self) -> None:
        self.rows.action_open()

    def action_copy(self) -> None:
        if self.view is not None:
            self.app.copy_to_clipboard(plain_text(self.view.code.text))
            self._keys.show_note("The code was sent to the clipboard.", seconds=SCREEN.key_note)

    def on_virtual_list_opened(self, event: VirtualList.Opened) -> None:
        """Show the scope of a row, or return its turn."""
        event.stop()
        lines = lines_of(self.view) if self.view is not None else []
        line = next((line for line in lines if line.key == event.key), None)
        if line is None:
            return
        if line.talk is not None:
            self.dismiss(line.talk)
        else:
            self._trail.append(line.scope)
            self._fill_soon()
