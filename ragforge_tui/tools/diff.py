"""Unified diff of two texts that is fast for small changes in large files.

Used by the file tools for approvals and records. difflib alone compares whole files line by line. Here the common start
and end of both sides are stripped first, which for an edit leaves almost nothing to compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Literal

from ragforge_tui.shared.sanitize import visible

STORED_DIFF = 200_000
"""Most characters of a diff stored with the record; the approval shows all of it."""
_CONTEXT = 3
_MAX_COMPARED = 20_000
"""Most lines of both sides together that are compared; a larger changed middle is shown as replaced entirely."""

Opcode = tuple[Literal["replace", "delete", "insert", "equal"], int, int, int, int]


def unified_diff(before: str | None, after: str, path: str) -> str:
    """Return a unified diff with control characters made visible, empty if nothing changed.

    Args:
        before: The old text; None for a new file.
    """
    if before == after:
        return ""
    old, new = _lines(before or ""), _lines(after)
    head = ["--- /dev/null" if before is None else f"--- a/{path}", f"+++ b/{path}"]
    body = [line for group in _Trimmed(old, new).get_grouped_opcodes(_CONTEXT) for line in _hunk(group, old, new)]
    return "\n".join([*head, *body]) + "\n"


def counts(diff: str) -> tuple[int, int]:
    """Return the numbers of lines that a unified diff adds and removes."""
    lines = diff.split("\n")[2:]
    return sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)


def new_lines(diff: str, most: int = 40) -> str:
    """Return the new side of a unified diff as numbered lines, of each place and in all at most so many."""
    places: list[list[str]] = []
    number = 0
    for line in diff.split("\n")[2:]:
        if line.startswith("@@"):
            number = int(line.split("+", 1)[1].split(" ", 1)[0].split(",", 1)[0])
            places.append([])
        elif line[:1] in ("+", " ") and places:
            places[-1].append(f"{number:>6}\t{line[1:]}")
            number += 1
    shown: list[str] = []
    for place in places:
        if len(shown) >= most:
            return "\n".join([*shown, "   ..."])
        shown += ["   ..."] if shown else []
        shown += place if len(place) <= most else [*place[: most // 2], "   ...", *place[-most // 2 :]]
    return "\n".join(shown)


def line_opcodes(old: list[str], new: list[str]) -> list[Opcode]:
    """Return the steps from one list of lines to another, as `SequenceMatcher.get_opcodes` does."""
    return _Trimmed(old, new).get_opcodes()


class _Trimmed(SequenceMatcher[str]):
    """Matcher that compares only the lines between the common start and the common end of both sides."""

    def __init__(self, old: list[str], new: list[str]) -> None:
        shortest = min(len(old), len(new))
        self._start = sum(1 for _ in takewhile(lambda i: old[i] == new[i], range(shortest)))
        end = sum(1 for _ in takewhile(lambda i: old[-1 - i] == new[-1 - i], range(shortest - self._start)))
        self._ends = len(old) - end, len(new) - end
        self._sizes = len(old), len(new)
        super().__init__(None, old[self._start : self._ends[0]], new[self._start : self._ends[1]], autojunk=False)

    def get_opcodes(self) -> list[Opcode]:
        start, (old_end, new_end), (old_size, new_size) = self._start, self._ends, self._sizes
        middle: list[Opcode] = [("replace", 0, old_end - start, 0, new_end - start)]
        if old_end + new_end - 2 * start <= _MAX_COMPARED:
            middle = super().get_opcodes()
        shifted: list[Opcode] = [(tag, i + start, j + start, k + start, m + start) for tag, i, j, k, m in middle]
        whole: list[Opcode] = [("equal", 0, start, 0, start), *shifted, ("equal", old_end, old_size, new_end, new_size)]
        return [code for code in whole if code[1] < code[2] or code[3] < code[4]]


def _lines(text: str) -> list[str]:
    """Split into lines with their ends; str.splitlines would also split at form feeds and Unicode separators."""
    lines = [line + "\n" for line in text.split("\n")]
    last = lines.pop().removesuffix("\n")
    return [*lines, last] if last else lines


def _hunk(group: Sequence[tuple[str, int, int, int, int]], old: list[str], new: list[str]) -> list[str]:
    lines = [f"@@ -{_range(group[0][1], group[-1][2])} +{_range(group[0][3], group[-1][4])} @@"]
    for tag, i, j, k, m in group:
        if tag == "equal":
            lines += [entry for line in old[i:j] for entry in _entry(" ", line)]
        else:
            lines += [entry for line in old[i:j] for entry in _entry("-", line)]
            lines += [entry for line in new[k:m] for entry in _entry("+", line)]
    return lines


def _range(start: int, stop: int) -> str:
    length = stop - start
    first = start + 1 if length else start
    return str(first) if length == 1 else f"{first},{length}"


def _entry(sign: str, line: str) -> list[str]:
    if line.endswith("\n"):
        return [sign + visible(line.removesuffix("\n").removesuffix("\r"))]
    return [sign + visible(line), "\\ No newline at end of file"]
