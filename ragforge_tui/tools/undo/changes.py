"""File changes of a conversation, and the effect of undoing its turns: pure functions on digests of contents.

Used by the conversation for /diff and /undo. Undoing a turn restores the files that it and later turns changed to
their contents before it. A file that was changed outside the conversation meanwhile is reported and left alone. Such a
change shows in digests of consecutive writes that do not match, or in a digest on disk that is not the last write's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

import msgspec

from ragforge_tui.shared.json_text import decode_json

RESTORE = "restore_files"
"""Name of the call under which an undo is stored; models are not offered it."""

_CHANGED_BETWEEN = "it was changed outside this conversation, between the agent's edits"
_CHANGED_SINCE = "it has since been changed outside this conversation"


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """One write to a file, with the digests of its content before and after; empty for a missing file.

    Attributes:
        undone: For an undo: the turn that was undone; 0 for a write of the agent.
    """

    turn_index: int
    path: str
    before: str
    after: str
    undone: int = 0


class Restore(msgspec.Struct, frozen=True, kw_only=True):
    """Planned restoration of one file.

    Attributes:
        current: Digest that the file must have now.
        wanted: Digest of the content to restore.
        refused: The reason the file is left alone; empty if it is restored.
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
    """Return the file changes in the stored result of a writing call; empty if the result has none or is unreadable."""
    try:
        parsed = decode_json(result, _Result)
    except msgspec.MsgspecError:
        return []
    written = list(parsed.changes)
    if parsed.path and parsed.before is not None and parsed.after is not None:
        written.append(_Written(parsed.path, parsed.before, parsed.after))
    return [
        FileChange(turn_index=turn_index, path=file.path, before=file.before, after=file.after, undone=parsed.undone)
        for file in written
        if file.before != file.after
    ]


def first_contents(changes: Iterable[FileChange]) -> dict[str, tuple[str, str]]:
    """Return the digests before the first and after the last write, by path."""
    contents: dict[str, tuple[str, str]] = {}
    for change in changes:
        first, _ = contents.get(change.path, (change.before, ""))
        contents[change.path] = (first, change.after)
    return contents


def turn_to_undo(changes: Iterable[FileChange]) -> int:
    """Return the last turn that changed files and was not undone; 0 if there is none."""
    return _last_undoable_and_redoable(changes)[0]


def turn_to_redo(changes: Iterable[FileChange]) -> int:
    """Return the turn of the last undo, unless later changes followed or it was itself undone; 0 if there is none."""
    return _last_undoable_and_redoable(changes)[1]


def _last_undoable_and_redoable(changes: Iterable[FileChange]) -> tuple[int, int]:
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
            in_effect = before.get(change.undone, [turn for turn in in_effect if turn < change.undone])
    return (in_effect[-1] if in_effect else 0), (undos[-1] if undos else 0)


def restores(changes: Iterable[FileChange], turn_index: int, on_disk: Mapping[str, str | None]) -> list[Restore]:
    """Plan the restoration of all files to their state before a turn, in order of paths.

    Args:
        on_disk: Current digest of each file; None if it cannot be read.
    """
    later: dict[str, list[FileChange]] = {}
    for change in changes:
        if change.turn_index >= turn_index:
            later.setdefault(change.path, []).append(change)
    planned = []
    for path, steps in sorted(later.items()):
        wanted, current = steps[0].before, steps[-1].after
        broken = any(step.before != last.after for last, step in pairwise(steps))
        now = on_disk.get(path)
        if now == wanted:
            continue
        refused = ""
        if now != current:
            refused = _CHANGED_SINCE
        elif broken:
            refused = _CHANGED_BETWEEN
        planned.append(Restore(path=path, current=current, wanted=wanted, refused=refused))
    return planned
