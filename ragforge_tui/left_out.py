"""Long texts shortened to head and tail, with a mark where the middle was.

The past that is sent to a model is shortened here, and a model copies what it sees of its own calls. The file tools
therefore refuse a text that holds a mark, which only works while there is one place that writes marks and finds them.
"""

from __future__ import annotations

import re

SMALLEST_SAVING = 0.3
"""Share of a text below which cutting it is not worth the words that are lost."""
_MARK = re.compile(r"\[(?:… )?\d+ (?:lines?|characters) left out(?: …)?\]")
"""Also the marks of `text.cut_middle`, and those without dots that earlier versions sent."""


def cut_lines(text: str, limit: int) -> str:
    """Return at most about `limit` characters: two thirds of the head, one third of the tail, a mark between.

    Cuts are made at line ends where there is one near, and the mark gives the number of lines. A text of which less
    than `SMALLEST_SAVING` would be saved is returned as it is, so that no text gets longer.
    """
    if len(text) * (1 - SMALLEST_SAVING) <= limit:
        return text
    tail_room = limit // 3
    head, tail = text[: limit - tail_room], text[len(text) - tail_room :]
    line_end = head.rfind("\n") + 1
    line_start = tail.find("\n") + 1
    at_lines = line_end > len(head) // 2 and 0 < line_start < len(tail) // 2
    if at_lines:
        head, tail = head[:line_end], tail[line_start:]
    middle = text[len(head) : len(text) - len(tail)]
    if not at_lines:
        return f"{head}\n[… {len(middle)} characters left out …]\n{tail}"
    lines = middle.count("\n")
    return f"{head}[… {lines} {'line' if lines == 1 else 'lines'} left out …]\n{tail}"


def marks_in(text: str) -> set[str]:
    """Return the marks a text holds."""
    return set(_MARK.findall(text))
