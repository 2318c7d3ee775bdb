"""A line of keys with their actions, which can be clicked; active ones are highlighted, the last give way."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.dom import DOMNode
from textual.geometry import Size
from textual.timer import Timer
from textual.widget import Widget

from ragforge_tui.tui.drawing.lines import clip, one_line
from ragforge_tui.tui.keys import key_name

_WORD_CELLS = 32
_BETWEEN = (" · ", "  ")
"""Separators between two keys; the shorter one is used if the keys take more lines otherwise."""
_NOTE_LINES = 3
_WAY_OUT = "esc"


class KeyHint(msgspec.Struct, frozen=True):
    """One key.

    Attributes:
        action: The owner's action, run by a click.
        key: Its name, as bindings have it, or as it is shown.
        on: Whether it is active.
    """

    action: str
    key: str
    word: str
    on: bool = False

    @property
    def leaves(self) -> bool:
        return key_name(self.key) == _WAY_OUT

    @property
    def name(self) -> str:
        """The key as it is drawn: a digit in brackets, since "1 failed" would be read as a count."""
        name = key_name(self.key)
        return f"[{name}]" if name.isdecimal() else name

    @property
    def text(self) -> str:
        return f"{self.name} {self.label}"

    @property
    def label(self) -> str:
        return clip(one_line(self.word), _WORD_CELLS)


class KeyBar(Widget):
    """The keys in order of use. Where not all fit, the last give way; the way out is last and never does.

    Args:
        owner: The pane or screen that has the actions.
        lines: How many lines they may take.
    """

    ALLOW_SELECT = False
    DEFAULT_CSS = "KeyBar { height: auto; padding: 0 1; pointer: pointer; }"

    def __init__(
        self,
        owner: DOMNode,
        hints: Sequence[KeyHint] = (),
        *,
        lines: int = 1,
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self._owner = owner
        self._hints = _way_out_last(hints)
        self._most = lines
        self._lead = ""
        self._lead_style = ""
        self._note = ""
        self._note_style = "dim"
        self._note_timer: Timer | None = None
        self._spans: list[tuple[int, int, int, str]] = []

    def show_keys(self, hints: Sequence[KeyHint], *, lead: str = "", style: str = "dim") -> None:
        """Show these keys, after some words in a style."""
        self._hints = _way_out_last(hints)
        self._lead, self._lead_style = one_line(lead), style
        self._remove_note()

    def show_note(self, text: str, style: str = "dim", *, seconds: float = 0.0) -> None:
        """Show a sentence instead of the keys, for so many seconds; 0: until the keys change."""
        self._remove_note()
        self._note, self._note_style = one_line(text), style
        self._draw_again(layout=True)
        if seconds:
            self._note_timer = self.set_timer(seconds, self._remove_note)

    def _remove_note(self) -> None:
        changes_height = bool(self._note) or self._most > 1
        self._note = ""
        if self._note_timer is not None:
            self._note_timer.stop()
            self._note_timer = None
        self._draw_again(layout=changes_height)

    def _draw_again(self, *, layout: bool) -> None:
        # Textual keeps a height asked for before the first layout: the refresh after that is taken for the same one.
        if self.is_mounted:
            self.refresh(layout=layout)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the lines of the sentence or the keys; at least one, so that little moves when they change."""
        if self._note:
            return len(self._note_lines(width))
        return max(len(self._rows(width)[0]), 1)

    def _note_lines(self, width: int) -> list[Content]:
        return Content.styled(self._note, self._note_style).wrap(max(width, 1))[:_NOTE_LINES]

    def render(self) -> Content:
        """Return the sentence, or the keys."""
        self._spans = []
        width = self.content_size.width
        if self._note:
            return Content("\n").join(self._note_lines(width))
        rows, between = self._rows(width)
        lines = []
        for number, row in enumerate(rows):
            lead = clip(self._lead, width) if number == 0 else ""
            shown = [(lead, self._lead_style)] if lead else []
            at = cell_len(lead)
            for hint in row:
                if shown:
                    shown.append((between, "dim"))
                    at += len(between)
                end = at + cell_len(hint.text)
                self._spans.append((number, at, end, hint.action))
                shown += [(f"{hint.name} ", "$primary"), (hint.label, "$accent bold" if hint.on else "dim")]
                at = end
            lines.append(Content.assemble(*shown))
        return Content("\n").join(lines)

    def _rows(self, width: int) -> tuple[list[list[KeyHint]], str]:
        """Return the keys that fit, by lines, and what separates them."""
        hints = list(self._hints)
        while True:
            ways = [(self._broken(hints, len(between), width), between) for between in _BETWEEN]
            rows, between = min(ways, key=lambda way: len(way[0]))
            if len(rows) <= self._most or len(hints) < 2:
                return rows[: self._most], between
            del hints[-2 if hints[-1].leaves else -1]

    def _broken(self, hints: Sequence[KeyHint], between: int, width: int) -> list[list[KeyHint]]:
        """Break keys into lines, between two keys."""
        rows: list[list[KeyHint]] = [[]]
        used = cell_len(self._lead)
        for hint in hints:
            cells = cell_len(hint.text)
            if used and used + between + cells > width:
                rows.append([])
                used = 0
            rows[-1].append(hint)
            used += cells + (between if used else 0)
        return rows

    async def on_click(self, event: events.Click) -> None:
        """Run the action of the key under the mouse."""
        x, y = event.x - self.gutter.left, event.y - self.gutter.top
        for line, start, end, action in self._spans:
            if line == y and start <= x < end:
                event.stop()
                await self.app.run_action(action, self._owner)


def _way_out_last(hints: Sequence[KeyHint]) -> tuple[KeyHint, ...]:
    return tuple(sorted(hints, key=lambda hint: hint.leaves))
