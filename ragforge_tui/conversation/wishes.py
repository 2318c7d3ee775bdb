"""Wishes of the user in one open conversation: stored when they are said, and sent with its first message.

What is sent is determined once, so that requests keep their beginning, which providers cache: a wish said later is part
of the conversation anyway. It is determined again when the user changes what is remembered, and when turns are cut,
since the turn that said a wish may be among them.
"""

from __future__ import annotations

import asyncio
import logging

from ragforge_tui.conversation.services import Services
from ragforge_tui.memory.context import wishes_section
from ragforge_tui.memory.findings.keeper import FindingKeeper
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.events import Notice
from ragforge_tui.shared.finding_records import KeptFinding
from ragforge_tui.shared.limits import LIMITS
from ragforge_tui.shared.records import ContextSection, Conversation, Message

log = logging.getLogger(__name__)


class SessionWishes:
    """The wishes of one open conversation.

    Args:
        record: The conversation, shared with its `Conversation`.
    """

    def __init__(self, services: Services, record: Conversation) -> None:
        self._services = services
        self._record = record
        self._settings = services.settings.agent.memory
        self._first = record.next_turn
        """First turn of this session: what was said since is sent anyway, until turns are cut."""
        self._loading: asyncio.Task[list[KeptFinding]] | None = None
        self._unread: list[Message] = []
        """Messages whose wishes are not stored yet."""
        self._reading = asyncio.Lock()
        self._storing: asyncio.Task[None] | None = None

    def load(self) -> None:
        """Start to read the wishes, unless they are known."""
        failed = self._loading is not None and self._loading.done() and self._loading.exception() is not None
        if (self._loading is None or failed) and not self._services.recorder.journaling:
            self._loading = asyncio.create_task(self._current(), name=f"read wishes {self._record.uuid[:8]}")

    def changed(self, *, cut: bool = False) -> None:
        """Determine with the next request again what is sent.

        Args:
            cut: Turns of this session are not sent any more.
        """
        self._loading = None
        if cut:
            self._first = self._record.next_turn

    async def section(self, excluded: frozenset[str]) -> ContextSection | None:
        """Return the section of wishes for a request; None while they are not known.

        Args:
            excluded: Keys of items that the user left out.
        """
        self.load()
        loading = self._loading  # What is remembered may change meanwhile.
        if loading is None:
            return None
        await asyncio.wait({loading}, timeout=LIMITS.wishes)
        if not loading.done():
            log.warning("wishes not sent: reading them took too long")
            return None
        if (error := loading.exception()) is not None:
            log.warning("wishes not sent: %s", error)
            return None
        return await asyncio.to_thread(wishes_section, loading.result(), self._record.uuid, excluded)

    async def _current(self) -> list[KeptFinding]:
        """Return the wishes that hold here, the newest first, without those said in this session."""
        own = self._record.uuid
        store = await self._services.store()
        found = await store.findings.of_folder(self._record.workspace, kinds=["wish"], asking=own)
        earlier = [wish for wish in found if wish.conversation_id != own or wish.turn_index < self._first]
        if self._settings.recall.scope == "none":
            return [wish for wish in earlier if wish.conversation_id == own or wish.scope == "user"]
        return earlier

    # --- wishes that are said ----------------------------------------------------------------------------------------

    def said(self, message: Message) -> None:
        """Store the wishes of a message of the user in the background, now or once the graph is reachable."""
        if not self._settings.enabled or self._settings.remember == "never" or self._record.helper_of:
            return
        self._unread.append(message)
        if not self._services.recorder.journaling:
            self._storing = asyncio.create_task(self.store_said(), name=f"wishes {self._record.uuid[:8]}")

    async def store_said(self) -> None:
        """Store the wishes of messages that were not read yet, and tell the user."""
        async with self._reading:  # The end of the turn asks for it too.
            while self._unread:
                try:
                    keeper = FindingKeeper(await self._services.store(), self._record)
                    for stored, old in await keeper.said(self._unread[0]):
                        self._notify(stored, old)
                except RagforgeError as error:
                    log.warning("wishes of a message not stored yet: %s", error)
                    return
                self._unread.pop(0)

    async def close(self) -> None:
        """Stop reading and storing."""
        for task in (self._loading, self._storing):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def settle(self) -> None:
        """Wait until what was said is stored, or could not be."""
        if self._storing is not None:
            await asyncio.gather(self._storing, return_exceptions=True)

    def _notify(self, wish: KeptFinding, old: KeptFinding | None) -> None:
        where = {"user": "everywhere", "folder": "for this folder", "conversation": "for this conversation"}[wish.scope]
        instead = f", in place of “{old.text.rstrip('.')}”" if old is not None else ""
        text = f"Remembered {where}: “{wish.text.rstrip('.')}”{instead}. /memory shows it, and takes it back."
        self._services.emit(Notice(text=text, conversation_id=self._record.uuid))
