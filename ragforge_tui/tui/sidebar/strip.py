"""One line under the header with the counts of the panes, while the sidebar is closed on a narrow screen."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from textual import events
from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from ragforge_tui.tui.widgets.clickable import command_at, runs_command


class Tally(msgspec.Struct, frozen=True):
    """A pane in the line: its name, its command and key, and what it counts."""

    name: str
    command: str
    key: str
    count: str


class PaneStrip(Widget):
    """The line; it is hidden while there is nothing to count."""

    ALLOW_SELECT = False
    DEFAULT_CSS = "PaneStrip { height: 1; padding: 0 1; text-align: right; pointer: pointer; display: none; }"

    tallies: reactive[Sequence[Tally]] = reactive(())

    def watch_tallies(self) -> None:
        self.display = bool(self.tallies)

    def render(self) -> Content:
        """Return one line."""
        parts: list[Content] = []
        for tally in self.tallies:
            parts += [Content.styled(" · ", "dim")] if parts else []
            key = Content.styled(f"{tally.key} ", "$primary")
            parts.append(runs_command(Content.assemble(key, (f"{tally.name} {tally.count}", "dim")), tally.command))
        return Content.assemble(*parts)

    async def on_click(self, event: events.Click) -> None:
        """Show the pane under the mouse."""
        if command := command_at(event):
            event.stop()
            await self.app.run_action(f"command({command!r})")
