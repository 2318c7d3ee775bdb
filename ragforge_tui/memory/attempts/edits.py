"""Edits as the lines they add and remove, and when two of them are alike."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from ragforge_tui.shared.formatting import counted
from ragforge_tui.shared.json_text import json_object
from ragforge_tui.shared.records import ToolCall

ALIKE = 0.5
"""Share of an edit's new lines from which it does the same as an earlier one."""
MOST_MARKS = 120
_LEAST_LETTERS = 3
"""Letters and digits of a line that means something; a bracket alone is in every edit."""
_LEAST_ALONE = 10
"""The same of a single line that two edits share."""
_SHOWN_LINE = 60
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")
_MARK_CHARS = 12


class Change(NamedTuple):
    """What an edit changes in one file.

    Attributes:
        places: First and last line of each place, in the file before the edit.
    """

    path: str
    removed: tuple[str, ...]
    added: tuple[str, ...]
    places: tuple[tuple[int, int], ...] = ()


class _Replacement(msgspec.Struct):
    old_string: str = ""
    new_string: str = ""


class _Arguments(msgspec.Struct):
    path: str = ""
    content: str = ""
    old_string: str = ""
    new_string: str = ""
    edits: list[_Replacement] = []


def changes_in(diff: str) -> list[Change]:
    """Return the changes of a unified diff, one for each file."""
    changes: list[Change] = []
    lines = diff.split("\n")
    path, removed, added, places = "", [], [], []  # type: str, list[str], list[str], list[tuple[int, int]]

    def close() -> None:
        if path and (removed or added):
            changes.append(Change(path, tuple(removed), tuple(added), tuple(places)))

    for n, line in enumerate(lines):
        if line.startswith("--- ") and n + 1 < len(lines) and lines[n + 1].startswith("+++ "):
            close()
            named = [side[4:].strip() for side in (lines[n + 1], line)]
            path = next((name[2:] for name in named if name[:2] in ("a/", "b/")), "")
            removed, added, places = [], [], []
        elif line.startswith("+++ ") and n and lines[n - 1].startswith("--- "):
            continue
        elif hunk := _HUNK.match(line):
            first = int(hunk[1])
            places.append((first, first + max(int(hunk[2] or 1) - 1, 0)))
        elif line.startswith("-"):
            removed.append(line[1:])
        elif line.startswith("+"):
            added.append(line[1:])
    close()
    return changes


def changes_asked(call: ToolCall) -> list[Change]:
    """Return the changes that the arguments of a call describe, for one that did not run."""
    try:
        asked = msgspec.convert(json_object(call.arguments), _Arguments)
    except msgspec.ValidationError:
        return []
    steps = [_Replacement(asked.old_string, asked.new_string), *asked.edits]
    removed, added = _exchanged(steps)
    if not removed and not added and asked.content:
        added = [line for line in asked.content.split("\n") if line.strip()]
    return [Change(asked.path.removeprefix("./"), tuple(removed), tuple(added))] if asked.path and added else []


def _exchanged(steps: Iterable[_Replacement]) -> tuple[list[str], list[str]]:
    removed: list[str] = []
    added: list[str] = []
    for step in steps:
        old, new = step.old_string.split("\n"), step.new_string.split("\n")
        removed += [line for line in old if line.strip() and line not in new]
        added += [line for line in new if line.strip() and line not in old]
    return removed, added


def marks_of(change: Change) -> list[str]:
    """Return digests of the lines that mean something, with their signs; the lines themselves are in the call."""
    marks = [f"{sign}{_digest(line)}" for sign, line in _signed(change) if _letters(line) >= _LEAST_LETTERS]
    return list(dict.fromkeys(marks))[:MOST_MARKS]


def line_digests(text: str) -> set[str]:
    """Return the digests of the lines of a text, as marks have them after their sign."""
    return {_digest(line) for line in text.split("\n")}


def alike(change: Change, marks: Sequence[str]) -> bool:
    """Return whether an edit does again what one with these marks did: half of its new lines are the same."""
    known = set(marks)
    shared = share(marks_of(change), known)
    if shared < ALIKE:
        return False
    same = [
        line for sign, line in _signed(change) if _letters(line) >= _LEAST_LETTERS and f"{sign}{_digest(line)}" in known
    ]
    return len(set(same)) > 1 or any(_letters(line) >= _LEAST_ALONE for line in same)


def share(marks: Iterable[str], known: set[str]) -> float:
    """Return the share of an edit's new lines that are in another one; of an edit that only removes, of those."""
    all_marks = list(marks)
    counted = [mark for mark in all_marks if mark[0] == "+"] or all_marks
    return sum(mark in known for mark in counted) / len(counted) if counted else 0.0


def takes_back(change: Change, earlier: Change) -> float:
    """Return the share of an earlier edit that another one takes back: its lines go, and those it removed return."""
    inverse = set(marks_of(Change(change.path, change.added, change.removed)))
    marks = marks_of(earlier)
    return sum(mark in inverse for mark in marks) / len(marks) if marks else 0.0


def told(change: Change) -> str:
    """Return an edit in a few words: the line that it changed, or the first of several."""
    removed = [line.strip() for line in change.removed if _letters(line) >= _LEAST_LETTERS]
    added = [line.strip() for line in change.added if _letters(line) >= _LEAST_LETTERS]
    if len(added) == 1 and len(removed) == 1:
        return f"{_cut(removed[0])} → {_cut(added[0])}"
    line = (added or removed or [""])[0]
    more = len(added or removed) - 1
    text = _cut(line) if added else f"without {_cut(line)}"
    return f"{text} and {counted(more, 'more line')}" if more > 0 else text


def _signed(change: Change) -> Iterator[tuple[str, str]]:
    yield from (("-", line) for line in change.removed)
    yield from (("+", line) for line in change.added)


def _digest(line: str) -> str:
    return hashlib.sha256(" ".join(line.split()).encode("utf-8", "replace")).hexdigest()[:_MARK_CHARS]


def _letters(line: str) -> int:
    return sum(character.isalnum() for character in line)


def _cut(line: str) -> str:
    line = " ".join(line.split())
    return line if len(line) <= _SHOWN_LINE else line[: _SHOWN_LINE - 1].rstrip() + "…"
