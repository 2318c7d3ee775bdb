"""Tools write_file, create_file and edit_file.

Everything written could be seen as a diff first. The content that a write replaces is stored
before. A file that changed since it was read, or since its diff was shown, is left alone.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ragforge_tui.shared.encoding import UTF8, decode, line_end_of, with_line_ends
from ragforge_tui.shared.errors import ToolError
from ragforge_tui.shared.records import FileAccess
from ragforge_tui.shared.redaction import MASK, adds_mask
from ragforge_tui.shared.tool_calls import ToolInfo
from ragforge_tui.shared.truncation import marks_in
from ragforge_tui.tools.base import (
    ApprovalNeed,
    Plan,
    Tool,
    ToolArguments,
    ToolOutcome,
    finished_in_thread,
)
from ragforge_tui.tools.diff import STORED_DIFF, counts, unified_diff
from ragforge_tui.tools.files.read import FilePath, existing
from ragforge_tui.tools.line_changes import line_changes
from ragforge_tui.tools.sensitive import BECAUSE
from ragforge_tui.tools.snapshots import digest_of
from ragforge_tui.tools.workspace import Place, Workspace, read_bytes, write_bytes


class WriteFileArguments(ToolArguments):
    path: FilePath
    content: Annotated[str, Meta(description="The whole new content.")]


class CreateFileArguments(ToolArguments):
    path: FilePath
    content: Annotated[str, Meta(description="The content of the new file.")] = ""


class EditFileArguments(ToolArguments):
    path: FilePath
    old_string: Annotated[str, Meta(description="Text to replace, exactly as in the file, without line numbers.")]
    new_string: Annotated[str, Meta(description="The text to put there.")]


class _Change(msgspec.Struct, kw_only=True):
    """Prepared write that has not been done."""

    place: Place
    before: bytes | None
    after: bytes
    diff: str
    note: str = ""


class _WriteTool(Tool):
    """Base of the writing tools: prepare the change, request approval with its diff, write if nothing changed since."""

    async def prepare(self, arguments: Any) -> Plan:
        change = await asyncio.to_thread(self._change, arguments)

        async def run() -> ToolOutcome:
            return await finished_in_thread(lambda: self._run(change, arguments.path))

        return Plan(run=run, approval=_write_need(self.context.workspace, change, self.name))

    def _change(self, arguments: Any) -> _Change:
        """Return the change that a call makes; blocks."""
        raise NotImplementedError

    def _run(self, change: _Change, path: str) -> ToolOutcome:
        place = self.context.workspace.locate_again(change.place, path)
        if read_bytes(place) != change.before:
            raise ToolError(
                f"{place.shown} changed while this call was waiting; nothing was written.",
                todo="Read it again and repeat the change.",
                kind="changed",
            )
        before = digest_of(change.before)
        changes = line_changes(place, change.before, change.after)
        if change.before is not None:
            self.context.undo.keep(change.before, secret=place.secret)
        write_bytes(place, change.after, must_be_new=change.before is None)
        after = digest_of(change.after)
        self.context.seen[place.relative] = after
        return ToolOutcome(
            text=_written(change),
            data={"before": before, "after": after, "path": place.shown, "diff": _stored_diff(change)},
            files=[FileAccess(path=place.shown, access="write")],
            changes=changes,
        )

    def _earlier(self, place: Place) -> bytes | None:
        """Return the current content of a file, None if it does not exist.

        Raises:
            ToolError: The content is not the one that the model last saw.
        """
        content = read_bytes(place)
        seen = self.context.seen.get(place.relative)
        if content is not None and seen is not None and seen != digest_of(content):
            raise ToolError(
                f"{place.shown} changed since it was read.", todo="Read it again before changing it.", kind="changed"
            )
        return content


class WriteFile(_WriteTool):
    """Tool that writes the whole content of a file, new or not."""

    info = ToolInfo(
        name="write_file",
        label="Write",
        help="write a whole file",
        access="write",
        main_argument="path",
        verb="wrote {}",
        outcome="changes",
        weight=3,
    )
    description = (
        "Write a whole file, replacing its content; missing folders are created. Prefer edit_file for small changes."
    )
    arguments = WriteFileArguments

    def _change(self, arguments: WriteFileArguments) -> _Change:
        place = self.context.workspace.locate(arguments.path)
        before = self._earlier(place)
        decoded = decode(before) if before is not None else ("", UTF8)
        note = ""
        _refuse_marks(arguments.content, decoded[0] if decoded else "", place.shown)
        if decoded is None:
            old, after, note = None, arguments.content.encode(), "The old content was binary."
        else:
            old, encoding = decoded
            content = arguments.content if "\r\n" in arguments.content else _as_before(old, arguments.content)
            try:
                after = encoding.encode(content)
            except UnicodeEncodeError:
                after, note = UTF8.encode(content), f"The encoding changed from {encoding.codec} to UTF-8."
        _refuse_masks(old or "", arguments.content, place)
        diff = unified_diff(old if before is not None else None, _text(after), place.shown)
        return _Change(place=place, before=before, after=after, diff=diff, note=note)


class CreateFile(_WriteTool):
    """Tool that creates a file."""

    info = ToolInfo(
        name="create_file",
        label="Create",
        help="create a file",
        access="write",
        main_argument="path",
        verb="created {}",
        outcome="changes",
        weight=3,
    )
    description = "Create a new file; fails if it already exists. Missing folders are created."
    arguments = CreateFileArguments

    def _change(self, arguments: CreateFileArguments) -> _Change:
        place = self.context.workspace.locate(arguments.path)
        if place.absolute.exists():
            raise ToolError(
                f"{place.shown} already exists.", todo="Use edit_file or write_file to change it.", kind="exists"
            )
        _refuse_masks("", arguments.content, place)
        _refuse_marks(arguments.content, "", place.shown)
        diff = unified_diff(None, arguments.content, place.shown)
        return _Change(place=place, before=None, after=UTF8.encode(arguments.content), diff=diff)


class EditFile(_WriteTool):
    """Tool that makes one exact, unique replacement in a file."""

    info = ToolInfo(
        name="edit_file",
        label="Edit",
        help="replace a piece of a file",
        access="write",
        main_argument="path",
        verb="edited {}",
        outcome="changes",
        weight=3,
    )
    description = (
        "Replace one piece of a text file that you have read. old_string must occur exactly once: include enough lines "
        "around the change."
    )
    arguments = EditFileArguments

    def _change(self, arguments: EditFileArguments) -> _Change:
        place = self.context.workspace.locate(arguments.path)
        before = existing(place)
        self._earlier(place)
        if place.relative not in self.context.seen:
            raise ToolError(
                f"{place.shown} was not read in this session.", todo="Read it before editing it.", kind="not_read"
            )
        decoded = decode(before)
        if decoded is None:
            raise ToolError(f"{place.shown} is binary and cannot be edited as text.", kind="binary")
        text, encoding = decoded
        if MASK in arguments.old_string and arguments.old_string not in text:
            raise ToolError(
                f"old_string contains {MASK!r}, which replaces a secret of {place.shown} that is hidden from you.",
                todo="Give only lines without the secret; all other lines stay unchanged.",
                kind="masked",
            )
        _refuse_masks(arguments.old_string, arguments.new_string, place)
        _refuse_marks(arguments.new_string, text, place.shown)
        edited = replace_once(text, arguments.old_string, arguments.new_string, place.shown)
        try:
            after = encoding.encode(edited)
        except UnicodeEncodeError as error:
            raise ToolError(
                f"{place.shown} is {encoding.codec}, which lacks {edited[error.start]!r}.",
                todo="Use other characters, or write_file, which converts the file to UTF-8.",
                kind="encoding",
            ) from error
        diff = unified_diff(text, edited, place.shown)
        return _Change(place=place, before=before, after=after, diff=diff)


def replace_once(text: str, old: str, new: str, path: str) -> str:
    """Replace the only occurrence of a piece and preserve the file's line ends.

    Raises:
        ToolError: The piece is empty, equal to the new one, missing or not unique.
    """
    if not old:
        raise ToolError("old_string is empty.", todo="Give the text to replace, or use write_file.", kind="no_match")
    if old == new:
        raise ToolError("old_string and new_string are equal; there is nothing to do.", kind="no_change")
    line_end = line_end_of(text)
    if line_end == "\r\n":
        new = with_line_ends(new, line_end)
    if old not in text and "\r\n" in text:
        old = with_line_ends(old, "\r\n")
    position = text.find(old)
    if position < 0:
        raise ToolError(
            f"old_string does not occur in {path}.{_near_miss(text, old)}",
            todo="Copy it exactly from the file, without line numbers and with its indentation.",
            kind="no_match",
        )
    if text.find(old, position + 1) >= 0:
        lines = [str(text.count("\n", 0, at) + 1) for at in _occurrences(text, old)]
        raise ToolError(
            f"old_string is not unique in {path}: it starts on lines {', '.join(lines)}.",
            todo="Include more of the lines around it.",
            kind="not_unique",
        )
    return text[:position] + new + text[position + len(old) :]


def _occurrences(text: str, piece: str, most: int = 10) -> list[int]:
    offsets: list[int] = []
    at = text.find(piece)
    while at >= 0 and len(offsets) < most:
        offsets.append(at)
        at = text.find(piece, at + 1)
    return offsets


def _near_miss(text: str, old: str) -> str:
    """Return a hint with the line where the piece occurs with different white space; empty if it does not."""
    old_lines = [line.strip() for line in old.strip().split("\n")]
    lines = [line.strip() for line in text.split("\n")]
    for index in range(len(lines) - len(old_lines) + 1):
        if lines[index] == old_lines[0] and lines[index : index + len(old_lines)] == old_lines:
            return f" With different white space it occurs on line {index + 1}."
    return ""


def _refuse_masks(before: str, after: str, place: Place) -> None:
    """Reject a text that would overwrite a secret with its mask.

    Raises:
        ToolError: The text contains more masks than the text it replaces.
    """
    if adds_mask(before, after):
        raise ToolError(
            f"The new text for {place.shown} contains {MASK!r}, which replaces a secret that is hidden from you. "
            "Writing it would destroy the secret. Nothing was written.",
            todo="Use edit_file on the lines around the secret, or ask the user to enter it.",
            kind="masked",
        )


def _refuse_marks(new: str, old: str, path: str) -> None:
    """Reject a text with a truncation mark that a model copied from its own past; a mark in the old text may stay.

    Raises:
        ToolError: The new text contains a mark that the old one does not.
    """
    copied = sorted(marks_in(new) - marks_in(old))
    if copied:
        raise ToolError(
            f"Nothing was written: the text for {path} contains {copied[0]!r}, which only marks a cut in this "
            "conversation.",
            todo="Read the file and give the new text in full. If the file must contain exactly these words, "
            "write them with run_command.",
            kind="left_out",
        )


_SCOPES = {"write_file": "writing any file", "create_file": "creating files", "edit_file": "editing any file"}
"""Permission for the rest of the session that a question about each tool offers."""


def _write_need(workspace: Workspace, change: _Change, name: str) -> ApprovalNeed:
    place = change.place
    verb = "Create" if change.before is None else "Edit" if name == "edit_file" else "Overwrite"
    detail = change.diff or f"{place.shown}: no change."
    if change.note:
        detail = f"{change.note}\n{detail}"
    scope, key = f"{_SCOPES[name]} in this workspace", f"{name}:{workspace.root}"
    if place.reason == "runs":
        # Asked about once: such a file is often edited several times in a row.
        scope, key = f"writing {place.shown}", f"write:{workspace.root}:{place.relative}"
    return ApprovalNeed(
        kind="write",
        question=f"{verb} {place.shown}?",
        detail=detail,
        why=f"Accepted edits do not cover it: it {BECAUSE[place.reason]}" if place.reason else "",
        session_scope="" if place.secret else scope,
        session_key="" if place.secret else key,
        in_every_mode=place.reason == "own",
    )


def _as_before(old: str, content: str) -> str:
    return with_line_ends(content, line_end_of(old)) if old else content


def _text(content: bytes) -> str:
    decoded = decode(content)
    return decoded[0] if decoded else content.decode("utf-8", "replace")


def _written(change: _Change) -> str:
    verb = "Created" if change.before is None else "Wrote"
    added, removed = counts(change.diff)
    what = f"+{added} -{removed} lines" if change.diff else "no change"
    return " ".join(part for part in (f"{verb} {change.place.shown} ({what}).", change.note) if part)


def _stored_diff(change: _Change) -> str:
    """Return the diff to store with the record; empty for a file with secrets."""
    if change.place.secret:
        return ""
    if len(change.diff) <= STORED_DIFF:
        return change.diff
    return change.diff[:STORED_DIFF] + f"\n[diff cut, {len(change.diff)} characters]\n"
