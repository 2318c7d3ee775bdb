"""The turns of a conversation that are not loaded, and which of them come near the window."""

from __future__ import annotations

from ragforge_tui.tui.transcript.block_view import BlockView

PAGE_TURNS = 30


class Unloaded:
    """Decides which turns to request next for one view.

    Attributes:
        first: The lowest turn index that exists; 0 while no conversation is shown.
    """

    def __init__(self, view: BlockView) -> None:
        self._view = view
        self.first = 0
        self._requested: tuple[int, int] | None = None

    def forget(self) -> None:
        """Start again with an empty view."""
        self.first = 0
        self._requested = None

    def answered(self) -> None:
        """Note that the requested turns arrived, or that they may be requested again."""
        self._requested = None

    @property
    def earlier(self) -> bool:
        """Whether there are turns before the loaded ones."""
        return bool(self.first) and self._view.document.first_turn > self.first

    def next_request(self) -> tuple[int, int] | None:
        """Return turns [start, end) that come near and were not requested yet."""
        wanted = self._near()
        if wanted is None or wanted == self._requested:
            return None
        self._requested = wanted
        return wanted

    def _near(self) -> tuple[int, int] | None:
        """Return a page of unloaded turns in view or within a window's height of it."""
        view = self._view
        top, height = view.top, view.scrollable_content_region.height
        for gap in view.document.gaps:
            line = view.viewport.start(gap)
            if top - height <= line <= top + 2 * height:
                if line > top:
                    return gap.first, min(gap.first + PAGE_TURNS, gap.last + 1)
                return max(gap.first, gap.last + 1 - PAGE_TURNS), gap.last + 1
        before = view.document.first_turn
        return (max(self.first, before - PAGE_TURNS), before) if top <= height and self.earlier else None
