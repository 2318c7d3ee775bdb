"""Truncation of long texts to head and tail, with a mark in place of the middle.

Past turns are shortened here before they are sent to a model, and a model copies what it sees of its own calls. The
file tools therefore reject a text that contains a mark, so one module must both write and detect the marks.
"""

from __future__ import annotations

import re

FEWEST_FOLDED = 5
"""Lines of one shape from which a run is folded."""
_PASSED = re.compile(
    r"(?:\b(?:PASSED|PASS|ok|OK)|[✓✔])(?:\s+\(?\d[\d.]*\s*m?s\)?)?(?:\s*\[\s*\d+%\])?\s*$"
    r"|^\s*(?:ok \d+|[✓✔]|PASS|--- PASS:)\s"
)
_DOTS = re.compile(r"(?:\S+\s+)?[.sx]{3,}(?:\s*\[\s*\d+%\])?\s*")
_PROGRESS = re.compile(r"\b\d{1,3}(?:\.\d+)?%")
_BAR = re.compile(r"[#=>━╸█▉▊▋▌▍▎▏░▒▓\- ]+")
_DIGITS = re.compile(r"(?<![\w.])\d+(?:\.\d+)?")
SMALLEST_SAVING = 0.3
"""Smallest share of a text that a cut must save to be worth the loss."""
_MARK = re.compile(r"\[(?:… )?\d+ (?:lines?|characters) left out(?:, open_turn\([^()\]]*\))?(?: …)?\]")
"""Matches the marks of `cut_middle` too, and those without an ellipsis, as models write them."""


def cut_middle(text: str, limit: int, note: str = "\n… [{cut} characters left out] …\n") -> str:
    """Truncate a text to about `limit` characters: two thirds head, one third tail, and a note between."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    return text[:head] + note.format(cut=len(text) - limit) + (text[-tail:] if tail else "")


def cut_lines(text: str, limit: int, place: str = "") -> str:
    """Return at most about `limit` characters: two thirds of the head, one third of the tail, a mark between.

    The cuts are made at nearby line ends if there are any, and the mark then gives the number of lines. A text is
    returned unchanged if the cut would save less than `SMALLEST_SAVING` of it, or less than the mark takes.

    Args:
        place: Where the whole text is, for the mark; empty if it is nowhere.
    """
    if len(text) * (1 - SMALLEST_SAVING) <= limit:
        return text
    tail_chars = limit // 3
    head, tail = text[: limit - tail_chars], text[len(text) - tail_chars :]
    line_end = head.rfind("\n") + 1
    line_start = tail.find("\n") + 1
    at_lines = line_end > len(head) // 2 and 0 < line_start < len(tail) // 2
    if at_lines:
        head, tail = head[:line_end], tail[line_start:]
    where = f", {place}" if place else ""
    middle = text[len(head) : len(text) - len(tail)]
    if at_lines:
        lines = middle.count("\n")
        cut = f"{head}[… {lines} {'line' if lines == 1 else 'lines'} left out{where} …]\n{tail}"
    else:
        cut = f"{head}\n[… {len(middle)} characters left out{where} …]\n{tail}"
    return cut if len(cut) < len(text) else text


def cut_to(text: str, limit: int) -> str:
    """Return at most about `limit` characters, cut as by `cut_lines`, however little that saves."""
    return text if len(text) <= limit else cut_lines(text, int(limit * (1 - SMALLEST_SAVING)))


def fold_runs(text: str) -> str:
    """Return an output without the middle of long runs of lines that say the same: a mark gives their number.

    Equal lines, the lines of passed tests, and steps of a progress. Lines that only look alike may be data and stay.
    """
    lines = text.split("\n")
    folded: list[str] = []
    start = 0
    while start < len(lines):
        shape, end = _shape(lines[start]), start + 1
        while end < len(lines) and shape and _shape(lines[end]) == shape:
            end += 1
        if end - start >= FEWEST_FOLDED:
            folded += [lines[start], f"[… {end - start - 2} lines left out …]", lines[end - 1]]
        else:
            folded += lines[start:end]
        start = end
    return "\n".join(folded)


def _shape(line: str) -> str:
    """Return what a line says; empty for one that is never folded."""
    if _PASSED.search(line):
        return "passed"
    if _DOTS.fullmatch(line):
        return "dots"
    if _PROGRESS.search(line):
        return _BAR.sub("", _DIGITS.sub("0", line))
    return line.strip()


def marks_in(text: str) -> set[str]:
    """Return the distinct truncation marks in a text."""
    return set(_MARK.findall(text))
