"""The line below a diff that does not fit: how much of it is out of sight, and the keys that show it."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from ragforge_tui.shared.formatting import counted
from ragforge_tui.tui.transcript.block_view import BlockView


class LinesLeft(Static):
    """Counts the lines below the window of a view."""

    def __init__(self, view: BlockView) -> None:
        super().__init__(id="question-more", markup=False)
        self._view = view

    def on_mount(self) -> None:
        """Count again when the view scrolls."""
        self.watch(self._view, "scroll_y", self.count, init=False)

    def count(self) -> None:
        """Say what is below the window now."""
        below = max(0, self._view.viewport.index.total - self._view.top - self._view.size.height)
        where = f"{counted(below, 'more line')} · PgDn" if below else "the end · PgUp"
        self.update(Content.styled(f"… {where} · o whole", "dim"), layout=False)
