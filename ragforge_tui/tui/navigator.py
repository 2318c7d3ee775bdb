"""Bringing conversations and their turns into view, loaded or not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ragforge_tui.shared.errors import NotFoundError, RagforgeError
from ragforge_tui.shared.records import SHORT_ID
from ragforge_tui.shared.requests.turns import FetchTurns
from ragforge_tui.tui.session.engine_session import EngineSession
from ragforge_tui.tui.transcript import Transcript
from ragforge_tui.tui.transcript.unloaded import PAGE_TURNS


class Navigator:
    """Opens conversations and loads their turns into the transcript.

    Args:
        uncover: Hides a sidebar that covers the chat.
    """

    def __init__(self, session: EngineSession, transcript: Transcript, uncover: Callable[[], object]) -> None:
        self._session = session
        self._transcript = transcript
        self._uncover = uncover

    def go_to_conversation(self, conversation_id: str, turn: int = 0) -> None:
        """Open a conversation in the background, at a turn or at its end."""
        self._session.spawn(self.open_conversation(conversation_id, turn=turn), group="open", exclusive=True)

    def go_to_turns(self, first: int, last: int = 0, *, conversation_id: str = "") -> None:
        """Bring turns into view, of the open conversation or another one; say then how to return."""
        if conversation_id in ("", self._session.state.conversation_id):
            self._uncover()
            self._session.spawn(self.show_turn(first, last), group="turns", exclusive=True)
        else:
            self._session.spawn(self._leave_for(conversation_id, first), group="open", exclusive=True)

    async def _leave_for(self, conversation_id: str, turn: int) -> None:
        left = self._session.state.conversation_id
        await self.open_conversation(conversation_id, turn=turn)
        if left:
            self._session.notice(f"This is another conversation. /resume {left[:SHORT_ID]} returns.", passing=True)

    async def open_conversation(self, ref: str, *, turn: int = 0) -> None:
        """Open a conversation by id or prefix, at a turn or at its end."""
        if not ref or ref != self._session.state.conversation_id or not turn:
            await self._session.open(ref)
        if turn:
            # The first screen leaves the chat no rows; it can scroll once it has its own again.
            if not self._transcript.size.height:
                laid_out = asyncio.Event()
                self._transcript.app.call_after_refresh(laid_out.set)
                await laid_out.wait()
            await self.show_turn(turn)

    async def fetch_turns(self, start: int, end: int) -> None:
        """Load turns [start, end) into the transcript."""
        conversation_id = self._session.state.conversation_id
        if not conversation_id:
            return
        try:
            page = await self._session.ask(FetchTurns(conversation_id=conversation_id, start=start, end=end))
        except RagforgeError:
            self._transcript.not_inserted()
            raise
        if conversation_id == self._session.state.conversation_id:
            self._transcript.insert(page.turns, start=start, end=end)

    async def show_turn(self, turn_index: int, last: int = 0) -> None:
        """Bring turns of the open conversation into view and mark them for a moment.

        Args:
            last: Turns up to this one are marked too.

        Raises:
            NotFoundError: The conversation has no such turn.
        """
        transcript = self._transcript
        if transcript.scroll_to_turn(turn_index, last):
            return
        document = transcript.document
        gap = document.gap_with(turn_index)
        first = self._session.state.first_turn
        low, high = (gap.first, gap.last + 1) if gap is not None else (first, document.first_turn)
        if low <= turn_index < high:
            start = max(low, turn_index - PAGE_TURNS // 3)
            await self.fetch_turns(start, min(high, start + PAGE_TURNS))
        if not transcript.scroll_to_turn(turn_index, last):
            raise NotFoundError(f"This conversation has no turn {turn_index}.")
