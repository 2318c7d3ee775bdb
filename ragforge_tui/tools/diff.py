"""Unified diff of two texts that is fast for small changes in large files.

Used by the file tools for approvals and records. difflib alone compares whole files line by line. Here the common start
and end of both sides are stripped first, which for an edit leaves almost nothing to compare; what is long is split at
lines that occur once, so that the work is bounded.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Literal

from ragforge_tui.shared.sanitize import visible

STORED_DIFF = 200_000
"""Most characters of a diff stored with the record; the approval shows all of it."""
_CONTEXT = 3
_MOST_PAIRS = 2_000_000
"""Most pairs of lines that may be compared at once; longer texts are first split at lines that occur once in both."""

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
        super().__init__(None, (), ())
        self.opcodes = _joined(_opcodes(old, new, 0, 0))

    def get_opcodes(self) -> list[Opcode]:
        return self.opcodes


def _opcodes(old: list[str], new: list[str], above: int, left: int) -> Iterator[Opcode]:
    """Yield the steps from old to new lines, which begin at `above` and `left` of the whole texts."""
    shortest = min(len(old), len(new))
    start = sum(1 for _ in takewhile(lambda i: old[i] == new[i], range(shortest)))
    end = sum(1 for _ in takewhile(lambda i: old[-1 - i] == new[-1 - i], range(shortest - start)))
    old_end, new_end = len(old) - end, len(new) - end
    yield "equal", above, above + start, left, left + start
    middle = old[start:old_end], new[start:new_end]
    if len(middle[0]) * len(middle[1]) <= _MOST_PAIRS:
        for tag, i, j, k, m in SequenceMatcher(None, *middle, autojunk=False).get_opcodes():
            yield tag, i + above + start, j + above + start, k + left + start, m + left + start
    elif anchors := _anchors(*middle):
        i = k = 0
        for j, m in [*anchors, (len(middle[0]), len(middle[1]))]:
            yield from _opcodes(middle[0][i:j], middle[1][k:m], i + above + start, k + left + start)
            i, k = j, m
    else:
        yield "replace", above + start, above + old_end, left + start, left + new_end
    yield "equal", above + old_end, above + len(old), left + new_end, left + len(new)


def _anchors(old: list[str], new: list[str]) -> list[tuple[int, int]]:
    """Return the longest row of lines that occur once on both sides, in the order of both: patience sorting."""
    once = {line for line, count in Counter(old).items() if count == 1}
    once &= {line for line, count in Counter(new).items() if count == 1}
    places = {line: at for at, line in enumerate(new) if line in once}
    ends: list[int] = []
    last: list[tuple[int, int]] = []
    before: dict[tuple[int, int], tuple[int, int]] = {}
    for pair in ((at, places[line]) for at, line in enumerate(old) if line in once):
        length = bisect_left(ends, pair[1])
        ends[length : length + 1] = [pair[1]]
        last[length : length + 1] = [pair]
        if length:
            before[pair] = last[length - 1]
    row = last[-1:]
    while row and (earlier := before.get(row[-1])) is not None:
        row.append(earlier)
    return row[::-1]


def _joined(steps: Iterable[Opcode]) -> list[Opcode]:
    """Return steps without empty ones, neighbours of one kind as one."""
    whole: list[Opcode] = []
    for tag, i, j, k, m in steps:
        if whole and whole[-1][0] == tag and (i < j or k < m):
            i, k = whole.pop()[1::2]
        if i < j or k < m:
            whole.append((tag, i, j, k, m))
    return whole


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
