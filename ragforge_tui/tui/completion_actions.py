"""Where the rows of the completion come from. A part of `ChatActions`."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ragforge_tui.errors import RagforgeError
from ragforge_tui.models import ConversationFilter
from ragforge_tui.protocol import ListConversations, ListFiles, ListModels, ListPersonas, ListTopics
from ragforge_tui.tui.completion import Suggestion, mention_row
from ragforge_tui.tui.theme import NAMES

if TYPE_CHECKING:
    from ragforge_tui.tui.app import ChatApp

log = logging.getLogger(__name__)

MOST_FILES = 40
MOST_SESSIONS = 300
MOST_TOPICS = 200


class CompletionActions:
    """Gives rows for arguments and files."""

    _app: ChatApp

    async def suggest(self, source: str, query: str) -> list[Suggestion]:
        """Rows of one source, best first.

        Args:
            source: As commands name it in `completes`; ``mentions`` are files as a message names them.
            query: What was typed; only files look at it.

        Raises:
            RagforgeError: The engine is not there, or could not answer.
        """
        sources: dict[str, Callable[[str], Awaitable[list[Suggestion]]]] = {
            "files": self._files,
            "mentions": self._mentions,
            "models": self._suggest_models,
            "personas": self._suggest_personas,
            "sessions": self._suggest_sessions,
            "topics": self._suggest_topics,
            "themes": self._suggest_themes,
        }
        return await sources[source](query)

    async def know_files(self) -> None:
        """Have the engine list the workspace's files, so that the first @ is answered at once."""
        try:
            await self._app.controller.ask(ListFiles(query="", limit=0))
        except RagforgeError as error:
            log.info("files not listed ahead: %s", error)

    async def _paths(self, query: str) -> list[str]:
        return await self._app.controller.ask(ListFiles(query=query, limit=MOST_FILES))

    async def _files(self, query: str) -> list[Suggestion]:
        return [Suggestion(path, path) for path in await self._paths(query)]

    async def _mentions(self, query: str) -> list[Suggestion]:
        found = await self._app.controller.ask(ListFiles(query=query, limit=MOST_FILES, folders=True))
        return [mention_row(path, query) for path in found]

    async def _suggest_models(self, _: str) -> list[Suggestion]:
        return [Suggestion(name, name) for name in await self._app.controller.ask(ListModels())]

    async def _suggest_personas(self, _: str) -> list[Suggestion]:
        found = await self._app.controller.ask(ListPersonas())
        return [Suggestion(info.name, f"{info.glyph} {info.name}".strip(), info.description) for info in found.personas]

    async def _suggest_sessions(self, _: str) -> list[Suggestion]:
        wanted = ConversationFilter(workspace=self._app.options.workspace or None, limit=MOST_SESSIONS)
        zone = self._app.now().tzinfo
        return [
            Suggestion(
                one.uuid[:8],
                one.title.strip() or "untitled",
                f"{one.uuid[:8]} · {one.updated_at.astimezone(zone):%Y-%m-%d %H:%M}",
            )
            for one in await self._app.controller.ask(ListConversations(filter=wanted))
        ]

    async def _suggest_topics(self, _: str) -> list[Suggestion]:
        workspace = self._app.options.workspace or None
        found = await self._app.controller.ask(ListTopics(query="", workspace=workspace, limit=MOST_TOPICS))
        return [Suggestion(topic.name, topic.name, topic.description) for topic in found]

    async def _suggest_themes(self, _: str) -> list[Suggestion]:
        others = sorted(name for name in self._app.available_themes if not name.startswith("ragforge-"))
        return [Suggestion(name, name, said) for name, said in NAMES.items()] + [Suggestion(one, one) for one in others]
