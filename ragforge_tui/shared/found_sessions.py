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
        parts: Further files that hold more of it, such as those of a resumed session.
        bytes: Size; of a session in a database, the size of its texts, or 0 if that is unknown.
        version: Text that changes when the session does.
        readable: Whether it can be read. One that cannot stands for all data of an unknown layout in `path`.
    """

    agent: str
    id: str
    folder: str = ""
    path: str
    parts: tuple[str, ...] = ()
    bytes: int = 0
    version: str = ""
    readable: bool = True


class EditedLines(msgspec.Struct, frozen=True, kw_only=True):
    """Lines that an edit replaced, with unchanged ones around them; `start` counts from 1, and is 0 if unknown."""

    start: int = 0
    old: list[str] = []
    new: list[str] = []


class FileEdit(msgspec.Struct, frozen=True, kw_only=True):
    """Edit of one file by a call of another agent.

    Attributes:
        before: Whole content before it; None if unknown.
        after: Whole content after it; None if only `lines` are known.
    """

    path: str
    before: str | None = None
    after: str | None = None
    lines: list[EditedLines] = []


class ListedSession(msgspec.Struct, frozen=True, kw_only=True):
    """A found session, and whether the graph holds it as it is now."""

    session: FoundSession
    imported: bool


class SessionImport(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of importing one session.

    Attributes:
        outcome: ``imported`` for a new conversation, ``extended`` for one that has more turns or fuller ones now,
            ``same`` where nothing was new, ``empty`` for a session without messages, ``failed`` with the reason in
            `error`.
        conversation_id: Empty without a conversation.
    """

    outcome: Literal["imported", "extended", "same", "empty", "failed"]
    conversation_id: str = ""
    title: str = ""
    adds: ImportAdds = ImportAdds()
    error: str = ""


class FoundInFolder(msgspec.Struct, kw_only=True):
    """Sessions of one agent in one folder, with their total size and how many the graph holds as they are now.

    Without any, they are in a form that cannot be read.
    """

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
        place.sessions += entry.session.readable
        place.bytes += entry.session.bytes
        place.imported += entry.session.readable and entry.imported
    order = list(dict.fromkeys(agent for agent, _ in sums))
    return sorted(sums.values(), key=lambda p: (order.index(p.agent), -p.bytes, p.folder))


def is_inside(place: str, folder: str) -> bool:
    """Return whether a session's folder is a folder or lies below it."""
    return place == folder or place.startswith(folder.rstrip("/") + "/")
