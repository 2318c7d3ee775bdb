"""Import of other agents' sessions: listed with what the graph holds of them, and brought in one by one.

A session becomes a conversation with a derived id. It is imported again when it has changed since, which adds its new
turns; the version that was imported stands in the graph, so that a graph never claims what only another one holds.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ragforge_tui.conversation.limits import CONVERSATION
from ragforge_tui.conversation.storage.token_counts import count_imported
from ragforge_tui.graph import Store
from ragforge_tui.other_agents import (
    AGENTS,
    Transcript,
    conversation_id,
    detect,
    find_sessions,
    is_rescued,
    read_session,
)
from ragforge_tui.shared.account import home_folder
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.export_records import ConversationExport
from ragforge_tui.shared.found_sessions import FoundSession, ListedSession, SessionImport

_log = logging.getLogger(__name__)


async def list_found_sessions(
    store: Store, *, agents: Sequence[str] = (), file: Path | None = None
) -> list[ListedSession]:
    """Return the sessions that other agents left, newest form of each, with whether they are imported.

    Args:
        agents: Only those of these agents; empty for all.
        file: Look into this file instead.

    Raises:
        RagforgeError: An agent is unknown, or the file is of no known form.
    """
    unknown = [name for name in agents if name not in AGENTS]
    if unknown:
        raise RagforgeError(f"No sessions of {unknown[0]!r} can be imported.", todo=f"Known are: {', '.join(AGENTS)}.")
    if file is not None:
        found = await asyncio.to_thread(_in_file, file)
    else:
        found = await asyncio.to_thread(_left_by, agents)
    versions = await store.transfer.imported_versions()
    return [ListedSession(session=s, imported=_is_imported(s, versions)) for s in found]


async def import_found_session(store: Store, found: FoundSession) -> SessionImport:
    """Import a session, or the turns that are new in it; failures are part of the result."""
    try:
        export, helpers, still_written = await asyncio.to_thread(_export, found)
        if export is None:
            return SessionImport(outcome="empty", still_written=still_written)
        imported = await store.transfer.import_(export, merge=True)
        for helper in helpers:
            await store.transfer.import_(helper, merge=True)
        if not still_written:
            await store.transfer.mark_imported(export.conversation.uuid, found.version)
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
        still_written=still_written,
    )


def _left_by(agents: Sequence[str]) -> list[FoundSession]:
    try:
        return list(find_sessions(home_folder(), agents))
    except OSError as error:
        raise RagforgeError(f"The sessions of {agents[0]} cannot be listed: {error}.") from error


def _in_file(file: Path) -> list[FoundSession]:
    try:
        found = detect(file)
    except OSError as error:
        raise RagforgeError(f"{file} cannot be read: {error.strerror or error}.") from error
    if not found:
        raise RagforgeError(
            f"{file} is no session that can be imported.",
            todo="An export of this program, ChatGPT or Claude works, or a session file of: " + ", ".join(AGENTS) + ".",
            kind="bad_export",
        )
    return found


def _export(found: FoundSession) -> tuple[ConversationExport | None, list[ConversationExport], bool]:
    """Read a session and its helpers; also return whether its last turn was left out, since it may still be written."""
    transcript = read_session(found)
    still_written = time.time() - _last_write(found, transcript) < CONVERSATION.still_written
    export = transcript.export(found, without_last_turn=still_written)
    if export is None:
        return None, [], still_written
    helpers = transcript.helper_exports(found, export.conversation)
    return count_imported(export), [count_imported(helper) for helper in helpers], still_written


def _is_imported(found: FoundSession, versions: Mapping[str, str]) -> bool:
    """Return whether a session is held as it is now; of one that was held whole, no half is rescued later."""
    held = versions.get(conversation_id(found.agent, found.id))
    return held is not None and (held == found.version or is_rescued(found))


def _last_write(found: FoundSession, transcript: Transcript) -> float:
    """Return when a session was last written: of one in a file of its own the file's time, else its last message's."""
    path = Path(found.path)
    shared = path.suffix in (".db", ".md") or is_rescued(found)
    return transcript.last_time.timestamp() if shared else path.stat().st_mtime
