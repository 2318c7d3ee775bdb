"""A word over the last row of a chat whose end is out of view: how much is below, and whether something went wrong."""

from __future__ import annotations

from typing import Literal

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from ragforge_tui.shared import events
from ragforge_tui.shared.formatting import counted
from ragforge_tui.shared.records import call_end
from ragforge_tui.tui.drawing.palette import on_ground
from ragforge_tui.tui.transcript.block_view import BlockView
from ragforge_tui.tui.transcript.blocks import BOLD, Level

END = "end"
"""Key in the meta of a style: a click goes to the end of the chat."""
Alarm = Literal["", "failed", "interrupted", "waits"]


class EndChip:
    """What is below the window of one view."""

    def __init__(self, view: BlockView) -> None:
        self._view = view
        self._alarm: Alarm = ""

    def note(self, event: events.TurnEvent) -> None:
        """Note what the user should not miss, until the end is in view."""
        match event:
            case events.TurnFailed():
                self._alarm = "failed"
            case events.TurnCancelled():
                self._alarm = "interrupted"
            case events.ToolCallFinished() if call_end(event.call) == "failed":
                self._alarm = "failed"
            case events.ApprovalRequested() | events.QuestionAsked():
                self._alarm = "waits"
            case events.ApprovalResolved() if self._alarm == "waits":
                self._alarm = ""
            case _:
                pass

    def note_sentence(self, level: Level) -> None:
        """Note a sentence of the program."""
        if level != "info":
            self._alarm = "failed"

    def strip(self) -> Strip | None:
        """Return the word; None while the end is in view."""
        view = self._view
        below = view.viewport.index.total - view.top - view.scrollable_content_region.height
        if below <= 0 or view.follow:
            self._alarm = ""
            return None
        palette = view.palette
        lines = counted(below, "line")
        alarm = f" · {self._alarm}" if self._alarm else ""
        text = f"{lines} below{alarm} · End" if palette.plain else f"↓ {lines}{alarm} · End"
        style = palette.running + BOLD if alarm else palette.accent
        shown = on_ground(style, palette.band, palette) + Style(meta={END: True})
        return Strip([Segment(f" {text} ", shown)])
