"""List of all personas, with a preview of the one at the cursor: how it sounds, facts, errors, and its file on Tab.

Typing filters, Enter chooses, alt+e edits, alt+d deletes, Escape leaves. Loaded when first used.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar, Literal

import msgspec
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical, VerticalScroll
from textual.content import Content

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.persona_records import PersonaInfo, PersonaList, PersonaView
from ragforge_tui.tui.drawing.lines import one_line
from ragforge_tui.tui.personas.persona_preview import (
    ORIGINS,
    HangingLine,
    HangingText,
    faults,
    preview,
    signature,
)
from ragforge_tui.tui.widgets.choice_list import Choice
from ragforge_tui.tui.widgets.key_bar import KeyHint
from ragforge_tui.tui.widgets.list_screen import PICKER_CHROME, FilterScreen

WIDE = 100
"""Columns from which the preview is next to the list."""
PREVIEW_ROWS = 14
"""Lines of a usual preview without the file."""


class Picked(msgspec.Struct, frozen=True):
    """A persona and what to do with it."""

    name: str
    action: Literal["use", "edit", "delete"]


class PersonaPicker(FilterScreen[Picked | None]):
    """Returns the picked persona and the action, None if none was picked.

    Args:
        load: Returns all personas.
        show: Returns one of them with its text.
        current: Name of the persona in use.
    """

    CSS = """
    PersonaPicker > Vertical { width: 150; height: 90%; }
    PersonaPicker Input { margin: 1 0 1 0; }
    PersonaPicker #persona-both { height: 1fr; layout: vertical; }
    PersonaPicker #persona-both.wide { layout: horizontal; }
    PersonaPicker ChoiceList { height: 35%; min-height: 4; width: 1fr; }
    PersonaPicker .wide ChoiceList { height: 1fr; width: 55%; padding-right: 1; }
    PersonaPicker .wide.source ChoiceList { width: 35%; }
    PersonaPicker VerticalScroll { height: 1fr; width: 1fr; padding: 0 1; scrollbar-size-vertical: 1; }
    PersonaPicker VerticalScroll { border-top: solid $border; }
    PersonaPicker .wide VerticalScroll { border-top: none; border-left: solid $border; }
    PersonaPicker #persona-preview { height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "source", show=False, priority=True),
        Binding("alt+e", "pick('edit')", "edit", show=False, priority=True),
        Binding("alt+d", "pick('delete')", "remove, forget, delete", show=False, priority=True),
    ]

    def __init__(
        self,
        load: Callable[[], Awaitable[PersonaList]],
        show: Callable[[str], Awaitable[PersonaView]],
        *,
        current: str,
    ) -> None:
        super().__init__("Personas", self._personas, empty="no match", verb="choose", at=current, detail_right=False)
        self._load_personas = load
        self._show = show
        self._current = current
        self._source = False
        """Whether the preview has the persona's file."""
        self._views: dict[str, PersonaView] = {}
        self._preview = HangingText(id="persona-preview")

    def compose_list(self) -> ComposeResult:
        with Container(id="persona-both"):
            yield self._list
            yield VerticalScroll(self._preview, can_focus=False)

    def on_mount(self) -> None:
        self._arrange()

    def on_resize(self, event: events.Resize) -> None:
        """Place the preview next to the list if there is room."""
        self._arrange()

    def _arrange(self) -> None:
        """Place the preview, in a frame no taller than it and the list need."""
        wide, both = self.app.size.width >= WIDE, self.query_one("#persona-both")
        both.set_class(wide, "wide")
        both.set_class(self._source, "source")
        rows = len(self._rows)
        needed = PICKER_CHROME + (max(rows, PREVIEW_ROWS) if wide else rows + PREVIEW_ROWS + 1)
        self.query_one(Vertical).styles.max_height = None if self._source else needed

    async def _fill(self) -> None:
        await super()._fill()
        self._arrange()

    async def _personas(self) -> list[Choice]:
        found = await self._load_personas()
        return [self._row(number, info) for number, info in enumerate(found.personas, 1)]

    def _row(self, number: int, info: PersonaInfo) -> Choice:
        speaks = " (speaks)" if info.name == self._current else ""
        flag = " ✗" if info.problem else " !" if faults(info) else ""
        origin = "" if info.origin == "shipped" else f"{ORIGINS[info.origin]} · "
        label = f"{signature(info)}{speaks}{flag}"
        return Choice(info.name, label, f"{origin}{one_line(info.description)}", mark=f"{number:>2}")

    def more_keys(self) -> list[KeyHint]:
        return [KeyHint("pick('edit')", "alt+e", "edit"), KeyHint("pick('delete')", "alt+d", "delete")]

    def searched(self, row: Choice) -> str:
        return f"{row.label} {row.detail}"

    def narrow(self, at: str = "") -> None:
        super().narrow(at)
        self._show_preview()

    def _show_preview(self) -> None:
        """Show the persona at the cursor."""
        chosen = self._list.chosen
        if chosen is None:
            self._preview.show(())
        elif chosen.key in self._views:
            self._draw(self._views[chosen.key])
        else:
            self.run_worker(self._fetch(chosen.key), name="preview", group="preview", exclusive=True)

    async def _fetch(self, name: str) -> None:
        try:
            view = await self._show(name)
        except RagforgeError as error:
            self._preview.show([HangingLine(Content(), Content.styled(error.info.sentence(), "$error"))])
            return
        self._views[name] = view
        if self._list.chosen is not None and self._list.chosen.key == name:
            self._draw(view)

    def _draw(self, view: PersonaView) -> None:
        self._preview.show(preview(view.info, view.text, dark=self.app.current_theme.dark, source=self._source))
        self.query_one(VerticalScroll).scroll_home(animate=False)

    def pick(self, key: str) -> None:
        self.dismiss(Picked(key, "use"))

    @property
    def page(self) -> int:
        """Lines of the preview that a page key scrolls by."""
        return max(self.query_one(VerticalScroll).size.height - 1, 1)

    def cursor_moved(self) -> None:
        self._show_preview()

    def action_page(self, direction: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=direction * self.page, animate=False)

    def action_source(self) -> None:
        """Show the persona's file, or only what it is like."""
        self._source = not self._source
        self._arrange()
        self._show_preview()

    def action_pick(self, action: Literal["use", "edit", "delete"]) -> None:
        if (choice := self._list.chosen) is not None:
            self.dismiss(Picked(choice.key, action))
