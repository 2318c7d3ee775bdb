"""What a conversation did to files, and what taking turns of it back would do: pure, from digests of contents.

Used by the conversation for /diff and /undo. A turn is taken back by putting the files it and later turns changed
to what they were before it. A file somebody else changed meanwhile is named and left alone: it shows in digests that
do not follow each other, or in one on disk that is not the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

import msgspec

RESTORE = "restore_files"
"""The call an undo is stored as; models are not offered it."""
WRITING_TOOLS = ("write_file", "edit_file", "create_file", RESTORE)

_ELSEWHERE = "it was changed by someone else between the agent's edits"
_SINCE = "it was changed by someone else since"


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """One write: a file went from one content to another, each by its digest, empty for a file that is not there.

    Attributes:
        undone: Of an undo: the turn it took back; 0 for a write of the agent.
    """

    turn_index: int
    path: str
    before: str
    after: str
    undone: int = 0


class Restore(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done to one file.

    Attributes:
        current: Digest of what must be there now.
        wanted: Digest of what is put there.
        refused: Why it is left alone; empty when it is not.
    """

    path: str
    current: str
    wanted: str
    refused: str = ""


class _Written(msgspec.Struct):
    path: str = ""
    before: str = ""
    after: str = ""


class _Result(msgspec.Struct):
    path: str = ""
    before: str | None = None
    after: str | None = None
    undone: int = 0
    changes: list[_Written] = []


def changes_of(turn_index: int, result: str) -> list[FileChange]:
    """What the stored result of a writing call says was changed; nothing when it says nothing one can use."""
    try:
        told = msgspec.json.decode(result, type=_Result)
    except msgspec.MsgspecError:
        return []
    written = list(told.changes)
    if told.path and told.before is not None and told.after is not None:
        written.append(_Written(told.path, told.before, told.after))
    return [
        FileChange(turn_index=turn_index, path=one.path, before=one.before, after=one.after, undone=told.undone)
        for one in written
        if one.before != one.after
    ]


def first_contents(changes: Iterable[FileChange]) -> dict[str, tuple[str, str]]:
    """By path: the first content known, and the one the last write left."""
    found: dict[str, tuple[str, str]] = {}
    for change in changes:
        first, _ = found.get(change.path, (change.before, ""))
        found[change.path] = (first, change.after)
    return found


def turn_to_undo(changes: Iterable[FileChange]) -> int:
    """The last turn that changed files and was not taken back; 0 when there is none."""
    return _replayed(changes)[0]


def turn_to_redo(changes: Iterable[FileChange]) -> int:
    """The last undo, as long as nothing else changed files since and it was not taken back itself; 0: none."""
    return _replayed(changes)[1]


def _replayed(changes: Iterable[FileChange]) -> tuple[int, int]:
    in_effect: list[int] = []
    undos: list[int] = []
    before: dict[int, list[int]] = {}
    for change in changes:
        turn = change.turn_index
        if turn in before:
            continue
        before[turn] = list(in_effect)
        if not change.undone:
            in_effect.append(turn)
            undos.clear()
        elif change.undone in undos:
            del undos[undos.index(change.undone) :]
            in_effect = before[change.undone]
        else:
            undos.append(turn)
            in_effect = before.get(change.undone, [kept for kept in in_effect if kept < change.undone])
    return (in_effect[-1] if in_effect else 0), (undos[-1] if undos else 0)


def restores(changes: Iterable[FileChange], turn_index: int, on_disk: Mapping[str, str | None]) -> list[Restore]:
    """What putting the files back to before a turn would do, by path.

    Args:
        on_disk: Digest of each file as it is now; None when it cannot be read.
    """
    later: dict[str, list[FileChange]] = {}
    for change in changes:
        if change.turn_index >= turn_index:
            later.setdefault(change.path, []).append(change)
    found = []
    for path, steps in sorted(later.items()):
        wanted, current = steps[0].before, steps[-1].after
        broken = any(step.before != last.after for last, step in pairwise(steps))
        now = on_disk.get(path)
        if now == wanted:
            continue
        refused = "" if now == current and not broken else _ELSEWHERE if broken and now == current else _SINCE
        found.append(Restore(path=path, current=current, wanted=wanted, refused=refused))
    return found
