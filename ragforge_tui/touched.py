"""Which files of the workspace turns touched, each once, in the group it is shown in.

Used by memory for requests, by the store over a whole conversation and by Markdown exports, so that all three say
the same. A shared word: it leans on the records alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from ragforge_tui.models import AccessedFile, FileAccessKind, Turn

Group = Literal["read", "modified", "found"]

_GROUPS: dict[FileAccessKind, Group] = {"write": "modified", "read": "read", "search": "found"}
"""Listings name folders, not files, and stand in no group."""
_RANKS: dict[Group, int] = {"found": 0, "read": 1, "modified": 2}


def group_of(access: FileAccessKind) -> Group | None:
    """The group an access puts its file in, None for one that is not of a file."""
    return _GROUPS.get(access)


def touched_by(turn: Turn) -> Iterator[AccessedFile]:
    """Every access of a file by the turn's calls, in order; calls that failed touched nothing.

    Attempts that were superseded count: what they changed is changed.
    """
    for message in turn.messages:
        for call in message.tool_calls:
            if call.success is False:
                continue
            for file in call.files:
                group = group_of(file.access)
                if group is not None:
                    yield AccessedFile(
                        path=file.path,
                        group=group,
                        tool=call.tool_name,
                        turn_index=turn.turn_index,
                        timestamp=call.timestamp,
                    )


def joined(files: Iterable[AccessedFile]) -> dict[str, AccessedFile]:
    """Each path once. Modified wins over read, read over found; within a group the newest access is told."""
    found: dict[str, AccessedFile] = {}
    for file in files:
        known = found.get(file.path)
        found[file.path] = file if known is None else _join(known, file)
    return found


def _join(one: AccessedFile, other: AccessedFile) -> AccessedFile:
    told = max(one, other, key=lambda file: (_RANKS[file.group], *_age(file)))
    return msgspec.structs.replace(told, count=one.count + other.count)


def most_telling(files: Iterable[AccessedFile], limit: int) -> list[AccessedFile]:
    """At most `limit` files: those modified first, then those read, then those found, each newest first."""
    return sorted(files, key=lambda file: (_RANKS[file.group], *_age(file)), reverse=True)[: max(limit, 0)]


def _age(file: AccessedFile) -> tuple[int, float, str, str]:
    return file.turn_index, file.timestamp.timestamp(), file.tool, file.path
