"""Unified diff of two texts that is fast for small changes in large files.

Used by the file tools for approvals and records. difflib alone compares whole files line by line. Here the common start
and end of both sides are stripped first, which for an edit leaves almost nothing to compare.
"""

from __future__ import annotations

import difflib
from itertools import takewhile

from ragforge_tui.tools.files.textfile import visible

_CONTEXT = 3
_MAX_COMPARED = 20_000
"""Most lines of both sides together that are compared; a larger changed middle is shown as replaced entirely."""

Opcode = tuple[str, int, int, int, int]


def unified_diff(before: str | None, after: str, path: str) -> str:
    """Return a unified diff with control characters made visible, empty if nothing changed.

    Args:
        before: The old text; None for a new file.
    """
    if before == after:
        return ""
    old, new = _lines(before or ""), _lines(after)
    head = ["--- /dev/null" if before is None else f"--- a/{path}", f"+++ b/{path}"]
    body = [line for group in _groups(_opcodes(old, new)) for line in _hunk(group, old, new)]
    return "\n".join([*head, *body]) + "\n"


def counts(diff: str) -> tuple[int, int]:
    """Return the numbers of lines that a unified diff adds and removes."""
    lines = diff.split("\n")[2:]
    return sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)


def _lines(text: str) -> list[str]:
    """Split into lines with their ends; str.splitlines would also split at form feeds and Unicode separators."""
    lines = [line + "\n" for line in text.split("\n")]
    last = lines.pop().removesuffix("\n")
    return [*lines, last] if last else lines


def _opcodes(old: list[str], new: list[str]) -> list[Opcode]:
    shortest = min(len(old), len(new))
    start = sum(1 for _ in takewhile(lambda i: old[i] == new[i], range(shortest)))
    end = sum(1 for _ in takewhile(lambda i: old[-1 - i] == new[-1 - i], range(shortest - start)))
    old_middle, new_middle = old[start : len(old) - end], new[start : len(new) - end]
    if len(old_middle) + len(new_middle) > _MAX_COMPARED:
        middle: list[Opcode] = [("replace", 0, len(old_middle), 0, len(new_middle))]
    else:
        middle = list(difflib.SequenceMatcher(None, old_middle, new_middle, autojunk=False).get_opcodes())
    shifted = [(tag, i + start, j + start, k + start, m + start) for tag, i, j, k, m in middle]
    around: list[Opcode] = [("equal", 0, start, 0, start), *shifted]
    around.append(("equal", len(old) - end, len(old), len(new) - end, len(new)))
    return [code for code in around if code[1] < code[2] or code[3] < code[4]]


def _groups(codes: list[Opcode]) -> list[list[Opcode]]:
    """Group changes with their context lines, and merge adjacent ones."""
    groups: list[list[Opcode]] = [[]]
    for index, (tag, i, j, k, m) in enumerate(codes):
        if tag != "equal":
            groups[-1].append((tag, i, j, k, m))
            continue
        first, last = index == 0, index == len(codes) - 1
        if first:
            groups[-1].append((tag, max(i, j - _CONTEXT), j, max(k, m - _CONTEXT), m))
        elif last or j - i > 2 * _CONTEXT:
            groups[-1].append((tag, i, min(j, i + _CONTEXT), k, min(m, k + _CONTEXT)))
            if not last:
                groups.append([(tag, max(i, j - _CONTEXT), j, max(k, m - _CONTEXT), m)])
        else:
            groups[-1].append((tag, i, j, k, m))
    return groups


def _hunk(group: list[Opcode], old: list[str], new: list[str]) -> list[str]:
    old_range = _range(group[0][1], group[-1][2])
    new_range = _range(group[0][3], group[-1][4])
    lines = [f"@@ -{old_range} +{new_range} @@"]
    for tag, i, j, k, m in group:
        if tag == "equal":
            lines += [entry for line in old[i:j] for entry in _entry(" ", line)]
            continue
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
