"""Files changed by the agent in a conversation, and the effects of undoing its turns, shared ones included.

Reads the writes from the graph and the contents from the undo store. Used by `Conversation`, which runs the undo itself
as a turn.
"""

from __future__ import annotations

import asyncio

import msgspec

from ragforge_tui.graph import Store
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.requests.work import FileDiff, UndoPlan
from ragforge_tui.shared.tool_calls import writing_tools
from ragforge_tui.tools.undo.changes import (
    FileChange,
    Restore,
    changes_of,
    first_contents,
    restores,
    turn_to_redo,
    turn_to_undo,
)
from ragforge_tui.tools.undo.restore import KeptFiles

MOST_DIFF_CHARS = 8_000_000
"""Most characters of all diffs in one answer; more would not fit through the pipe to the user interface."""

_SINCE = "since changed outside this conversation"
_NOT_KEPT = "its earlier content is no longer stored"


def counts_of(diff: str) -> tuple[int, int]:
    """Return the lines that the unified diff of one file adds and removes; none for a sentence in its place."""
    _, hunk, body = f"\n{diff}".partition("\n@@ ")
    lines = body.split("\n")[1:] if hunk else []
    return sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)


def fitted(files: list[FileDiff], most: int = MOST_DIFF_CHARS) -> list[FileDiff]:
    """Return the files with their diffs truncated to `most` characters in total."""
    shown = []
    for file in files:
        diff = file.diff
        if len(diff) > most:
            diff = f"{diff[:most]}\n[diff cut, {len(diff)} characters]\n"
        most = max(0, most - len(file.diff))
        shown.append(msgspec.structs.replace(file, diff=diff))
    return shown


class ChangedFiles:
    """Files changed in one conversation."""

    def __init__(self, store: Store, kept: KeptFiles, workspace: str, conversation_id: str) -> None:
        self._store = store
        self._kept = kept
        self._workspace = workspace
        self._conversation_id = conversation_id

    async def diff(self) -> list[FileDiff]:
        """Compare each file's first known content with its current one; unchanged files are omitted."""
        contents = first_contents(await self._changes())
        return await asyncio.to_thread(self._diff, contents)

    def _diff(self, contents: dict[str, tuple[str, str]]) -> list[FileDiff]:
        changed = []
        for path, (first, last) in sorted(contents.items()):
            now = self._kept.digest(path)
            if now == first:
                continue
            diff = self._kept.diff(path, first, now if now is not None else last)
            own = diff if now == last else self._kept.diff(path, first, last)
            added, removed = counts_of(own)
            note = "" if now == last else _SINCE
            changed.append(FileDiff(path=path, diff=diff, note=note, added=added, removed=removed))
        return fitted(changed)

    async def plan(self, turn_index: int = 0, *, redo: bool = False) -> UndoPlan:
        """Return the effects of undoing a turn.

        Raises:
            NotFoundError: The turn changed no files, or there is no turn to undo.
        """
        changes = await self._changes()
        turn = turn_index or (turn_to_redo(changes) if redo else turn_to_undo(changes))
        of_turn = [change for change in changes if change.turn_index == turn]
        if not of_turn:
            raise await self._nothing_to_restore(changes, turn, redo=redo)
        return await asyncio.to_thread(self._plan, changes, turn, bool(of_turn[0].undone))

    async def _nothing_to_restore(self, changes: list[FileChange], turn: int, *, redo: bool) -> NotFoundError:
        if redo and not turn:
            return NotFoundError("There is nothing to redo.")
        last = turn_to_undo(changes)
        if last:
            return NotFoundError(
                f"Turn {turn} changed no files.", todo=f"The last turn that did is {last}: /undo {last}."
            )
        what = "No turn of this conversation has file changes to undo."
        parent, turn = await self._last_change_of_a_parent()
        if not parent:
            return NotFoundError(what)
        return NotFoundError(
            f"{what} The last ones were made in turn {turn} of the conversation it branched off from.",
            todo=f"To undo them: /resume {parent[:8]}, then /undo.",
        )

    async def _last_change_of_a_parent(self) -> tuple[str, int]:
        """Return the nearest parent that changed files after the branch left it, and the turn; an empty id if none."""
        conversation = await self._store.conversations.get(self._conversation_id)
        seen = {conversation.uuid}
        while conversation.branch_of and conversation.branch_of not in seen:
            shared = conversation.branch_turn or 0
            try:
                conversation = await self._store.conversations.get(conversation.branch_of)
            except NotFoundError:
                break
            seen.add(conversation.uuid)
            turn = turn_to_undo(await self._changes(conversation.uuid))
            if turn > shared:
                return conversation.uuid, turn
        return "", 0

    def _plan(self, changes: list[FileChange], turn: int, redo: bool) -> UndoPlan:
        restored, refused = [], []
        for restore in self._restores(changes, turn):
            if restore.refused:
                refused.append(FileDiff(path=restore.path, diff="", note=restore.refused))
            else:
                diff = self._kept.diff(restore.path, restore.current, restore.wanted)
                restored.append(FileDiff(path=restore.path, diff=diff, note=""))
        return UndoPlan(turn_index=turn, redo=redo, restored=fitted(restored), refused=refused)

    def _restores(self, changes: list[FileChange], turn: int) -> list[Restore]:
        paths = {change.path for change in changes if change.turn_index >= turn}
        planned = restores(changes, turn, {path: self._kept.digest(path) for path in paths})
        return [
            each
            if each.refused or self._kept.is_kept(each.wanted)
            else msgspec.structs.replace(each, refused=_NOT_KEPT)
            for each in planned
        ]

    async def restore_arguments(self, turn_index: int) -> tuple[str, bool]:
        """Return the arguments, as JSON, of the `restore_files` call that undoes a turn, and whether that is a redo.

        Raises:
            NotFoundError: No file can be restored.
        """
        changes = await self._changes()
        planned = await asyncio.to_thread(self._restores, changes, turn_index)
        files = [restore for restore in planned if not restore.refused]
        if not files:
            raise NotFoundError(f"No file of turn {turn_index} can be restored.", kept="The files are as they were.")
        redo = any(change.undone for change in changes if change.turn_index == turn_index)
        return msgspec.json.encode({"turn": turn_index, "redo": redo, "files": files}).decode(), redo

    async def _changes(self, conversation_id: str = "") -> list[FileChange]:
        of = conversation_id or self._conversation_id
        writes = await self._store.files.writes(of, writing_tools(), self._workspace)
        return [change for write in writes for change in changes_of(write.turn_index, write.result)]
