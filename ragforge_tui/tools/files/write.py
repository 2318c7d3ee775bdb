"""Tools write_file, create_file and edit_file.

Everything written could be seen as a diff first. The content that a write replaces is stored
before. A file that changed since it was read, or since its diff was shown, is left alone. One that was never read can
be edited: an old_string that occurs exactly once shows that its lines are known, wherever they were shown. Only a file
with secrets must be read first, because reading it asks the user and an error about it would show its lines.
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
from ragforge_tui.tools.diff import STORED_DIFF, counts, new_lines, unified_diff
from ragforge_tui.tools.files.read import FilePath, existing
from ragforge_tui.tools.files.replacing import lines_around, replace
from ragforge_tui.tools.line_changes import line_changes
from ragforge_tui.tools.sensitive import BECAUSE
from ragforge_tui.tools.snapshots import digest_of
from ragforge_tui.tools.workspace import Place, Workspace, foreseen, read_bytes, write_bytes


class WriteFileArguments(ToolArguments):
    path: FilePath
    content: Annotated[str, Meta(description="The whole new content.")]


class CreateFileArguments(ToolArguments):
    path: FilePath
    content: Annotated[str, Meta(description="The content of the new file.")] = ""


class Replacement(msgspec.Struct, kw_only=True):
    """One replacement of edit_file."""

    old_string: Annotated[str, Meta(description="Text to replace, exactly as in the file, without line numbers.")]
    new_string: Annotated[str, Meta(description="The text to put there.")]
    replace_all: Annotated[bool, Meta(description="Replace all occurrences instead of the only one.")] = False


class EditFileArguments(ToolArguments):
    path: FilePath
    old_string: Annotated[str, Meta(description="Text to replace, exactly as in the file, without line numbers.")]
    new_string: Annotated[str, Meta(description="The text to put there.")]
    replace_all: Annotated[bool, Meta(description="Replace all occurrences instead of the only one.")] = False
    edits: Annotated[
        list[Replacement], Meta(description="Further replacements in this file, made in order; all or none.")
    ] = msgspec.field(default_factory=list)

    def replacements(self) -> list[Replacement]:
        """Return all replacements, in order."""
        first = Replacement(old_string=self.old_string, new_string=self.new_string, replace_all=self.replace_all)
        return [first, *self.edits]


class _Change(msgspec.Struct, kw_only=True):
    """Prepared write that has not been done."""

    place: Place
    before: bytes | None
    after: bytes
    diff: str
    note: str = ""
    shown: str = ""
    """Lines that the answer shows, because the model gave only parts of them."""


class _WriteTool(Tool):
    """Base of the writing tools: prepare the change, request approval with its diff, write if nothing changed since."""

    async def prepare(self, arguments: Any) -> Plan:
        change = await asyncio.to_thread(self._change, arguments)

        async def run() -> ToolOutcome:
            return await finished_in_thread(lambda: self._run(change, arguments.path))

        return Plan(
            run=run,
            approval=_write_need(self.context.workspace, change, self.name),
            contents={change.place.absolute: change.after},
        )

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
        known = seen is None or seen == digest_of(content) or place.absolute in foreseen.get()
        if content is not None and not known:
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
        "Write a whole file, new or in place of its content; missing folders are created. Prefer edit_file for changes."
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
        joined="write_file",
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
    """Tool that makes replacements in a file, all or none."""

    info = ToolInfo(
        name="edit_file",
        label="Edit",
        help="replace pieces of a file",
        access="write",
        main_argument="path",
        verb="edited {}",
        outcome="changes",
        weight=3,
    )
    description = (
        "Replace pieces of a text file. old_string must occur exactly once: include enough lines "
        "around the change, or set replace_all. Further replacements of the same file go into edits."
    )
    arguments = EditFileArguments

    def _change(self, arguments: EditFileArguments) -> _Change:
        place = self.context.workspace.locate(arguments.path)
        before = existing(place)
        if place.secret and place.relative not in self.context.seen:
            raise ToolError(
                f"{place.shown} was not read in this session.", todo="Read it before editing it.", kind="not_read"
            )
        decoded = decode(before)
        if decoded is None:
            raise ToolError(f"{place.shown} is binary and cannot be edited as text.", kind="binary")
        text, encoding = decoded
        try:
            self._earlier(place)
        except ToolError as error:
            raise self._changed(error, place, before, text, arguments) from error
        edited, notes = text, []
        for each in arguments.replacements():
            if MASK in each.old_string and each.old_string not in edited:
                raise ToolError(
                    f"old_string contains {MASK!r}, which replaces a secret of {place.shown} that is hidden from you.",
                    todo="Give only lines without the secret; all other lines stay unchanged.",
                    kind="masked",
                )
            _refuse_masks(each.old_string, each.new_string, place)
            _refuse_marks(each.new_string, text, place.shown)
            edited, note = replace(edited, each.old_string, each.new_string, place.shown, everywhere=each.replace_all)
            notes.append(note)
        try:
            after = encoding.encode(edited)
        except UnicodeEncodeError as error:
            raise ToolError(
                f"{place.shown} is {encoding.codec}, which lacks {edited[error.start]!r}.",
                todo="Use other characters, or write_file, which converts the file to UTF-8.",
                kind="encoding",
            ) from error
        diff = unified_diff(text, edited, place.shown)
        return _Change(
            place=place,
            before=before,
            after=after,
            diff=diff,
            note=" ".join(filter(None, notes)),
            shown="" if place.secret else new_lines(diff),
        )

    def _changed(
        self, error: ToolError, place: Place, content: bytes, text: str, arguments: EditFileArguments
    ) -> ToolError:
        """Return the refusal for a file that changed since it was read, with its lines now, which then count as read.

        Without a place that must be meant, the file has to be read again, as after any other change.
        """
        near = "" if place.secret else lines_around(text, arguments.old_string)
        if not near:
            return error
        self.context.seen[place.relative] = digest_of(content)
        return ToolError(
            f"{place.shown} changed since it was read. Its lines are now:\n{near}\n",
            todo="Nothing was written. Repeat the edit if it is still right.",
            kind="changed",
        )


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
    said = " ".join(part for part in (f"{verb} {change.place.shown} ({what}).", change.note) if part)
    return f"{said} It now reads:\n{change.shown}" if change.shown else said


def _stored_diff(change: _Change) -> str:
    """Return the diff to store with the record; empty for a file with secrets."""
    if change.place.secret:
        return ""
    if len(change.diff) <= STORED_DIFF:
        return change.diff
    return change.diff[:STORED_DIFF] + f"\n[diff cut, {len(change.diff)} characters]\n"
