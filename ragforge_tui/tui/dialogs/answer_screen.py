"""A whole answer in a window: rendered as wide as the screen, or as the model wrote it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import msgspec
from textual.binding import Binding, BindingType

from ragforge_tui.shared.formatting import counted
from ragforge_tui.tui.dialogs.detail import Section
from ragforge_tui.tui.dialogs.text_viewer import DetailScreen
from ragforge_tui.tui.limits import SCREEN
from ragforge_tui.tui.transcript.fences import FenceCycle
from ragforge_tui.tui.transcript.markdown import fences_of
from ragforge_tui.tui.widgets.key_bar import KeyHint


class AnswerScreen(DetailScreen):
    """One answer.

    Args:
        turn: Its turn.
        text: Its Markdown.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "raw", "view: whole, its code, as it was sent", show=False),
        Binding("c", "code", "copy the next piece of code", show=False),
    ]

    def __init__(self, turn: int, text: str) -> None:
        title = f"Answer · turn {turn}"
        super().__init__(title, self._load_answer, actions={}, has_diff=True)
        self._heading = title
        self._section = Section(title=f"{counted(len(text))} characters", text=text, kind="markdown")
        self._fences = FenceCycle()
        self._raw = False

    async def _load_answer(self) -> tuple[str, Sequence[Section]]:
        shown = msgspec.structs.replace(self._section, kind="code", language="markdown") if self._raw else self._section
        return self._heading, [shown]

    def key_hints(self) -> list[KeyHint]:
        """Return the keys for code and for the text as it was written."""
        code = [KeyHint("code", "c", "copy code")] if fences_of(self._section.text) else []
        return [
            KeyHint("dismiss(None)", "esc", "back"),
            *code,
            KeyHint("copy", "y", "copy all"),
            KeyHint("raw", "v", "as written", on=self._raw),
        ]

    def action_raw(self) -> None:
        """Show the answer as it was written, or rendered again."""
        self._raw = not self._raw
        self._fill_soon()

    def action_code(self) -> None:
        """Copy the next piece of code."""
        if not (fences := fences_of(self._section.text)):
            self._keys.show_note("no code here", seconds=SCREEN.key_note)
            return
        fence, words = self._fences.take(self._section.text, fences)
        self.app.copy_to_clipboard(fence.code)
        self._keys.show_note(words, seconds=SCREEN.key_note)
