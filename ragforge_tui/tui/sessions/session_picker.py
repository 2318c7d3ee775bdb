"""List of all sessions, up to date with other terminals, with a preview of the one at the cursor.

Typing searches; keys filter, sort, and change the session at the cursor. Loaded when first used.
The rows come from `session_list_model.py`; `session_service.py` changes sessions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, ClassVar, TypeVar

import msgspec
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.widgets import Input, Static

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.records import Conversation
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.tui.drawing.lines import one_line
from ragforge_tui.tui.keys import MEANINGS
from ragforge_tui.tui.limits import SCREEN
from ragforge_tui.tui.sessions.preview_pane import SessionPane
from ragforge_tui.tui.sessions.session_changes import Change, SessionChanges
from ragforge_tui.tui.sessions.session_list_model import (
    ACTIONS,
    EDITING,
    FILTERS,
    KEY_OF,
    ORDERS,
    STATUSES,
    RowStyle,
    SessionFilter,
    action_keys,
    filter_keys,
    nothing_fits,
    session_title,
)
from ragforge_tui.tui.sessions.session_service import SessionLoader, SessionService
from ragforge_tui.tui.widgets.choice_list import ChoiceList
from ragforge_tui.tui.widgets.key_bar import KeyBar
from ragforge_tui.tui.widgets.list_screen import EditLine, ListScreen
from ragforge_tui.tui.workers import start_worker

T = TypeVar("T")

Apply = Callable[[str], Awaitable[Change]]
"""Applies the edited line."""


WIDE = 110
"""Columns from which the preview is next to the list."""
ROOMY = (70, 22)
"""Columns and lines from which the preview is shown below the list by default."""


class SessionPicker(ListScreen[str | None]):
    """Returns the id of the session to open, None if none was picked."""

    CSS = """
    SessionPicker > Vertical { width: 100%; max-width: 160; height: 100%; }
    SessionPicker #session-both { height: 1fr; layout: vertical; margin-top: 1; }
    SessionPicker #session-both.wide { layout: horizontal; }
    SessionPicker ChoiceList { width: 1fr; }
    SessionPicker .wide ChoiceList { padding-right: 1; }
    SessionPicker SessionPane {
        height: auto; max-height: 45%; padding: 0 1; margin-bottom: 1; scrollbar-size-vertical: 1;
        border-top: solid $border;
    }
    SessionPicker #session-preview { text-wrap: nowrap; text-overflow: ellipsis; }
    SessionPicker .wide #session-preview { text-wrap: wrap; }
    SessionPicker .wide SessionPane {
        height: 1fr; max-height: 100%; width: 42%; margin-bottom: 0; border-top: none; border-left: solid $border;
    }
    SessionPicker #session-preview, SessionPicker #session-addresses { height: auto; }
    SessionPicker Excerpt { margin: 1 0; }
    SessionPicker #session-note { height: auto; max-height: 2; display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("shift+up", "read(-1)", show=False, priority=True),
        Binding("shift+down", "read(1)", show=False, priority=True),
        *(Binding(key, f"do('{name}')", MEANINGS.get(key, ""), show=False, priority=True) for key, name, _ in ACTIONS),
        *(Binding(key, f"filter('{name}')", MEANINGS[key], show=False, priority=True) for key, name in FILTERS),
    ]

    def __init__(self, service: SessionService) -> None:
        super().__init__()
        self._service = service
        self._loader = SessionLoader(service)
        self._sessions = self._loader.sessions
        self._filter = SessionFilter()
        self._changes = SessionChanges(service)
        self._fetches = 0
        self._error = ""
        self._wanted_preview: bool | None = None
        self.cursor_list = self._list = ChoiceList(detail_right=True)
        self._pane = SessionPane(service, self._sessions)
        self._filters = KeyBar(self, lines=2, id="session-filters")
        self._keys = KeyBar(self, lines=2, id="session-keys")
        self._keys.show_note("loading …")
        self._note = Static(id="session-note", markup=False)
        self._input = Input(placeholder="type to filter; #tag", compact=True, select_on_focus=False, id="session-query")
        self._edit = EditLine(line_id="session-line", select=False)
        self._apply: Apply | None = None

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self._filters
            yield self._input
            with Container(id="session-both"):
                yield self._list
                yield self._pane
            yield self._edit
            yield self._note
            yield self._keys

    def on_mount(self) -> None:
        """Fetch the sessions while the picker is already visible, then follow changes."""
        self._input.focus()
        self._arrange()
        self._show_filters()
        self._load()
        self.set_interval(SCREEN.follow, self._follow_soon)

    def on_resize(self, event: events.Resize) -> None:
        """Place the preview where there is room; narrow rows show less."""
        self._arrange()
        if len(self._sessions):
            self._draw(keep=True)

    def _arrange(self) -> None:
        size = self.app.size
        roomy = size.width >= ROOMY[0] and size.height >= ROOMY[1]
        wanted = roomy if self._wanted_preview is None else self._wanted_preview
        self._pane.display = wanted
        self._pane.beside = size.width >= WIDE
        self.query_one("#session-both").set_class(self._pane.beside, "wide")

    # -- the sessions

    def _load(self) -> None:
        start_worker(self, self._fetched(self._fill), group="rows", exclusive=True)

    async def _fill(self) -> None:
        async for _ in self._loader.load():
            self._draw(keep=True)

    def _follow_soon(self) -> None:
        if self._fetches:
            return
        if self._loader.loaded:
            start_worker(self, self._fetched(self._follow), group="rows", exclusive=True)
        else:
            self._load()

    async def _follow(self) -> None:
        if await self._loader.follow():
            self._draw(keep=True)

    async def _fetched(self, work: Callable[[], Awaitable[None]]) -> None:
        """Fetch sessions; an error is shown below the list until the next success."""
        self._fetches += 1
        try:
            await work()
        except RagforgeError as error:
            self._error = error.info.sentence()
            self.show_error(self._error)
        else:
            if self._error:
                self._error = ""
                self._show_message("")
        finally:
            self._fetches -= 1

    def _draw(self, *, keep: bool) -> None:
        style = RowStyle(
            now=self._service.now,
            current=self._service.current,
            glyphs=self._service.glyphs,
            narrow=self.app.size.width < ROOMY[0],
        )
        rows = self._sessions.rows(self._filter, style)
        if rows != self._list.rows or not keep:
            self._list.show(rows, headings=not self._filter.query.strip(), keep=keep)
        self._show_filters()
        self._show_keys()
        self._pane.show(self._chosen)

    # -- the lines around the list

    def _show_filters(self) -> None:
        count = f"{len(self._list.rows)}/{len(self._sessions)}" if self._loader.loaded else ""
        hints = filter_keys(self._filter, everywhere=self._loader.everywhere)
        self._filters.show_keys(hints, lead=f"Sessions {count}".strip(), style="bold")

    def _show_keys(self) -> None:
        if self._apply is not None:
            self._keys.show_keys(EDITING)
            return
        nothing = "no conversation in this folder yet" if self._loader.loaded else "loading …"
        if self._loader.loaded and len(self._sessions) and not self._list.rows:
            nothing = nothing_fits(self._sessions.unfiltered(self._filter.query), everywhere=self._loader.everywhere)
        chosen = self._chosen
        hints = action_keys(chosen, undo=bool(self._changes.last_deleted), preview=bool(self._pane.display))
        self._keys.show_keys(hints, lead="" if chosen is not None else nothing)

    def _show_message(self, text: str | Content) -> None:
        """Show the result of an action; an empty text removes the last one."""
        self._note.update(Content(plain_text(text)) if isinstance(text, str) else text)
        self._note.display = bool(text)

    def show_error(self, sentence: str) -> None:
        self._show_message(Content.styled(sentence, "$error"))

    @property
    def _chosen(self) -> Conversation | None:
        row = self._list.chosen
        return self._sessions.get(row.key) if row is not None else None

    # -- keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave the keys to a line that is being edited."""
        return self._apply is None or action in ("leave", "move", "read", "page", "open", "apply")

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input is self._input:
            self._narrow(keep=False, query=event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Open the session, or apply the edited line."""
        if event.input is self._input:
            self.action_open()
        else:
            self.action_apply()

    def action_apply(self) -> None:
        """Apply the edited line."""
        value = self._edit.value.strip()
        if (apply := self._end_edit()) is not None:
            self._make(partial(apply, value))

    def on_choice_list_picked(self, event: ChoiceList.Picked) -> None:
        """Choose a session; a click on the chosen one opens it."""
        self._end_edit()
        if event.again:
            self.dismiss(event.choice.key)
        else:
            self._show_keys()
            self._pane.show(self._chosen)

    def _narrow(self, *, keep: bool = True, **changes: Any) -> None:
        self._filter = msgspec.structs.replace(self._filter, **changes)
        self._draw(keep=keep)

    def action_open(self) -> None:
        """Return the session at the cursor; a deleted one is restored first."""
        chosen = self._chosen
        if chosen is not None and chosen.status == "deleted":
            self._show_message(f"{session_title(chosen)} is deleted; {KEY_OF['delete']} restores it.")
        elif chosen is not None:
            self.dismiss(chosen.uuid)

    def action_leave(self) -> None:
        if self._end_edit() is None:
            self.dismiss(None)

    def action_move(self, step: int) -> None:
        """Move the cursor; an edited line is dropped."""
        self._end_edit()
        super().action_move(step)

    def cursor_moved(self) -> None:
        """Show the keys and the preview of the session at the cursor."""
        self._show_keys()
        self._pane.show(self._chosen)

    def action_read(self, lines: int) -> None:
        self._pane.scroll_relative(y=lines * 2, animate=False)

    def action_filter(self, name: str) -> None:
        """Switch to the next value of a filter."""
        now = self._filter
        match name:
            case "folder" if self._service.folder is not None:
                self._loader.everywhere = not self._loader.everywhere
                self._loader.loaded = False
                self._load()
                self._show_filters()
            case "status":
                self._narrow(status=_next(STATUSES, now.status), tag="")
            case "tags":
                self._narrow(tag=_next(["", *self._sessions.tags(now.status)], now.tag))
            case "order":
                self._narrow(order=_next(ORDERS, now.order))

    def action_do(self, name: str) -> None:
        """Run an action on the session at the cursor."""
        self._show_message("")
        chosen = self._chosen
        if name == "preview":
            self._wanted_preview = not self._pane.display
            self._arrange()
            self._show_keys()
            self._pane.show(self._chosen)
        elif name == "undo":
            if deleted := self._changes.last_deleted:
                self._make(partial(self._changes.restore, deleted))
        elif chosen is not None:
            self._do(name, chosen)

    def _do(self, name: str, chosen: Conversation) -> None:
        uuid, changes = chosen.uuid, self._changes
        match name:
            case "rename":
                self._begin_edit("title ", chosen.title, lambda title: changes.rename(uuid, title))
            case "tag":
                self._begin_edit("tags ", " ".join(chosen.tags), lambda tags: changes.tag(uuid, tags))
            case "export":
                target = str(self._service.export_path(chosen))
                self._begin_edit("write to (.md or .json) ", target, lambda to: changes.export(uuid, to))
            case "archive" if chosen.status != "deleted":
                self._make(partial(changes.archive, chosen))
            case "delete":
                deleted = chosen.status == "deleted"
                self._make(partial(changes.restore, uuid) if deleted else partial(changes.delete, chosen))
            case "private":
                self._make(partial(changes.toggle_private, chosen))

    # -- changing a session

    def _begin_edit(self, label: str, value: str, apply: Apply) -> None:
        self._apply = apply
        self._edit.begin(label, one_line(value))
        self._show_keys()

    def _end_edit(self) -> Apply | None:
        apply, self._apply = self._apply, None
        if apply is not None:
            self._edit.end()
            self._input.focus()
            self._show_keys()
        return apply

    def _make(self, change: Callable[[], Awaitable[Change]]) -> None:
        self.run_guarded(self._made(change), group="change")

    async def _made(self, make: Callable[[], Awaitable[Change]]) -> None:
        """Make a change and show it."""
        change = await make()
        if change.session is not None:
            self._sessions.put([change.session])
            self._draw(keep=True)
            if change.go_to:
                self._list.go_to(change.session.uuid)
                self.cursor_moved()
        if change.message:
            self._show_message(change.message)


def _next(values: Sequence[T], now: T) -> T:
    return values[(values.index(now) + 1) % len(values)] if now in values else values[0]
