"""What can be done with a stored session from the screen, open or not: by a command, or in the list of sessions.

Between them and the engine. Keeps what the chat shows in step when the session is the open one.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ragforge_tui.errors import NotFoundError, RagforgeError
from ragforge_tui.export_records import ConversationExport
from ragforge_tui.models import (
    Conversation,
    ConversationChanges,
    ConversationFilter,
    ConversationPeek,
    SearchHit,
    Topic,
)
from ragforge_tui.protocol import (
    ArchiveConversation,
    DeleteConversation,
    ExportConversation,
    FollowConversations,
    ListConversations,
    ListTopics,
    PeekConversation,
    RestoreConversation,
    Search,
    UpdateConversation,
)
from ragforge_tui.tui.hits import Wanted
from ragforge_tui.tui.looks import PLAIN

if TYPE_CHECKING:
    from ragforge_tui.tui.app import ChatApp

MOST_HITS = 50


class SessionDesk:
    """One per chat screen.

    Attributes:
        deleted: Id of the session deleted last, empty when there is none to bring back.
    """

    def __init__(self, app: ChatApp) -> None:
        self._app = app
        self.deleted = ""

    @property
    def folder(self) -> str | None:
        """The folder whose sessions are "of this folder"."""
        return self._app.options.workspace or None

    @property
    def current(self) -> str:
        """Id of the open session."""
        return self._app.controller.state.conversation_id

    async def engine_there(self) -> None:
        """Wait for an engine to ask."""
        await self._app.controller.connected.wait()

    @property
    def glyphs(self) -> dict[str, str]:
        """Signs of personas, by name; none in the plain mode, which says everything in words."""
        if self._app.has_class(PLAIN):
            return {}
        return {name: glyph for name, (glyph, _) in self._app.controller.state.looks.items()}

    @property
    def now(self) -> datetime:
        """The moment, in the person's own time zone."""
        return self._app.now()

    # -- reading

    async def sessions(self, *, everywhere: bool, limit: int) -> list[Conversation]:
        """The newest sessions, whatever their status."""
        wanted = ConversationFilter(status="any", workspace=None if everywhere else self.folder, limit=limit)
        return await self._app.controller.ask(ListConversations(filter=wanted))

    async def changes(self, since: datetime, *, everywhere: bool) -> ConversationChanges:
        """What changed since then, here or in another terminal."""
        request = FollowConversations(since=since, workspace=None if everywhere else self.folder)
        return await self._app.controller.ask(request)

    async def peek(self, uuid: str) -> ConversationPeek:
        """How a session begins and ends."""
        return await self._app.controller.ask(PeekConversation(conversation_id=uuid))

    async def search(self, wanted: Wanted) -> list[SearchHit]:
        """Turns with these words, best first."""
        request = Search(
            query=wanted.words,
            topic=wanted.topic,
            workspace=self.folder if wanted.scope == "folder" else None,
            conversation_id=self.current if wanted.scope == "conversation" else "",
            limit=MOST_HITS,
        )
        return await self._app.controller.ask(request)

    async def topics(self, *, everywhere: bool) -> list[Topic]:
        """Topics a search can be limited to."""
        return await self._app.controller.ask(ListTopics(workspace=None if everywhere else self.folder))

    # -- changing

    async def rename(self, uuid: str, title: str) -> Conversation:
        """Give it a title."""
        return self._changed(await self._app.controller.ask(UpdateConversation(conversation_id=uuid, title=title)))

    async def tag(self, uuid: str, tags: list[str]) -> Conversation:
        """Replace its tags."""
        return self._changed(await self._app.controller.ask(UpdateConversation(conversation_id=uuid, tags=tags)))

    async def keep_private(self, uuid: str, private: bool) -> Conversation:
        """Keep others from recalling and finding it, or let them."""
        request = UpdateConversation(conversation_id=uuid, private=private)
        return self._changed(await self._app.controller.ask(request))

    async def archive(self, uuid: str, *, archived: bool = True) -> Conversation:
        """Put it away, or bring it back; one that is open is closed."""
        found = await self._app.controller.ask(ArchiveConversation(conversation_id=uuid, archived=archived))
        if archived and uuid == self.current:
            self._app.controller.leave_conversation()
        return self._changed(found)

    async def delete(self, uuid: str) -> None:
        """Hide it; it is purged after seven days. One that is open is closed."""
        await self._app.controller.ask(DeleteConversation(conversation_id=uuid))
        self.deleted = uuid
        if uuid == self.current:
            self._app.controller.leave_conversation()

    async def restore(self, uuid: str) -> Conversation:
        """Bring a deleted one back."""
        found = await self._app.controller.ask(RestoreConversation(conversation_id=uuid))
        if uuid == self.deleted:
            self.deleted = ""
        return found

    async def last_deleted(self) -> str:
        """Id of the one that was deleted last, here or in another terminal.

        Raises:
            NotFoundError: None is left.
        """
        if self.deleted:
            return self.deleted
        wanted = ConversationFilter(status="deleted", workspace=self.folder)
        found = await self._app.controller.ask(ListConversations(filter=wanted))
        newest = max(found, key=lambda conversation: conversation.deleted_at or conversation.updated_at, default=None)
        if newest is None:
            raise NotFoundError("No deleted conversation of this folder is left.")
        return newest.uuid

    async def export(self, uuid: str, target: str) -> Path:
        """Write it to a file, relative to the folder of the chat: Markdown when it ends so, else JSON.

        Args:
            target: Where to; empty for its usual name, which is written over.

        Raises:
            RagforgeError: The file exists or cannot be written.
        """
        from ragforge_tui.export import file_name

        data = await self._app.controller.ask(ExportConversation(ref=uuid))
        path = Path(self._app.options.workspace or ".") / (target or file_name(uuid, "json"))
        try:
            await asyncio.to_thread(_write, path, data, replace=not target)
        except FileExistsError:
            raise RagforgeError(f"{path} exists and was left as it is.", todo="Name another file.") from None
        except OSError as error:
            raise RagforgeError(f"{path} could not be written: {error.strerror}.") from error
        return path

    def _changed(self, conversation: Conversation) -> Conversation:
        if conversation.uuid == self.current:
            self._app.controller.state.conversation = conversation
            self._app.refresh_chrome()
        return conversation


def parse_tags(text: str) -> list[str]:
    """Tags as people write them: by commas or blanks, with or without ``#``; each once."""
    words = text.replace(",", " ").split()
    return [tag for tag in dict.fromkeys(word.lstrip("#") for word in words) if tag]


def _write(path: Path, data: ConversationExport, *, replace: bool) -> None:
    from ragforge_tui.export import to_json, to_markdown

    markdown = path.suffix.lower() == ".md"
    content = to_markdown(data).encode("utf-8", "replace") if markdown else to_json(data)
    with path.open("wb" if replace else "xb") as file:
        file.write(content)
