"""Putting files back: the call an undo is stored as. Only a person's /undo makes it; models are not offered it.

Used by the toolbox. Each file is restored or left alone by itself, and what is replaced is kept, so that an undo can be
undone.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from ragforge_tui.errors import ToolError
from ragforge_tui.models import FileAccess
from ragforge_tui.tools.base import Access, Plan, ToolArguments, ToolOutcome
from ragforge_tui.tools.changes import RESTORE, Restore
from ragforge_tui.tools.diff import unified_diff
from ragforge_tui.tools.files import STORED_DIFF, finished_in_thread
from ragforge_tui.tools.textfile import decode
from ragforge_tui.tools.undo import ABSENT, UndoStore, digest_of
from ragforge_tui.tools.workspace import Place, Workspace, read_bytes


class RestoreFilesArguments(ToolArguments):
    turn: Annotated[int, Meta(description="The turn that is taken back.")]
    files: Annotated[list[Restore], Meta(description="What is put in place of what.")]


class RestoreFiles:
    """Files as they were before a turn."""

    name = RESTORE
    description = "Put files back to what they were before a turn."
    access: Access = "write"
    arguments = RestoreFilesArguments

    def __init__(self, workspace: Workspace, undo: UndoStore) -> None:
        self._workspace = workspace
        self._undo = undo

    async def prepare(self, arguments: RestoreFilesArguments) -> Plan:
        async def run() -> ToolOutcome:
            return await finished_in_thread(lambda: self._run(arguments))

        return Plan(run=run)

    def _run(self, arguments: RestoreFilesArguments) -> ToolOutcome:
        restored: list[Restore] = []
        left: list[str] = []
        diffs: list[str] = []
        for one in arguments.files:
            diff = diff_between(self._workspace, self._undo, one.path, one.current, one.wanted)
            try:
                self._undo.restore(self._workspace, one.path, one.wanted, one.current)
            except ToolError as error:
                left.append(str(error))
            else:
                restored.append(one)
                diffs.append(diff)
        data: dict[str, Any] = {
            "undone": arguments.turn,
            "changes": [{"path": one.path, "before": one.current, "after": one.wanted} for one in restored],
            "diff": "".join(diffs)[:STORED_DIFF],
        }
        names = ", ".join(one.path for one in restored)
        done = f"Restored as before turn {arguments.turn}: {names}." if restored else "Nothing was restored."
        return ToolOutcome(
            text="\n".join([done, *(f"Left alone: {reason}" for reason in left)]),
            success=bool(restored),
            error=None if restored else (left[0] if left else done),
            data=data,
            files=[FileAccess(path=one.path, access="write") for one in restored],
        )


def diff_between(workspace: Workspace, undo: UndoStore, path: str, before: str, after: str) -> str:
    """A unified diff of two kept contents of a file; a sentence where there is none to show; blocks."""
    try:
        place = workspace.locate(path)
        if place.secret:
            return f"{path}: may hold keys or passwords, so what changed is not shown.\n"
        old, new = content_of(undo, place, before), content_of(undo, place, after)
    except ToolError as error:
        return f"{path}: {error}\n"
    return text_diff(path, old, new)


def text_diff(path: str, old: bytes | None, new: bytes | None) -> str:
    """A unified diff of two contents, None for a file that is not there."""
    was, now = _text(old), _text(new)
    if was is None or now is None:
        return f"{path}: binary, {len(old or b'')} bytes before, {len(new or b'')} bytes after.\n"
    diff = unified_diff(was if old is not None else None, now, path)
    return diff.replace(f"+++ b/{path}\n", "+++ /dev/null\n", 1) if new is None else diff


def content_of(undo: UndoStore, place: Place, digest: str) -> bytes | None:
    """The content with a digest, from what is kept or what is there now.

    Raises:
        ToolError: It is neither.
    """
    if digest == ABSENT:
        return None
    current = read_bytes(place)
    return current if digest_of(current) == digest else undo.load(digest)


def _text(content: bytes | None) -> str | None:
    if content is None:
        return ""
    decoded = decode(content)
    return decoded[0] if decoded else None


class KeptFiles:
    """The files of a workspace together with what is kept of their earlier contents; blocks."""

    def __init__(self, workspace: Workspace, undo: UndoStore) -> None:
        self._workspace = workspace
        self._undo = undo

    def digest(self, path: str) -> str | None:
        """Of the file as it is now; None when it cannot be read."""
        try:
            return digest_of(read_bytes(self._workspace.locate(path)))
        except ToolError:
            return None

    def is_kept(self, digest: str) -> bool:
        """Whether a content can be put back."""
        try:
            if digest != ABSENT:
                self._undo.load(digest)
        except ToolError:
            return False
        return True

    def diff(self, path: str, before: str, after: str) -> str:
        """See `diff_between`."""
        return diff_between(self._workspace, self._undo, path, before, after)
