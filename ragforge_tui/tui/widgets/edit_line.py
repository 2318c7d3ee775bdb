"""A line for editing a value, with a label; visible only while something is edited."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Input, Static

from ragforge_tui.shared.sanitize import plain_text

Apply = Callable[[str], Coroutine[Any, Any, None]]
"""Applies the edited line."""


class EditLine(Horizontal):
    """Hidden until `begin`. The screen handles its `Input.Submitted`."""

    DEFAULT_CSS = """
    EditLine { height: 1; display: none; }
    EditLine Static { width: auto; color: $accent; }
    EditLine Input { width: 1fr; }
    """

    def __init__(self, *, id: str, line_id: str) -> None:
        super().__init__(id=id)
        self._apply: Apply | None = None
        self._label = Static(markup=False)
        self._line = Input(compact=True, select_on_focus=False, id=line_id)

    def compose(self) -> ComposeResult:
        yield self._label
        yield self._line

    @property
    def editing(self) -> bool:
        return self._apply is not None

    def begin(self, label: str, value: str, apply: Apply) -> None:
        """Edit a value and take the focus."""
        self._apply = apply
        self._label.update(label)
        self._line.value = value = " ".join(plain_text(value).split())
        self._line.cursor_position = len(value)
        self.display = True
        self._line.focus()

    def end(self) -> Apply | None:
        """Stop editing; return the function that would apply the line, None if nothing was edited."""
        apply, self._apply = self._apply, None
        self.display = False
        return apply
