"""Edits of files as agents store them: whole contents, diffs, patches, replaced texts.

`blame` follows lines through them. A diff or a replaced text shows only some lines of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from ragforge_tui.other_agents.reading import fields, items, word
from ragforge_tui.shared.found_sessions import EditedLines, FileEdit

_PATHS = ("file_path", "filePath", "path", "target_file", "absolute_path", "notebook_path", "filename", "file")
_REPLACED = (
    ("old_string", "new_string"),
    ("oldString", "newString"),
    ("old_text", "new_text"),
    ("old_str", "new_str"),
    ("old_lines", "new_lines"),
)
_WHOLE = (("originalContent", "newContent"), ("before", "after"))
_DIFFS = ("unified_diff", "fileDiff", "diff", "patch")
_WRITTEN = ("content", "file_text", "contents")
_LISTS = ("edits", "content", "blocks", "replacements")
_HUNK = re.compile(r"^@@(?: -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@)?")
_PATCH_FILE = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$")
_FEWEST_SIGNS = 5
_MARKS = {"<": "SEARCH", "=": "", ">": "REPLACE"}
"""Lines around the two texts of a block: a run of a sign, then a word."""


def edits_in(details: object, arguments: object, *, writes: bool) -> list[FileEdit]:
    """Return the edits of a successful call, from the details of its result or else its arguments.

    Args:
        writes: Whether the tool writes files, so that a path and a content among the arguments are a written file.
    """
    found = list(_told(details, _path(arguments)))
    return found or list(_asked(arguments, writes=writes))


def patched(text: str) -> Iterator[FileEdit]:
    """Yield the edits of a patch in codex's form, anywhere in a text."""
    path, lines = "", list[str]()
    for line in [*text.splitlines(), "*** End Patch"]:
        start = _PATCH_FILE.match(line)
        if start or line.startswith("*** End Patch"):
            if path:
                yield FileEdit(path=path, lines=_hunks(lines))
            path, lines = (start[2].strip() if start and start[1] != "Delete" else ""), []
        elif path:
            lines.append(line)


def search_blocks(path: str, text: str) -> Iterator[FileEdit]:
    """Yield the edits in the SEARCH and REPLACE blocks of a text."""
    sides: list[list[str]] = []
    for line in text.splitlines():
        sign, word_after = line[:1], line.lstrip(line[:1]).strip()
        mark = len(line) - len(line.lstrip(sign)) >= _FEWEST_SIGNS and _MARKS.get(sign) == word_after
        if mark and sign == ">" and len(sides) == 2:
            yield FileEdit(path=path, lines=[EditedLines(old=sides[0], new=sides[1])])
        if mark:
            sides = [] if sign == ">" else [[]] if sign == "<" else [*sides[:1], []]
        elif sides:
            sides[-1].append(line)


def _told(value: object, path: str, depth: int = 3) -> Iterator[FileEdit]:
    """Yield the edits in the details of a result."""
    if not isinstance(value, dict) or not depth:
        return
    path = _path(value) or path
    changes = fields(value.get("changes"))
    if changes:
        for name, change in changes.items():
            change = fields(change)
            [change] = [c for c in change.values() if isinstance(c, dict)][:1] or [change]
            yield from _told(change, name) if "content" not in change else [_written(name, word(change["content"]))]
        return
    for old, new in _WHOLE:
        if isinstance(value.get(new), str) and path:
            yield FileEdit(path=path, before=word(value.get(old)), after=value[new])
            return
    if path and (hunks := [_of_patch(hunk) for hunk in items(value.get("structuredPatch"))]):
        yield FileEdit(path=path, lines=hunks)
        return
    for key in _DIFFS:
        if path and word(value.get(key)) and (lines := _hunks(value[key].splitlines())):
            yield FileEdit(path=path, lines=lines)
            return
    if path and (lines := [_block(one) for one in items(value.get("blocks"))]):
        yield FileEdit(path=path, lines=lines)
        return
    for inner in value.values():
        if found := list(_told(inner, path, depth - 1)):
            yield from found
            return


def _asked(arguments: object, *, writes: bool) -> Iterator[FileEdit]:
    """Yield the edits that a call asks for."""
    if isinstance(arguments, str):
        yield from patched(arguments)
        return
    asked = fields(arguments)
    path = _path(asked)
    texts = [value for value in asked.values() if isinstance(value, str) and "*** Begin Patch" in value]
    if texts:
        yield from patched(texts[0])
    elif path and writes:
        lists = [entry for key in _LISTS for entry in items(asked.get(key))]
        lines = [_block(entry) for entry in (asked, *lists) if any(old in entry for old, _ in _REPLACED)]
        written = next((asked[key] for key in _WRITTEN if isinstance(asked.get(key), str)), None)
        if lines:
            yield FileEdit(path=path, lines=lines)
        elif written is not None:
            yield _written(path, written)


def _written(path: str, content: str) -> FileEdit:
    """Return the writing of a whole file, whose earlier content is unknown."""
    return FileEdit(path=path, after=content)


def _path(value: object) -> str:
    return next((path for key in _PATHS if (path := word(fields(value).get(key)))), "")


def _block(value: dict[str, Any]) -> EditedLines:
    """Return a replacement given by two texts, or by two lists of lines."""
    old, new = next(((value.get(o), value.get(n)) for o, n in _REPLACED if n in value or o in value), ("", ""))
    start = value.get("old_start_line")
    texts = ["\n".join(map(str, text)) if isinstance(text, list) else word(text) for text in (old, new)]
    return msgspec.structs.replace(_replacement(*texts), start=start if isinstance(start, int) else 0)


def _replacement(old: str, new: str) -> EditedLines:
    return EditedLines(old=old.splitlines(), new=new.splitlines())


def _of_patch(hunk: dict[str, Any]) -> EditedLines:
    start, lines = hunk.get("oldStart"), [word(line) for line in hunk.get("lines") or []]
    return _hunk(lines, start if isinstance(start, int) else 0)


def _hunks(lines: list[str]) -> list[EditedLines]:
    """Return the hunks of a unified diff or of a patch's file."""
    found: list[EditedLines] = []
    start, held = 0, list[str]()
    for line in [*lines, "@@"]:
        if hunk := _HUNK.match(line):
            if any(entry[:1] in "+-" for entry in held):
                found.append(_hunk(held, start))
            start, held = int(hunk[1] or 0), []
        elif not line.startswith(("--- ", "+++ ", "Index: ", "=====", "*** ", "\\")):
            held.append(line)
    return found


def _hunk(lines: list[str], start: int) -> EditedLines:
    old = [line[1:] for line in lines if not line.startswith("+")]
    return EditedLines(start=start, old=old, new=[line[1:] for line in lines if not line.startswith("-")])
