"""What the agent changed in a conversation's files, and what taking turns of it back would do.

Reads the writes from the graph and the contents from what is kept for undo. Used by `Conversation`, which makes the
undo itself a turn.
"""

from __future__ import annotations

import asyncio

import msgspec

from ragforge_tui.conversation.own_turns import Doing
from ragforge_tui.errors import NotFoundError
from ragforge_tui.graph import Store
from ragforge_tui.requests.work import FileDiff, UndoPlan
from ragforge_tui.tools import Toolbox
from ragforge_tui.tools.changes import (
    RESTORE,
    WRITING_TOOLS,
    FileChange,
    Restore,
    changes_of,
    first_contents,
    restores,
    turn_to_redo,
    turn_to_undo,
)

MOST_DIFF_CHARS = 8_000_000
"""Characters of all diffs of one answer together; more would not pass through the pipe to the screen."""

_SINCE = "somebody else changed it since"
_NOT_KEPT = "its earlier content is not kept any more"


def fitted(files: list[FileDiff], most: int = MOST_DIFF_CHARS) -> list[FileDiff]:
    """The same files, with diffs cut where all together are longer than `most` characters."""
    shown = []
    for file in files:
        diff = file.diff
        if len(diff) > most:
            diff = f"{diff[:most]}\n[diff cut, {len(diff)} characters]\n"
        most = max(0, most - len(file.diff))
        shown.append(msgspec.structs.replace(file, diff=diff))
    return shown


class ChangedFiles:
    """The files one conversation changed."""

    def __init__(self, store: Store, toolbox: Toolbox, conversation_id: str) -> None:
        self._store = store
        self._kept = toolbox.kept
        self._workspace = str(toolbox.workspace.root)
        self._conversation_id = conversation_id

    async def diff(self) -> list[FileDiff]:
        """Each file's first known content against the one it has now; files that are as they were are left out."""
        contents = first_contents(await self._changes())
        return await asyncio.to_thread(self._diff, contents)

    def _diff(self, contents: dict[str, tuple[str, str]]) -> list[FileDiff]:
        found = []
        for path, (first, last) in sorted(contents.items()):
            now = self._kept.digest(path)
            if now == first:
                continue
            diff = self._kept.diff(path, first, now if now is not None else last)
            found.append(FileDiff(path=path, diff=diff, note="" if now == last else _SINCE))
        return fitted(found)

    async def plan(self, turn_index: int = 0, *, redo: bool = False) -> UndoPlan:
        """What taking a turn back would do.

        Raises:
            NotFoundError: The turn changed no files, or there is none to take back.
        """
        changes = await self._changes()
        turn = turn_index or (turn_to_redo(changes) if redo else turn_to_undo(changes))
        of_turn = [change for change in changes if change.turn_index == turn]
        if not of_turn:
            what = f"Turn {turn} changed no file" if turn else "There is no undo to take back" if redo else "No turn"
            tail = "" if turn or redo else " here changed files that are not as they were before"
            raise NotFoundError(f"{what}{tail}.", todo="/diff shows what was changed.")
        return await asyncio.to_thread(self._plan, changes, turn, bool(of_turn[0].undone))

    def _plan(self, changes: list[FileChange], turn: int, redo: bool) -> UndoPlan:
        restored, refused = [], []
        for one in self._restores(changes, turn):
            if one.refused:
                refused.append(FileDiff(path=one.path, diff="", note=one.refused))
            else:
                diff = self._kept.diff(one.path, one.current, one.wanted)
                restored.append(FileDiff(path=one.path, diff=diff, note=""))
        return UndoPlan(turn_index=turn, redo=redo, restored=fitted(restored), refused=refused)

    def _restores(self, changes: list[FileChange], turn: int) -> list[Restore]:
        paths = {change.path for change in changes if change.turn_index >= turn}
        found = restores(changes, turn, {path: self._kept.digest(path) for path in paths})
        return [
            one if one.refused or self._kept.is_kept(one.wanted) else msgspec.structs.replace(one, refused=_NOT_KEPT)
            for one in found
        ]

    async def undoing(self, turn_index: int) -> Doing:
        """The call that takes a turn back.

        Raises:
            NotFoundError: There is nothing that can be put back.
        """
        changes = await self._changes()
        found = await asyncio.to_thread(self._restores, changes, turn_index)
        files = [one for one in found if not one.refused]
        if not files:
            raise NotFoundError(f"Nothing of turn {turn_index} can be put back.", todo="/diff shows what was changed.")
        arguments = {"turn": turn_index, "files": files}
        return Doing(RESTORE, msgspec.json.encode(arguments).decode())

    async def _changes(self) -> list[FileChange]:
        writes = await self._store.files.writes(self._conversation_id, WRITING_TOOLS, self._workspace)
        return [change for write in writes for change in changes_of(write.turn_index, write.result)]
