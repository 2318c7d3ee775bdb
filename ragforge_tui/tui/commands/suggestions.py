"""Sources of the rows that complete an argument or a file name."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

from ragforge_tui.shared.records import ConversationFilter
from ragforge_tui.shared.requests.memory import ListTopics
from ragforge_tui.shared.requests.personas import ListPersonas
from ragforge_tui.shared.requests.sessions import ListConversations
from ragforge_tui.shared.requests.work import ListFiles, ListModels
from ragforge_tui.tui.commands.screen_commands import framework_themes
from ragforge_tui.tui.drawing.theme import NAMES
from ragforge_tui.tui.host import Host
from ragforge_tui.tui.prompt.completion import Suggestion, mention_row

MOST_FILES = 40
MOST_SESSIONS = 300
MOST_TOPICS = 200
_LINES = re.compile(r":\d+(?:-\d+)?$")
"""Lines after the name of a file, as in ``@app.py:10-40``."""


async def suggest(host: Host, source: str, query: str) -> list[Suggestion]:
    """Return the rows of one source, best first.

    Args:
        source: As commands name it in `completes`; ``mentions`` are files as a message names them.
        query: The typed text; only the file sources use it.

    Raises:
        RagforgeError: There is no engine, or it could not answer.
    """
    sources: dict[str, Callable[[Host, str], Awaitable[list[Suggestion]]]] = {
        "files": _files,
        "mentions": _mentions,
        "models": _models,
        "personas": _personas,
        "sessions": _sessions,
        "skills": _skills,
        "topics": _topics,
        "themes": _themes,
    }
    return await sources[source](host, query)


async def _files(host: Host, query: str) -> list[Suggestion]:
    paths = await host.session.ask(ListFiles(query=query, limit=MOST_FILES))
    return [Suggestion(path, path) for path in paths]


async def _mentions(host: Host, query: str) -> list[Suggestion]:
    if lines := _LINES.search(query):
        named = query[: lines.start()]
        paths = await host.session.ask(ListFiles(query=named, limit=MOST_FILES))
        return [mention_row(path, query, lines[0]) for path in paths if path == named]
    paths = await host.session.ask(ListFiles(query=query, limit=MOST_FILES, folders=True))
    return [mention_row(path, query) for path in paths]


async def _models(host: Host, _: str) -> list[Suggestion]:
    return [Suggestion(name, name) for name in await host.session.ask(ListModels())]


async def _personas(host: Host, _: str) -> list[Suggestion]:
    found = await host.session.ask(ListPersonas())
    return [Suggestion(info.name, f"{info.glyph} {info.name}".strip(), info.description) for info in found.personas]


async def _sessions(host: Host, _: str) -> list[Suggestion]:
    wanted = ConversationFilter(workspace=host.options.workspace or None, limit=MOST_SESSIONS)
    zone = host.now().tzinfo
    return [
        Suggestion(
            one.uuid[:8],
            one.title.strip() or "untitled",
            f"{one.uuid[:8]} · {one.updated_at.astimezone(zone):%Y-%m-%d %H:%M}",
        )
        for one in await host.session.ask(ListConversations(filter=wanted))
    ]


async def _skills(host: Host, _: str) -> list[Suggestion]:
    skills = [one for one in host.session.state.own_prompts if one.kind == "skill"]
    return [Suggestion(one.name, one.name, one.description) for one in skills]


async def _topics(host: Host, _: str) -> list[Suggestion]:
    request = ListTopics(query="", workspace=host.options.workspace or None, limit=MOST_TOPICS)
    return [Suggestion(topic.name, topic.name, topic.description) for topic in await host.session.ask(request)]


async def _themes(host: Host, _: str) -> list[Suggestion]:
    own = [Suggestion(name, name, description) for name, description in NAMES.items()]
    return own + [Suggestion(name, name) for name in framework_themes(host)]
