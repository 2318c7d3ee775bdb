"""Restoration of files: the tool whose call stores an undo. Only the user's /undo calls it; models are not offered it.

Used by the toolbox. Each file is restored or left alone independently, and the replaced content is stored, so that an
undo can be undone.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from ragforge_tui.shared.encoding import decode
from ragforge_tui.shared.errors import ToolError
from ragforge_tui.shared.records import FileAccess, LineChange
from ragforge_tui.shared.tool_calls import ShownArgument, ToolInfo
from ragforge_tui.tools.base import Plan, Tool, ToolArguments, ToolOutcome, finished_in_thread
from ragforge_tui.tools.diff import STORED_DIFF, unified_diff
from ragforge_tui.tools.line_changes import line_changes
from ragforge_tui.tools.snapshots import ABSENT, UndoStore, digest_of
from ragforge_tui.tools.undo.changes import RESTORE, Restore
from ragforge_tui.tools.workspace import Place, Workspace, read_bytes


class RestoreFilesArguments(ToolArguments):
    turn: Annotated[int, Meta(description="The turn to undo.")]
    files: Annotated[list[Restore], Meta(description="The files, with their current and their restored content.")]
    redo: Annotated[bool, Meta(description="Whether that turn was an undo itself.")] = False


class RestoreFiles(Tool):
    """Tool that restores files to their state before a turn."""

    info = ToolInfo(
        name=RESTORE,
        label="Restore",
        access="write",
        verb="undid {}",
        shown=(ShownArgument(names=("turn",), before="as before turn "),),
    )
    description = "Restore files to their state before a turn."
    arguments = RestoreFilesArguments

    async def prepare(self, arguments: RestoreFilesArguments) -> Plan:
        async def run() -> ToolOutcome:
            return await finished_in_thread(lambda: self._run(arguments))

        return Plan(run=run)

    def _run(self, arguments: RestoreFilesArguments) -> ToolOutcome:
        restored: list[Restore] = []
        problems: list[str] = []
        diffs: list[str] = []
        changes: list[LineChange] = []
        kept = KeptFiles(self.context.workspace, self.context.undo)
        for file in arguments.files:
            diff = kept.diff(file.path, file.current, file.wanted)
            lines = kept.line_changes(file.path, file.current, file.wanted)
            try:
                self.context.undo.restore(self.context.workspace, file.path, file.wanted, file.current)
            except ToolError as error:
                problems.append(str(error))
            else:
                restored.append(file)
                diffs.append(diff)
                changes += lines
        data: dict[str, Any] = {
            "undone": arguments.turn,
            "changes": [{"path": file.path, "before": file.current, "after": file.wanted} for file in restored],
            "diff": "".join(diffs)[:STORED_DIFF],
        }
        names = ", ".join(file.path for file in restored)
        done = f"Restored to the state before turn {arguments.turn}: {names}." if restored else "Nothing was restored."
        return ToolOutcome(
            text="\n".join([done, *(f"Not restored: {problem}" for problem in problems)]),
            success=bool(restored),
            error=None if restored else (problems[0] if problems else done),
            data=data,
            files=[FileAccess(path=file.path, access="write") for file in restored],
            changes=changes,
        )


def text_diff(path: str, old: bytes | None, new: bytes | None) -> str:
    """Return a unified diff of two contents; None means a missing file."""
    before, after = _text(old), _text(new)
    if before is None or after is None:
        return f"{path}: binary, {len(old or b'')} bytes before, {len(new or b'')} bytes after.\n"
    diff = unified_diff(before if old is not None else None, after, path)
    return diff.replace(f"+++ b/{path}\n", "+++ /dev/null\n", 1) if new is None else diff


def content_of(undo: UndoStore, place: Place, digest: str) -> bytes | None:
    """Return the content with a digest, from the current file or the stored contents.

    Raises:
        ToolError: Neither has that digest.
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
    """Files of a workspace together with their stored earlier contents; all methods block."""

    def __init__(self, workspace: Workspace, undo: UndoStore) -> None:
        self._workspace = workspace
        self._undo = undo

    def digest(self, path: str) -> str | None:
        """Return the digest of the current file; None if it cannot be read."""
        try:
            return digest_of(read_bytes(self._workspace.locate(path)))
        except ToolError:
            return None

    def is_kept(self, digest: str) -> bool:
        """Return whether a content can be restored."""
        try:
            if digest != ABSENT:
                self._undo.load(digest)
        except ToolError:
            return False
        return True

    def diff(self, path: str, before: str, after: str) -> str:
        """Return a unified diff of two stored contents of a file, or a sentence if it cannot be shown."""
        try:
            place = self._workspace.locate(path)
            if place.secret:
                return f"{path}: may contain keys or passwords, so the change is not shown.\n"
            old, new = content_of(self._undo, place, before), content_of(self._undo, place, after)
        except ToolError as error:
            return f"{path}: {error}\n"
        return text_diff(path, old, new)

    def line_changes(self, path: str, before: str, after: str) -> list[LineChange]:
        """Return the change from one stored content of a file to another, line by line; none if one is not stored."""
        try:
            place = self._workspace.locate(path)
            return line_changes(place, content_of(self._undo, place, before), content_of(self._undo, place, after))
        except ToolError:
            return []
