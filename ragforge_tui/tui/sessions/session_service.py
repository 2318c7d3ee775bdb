"""Operations on stored conversations, for the commands, the list of sessions and the search.

They keep the chat up to date if the conversation is the open one.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import msgspec

from ragforge_tui.shared.errors import NotFoundError, RagforgeError
from ragforge_tui.shared.export_records import ConversationExport
from ragforge_tui.shared.files import make_private
from ragforge_tui.shared.records import (
    Conversation,
    ConversationChanges,
    ConversationFilter,
    ConversationPeek,
    SearchHit,
    Topic,
    Turn,
)
from ragforge_tui.shared.requests import sessions as requests
from ragforge_tui.shared.requests.memory import ListTopics
from ragforge_tui.shared.requests.turns import FetchTurns
from ragforge_tui.tui.host import Host
from ragforge_tui.tui.sessions.session_list_model import SessionList

if TYPE_CHECKING:
    from ragforge_tui.export import ExportFormat

_FORMATS: dict[str, ExportFormat] = {"": "markdown", "markdown": "markdown", "html": "html", "json": "json"}
"""Formats that `SessionService.export` takes in place of a file."""
MOST_HITS = 50
Scope = Literal["folder", "all", "conversation"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
SCOPE_NAMES = {"folder": "this folder", "all": "all folders", "conversation": "this conversation"}
_TOPIC = re.compile(r'(?<!\S)topic:(?:"([^"]*)"?|(\S*))', re.IGNORECASE)


class SearchQuery(msgspec.Struct, frozen=True):
    """Words, topic and scope of a search."""

    words: str = ""
    topic: str = ""
    scope: Scope = "folder"


def parse_query(text: str, scope: Scope) -> SearchQuery:
    """Parse a query: words, and ``topic:NAME`` or ``topic:"MORE WORDS"`` among them."""
    found = _TOPIC.search(text)
    topic = (found[1] or found[2] or "") if found else ""
    return SearchQuery(words=" ".join(_TOPIC.sub(" ", text).split()), topic=topic.strip(), scope=scope)


def with_topic(text: str, topic: str) -> str:
    """Return the query with this topic instead of any other; an empty topic removes it."""
    words = " ".join(_TOPIC.sub(" ", text).split())
    name = topic.replace('"', " ")
    return f'topic:"{name}" {words}' if name else words


class SessionService:
    """Lists, searches and changes stored conversations."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._session = host.session

    @property
    def deleted(self) -> str:
        """Id of the conversation deleted last here, empty if there is none to restore."""
        return self._session.state.last_deleted

    @property
    def folder(self) -> str | None:
        """The workspace folder, None if the chat has none."""
        return self._host.options.workspace or None

    @property
    def current(self) -> str:
        return self._session.state.conversation_id

    async def wait_for_engine(self) -> None:
        """Wait until there is an engine to ask."""
        await self._session.connected.wait()

    @property
    def glyphs(self) -> dict[str, str]:
        """Glyphs of personas by name; none in the plain mode, which uses words."""
        if self._host.plain:
            return {}
        return {name: glyph for name, (glyph, _) in self._session.state.persona_styles.items()}

    def persona_style(self, persona: str) -> tuple[str, str]:
        """Return glyph and color of a persona, both empty for one that is gone."""
        return self._session.state.persona_styles.get(persona, ("", ""))

    @property
    def now(self) -> datetime:
        return self._host.now()

    # -- reading

    async def sessions(self, *, everywhere: bool, limit: int) -> list[Conversation]:
        """Return the newest conversations of any status."""
        wanted = ConversationFilter(status="any", workspace=None if everywhere else self.folder, limit=limit)
        return await self._session.ask(requests.ListConversations(filter=wanted))

    async def changes(self, since: datetime, *, everywhere: bool) -> ConversationChanges:
        """Return what has changed since then, here or in another terminal."""
        request = requests.FollowConversations(since=since, workspace=None if everywhere else self.folder)
        return await self._session.ask(request)

    async def peek(self, uuid: str) -> ConversationPeek:
        """Return the first and last messages of a conversation."""
        return await self._session.ask(requests.PeekConversation(conversation_id=uuid))

    async def turn(self, uuid: str, turn_index: int) -> Turn | None:
        """Return a turn of a conversation, None if it is gone."""
        page = await self._session.ask(FetchTurns(conversation_id=uuid, start=turn_index, end=turn_index + 1))
        return next(iter(page.turns), None)

    async def search(self, wanted: SearchQuery) -> list[SearchHit]:
        """Return the turns with these words, best first."""
        request = requests.Search(
            query=wanted.words,
            topic=wanted.topic,
            workspace=self.folder if wanted.scope == "folder" else None,
            conversation_id=self.current if wanted.scope == "conversation" else "",
            limit=MOST_HITS,
        )
        return await self._session.ask(request)

    async def topics(self, *, everywhere: bool) -> list[Topic]:
        """Return the topics that a search can be limited to."""
        return await self._session.ask(ListTopics(workspace=None if everywhere else self.folder))

    # -- changing

    async def rename(self, uuid: str, title: str) -> Conversation:
        return self._changed(await self._session.ask(requests.UpdateConversation(conversation_id=uuid, title=title)))

    async def tag(self, uuid: str, tags: list[str]) -> Conversation:
        return self._changed(await self._session.ask(requests.UpdateConversation(conversation_id=uuid, tags=tags)))

    async def set_private(self, uuid: str, private: bool) -> Conversation:
        """Keep other conversations from recalling and finding it, or allow it."""
        request = requests.UpdateConversation(conversation_id=uuid, private=private)
        return self._changed(await self._session.ask(request))

    async def archive(self, uuid: str, *, archived: bool = True) -> Conversation:
        """Archive or restore a conversation; the open one is closed when it is archived."""
        found = await self._session.ask(requests.ArchiveConversation(conversation_id=uuid, archived=archived))
        if archived and uuid == self.current:
            self._session.leave_conversation()
        return self._changed(found)

    async def delete(self, uuid: str) -> requests.Deleted:
        """Hide a conversation, which is purged after seven days; the open one is closed."""
        deleted = await self._session.ask(requests.DeleteConversation(conversation_id=uuid))
        self._host.prompt.earlier.hide(uuid)
        self._session.state.last_deleted = uuid
        if uuid == self.current:
            self._session.leave_conversation()
        return deleted

    async def restore(self, uuid: str) -> Conversation:
        """Restore a deleted conversation."""
        found = await self._session.ask(requests.RestoreConversation(conversation_id=uuid))
        if uuid == self.deleted:
            self._session.state.last_deleted = ""
        return self._changed(found)

    async def last_deleted(self) -> str:
        """Return the id of the conversation deleted last, here or in another terminal.

        Raises:
            NotFoundError: There is none.
        """
        if self.deleted:
            return self.deleted
        wanted = ConversationFilter(status="deleted", workspace=self.folder)
        found = await self._session.ask(requests.ListConversations(filter=wanted))
        newest = max(found, key=lambda conversation: conversation.deleted_at or conversation.updated_at, default=None)
        if newest is None:
            raise NotFoundError("This folder has no deleted conversation left.")
        return newest.uuid

    def export_path(self, conversation: Conversation, format: ExportFormat = "markdown") -> Path:
        """Return the file that an export goes to if the user names none, in the folder of exports."""
        from ragforge_tui.export import readable_name

        return self._host.options.exports_dir / readable_name(conversation.title, conversation.uuid, format)

    async def export(self, uuid: str, target: str) -> Path:
        """Write a conversation to a file: Markdown for ``.md``, a page for ``.html``, else JSON.

        Args:
            target: Path of the file, relative to the workspace; a format, or empty for Markdown, writes to
                `export_path`, which is overwritten.

        Raises:
            RagforgeError: The file exists or cannot be written.
        """
        data = await self._session.ask(requests.ExportConversation(ref=uuid))
        format = _FORMATS.get(target.removeprefix("--format").strip())
        usual = self.export_path(data.conversation, format or "markdown")
        path = usual if format else self._named_path(target)
        try:
            await asyncio.to_thread(_write, path, data, replace=path == usual)
        except FileExistsError:
            raise RagforgeError(f"{path} already exists; it was not overwritten.", todo="Name another file.") from None
        except OSError as error:
            raise RagforgeError(f"{path} could not be written: {error.strerror}.") from error
        return path

    def _named_path(self, target: str) -> Path:
        return Path(self._host.options.workspace or ".") / Path(target).expanduser()

    def _changed(self, conversation: Conversation) -> Conversation:
        self._host.prompt.earlier.changed(conversation)
        return self._session.conversation_changed(conversation)


def parse_tags(text: str) -> list[str]:
    """Return the tags in a text, separated by commas or blanks, with or without ``#``; each once."""
    words = text.replace(",", " ").split()
    return [tag for tag in dict.fromkeys(word.lstrip("#") for word in words) if tag]


def _write(path: Path, data: ConversationExport, *, replace: bool) -> None:
    from ragforge_tui.export import export_bytes, format_of

    content = export_bytes(data, format_of(path.name))
    if replace:
        make_private(path.parent)
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_TRUNC if replace else os.O_EXCL)
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(content)


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
        changed = self.sessions.put(changes.changed)
        known = len(self.sessions)
        if changes.count != known and max(changes.count, known) <= MOST:
            # Some were purged, or imported with an old date.
            found = await self._service.sessions(everywhere=everywhere, limit=MOST)
            if everywhere == self.everywhere:
                changed = self.sessions.replace(found) or changed
        return changed
