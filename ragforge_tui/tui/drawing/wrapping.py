"""Line breaking: where to break a text so that each piece fits into so many terminal cells.

Pure. Text of letters that are all one cell wide, which is nearly all text, is broken without being measured.
"""

from __future__ import annotations

import re

from rich.cells import cell_len, split_graphemes

Span = tuple[int, int, str]
"""Start and end of a piece, and the text between it and the next piece."""

_WORD = re.compile(r"\S+")
_NARROW = re.compile("[ -~\xa1-\xac\xae-\u02ff\u0370-\u0482\u2010-\u2027]*")
"""Letters of one cell that join with no neighbor; the only blank among them is the space."""


def wrap_spans(text: str, width: int) -> list[Span]:
    """Break one line of text between words, so that no piece is wider than `width`.

    Blanks at a break belong to neither piece. Words wider than a whole line, and long ones of a script without
    blanks, are broken where the line is full.
    """
    if _NARROW.fullmatch(text):
        return [(0, len(text), "\n")] if len(text) <= width else _wrap_narrow(text, width)
    return [(0, len(text), "\n")] if cell_len(text) <= width else _wrap_measured(text, width)


def _wrap_narrow(text: str, width: int) -> list[Span]:
    spans: list[Span] = []
    start, length = 0, len(text.rstrip(" "))
    if text.startswith(" "):
        word = length - len(text[:length].lstrip(" "))
        end = text.find(" ", word, word + width + 1)
        end = end if end >= 0 else length
        # Leading blanks stay with the first word if it fits after them, or must be broken anyway.
        start = 0 if end <= width or (end - word > width > word) else word
    while length - start > width:
        blank = text.rfind(" ", start, start + width + 1)
        word = blank + 1
        if blank >= start and text[start:blank].strip(" "):
            # After several blanks the next word starts later than after the first one.
            while text[word] == " ":
                word += 1
        else:
            blank = -1
        if blank < 0 or (word < start + width and _is_long(text, word, length, width)):
            spans.append((start, start + width, ""))
            start += width
            continue
        while text[blank - 1] == " ":
            blank -= 1
        spans.append((start, blank, " "))
        start = word
    return [*spans, (start, length, "\n")]


def _is_long(text: str, word: int, length: int, width: int) -> bool:
    """Return whether the word that starts here is wider than a line."""
    return length - word > width and text.find(" ", word, word + width + 1) < 0


def _wrap_measured(text: str, width: int) -> list[Span]:
    spans: list[Span] = []
    start = end = used = 0
    for match in _WORD.finditer(text):
        word_start, word_end = match.span()
        word = match[0]
        gap = cell_len(text[end:word_start])
        cells = cell_len(word)
        if used + gap + cells <= width:
            end, used = word_end, used + gap + cells
            continue
        # A word that fits on a line of its own is not broken, except in a script without blanks.
        folds = cells > width or (cells > len(word) and cells > 8)
        if not folds or used + gap >= width:
            if end > start:
                spans.append((start, end, " "))
            start, used, gap = word_start, 0, 0
            if cells <= width:
                end, used = word_end, cells
                continue
        breaks = _fold(word, width - used - gap, width)
        for at in breaks:
            cut = word_start + at
            if at == 0:
                if end > start:
                    spans.append((start, end, " "))
            else:
                spans.append((start, cut, ""))
            start = cut
        end = word_end
        used = cell_len(text[start:end])
    if end > start or not spans:
        spans.append((start, end, "\n"))
    else:
        spans[-1] = (*spans[-1][:2], "\n")
    return spans


def fold_spans(text: str, width: int) -> list[Span]:
    """Break one line of text wherever a line is full, as for code."""
    if _NARROW.fullmatch(text):
        edges = [*range(0, max(1, len(text)), width), len(text)]
    elif cell_len(text) <= width:
        return [(0, len(text), "\n")]
    else:
        edges = [0, *(at for at in _fold(text, width, width) if at), len(text)]
    last = len(edges) - 2
    return [(edges[i], edges[i + 1], "" if i < last else "\n") for i in range(last + 1)]


def _fold(word: str, first: int, width: int) -> list[int]:
    """Break a word without blanks: `first` cells are free on its first line, `width` on later ones."""
    breaks: list[int] = []
    room = first
    for start, _, cells in split_graphemes(word)[0]:
        if cells > room and (start or first < width):
            breaks.append(start)
            room = width
        room -= cells
    return breaks
