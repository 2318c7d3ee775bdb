"""A line of keys with their actions, which can be clicked; active ones are highlighted, the last give way."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.dom import DOMNode
from textual.timer import Timer
from textual.widget import Widget

from ragforge_tui.tui.drawing.lines import clip, one_line

_WORD_CELLS = 16
_BETWEEN = (" · ", "  ")
"""Separators between two keys; the shorter one is used if not all keys fit otherwise."""


class KeyHint(msgspec.Struct, frozen=True):
    """One key.

    Attributes:
        action: The owner's action, run by a click.
        on: Whether it is active.
    """

    action: str
    key: str
    word: str
    on: bool = False


def _word(hint: KeyHint) -> str:
    return clip(one_line(hint.word), _WORD_CELLS)


class KeyBar(Widget):
    """The line of keys.

    Args:
        owner: The pane or screen that has the actions.
    """

    ALLOW_SELECT = False
    DEFAULT_CSS = "KeyBar { height: 1; padding: 0 1; pointer: pointer; }"

    def __init__(self, owner: DOMNode, hints: Sequence[KeyHint] = ()) -> None:
        super().__init__()
        self._owner = owner
        self._hints = tuple(hints)
        self._note = ""
        self._note_style = "dim"
        self._note_timer: Timer | None = None
        self._spans: list[tuple[int, int, str]] = []

    def show_keys(self, hints: Sequence[KeyHint]) -> None:
        self._hints = tuple(hints)
        self._remove_note()

    def show_note(self, text: str, style: str = "dim", *, seconds: float = 0.0) -> None:
        """Show a sentence instead of the keys, for so many seconds; 0: until the keys change."""
        self._remove_note()
        self._note, self._note_style = text, style
        if seconds:
            self._note_timer = self.set_timer(seconds, self._remove_note)

    def _remove_note(self) -> None:
        self._note = ""
        if self._note_timer is not None:
            self._note_timer.stop()
            self._note_timer = None
        self.refresh()

    def render(self) -> Content:
        """Return one line."""
        self._spans = []
        if self._note:
            return Content.styled(one_line(self._note), self._note_style)
        shown: list[tuple[str, str]] = []
        at = 0
        width = self.content_size.width
        between = next((one for one in _BETWEEN if self._cells(len(one)) <= width), _BETWEEN[0])
        for hint in self._hints:
            word = _word(hint)
            start = at + len(between) if shown else 0
            end = start + cell_len(hint.key) + 1 + cell_len(word)
            if shown and end > width:
                break
            if shown:
                shown.append((between, "dim"))
            at = start
            self._spans.append((at, end, hint.action))
            shown += [(f"{hint.key} ", "$primary"), (word, "$accent bold" if hint.on else "dim")]
            at = end
        return Content.assemble(*shown)

    def _cells(self, between: int) -> int:
        """Return the width of all keys with so many cells between them."""
        return sum(cell_len(f"{hint.key} {_word(hint)}") + between for hint in self._hints) - between

    async def on_click(self, event: events.Click) -> None:
        """Run the action of the key under the mouse."""
        at = event.x - self.gutter.left
        for start, end, action in self._spans:
            if start <= at < end:
                event.stop()
                await self.app.run_action(action, self._owner)
