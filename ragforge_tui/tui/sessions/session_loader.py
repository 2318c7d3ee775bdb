"""Loads the list of sessions in two steps, then follows changes.

No widgets. Errors are for the picker to show; the next call tries again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

from ragforge_tui.tui.sessions.session_list_model import SessionList
from ragforge_tui.tui.sessions.session_service import SessionService

FIRST = 100
"""Sessions that are fetched at once, before all others."""
MOST = 10_000
OVERLAP = timedelta(minutes=1)
"""Changes are requested from this long before the newest known one, since clocks of machines differ."""


class SessionLoader:
    """Fills the list with the sessions of the chat's folder, or of all folders.

    Attributes:
        loaded: Whether all sessions are in the list.
    """

    def __init__(self, service: SessionService) -> None:
        self._service = service
        self.sessions = SessionList()
        self.everywhere = service.folder is None
        self.loaded = False

    async def load(self) -> AsyncIterator[None]:
        """Fetch the sessions; yield after each step that brought some.

        Raises:
            RagforgeError: The graph or the engine is unavailable.
        """
        self.loaded = False
        await self._service.wait_for_engine()
        everywhere = self.everywhere
        found = await self._service.sessions(everywhere=everywhere, limit=FIRST)
        self.sessions.replace(found)
        if len(found) == FIRST:
            yield
            self.sessions.replace(await self._service.sessions(everywhere=everywhere, limit=MOST))
        self.loaded = True
        yield

    async def follow(self) -> bool:
        """Take in changes made here or in other terminals; return whether there were any.

        Raises:
            RagforgeError: The graph or the engine is unavailable.
        """
        everywhere = self.everywhere
        since = (self.sessions.newest or datetime(1970, 1, 2, tzinfo=UTC)) - OVERLAP
        changes = await self._service.changes(since, everywhere=everywhere)
        if everywhere != self.everywhere:
            return False  # Other sessions are wanted by now.
        news = self.sessions.put(changes.changed)
        known = len(self.sessions)
        if changes.count != known and max(changes.count, known) <= MOST:
            # Some were purged, or imported with an old date.
            found = await self._service.sessions(everywhere=everywhere, limit=MOST)
            if everywhere == self.everywhere:
                news = self.sessions.replace(found) or news
        return news
