"""Replacements in the text of a file, as edit_file makes them.

A model copies the text to replace from what it has seen, and now and then gets its white space wrong. Where only one
place can be meant, that place is replaced and the answer says so; otherwise the error shows the closest lines.
"""

from __future__ import annotations

import difflib
import heapq
from typing import NamedTuple

from ragforge_tui.shared.encoding import line_end_of, lines_of, with_line_ends
from ragforge_tui.shared.errors import ToolError
from ragforge_tui.shared.sanitize import visible

CLOSE = 0.6
"""Similarity, as `difflib` measures it, from which lines are shown as the closest; the same as its own default."""
MOST_COMPARED = 20_000
"""Lines of a file that are searched for the closest ones."""
AROUND = 15
"""Lines shown before and after a place of a file that changed."""
_SHOWN_LINES = 12


class Replaced(NamedTuple):
    """A text after a replacement.

    Attributes:
        text: The whole text.
        note: What the model should know about how its text was matched; empty if it matched exactly.
    """

    text: str
    note: str = ""


def replace(text: str, old: str, new: str, path: str, *, everywhere: bool = False) -> Replaced:
    """Replace the only occurrence of a piece, or all of them, and preserve the file's line ends.

    Args:
        path: The file's name for messages.
        everywhere: Replace all occurrences; only exact ones.

    Raises:
        ToolError: The piece is empty, equal to the new one, missing or not unique.
    """
    if not old:
        raise ToolError("old_string is empty.", todo="Give the text to replace, or use write_file.", kind="no_match")
    if old == new:
        raise ToolError("old_string and new_string are equal; there is nothing to do.", kind="no_change")
    if line_end_of(text) == "\r\n":
        new = with_line_ends(new, "\r\n")
    if old not in text and "\r\n" in text:
        old = with_line_ends(old, "\r\n")
    lines = [text.count("\n", 0, at) + 1 for at in _occurrences(text, old)]
    if everywhere and lines:
        return Replaced(text.replace(old, new), f"{text.count(old)} places were replaced.")
    if len(lines) > 1:
        raise ToolError(
            f"old_string is not unique in {path}: it starts on lines {', '.join(map(str, lines))}.",
            todo="Include more of the lines around it, or set replace_all.",
            kind="not_unique",
        )
    if lines:
        return Replaced(text.replace(old, new, 1))
    if not everywhere and (shifted := replaced_but_for_space(text, old, new)) is not None:
        return shifted
    raise ToolError(
        f"old_string does not occur in {path}.{closest(text, old)}",
        todo="Copy it exactly from the file, without line numbers and with its indentation.",
        kind="no_match",
    )


def lines_around(text: str, old: str) -> str:
    """Return the numbered lines around the only occurrence of a piece; empty if it does not occur exactly once."""
    if not old or text.count(old) != 1:
        return ""
    start = text.count("\n", 0, text.index(old))
    end = start + old.count("\n") + 1
    first = max(start - AROUND, 0)
    return "\n".join(
        f"{number:>6}\t{visible(line)}" for number, line in enumerate(lines_of(text)[first : end + AROUND], first + 1)
    )


def _occurrences(text: str, piece: str, most: int = 10) -> list[int]:
    offsets: list[int] = []
    at = text.find(piece)
    while at >= 0 and len(offsets) < most:
        offsets.append(at)
        at = text.find(piece, at + 1)
    return offsets


def replaced_but_for_space(text: str, old: str, new: str, above: int = 0) -> Replaced | None:
    """Return the text with whole lines replaced that differ in white space only, if just one place has such lines.

    All lines must be indented more, or less, by the same amount; the new lines are shifted by it too.

    Args:
        above: Lines of the file above the text, for the note.
    """
    lines, wanted = text.splitlines(keepends=True), old.splitlines()
    bare = [line.strip() for line in wanted]
    if not any(bare):
        return None
    stripped = [line.strip() for line in lines]
    starts = [at for at in range(len(lines) - len(bare) + 1) if stripped[at : at + len(bare)] == bare]
    if len(starts) != 1:
        return None
    start, end = starts[0], starts[0] + len(bare)
    shift = _shift(wanted, lines[start:end])
    if shift is None:
        return None
    before, after = shift
    moved = [
        after + line.removeprefix(before) if line.strip() and line.startswith(before) else line
        for line in new.splitlines(keepends=True)
    ]
    ending = lines[end - 1][len(lines[end - 1].rstrip("\r\n")) :]
    if moved and ending and not moved[-1].endswith("\n"):
        moved[-1] += ending
    first, last = start + above + 1, end + above
    place = f"lines {first} to {last}" if last > first else f"line {last}"
    return Replaced(
        "".join([*lines[:start], *moved, *lines[end:]]),
        f"The white space of old_string differed from {place}; the new lines have the file's indentation.",
    )


def _shift(wanted: list[str], found: list[str]) -> tuple[str, str] | None:
    """Return the indentation to replace and the one that takes its place, if one rule leads from all lines to all."""
    pairs = [(_indent(one), _indent(other)) for one, other in zip(wanted, found, strict=True) if one.strip()]
    for before, after in pairs:
        if all(other == after + one.removeprefix(before) for one, other in pairs if one.startswith(before)) and all(
            one.startswith(before) for one, _ in pairs
        ):
            return before, after
    return None


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def closest(text: str, old: str) -> str:
    """Return the lines that are most like a piece, with their numbers; empty if none are."""
    lines, wanted = text.splitlines()[:MOST_COMPARED], old.splitlines()
    known = {line.strip() for line in wanted if line.strip()}
    size = len(wanted)
    # The places with the most equal lines are compared letter by letter; without any, the most similar single lines.
    equal = [line.strip() in known for line in lines]
    places = range(max(len(lines) - size, 0) + 1)
    best = heapq.nlargest(3, places, key=lambda at: sum(equal[at : at + size]))
    if not any(equal):
        longest = max(wanted, key=len)
        matcher = difflib.SequenceMatcher(b=longest, autojunk=False)
        best = []
        for at, line in enumerate(lines):
            matcher.set_seq1(line)
            if matcher.real_quick_ratio() >= CLOSE and matcher.quick_ratio() >= CLOSE:
                best.append(max(at - wanted.index(longest), 0))
        best = best[:10]
    rated = [
        (difflib.SequenceMatcher(None, "\n".join(lines[at : at + size]), old, autojunk=False).ratio(), at)
        for at in best
        if size <= 200
    ]
    score, at = max(rated, default=(0.0, 0))
    if score < CLOSE:
        return ""
    near = lines[at : at + min(size, _SHOWN_LINES)]
    shown = [f"{number:>6}\t{visible(line)}" for number, line in enumerate(near, at + 1)]
    return "\n".join([f" The closest lines ({score:.0%} alike):", *shown, ""])
