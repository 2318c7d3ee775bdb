"""Files of the workspace that turns accessed, each once, in the group it is displayed in.

Used by memory for requests, by the store for a whole conversation and by Markdown exports, so that all three agree.
Depends on the record types alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from ragforge_tui.shared.records import AccessedFile, FileAccessKind, Turn

Group = Literal["read", "modified", "found"]

_GROUPS: dict[FileAccessKind, Group] = {"write": "modified", "read": "read", "search": "found"}
"""Group by kind of access. Listings access folders, not files, and belong to no group."""
_RANKS: dict[Group, int] = {"found": 0, "read": 1, "modified": 2}


def group_of(access: FileAccessKind) -> Group | None:
    """Return the group of the file accessed, None for an access that is not to a file."""
    return _GROUPS.get(access)


def accesses_of(turn: Turn) -> Iterator[AccessedFile]:
    """Yield every file access of the turn's calls, in order; failed calls accessed nothing.

    Superseded attempts count: their changes to files remain.
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


def merge_by_path(files: Iterable[AccessedFile]) -> dict[str, AccessedFile]:
    """Merge accesses by path. Modified wins over read, read over found; within a group the newest access wins."""
    by_path: dict[str, AccessedFile] = {}
    for file in files:
        earlier = by_path.get(file.path)
        by_path[file.path] = file if earlier is None else _join(earlier, file)
    return by_path


def _join(first: AccessedFile, second: AccessedFile) -> AccessedFile:
    winner = max(first, second, key=lambda file: (_RANKS[file.group], *_age(file)))
    return msgspec.structs.replace(winner, count=first.count + second.count)


def top_files(files: Iterable[AccessedFile], limit: int) -> list[AccessedFile]:
    """Return at most `limit` files: modified before read before found, and the newest first in each group."""
    return sorted(files, key=lambda file: (_RANKS[file.group], *_age(file)), reverse=True)[: max(limit, 0)]


def _age(file: AccessedFile) -> tuple[int, float, str, str]:
    return file.turn_index, file.timestamp.timestamp(), file.tool, file.path
