"""Preview of the session at the cursor: fetches its first and last messages and shows what is known.

`session_preview.py` makes the text.
"""

from __future__ import annotations

import asyncio

import msgspec
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.records import Conversation, ConversationPeek
from ragforge_tui.tui.sessions.session_list_model import SessionList
from ragforge_tui.tui.sessions.session_preview import preview
from ragforge_tui.tui.sessions.session_service import SessionService
from ragforge_tui.tui.workers import start_worker

PEEK_SECONDS = 0.1
"""Only a session on which the cursor rests is fetched: walking through the list requests nothing."""


class SessionPane(VerticalScroll, can_focus=False):
    """Shows one session, next to or below the list."""

    def __init__(self, service: SessionService, sessions: SessionList) -> None:
        super().__init__()
        self._service = service
        self._sessions = sessions
        self._peeks: dict[str, ConversationPeek] = {}
        self._chosen: Conversation | None = None
        self._asking: Conversation | None = None
        self._text = Static(id="session-preview", markup=False)

    def compose(self) -> ComposeResult:
        yield self._text

    def show(self, chosen: Conversation | None) -> None:
        """Show a session; nothing is fetched while the pane is hidden."""
        if self._chosen is None or chosen is None or self._chosen.uuid != chosen.uuid:
            self.scroll_home(animate=False)
        self._chosen = chosen
        if chosen is None or not self.display:
            self._text.update("")
            return
        peek = self._peeks.get(chosen.uuid)
        self._draw(chosen, peek)
        if self._asking != chosen and (peek is None or peek.conversation.updated_at < chosen.updated_at):
            self._asking = chosen
            start_worker(self, self._fetch(chosen.uuid), group="peek", exclusive=True)

    async def _fetch(self, uuid: str) -> None:
        await asyncio.sleep(PEEK_SECONDS)
        try:
            peek = await self._service.peek(uuid)
            self._asking = None
        except RagforgeError as error:
            self._asking = None
            self._text.update(Content.styled(error.info.sentence(), "$error"))
            return
        self._peeks[uuid] = peek
        if self._chosen is not None and self._chosen.uuid == uuid:
            self._draw(self._chosen, peek)

    def _draw(self, chosen: Conversation, peek: ConversationPeek | None) -> None:
        if peek is not None:
            # The list follows what people change, the peek has the newer summary: that is no change of theirs.
            known = msgspec.structs.replace(chosen, summary=peek.conversation.summary or chosen.summary)
            peek = msgspec.structs.replace(peek, conversation=known)
        self._text.update(
            preview(
                chosen,
                peek,
                self._service.now,
                glyphs=self._service.glyphs,
                parent=self._sessions.get(chosen.branch_of) if chosen.branch_of else None,
                branches=self._sessions.branches(chosen.uuid),
            )
        )
