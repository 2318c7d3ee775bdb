"""Tools write_file and edit_file, and their other forms create_file and apply_patch.

Everything written could be seen as a diff first. The content that a write replaces is stored
before. A file that changed since it was read, or since its diff was shown, is left alone. One that was never read can
be edited: an old_string that occurs exactly once shows that its lines are known, wherever they were shown. Only a file
with secrets must be read first, because reading it asks the user and an error about it would show its lines.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from ragforge_tui.shared.encoding import UTF8, Encoding, decode
from ragforge_tui.shared.errors import ToolError
from ragforge_tui.shared.redaction import MASK
from ragforge_tui.shared.sanitize import unshown
from ragforge_tui.shared.tool_calls import ToolInfo
from ragforge_tui.tools.base import ToolArguments
from ragforge_tui.tools.diff import new_lines, unified_diff
from ragforge_tui.tools.files.changes import Change, WriteTool, changed_diff, refuse_marks, refuse_masks, text_of
from ragforge_tui.tools.files.patches import Part, apply_parts, parse_patch
from ragforge_tui.tools.files.read import FilePath, existing
from ragforge_tui.tools.files.replacing import lines_around, replace, whole_rewritten
from ragforge_tui.tools.snapshots import digest_of
from ragforge_tui.tools.undo.restore import text_diff
from ragforge_tui.tools.workspace import Place, foreseen, read_bytes


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
    path: FilePath = ""
    old_string: Annotated[str, Meta(description="Text to replace, exactly as in the file, without line numbers.")] = ""
    new_string: Annotated[str, Meta(description="The text to put there.")] = ""
    replace_all: Annotated[bool, Meta(description="Replace all occurrences instead of the only one.")] = False
    edits: Annotated[
        list[Replacement], Meta(description="Further replacements in this file, made in order; all or none.")
    ] = msgspec.field(default_factory=list)
    move_to: Annotated[str, Meta(description="New path of the file.")] = ""
    delete: Annotated[bool, Meta(description="Delete the file.")] = False
    patch: Annotated[
        str,
        Meta(
            description="Instead of all others: changes of several files, all or none, in the format of apply_patch "
            "(*** Begin Patch, *** Update File: path ...)."
        ),
    ] = ""

    def replacements(self) -> list[Replacement]:
        """Return all replacements, in order; none where only a move or a deletion is asked for."""
        first = Replacement(old_string=self.old_string, new_string=self.new_string, replace_all=self.replace_all)
        wanted = self.old_string or self.new_string or not (self.edits or self.move_to or self.delete)
        return [*([first] if wanted else []), *self.edits]


class ApplyPatchArguments(ToolArguments):
    patch: Annotated[str, Meta(description="*** Begin Patch ... *** End Patch")]


class WriteFile(WriteTool):
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

    def changes(self, arguments: WriteFileArguments) -> list[Change]:
        place = self.context.workspace.locate(arguments.path)
        before = self.earlier(place)
        decoded = decode(before) if before is not None else ("", UTF8)
        note = ""
        refuse_marks(arguments.content, decoded[0] if decoded else "", place.shown)
        if decoded is None:
            old, after, note = None, arguments.content.encode(), "The old content was binary."
        else:
            old, encoding = decoded
            content = whole_rewritten(old, unshown(arguments.content, old).removeprefix("\ufeff"))
            try:
                after = encoding.encode(content)
            except UnicodeEncodeError as error:
                if encoding.unknown:
                    raise _lacking(encoding, content[error.start], place) from error
                after, note = UTF8.encode(content), f"The encoding changed from {encoding.codec} to UTF-8."
        refuse_masks(old or "", arguments.content, place)
        diff = unified_diff(old if before is not None else None, text_of(after), place.shown)
        return [Change(place=place, before=before, after=after, diff=diff, note=note)]


class CreateFile(WriteTool):
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

    def changes(self, arguments: CreateFileArguments) -> list[Change]:
        place = self.context.workspace.locate(arguments.path)
        if place.absolute.exists():
            raise ToolError(
                f"{place.shown} already exists.", todo="Use edit_file or write_file to change it.", kind="exists"
            )
        refuse_masks("", arguments.content, place)
        refuse_marks(arguments.content, "", place.shown)
        diff = unified_diff(None, arguments.content, place.shown)
        return [Change(place=place, before=None, after=UTF8.encode(arguments.content), diff=diff)]


class EditFile(WriteTool):
    """Tool that changes files by replacements or a patch, moves and deletes them; all or none."""

    info = ToolInfo(
        name="edit_file",
        label="Edit",
        help="change pieces of files, move and delete files",
        access="write",
        main_argument="path",
        verb="edited {}",
        outcome="changes",
        weight=3,
    )
    description = (
        "Replace pieces of a text file. old_string must occur exactly once: include enough lines around the change, or "
        "set replace_all. Further replacements of the same file go into edits. Also moves (move_to) and deletes files, "
        "and applies a patch."
    )
    arguments = EditFileArguments

    def changes(self, arguments: EditFileArguments) -> list[Change]:
        edits = _Edits(self)
        if arguments.patch:
            edits.patch(arguments.patch)
        elif arguments.delete:
            if arguments.replacements() or arguments.move_to:
                raise ToolError("A file is deleted, or changed and moved, not both.", kind="bad_arguments")
            edits.delete(arguments.path)
        else:
            edits.replace(arguments.path, arguments.replacements())
            if arguments.move_to:
                edits.move(arguments.path, arguments.move_to)
        return edits.changes()


class ApplyPatch(WriteTool):
    """Tool that applies a patch, under the name that some models are used to."""

    info = ToolInfo(
        name="apply_patch",
        label="Patch",
        help="apply a patch",
        access="write",
        main_argument="path",
        verb="patched files",
        outcome="changes",
        weight=3,
        joined="edit_file",
    )
    description = "Apply a patch of several files, all or none."
    arguments = ApplyPatchArguments

    def changes(self, arguments: ApplyPatchArguments) -> list[Change]:
        edits = _Edits(self)
        edits.patch(arguments.patch)
        return edits.changes()


class _Edited(msgspec.Struct):
    """A file as the parts of a call leave it, one after the other."""

    place: Place
    before: bytes | None
    after: bytes | None
    target: Place | None = None
    notes: list[str] = []


class _Edits:
    """Changes of one call, collected by file, so that several parts of it may concern the same one."""

    def __init__(self, tool: WriteTool) -> None:
        self._tool = tool
        self._files: dict[str, _Edited] = {}

    def changes(self) -> list[Change]:
        """Return the changes of all files."""
        return [_change(file) for file in self._files.values()]

    def patch(self, patch: str) -> None:
        """Collect the changes of a patch."""
        for each in parse_patch(patch):
            if each.action == "Add":
                self._add(each.path, "".join(f"{line}\n" for line in each.lines))
            elif each.action == "Delete":
                self.delete(each.path)
            else:
                if each.parts:
                    self._edit(each.path, each.parts)
                if each.move_to:
                    self.move(each.path, each.move_to)

    def replace(self, path: str, replacements: list[Replacement]) -> None:
        """Collect the replacements in a file."""
        if replacements:
            self._edit(path, replacements)

    def delete(self, path: str) -> None:
        self._existing(path).after = None

    def move(self, path: str, to: str) -> None:
        file, target = self._existing(path), self._tool.context.workspace.locate(to)
        if read_bytes(target) is not None or target.relative in self._files:
            raise ToolError(f"{target.shown} already exists; nothing was moved.", kind="exists")
        file.target = target

    def _add(self, path: str, content: str) -> None:
        place = self._tool.context.workspace.locate(path)
        if place.absolute.exists() or place.relative in self._files:
            raise ToolError(f"{place.shown} already exists.", todo="Update it instead.", kind="exists")
        refuse_masks("", content, place)
        refuse_marks(content, "", place.shown)
        self._files[place.relative] = _Edited(place, None, UTF8.encode(content))

    def _existing(self, path: str) -> _Edited:
        """Return a file that a change needs."""
        place = self._tool.context.workspace.locate(path)
        if (file := self._files.get(place.relative)) is not None:
            if file.after is None or file.target is not None:
                raise ToolError(f"{place.shown} is moved or deleted by the same call.", kind="bad_arguments")
            return file
        before = existing(place)
        self._tool.earlier(place)
        file = self._files[place.relative] = _Edited(place, before, before)
        return file

    def _edit(self, path: str, edits: list[Replacement] | list[Part]) -> None:
        place = self._tool.context.workspace.locate(path)
        seen = self._tool.context.seen
        if place.secret and place.relative not in seen:
            existing(place)
            raise ToolError(
                f"{place.shown} was not read in this session.", todo="Read it before editing it.", kind="not_read"
            )
        try:
            file = self._existing(path)
        except ToolError as error:
            raise self._changed(error, place, edits) from error
        assert file.after is not None
        decoded = decode(file.after)
        if decoded is None:
            raise ToolError(f"{place.shown} is binary and cannot be edited as text.", kind="binary")
        text, encoding = decoded
        edited = text
        for each in edits:
            old, new = (unshown(side, text) for side in _sides(each))
            _refuse_hidden(old, new, edited, place)
            refuse_marks(new, text, place.shown)
            if isinstance(each, Replacement):
                edited, note = replace(edited, old, new, place.shown, everywhere=each.replace_all)
                file.notes += [note] if note else []
        if parts := [each for each in edits if isinstance(each, Part)]:
            edited, note = apply_parts(text, [_unshown_part(part, text) for part in parts], place.shown)
            file.notes += [note] if note else []
        try:
            file.after = encoding.encode(edited)
        except UnicodeEncodeError as error:
            raise _lacking(encoding, edited[error.start], place) from error

    def _changed(self, error: ToolError, place: Place, edits: list[Replacement] | list[Part]) -> ToolError:
        """Return the refusal for a file that changed since it was read, with its lines now, which then count as read.

        Without a place that must be meant, the file has to be read again, as after any other change.
        """
        content = read_bytes(place) if error.info.kind == "changed" and not place.secret else None
        near = lines_around(text_of(content), _sides(edits[0])[0]) if content is not None else ""
        if not near:
            return error
        if not foreseen.get():  # otherwise the model does not get to see it
            self._tool.context.seen[place.relative] = digest_of(content)
        return ToolError(
            f"{place.shown} changed since it was read. Its lines are now:\n{near}\n",
            todo="Nothing was written. Repeat the edit if it is still right.",
            kind="changed",
        )


def _refuse_hidden(old: str, new: str, text: str, place: Place) -> None:
    """Reject an edit of lines with a secret that is hidden from the model."""
    if MASK in old and old not in text:
        raise ToolError(
            f"The text to replace contains {MASK!r}, which replaces a secret of {place.shown} that is hidden from you.",
            todo="Give only lines without the secret; all other lines stay unchanged.",
            kind="masked",
        )
    refuse_masks(old, new, place)


def _sides(edit: Replacement | Part) -> tuple[str, str]:
    """Return the text that an edit replaces, and the new one."""
    if isinstance(edit, Part):
        return "\n".join(edit.old), "\n".join(edit.new)
    return edit.old_string, edit.new_string


def _change(file: _Edited) -> Change:
    """Return the change of a file with its diff."""
    note = " ".join(file.notes)
    if file.after is None:
        diff = text_diff(file.place.shown, file.before, None)
    else:
        before = text_of(file.before) if file.before is not None else None
        diff = changed_diff(before, text_of(file.after), file.place, file.target)
    return Change(
        place=file.place,
        before=file.before,
        after=file.after,
        target=file.target,
        diff=diff,
        note=note,
        shown="" if file.place.secret or None in (file.before, file.after) else new_lines(diff),
    )


def _unshown_part(part: Part, text: str) -> Part:
    old, new = ([unshown(line, text) for line in side] for side in (part.old, part.new))
    return msgspec.structs.replace(part, old=old, new=new)


def _lacking(encoding: Encoding, sign: str, place: Place) -> ToolError:
    """Return the refusal of a character that the encoding of a file lacks."""
    known = "The encoding of {} is not known; only ASCII can be written into it"
    seems = f"{{}} seems to be encoded in {encoding.codec}, which lacks {sign!r}"
    return ToolError(
        f"{(known if encoding.unknown else seems).format(place.shown)}. Nothing was written.",
        todo="Use other characters, or ask the user which encoding it has and whether to convert it.",
        kind="encoding",
    )
