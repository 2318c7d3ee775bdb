"""Preview of the turn that a hit of a search was found in: the message in full, the other ones with a few lines."""

from __future__ import annotations

import asyncio

from textual.app import ComposeResult
from textual.containers import VerticalScroll

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.records import SearchHit
from ragforge_tui.tui.limits import SCREEN
from ragforge_tui.tui.sessions.session_service import SessionService
from ragforge_tui.tui.transcript.excerpt import Excerpt, Said, said_in
from ragforge_tui.tui.workers import start_worker


class TurnPane(VerticalScroll, can_focus=False):
    """Shows one turn, below the list of hits; hidden on a screen with no room for both."""

    DEFAULT_CSS = "TurnPane { height: 40%; padding: 0 1; border-top: solid $border; scrollbar-size-vertical: 1; }"
    LEAST_ROWS = 20
    """Screen height from which there is room."""

    def __init__(self, service: SessionService) -> None:
        super().__init__()
        self._service = service
        self._excerpt = Excerpt()
        self._turns: dict[tuple[str, int, str], list[Said]] = {}

    def compose(self) -> ComposeResult:
        yield self._excerpt

    @property
    def text(self) -> str:
        """What is shown."""
        return self._excerpt.text

    def show(self, hit: SearchHit | None) -> None:
        """Show the turn of a hit; it is fetched once the cursor rests there."""
        self.display = hit is not None and self.app.size.height >= self.LEAST_ROWS
        if hit is not None and self.display:
            start_worker(self, self._show(hit), group="turn", exclusive=True)

    async def _show(self, hit: SearchHit) -> None:
        key = (hit.conversation_id, hit.turn_index, hit.role)
        if key not in self._turns:
            await asyncio.sleep(SCREEN.rest)
            try:
                turn = await self._service.turn(hit.conversation_id, hit.turn_index)
            except RagforgeError as error:
                self._excerpt.show((), error.info.sentence())
                return
            self._turns[key] = [] if turn is None else said_in(turn, hit.role)
        self._excerpt.show(self._turns[key], "The turn is gone.")
        self.scroll_home(animate=False)
