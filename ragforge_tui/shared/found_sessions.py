"""Records of sessions that other agents left on this machine, before and after they are imported."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from ragforge_tui.shared.export_records import ImportAdds


class FoundSession(msgspec.Struct, frozen=True, kw_only=True):
    """Session in the store of another agent, not read yet.

    Attributes:
        agent: Name as in `--from`.
        id: The agent's own id of the session.
        folder: Folder it worked in; empty if the store does not tell.
        path: File or database that holds it.
        bytes: Size; of a session in a database, the size of its texts, or 0 if that is unknown.
        version: Text that changes when the session does.
    """

    agent: str
    id: str
    folder: str = ""
    path: str
    bytes: int = 0
    version: str = ""


class ListedSession(msgspec.Struct, frozen=True, kw_only=True):
    """A found session, and whether the graph holds it as it is now."""

    session: FoundSession
    imported: bool


class SessionImport(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of importing one session.

    Attributes:
        outcome: ``imported`` for a new conversation, ``extended`` for one that has more turns now, ``same`` where
            nothing was new, ``empty`` for a session without messages, ``failed`` with the reason in `error`.
        conversation_id: Empty without a conversation.
        still_written: Whether its last turn was left for the next import, since the agent may still be writing it.
    """

    outcome: Literal["imported", "extended", "same", "empty", "failed"]
    conversation_id: str = ""
    title: str = ""
    adds: ImportAdds = ImportAdds()
    still_written: bool = False
    error: str = ""


class FoundInFolder(msgspec.Struct, kw_only=True):
    """Sessions of one agent in one folder, with their total size and how many the graph holds as they are now."""

    agent: str
    folder: str
    sessions: int = 0
    bytes: int = 0
    imported: int = 0


def by_folder(listed: Iterable[ListedSession]) -> list[FoundInFolder]:
    """Return the sums by agent and folder, the largest of each agent first."""
    sums: dict[tuple[str, str], FoundInFolder] = {}
    for entry in listed:
        key = entry.session.agent, entry.session.folder
        place = sums.setdefault(key, FoundInFolder(agent=key[0], folder=key[1]))
        place.sessions += 1
        place.bytes += entry.session.bytes
        place.imported += entry.imported
    order = list(dict.fromkeys(agent for agent, _ in sums))
    return sorted(sums.values(), key=lambda p: (order.index(p.agent), -p.bytes, p.folder))


def is_inside(place: str, folder: str) -> bool:
    """Return whether a session's folder is a folder or lies below it."""
    return place == folder or place.startswith(folder.rstrip("/") + "/")
