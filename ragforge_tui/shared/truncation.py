"""Truncation of long texts to head and tail, with a mark in place of the middle.

Past turns are shortened here before they are sent to a model, and a model copies what it sees of its own calls. The
file tools therefore reject a text that contains a mark, so one module must both write and detect the marks.
"""

from __future__ import annotations

import re

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


def marks_in(text: str) -> set[str]:
    """Return the distinct truncation marks in a text."""
    return set(_MARK.findall(text))
