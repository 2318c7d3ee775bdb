"""Patches in the format of apply_patch, which some models prefer to replacements, and how they change a text.

    *** Begin Patch
    *** Update File: src/a.py
    *** Move to: src/b.py
    @@ def total
     context
    -removed
    +added
    *** Add File: new.txt
    +line
    *** Delete File: old.txt
    *** End Patch

Pure. The lines of a part (context and removed ones) must occur at one place only, unless an ``@@`` line says below
which line they do; there the first place counts.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from ragforge_tui.shared.errors import ToolError
from ragforge_tui.shared.look_alikes import folded
from ragforge_tui.tools.files.replacing import (
    LOOKED_ALIKE,
    bare,
    closest,
    lines_named,
    replace_lines,
    replaced_but_for_space,
    split,
)

_HEAD = re.compile(r"\*\*\* (Add|Delete|Update) File: (.+)")
_MOVE = "*** Move to: "
_END_OF_FILE = "*** End of File"
_FRAME = ("*** Begin Patch", "*** End Patch")
_HUNK_NUMBERS = re.compile(r"^-\d+(?:,\d+)? \+\d+(?:,\d+)? @@ ?")


class Part(msgspec.Struct):
    """Lines of a file that a patch replaces.

    Attributes:
        after: Lines of the file one after the other, below the last of which the part is.
        at_end: The old lines are the last ones of the file.
    """

    after: list[str] = []
    old: list[str] = []
    new: list[str] = []
    at_end: bool = False


class FilePatch(msgspec.Struct):
    """What a patch does to one file: "Add", "Delete" or "Update"; `lines` are those of a new one."""

    action: str
    path: str
    move_to: str = ""
    lines: list[str] = []
    parts: list[Part] = []


class Patched(NamedTuple):
    """Text after a patch; `note` names lines that only look like those of the patch."""

    text: str
    note: str


def parse_patch(patch: str) -> list[FilePatch]:
    """Return what a patch does, file by file.

    Raises:
        ToolError: It is not in the format.
    """
    files: list[FilePatch] = []
    for number, line in enumerate(patch.replace("\r\n", "\n").strip("\n").split("\n"), 1):
        if line.strip() in _FRAME:
            continue
        if head := _HEAD.fullmatch(line.rstrip()):
            files.append(FilePatch(head[1], head[2].strip()))
        elif not files:
            if line.strip():
                raise _malformed(number, line)
        else:
            _add_line(files[-1], line, number)
    for file in files:
        for part in file.parts:
            # Empty lines before the next file belong to no part.
            while part.old and part.new and not part.old[-1] and not part.new[-1]:
                part.old.pop()
                part.new.pop()
        if file.action == "Update" and not file.move_to and not any(part.old or part.new for part in file.parts):
            raise ToolError(f"The patch changes nothing in {file.path}.", kind="bad_patch")
    if not files:
        raise ToolError("The patch names no file.", todo="Start each with *** Update File: path.", kind="bad_patch")
    return files


def _add_line(file: FilePatch, line: str, number: int) -> None:
    parts = file.parts
    if file.action == "Update" and line.startswith(_MOVE) and not parts:
        file.move_to = line.removeprefix(_MOVE).strip()
    elif file.action == "Update" and line.strip() == _END_OF_FILE and parts:
        parts[-1].at_end = True
    elif file.action == "Update" and line.startswith("@@"):
        anchor = _HUNK_NUMBERS.sub("", line[2:].lstrip()).strip().removesuffix("@@").strip()
        if not parts or parts[-1].old or parts[-1].new:
            parts.append(Part())
        parts[-1].after += [anchor] if anchor else []
    elif file.action == "Add" and line.startswith("+"):
        file.lines.append(line[1:])
    elif file.action == "Update" and (line[:1] in ("+", "-", " ") or not line):
        if not parts:
            parts.append(Part())
        if line[:1] != "+":
            parts[-1].old.append(line[1:])
        if line[:1] != "-":
            parts[-1].new.append(line[1:])
    elif line.strip():
        raise _malformed(number, line)


def _malformed(number: int, line: str) -> ToolError:
    return ToolError(
        f"Line {number} of the patch is not in the format: {line[:80]!r}.",
        todo="After *** Add File, *** Update File or *** Delete File, lines begin with a space, + or -, or are @@.",
        kind="bad_patch",
    )


def apply_parts(text: str, parts: list[Part], path: str) -> Patched:
    """Return a text with the parts of a patch replaced, in order; equal lines keep the characters and ends of the file.

    Raises:
        ToolError: A part fits nowhere, or at several places.
    """
    lines = split(text)
    start, notes = 0, []
    for part in parts:
        plain = [bare(line) for line in lines]
        anchored = bool(part.after)
        for anchor in part.after:
            start = _below(plain, start, anchor, path)
        at = _place(plain, part, start, path, anchored=anchored)
        if at is None and start and not anchored:
            at = _place(plain, part, 0, path, anchored=False)
        if at is None:
            alike = msgspec.structs.replace(part, old=[folded(line) for line in part.old])
            at = _place([folded(line) for line in plain], alike, start, path, anchored=anchored)
            notes += [] if at is None else [LOOKED_ALIKE.format(lines_named(at + 1, at + len(part.old)))]
        if at is not None:
            replace_lines(lines, at, part.old, part.new)
            start = at + len(part.new)
            continue
        old = "\n".join(part.old)
        near = replaced_but_for_space("".join(lines[start:]), old, "\n".join(part.new), start)
        if near is None:
            raise ToolError(
                f"A part of the patch does not occur in {path}.{closest(''.join(lines), old)}",
                todo="Nothing was written. Copy its lines exactly from the file.",
                kind="no_match",
            )
        lines[start:] = split(near.text)
        notes.append(near.note)
    return Patched("".join(lines), " ".join(notes))


def _below(lines: list[str], start: int, anchor: str, path: str) -> int:
    """Return the index below the first line, from a start, that is an anchor or begins with it."""
    below = [line.strip() for line in lines[start:]]
    if anchor in below:
        return start + below.index(anchor) + 1
    begun = next((at for at, line in enumerate(below) if line.startswith(anchor)), None)
    if begun is not None:
        return start + begun + 1
    raise ToolError(
        f"No line of {path} below line {start} is {anchor!r}, which an @@ of the patch names.",
        todo="Nothing was written. Give a line of the file after @@, or none.",
        kind="no_match",
    )


def _place(lines: list[str], part: Part, start: int, path: str, *, anchored: bool) -> int | None:
    """Return where the old lines of a part begin; None if they are nowhere from `start` on.

    Raises:
        ToolError: They are at several places, and nothing says which is meant.
    """
    size = len(part.old)
    if not size:
        return start if anchored else len(lines)
    begins = (at for at in range(start, len(lines) - size + 1) if lines[at] == part.old[0])
    found = [at for at in begins if lines[at : at + size] == part.old]
    if part.at_end:
        found = [at for at in found if at + size == len(lines)][-1:]
    if len(found) > 1 and not anchored:
        raise ToolError(
            f"A part of the patch is not unique in {path}: it starts on lines "
            f"{', '.join(str(at + 1) for at in found[:10])}.",
            todo="Nothing was written. Give more lines around it, or the line above it after @@.",
            kind="not_unique",
        )
    return found[0] if found else None
