"""A virtual list of any length: only the visible lines are drawn. Trace, files and memory use it.

Subclasses draw the lines and give a key to those that can be chosen; lines of a `TreeList` open and close.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from rich.cells import cell_len
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ragforge_tui.tui.drawing.lines import Run, clip, line_of, one_line, wrap_spans
from ragforge_tui.tui.drawing.palette import Palette, palette_for
from ragforge_tui.tui.widgets.new_size import on_new_size

L = TypeVar("L")

MARGIN = 2
_LEAST_TEXT = 12
_BOLD = Style(bold=True)


class VirtualList(ScrollView, Generic[L], can_focus=True):
    """Lines with a cursor on those that have a key.

    Args:
        empty: Shown if there are no lines.
        follow: The newest lines are at the end: start there, and stay there while it is in view.
    """

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    VirtualList {
        height: 1fr; width: 1fr; overflow-x: hidden; overflow-y: auto;
        scrollbar-size-vertical: 1; scrollbar-gutter: stable;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("down,j", "move(1)", "down", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home", "move_end(-1)", show=False),
        Binding("end", "move_end(1)", show=False),
        Binding("enter", "open", show=False),
    ]

    @dataclass
    class Opened(Message):
        """Enter was pressed at a line, or it was clicked on."""

        rows: VirtualList[Any]
        key: str

    class TopSeen(Message):
        """The first lines came into view."""

    def __init__(self, *, empty: str = "", follow: bool = False) -> None:
        super().__init__()
        self._follow = follow
        self._lines: Sequence[L] = []
        self._places: dict[str, int] = {}
        self._cursor = ""
        self._empty = empty
        self._palette: Palette | None = None
        self._top_reported = False
        self._at_end = True
        self._moved = False
        self._check_size: Callable[[], None] = lambda: None
        self._hovered = -1
        """Row of the window that the mouse is over, -1 for none."""

    # -- for subclasses

    @abstractmethod
    def key_of(self, line: L) -> str:
        """Return the key of a line; empty if it cannot be chosen. The first line with a key is its row."""

    @abstractmethod
    def draw(self, line: L, width: int, palette: Palette) -> list[Run]:
        """Draw a line, to be truncated at `width`."""

    # -- what the owner calls

    @property
    def count(self) -> int:
        """The number of lines."""
        return len(self._lines)

    @property
    def chosen(self) -> str:
        """The key at the cursor, empty for none."""
        return self._cursor if self._cursor in self._places else ""

    def show(self, lines: Sequence[L], *, empty: str | None = None, stay: bool = False) -> None:
        """Show lines; those being read stay in view, and so does the end if it was.

        Args:
            stay: The user opened or closed a line: the window stays where it is, also at the end.
        """
        if empty is not None:
            self._empty = empty
        top = round(self.scroll_y)
        at_end = self._at_end and not stay
        held = self._key_below(top)
        offset = self._places[held] - top if held else 0
        on_last = not self.chosen or self._places[self._cursor] >= max(self._places.values())
        self._lines = lines
        self._places = {}
        for place, line in enumerate(lines):
            if key := self.key_of(line):
                self._places.setdefault(key, place)
        if self._follow and (self.chosen == "" or (on_last and at_end)):
            self._cursor = next(reversed(self._places), "")
        elif not self._follow and (self.chosen == "" or not self._moved):
            self._cursor = next(iter(self._places), "")
        self._top_reported = False
        self.virtual_size = Size(self.scrollable_content_region.width, len(lines))
        if at_end and self._follow:
            self._go_to(len(lines))
        elif top == 0 and not self._follow:
            self._go_to(0)
        elif held in self._places:
            self._go_to(self._places[held] - offset)
        if stay:
            self._reveal()
            self._at_end = self.scroll_y >= len(lines) - self.scrollable_content_region.height
        self.refresh()
        self.call_after_refresh(self._settle)

    def _settle(self) -> None:
        """Do what needs the layout of the new lines."""
        self._check_size()
        if self.show_vertical_scrollbar:
            # The scrollbar appeared with these lines, after the list had scrolled: its position is not set yet.
            self.vertical_scrollbar.position = self.scroll_y
        self._report_top()

    def choose(self, key: str) -> bool:
        """Move the cursor to a line; return False if there is none with the key."""
        if key not in self._places:
            return False
        self._cursor, self._moved = key, True
        self._reveal()
        self.refresh()
        return True

    # -- drawing

    @property
    def palette(self) -> Palette:
        """The styles of the current theme."""
        if self._palette is None:
            self._palette = palette_for(self.app)
        return self._palette

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, self._theme_changed)
        self._check_size = on_new_size(self, self._place)

    def _theme_changed(self, _: object) -> None:
        self._palette = None
        self.refresh()

    def _place(self) -> None:
        """Keep the cursor, or the end, in view in the new size."""
        self.virtual_size = Size(self.scrollable_content_region.width, len(self._lines))
        if self._follow and self._at_end:
            self._go_to(len(self._lines))
        else:
            self._reveal()

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw one row."""
        width, base, palette = self.scrollable_content_region.width, self.rich_style, self.palette
        runs: list[Run]
        place = y + round(self.scroll_y)
        if place >= len(self._lines):
            runs = [(self._note(y, width - MARGIN), palette.muted)]
            on_band = False
        else:
            line = self._lines[place]
            key = self.key_of(line)
            marked = key != "" and key == self._cursor and self._places.get(key) == place
            runs = [("▸ " if marked else "  ", palette.you if self.has_focus else palette.faint)]
            # A scrollbar would touch the last letter.
            runs += self.draw(line, max(1, width - MARGIN - self.show_vertical_scrollbar), palette)
            if chosen := marked and self.has_focus:
                runs = [(text, style + _BOLD) for text, style in runs]
            on_band = chosen or (key != "" and y == self._hovered)
        strip = line_of(runs, width).strip.crop_extend(0, width, None)
        return strip.apply_style(base + palette.band if on_band else base)

    def _note(self, y: int, width: int) -> str:
        """Return a part of the text for an empty list, which may continue in the next row."""
        if self._lines or y < 0:
            return ""
        text = one_line(self._empty)
        spans = wrap_spans(text, max(1, width))
        return f"  {text[spans[y][0] : spans[y][1]]}" if y < len(spans) else ""

    # -- moving

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Draw the lines that came into view."""
        super().watch_scroll_y(old_value, new_value)
        if height := self.scrollable_content_region.height:
            self._at_end = new_value >= len(self._lines) - height
        self._report_top()

    def _report_top(self) -> None:
        height = self.scrollable_content_region.height
        if not self._top_reported and height and self.scroll_y <= height:
            self._top_reported = True
            self.post_message(self.TopSeen())

    def _key_below(self, top: int) -> str:
        for line in self._lines[top : top + 50]:
            if key := self.key_of(line):
                return key if self._places[key] >= top else ""
        return ""

    def _go_to(self, top: int) -> None:
        height = self.scrollable_content_region.height
        self.scroll_to(y=max(0, min(top, len(self._lines) - height)), animate=False, force=True, immediate=True)

    def _reveal(self) -> None:
        place = self._places.get(self._cursor)
        if place is None:
            return
        top, height = round(self.scroll_y), self.scrollable_content_region.height
        # The heading above a group's first row scrolls with it.
        above = place - 1 if place and not self.key_of(self._lines[place - 1]) else place
        if above < top:
            self._go_to(above)
        elif place >= top + height:
            self._go_to(place - height + 1)

    def action_move(self, by: int) -> None:
        """Go to the next or previous line with a key."""
        keys = list(self._places)
        if not keys:
            return
        at = keys.index(self.chosen) if self.chosen else -1
        self._cursor, self._moved = keys[max(0, min(at + by, len(keys) - 1))], True
        self._reveal()
        self.refresh()

    def action_page(self, direction: int) -> None:
        self.action_move(direction * max(1, self.scrollable_content_region.height - 2))

    def action_move_end(self, direction: int) -> None:
        """Go to the first or last line."""
        self.action_move(direction * len(self._lines))
        if direction < 0:
            self._go_to(0)

    def action_open(self) -> None:
        if self.chosen:
            self.post_message(self.Opened(self, self.chosen))

    def on_mouse_move(self, event: events.MouseMove) -> None:
        self._hover(event.y)

    def on_leave(self) -> None:
        self._hover(-1)

    def _hover(self, row: int) -> None:
        if row != self._hovered:
            self._hovered = row
            self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Choose a line and open it."""
        place = event.y + round(self.scroll_y)
        if place < len(self._lines) and (key := self.key_of(self._lines[place])):
            self._cursor, self._moved = key, True
            self.refresh()
            self.action_open()


class TreeList(VirtualList[L]):
    """A list with lines that open and close."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "fold", show=False),
        Binding("right,l", "fold(True)", "open", show=False),
        Binding("left,h", "fold(False)", "close, or go to what it belongs to", show=False),
    ]

    @dataclass
    class Folded(Message):
        """The user wants to open or close a line; None toggles it."""

        key: str
        wanted: bool | None

    def action_fold(self, wanted: bool | None = None) -> None:
        """Open or close the line at the cursor."""
        if self.chosen:
            self.post_message(self.Folded(self.chosen, wanted))


def fold_arrow(opened: bool | None, palette: Palette) -> str:
    """Return the sign of a line that is open or closed; None: it can be neither."""
    if opened is None:
        return "" if palette.plain else "  "
    return sign_or_word("▾", "open", palette) if opened else sign_or_word("▸", "closed", palette)


def sign_or_word(sign: str, word: str, palette: Palette) -> str:
    """Return a sign, or in the plain mode a word."""
    return f"{word if palette.plain else sign} "


def with_facts(runs: list[Run], text: str, style: Style, facts: Run, width: int) -> list[Run]:
    """Return the runs with as much of a text as fits before facts at the right edge; a narrow line has no facts."""
    used = sum(cell_len(part) for part, _ in runs)
    right = cell_len(facts[0])
    if width - used - right < _LEAST_TEXT:
        return with_text(runs, text, style, width)
    shown = clip(one_line(text), width - used - right - 2)
    gap = " " * (width - used - cell_len(shown) - right)
    return [*runs, (shown, style), (gap, style), facts]


def with_text(runs: list[Run], text: str, style: Style, width: int) -> list[Run]:
    """Return the runs, followed by as much of the text as fits."""
    used = sum(cell_len(part) for part, _ in runs)
    return [*runs, (clip(one_line(text), max(0, width - used)), style)]
