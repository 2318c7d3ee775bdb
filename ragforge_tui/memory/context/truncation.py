"""Truncation of texts to a number of tokens, with the offsets of the cuts, so that the same text can be rebuilt."""

from __future__ import annotations

import functools

from ragforge_tui.llm import count_tokens

MOST_TOKENS_PER_CHAR = 4
"""At worst one token per byte."""
REMEMBERED_CHARS = 8_000
"""Longer texts are counted and cut again each time: caching them would cost more than it saves."""
GAP = " […] "
"""Marks text that was left out."""

Spans = list[tuple[int, int]]


def place_of(turn: int, call: int = 0) -> str:
    """Return how the mark of a cut names the turn, and the number of its call, from which the whole text is read."""
    return f"open_turn({turn}, call {call})" if call else f"open_turn({turn})"


def take(text: str, spans: Spans, gap: str = GAP) -> str:
    """Return the characters of `text` in `spans`; the whole text if there are no spans."""
    return gap.join(text[start:end] for start, end in spans) if spans else text


def left_out(text: str, spans: Spans) -> int:
    """Return how many characters of `text` are outside `spans`."""
    return len(text) - sum(end - start for start, end in spans) if spans else 0


@functools.lru_cache(maxsize=2_048)
def _cached_tokens(text: str) -> int:
    return count_tokens(text)


def tokens_in(text: str) -> int:
    """Return `count_tokens`, cached for texts that recur in each request: instructions, summaries, queries."""
    return _cached_tokens(text) if len(text) <= REMEMBERED_CHARS else count_tokens(text)


def cut_to(text: str, tokens: int, *, tail: float = 1 / 3) -> tuple[str, Spans]:
    """Return as much of a text as fits into `tokens`: head and tail.

    Args:
        tail: Share of the result that comes from the text's end.

    Returns:
        The text and its spans (none if it is whole); an empty text if not even a few words fit.
    """
    if len(text) <= REMEMBERED_CHARS:
        cut, spans = _cached_cut(text, tokens, tail)
        return cut, list(spans)
    return _cut(text, tokens, tail)


@functools.lru_cache(maxsize=512)
def _cached_cut(text: str, tokens: int, tail: float) -> tuple[str, Spans]:
    return _cut(text, tokens, tail)


def _cut(text: str, tokens: int, tail: float) -> tuple[str, Spans]:
    if len(text) * MOST_TOKENS_PER_CHAR <= tokens or tokens_in(text) <= tokens:
        return text, []
    low, high = 0, min(len(text) - 1, tokens * 8)
    best: Spans = []
    while low < high:
        middle = (low + high + 1) // 2
        spans = _spans(len(text), middle, tail)
        if count_tokens(take(text, spans)) <= tokens:
            low, best = middle, spans
        else:
            high = middle - 1
    return (take(text, best), best) if best else ("", [])


def _spans(length: int, total: int, tail: float) -> Spans:
    end = int(total * tail)
    head = total - end
    return [(0, head), (length - end, length)] if end else [(0, head)]


def locate(part: str, text: str, gap: str) -> Spans | None:
    """Return the spans of the pieces of `part`, separated by `gap`, in `text`; None if they do not occur in order."""
    spans: Spans = []
    at = 0
    for piece in part.split(gap):
        start = text.find(piece, at)
        if start < 0:
            return None
        at = start + len(piece)
        spans.append((start, at))
    return spans
