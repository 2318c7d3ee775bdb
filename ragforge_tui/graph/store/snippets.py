"""Excerpts around the matches of a search. Pure text, apart from the search to be tested alone."""

from __future__ import annotations

import re

from ragforge_tui.shared.sanitize import plain_text

SNIPPET_CHARS = 300
_ENDINGS = ("ings", "ing", "ers", "ed", "er", "es", "ly", "s", "e")
_WINDOW = 20_000
"""Characters on either side of the first match that are looked at for a better place."""


class Matcher:
    """Finds words in a text the way the index does, about: inflected forms count as the same word."""

    def __init__(self, words: list[str]) -> None:
        stems = sorted({re.escape(_stem(word)) for word in words}, key=len, reverse=True)
        self._pattern = re.compile(rf"(?<!\w)(?:{'|'.join(stems)})\w{{0,4}}(?!\w)", re.IGNORECASE)

    def count(self, text: str) -> int:
        """Return the number of different words of the search in a text."""
        return len({match[0].casefold() for match in self._pattern.finditer(text)})

    def spans(self, text: str, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
        """Return the positions of the words between `start` and `end`."""
        return [match.span() for match in self._pattern.finditer(text, start, len(text) if end is None else end)]


def matcher(words: list[str]) -> Matcher:
    """A matcher of these words."""
    return Matcher(words)


def excerpt(text: str, found: Matcher) -> tuple[str, list[tuple[int, int]]]:
    """The part of a text with most matches, at most `SNIPPET_CHARS` on one line, and where in it they are."""
    text = plain_text(text)
    first = next(iter(found.spans(text)), (0, 0))[0]
    low, high = max(0, first - _WINDOW), first + _WINDOW
    spans = found.spans(text, low, high)
    start = _best_start(spans, len(text))
    end = min(len(text), start + SNIPPET_CHARS - 2)
    line = re.sub(r"\s", " ", text[start:end])
    head, tail = "…" if start > 0 else "", "…" if end < len(text) else ""
    shift = len(head) - start
    inside = [(a + shift, b + shift) for a, b in spans if a >= start and b <= end]
    return f"{head}{line}{tail}", inside


def _best_start(spans: list[tuple[int, int]], length: int) -> int:
    if not spans or length <= SNIPPET_CHARS - 2:
        return 0
    width = SNIPPET_CHARS - 2
    best, most = spans[0][0], 0
    last = 0
    for n, (start, _) in enumerate(spans):
        while last < len(spans) and spans[last][1] <= start + width * 2 // 3:
            last += 1
        if last - n > most:
            best, most = start, last - n
    return max(0, min(best - width // 4, length - width))


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
