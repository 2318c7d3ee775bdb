"""Import of other agents' sessions: listed with what the graph holds of them, and brought in one by one.

A session becomes a conversation with a derived id. It is imported again when it has changed since, which adds its new
turns and completes those that were still written; the version that was imported stands in the graph, so that a graph
never claims what only another one holds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from ragforge_tui.conversation.attempts import AttemptFinder
from ragforge_tui.conversation.services import Services
from ragforge_tui.conversation.storage.token_counts import count_imported
from ragforge_tui.graph import Store
from ragforge_tui.memory.findings.keeper import FindingKeeper
from ragforge_tui.other_agents import (
    AGENTS,
    conversation_id,
    detect,
    find_sessions,
    is_rescued,
    merged,
    read_session,
    relative_path,
)
from ragforge_tui.shared.account import home_folder
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.events import FindingsChanged
from ragforge_tui.shared.export_records import ConversationExport, MessageCommit
from ragforge_tui.shared.found_sessions import FoundSession, ListedSession, SessionImport
from ragforge_tui.shared.git import GIT_SECONDS, commits_by_hash
from ragforge_tui.tools.line_changes import edited_lines

_log = logging.getLogger(__name__)
_FULL_HASH = 40
_MOST_READ = 1_000
"""Conversations that one run reads; the next run continues."""


async def list_found_sessions(
    store: Store, *, agents: Sequence[str] = (), files: Sequence[Path] = (), folders: Sequence[Path] = ()
) -> list[ListedSession]:
    """Return the sessions that other agents left, each once, with whether they are imported.

    Args:
        agents: Only those of these agents; empty for all.
        files: Look into these files and folders instead.
        folders: Folders in which the user works.

    Raises:
        RagforgeError: An agent is unknown, or a file is of no known form.
    """
    unknown = [name for name in agents if name not in AGENTS]
    if unknown:
        raise RagforgeError(f"No sessions of {unknown[0]!r} can be imported.", todo=f"Known are: {', '.join(AGENTS)}.")
    if files:
        found = await asyncio.to_thread(lambda: merged(one for file in files for one in _in_file(file)))
    else:
        found = await asyncio.to_thread(_left_by, agents, folders)
    versions = await store.transfer.imported_versions()
    return [ListedSession(session=s, imported=not s.readable or _is_imported(s, versions)) for s in found]


async def import_found_session(store: Store, found: FoundSession) -> SessionImport:
    """Import a session or its new turns; failures are part of the result."""
    try:
        exports = await asyncio.to_thread(_exports, found)
        if not exports:
            return SessionImport(outcome="empty")
        export, *helpers = exports
        imported = await store.transfer.import_session(export, found.version)
        for helper in helpers:
            await store.transfer.import_session(helper, found.version)
    except (RagforgeError, OSError) as error:
        return SessionImport(outcome="failed", error=str(error))
    except Exception as error:
        _log.exception("%s of %s cannot be imported", found.id, found.agent)
        return SessionImport(outcome="failed", error=f"It cannot be read ({type(error).__name__}).")
    return SessionImport(
        outcome="imported" if imported.created else "extended" if imported.adds else "same",
        conversation_id=imported.conversation.uuid,
        title=imported.conversation.title,
        adds=imported.adds,
    )


async def read_imported(services: Services, *, leave: Collection[str]) -> None:
    """Read decisions, wishes and failed attempts from imported turns, without opening conversations.

    What is left when the program ends is read after the next start.

    Args:
        leave: Conversations to skip: they are open and do this themselves.
    """
    store, pace = await services.store(), services.memory.pace
    wishes = services.settings.agent.memory.remember != "never"
    for uuid in await store.findings.unread(_MOST_READ):
        if uuid not in leave:
            await pace.clear()
            conversation = await store.conversations.get(uuid)
            if await FindingKeeper(store, conversation, wishes=wishes).read_turns(()):
                services.emit(FindingsChanged(conversation_id=uuid))
            finder = AttemptFinder(services.store, Path(conversation.workspace), pace)
            await finder.examine(uuid, until=conversation.next_turn - 1)


def _left_by(agents: Sequence[str], folders: Sequence[Path]) -> list[FoundSession]:
    try:
        return list(find_sessions(home_folder(), agents, folders=folders))
    except OSError as error:
        raise RagforgeError(f"The sessions of {agents[0]} cannot be listed: {error}.") from error


def _in_file(file: Path) -> list[FoundSession]:
    try:
        found = detect(file, home_folder())
    except OSError as error:
        raise RagforgeError(f"{file} cannot be read: {error.strerror or error}.") from error
    if not found:
        raise RagforgeError(
            f"{file} is no session that can be imported.",
            todo="An export of this program, ChatGPT or Claude works, or a session file of: " + ", ".join(AGENTS) + ".",
            kind="bad_export",
        )
    return found


def _exports(found: FoundSession) -> list[ConversationExport]:
    """Read a session and its helpers; none of a session without a message."""
    transcript = read_session(found)
    export = transcript.export(found)
    if export is None:
        return []
    helpers = transcript.helper_exports(found, export.conversation)
    folder = export.conversation.workspace
    for call, edit in transcript.edits:
        if path := relative_path(edit.path, folder):
            call.changes = [*call.changes, *edited_lines(path, edit)]
    export.memory.commits = [_in_full(commit) for commit in export.memory.commits]
    return [count_imported(each) for each in (export, *helpers)]


def _in_full(made: MessageCommit) -> MessageCommit:
    """Return a commit that an agent named by the beginning of its id as git knows it; unchanged if it does not."""
    if len(made.commit.hash) >= _FULL_HASH or not Path(made.workspace).is_dir():
        return made
    known = commits_by_hash(Path(made.workspace), [made.commit.hash], timeout=GIT_SECONDS)
    return msgspec.structs.replace(made, commit=next(iter(known.values()), made.commit))


def _is_imported(found: FoundSession, versions: Mapping[str, str]) -> bool:
    """Return whether a session is held as it is now; of one that was held whole, no half is rescued later."""
    held = versions.get(conversation_id(found.agent, found.id))
    return held is not None and (held == found.version or is_rescued(found))
