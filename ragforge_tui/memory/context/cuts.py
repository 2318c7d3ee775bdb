"""Texts cut to tokens, with the places they were cut at, so that the very same text can be looked up again."""

from __future__ import annotations

import functools

from ragforge_tui.llm import count_tokens

MOST_TOKENS_PER_CHAR = 4
"""One a byte, at worst."""
REMEMBERED_CHARS = 8_000
"""Longer texts are counted and cut anew each time: remembering them would cost more than it saves."""
GAP = " […] "
"""Stands where something was left out."""

Spans = list[tuple[int, int]]


def take(text: str, spans: Spans, gap: str = GAP) -> str:
    """The characters of `text` in `spans`; all of it when there are none."""
    return gap.join(text[start:end] for start, end in spans) if spans else text


def left_out(text: str, spans: Spans) -> int:
    """How many characters of `text` are not in `spans`."""
    return len(text) - sum(end - start for start, end in spans) if spans else 0


@functools.lru_cache(maxsize=2_048)
def _known_tokens(text: str) -> int:
    return count_tokens(text)


def tokens_in(text: str) -> int:
    """`count_tokens`, remembered for texts that come back in each request: instructions, summaries, queries."""
    return _known_tokens(text) if len(text) <= REMEMBERED_CHARS else count_tokens(text)


def cut_to(text: str, tokens: int, *, tail: float = 1 / 3) -> tuple[str, Spans]:
    """As much of a text as fits into `tokens`: head and tail.

    Args:
        tail: Share of what is kept that comes from the text's end.

    Returns:
        The text and its spans (none when it is whole); an empty text when not even a few words fit.
    """
    if len(text) <= REMEMBERED_CHARS:
        cut, spans = _known_cut(text, tokens, tail)
        return cut, list(spans)
    return _cut(text, tokens, tail)


@functools.lru_cache(maxsize=512)
def _known_cut(text: str, tokens: int, tail: float) -> tuple[str, Spans]:
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


def _spans(length: int, kept: int, tail: float) -> Spans:
    end = int(kept * tail)
    head = kept - end
    return [(0, head), (length - end, length)] if end else [(0, head)]


def locate(part: str, text: str, gap: str) -> Spans | None:
    """Where the pieces of `part`, separated by `gap`, stand in `text`, in order; None when they do not."""
    spans: Spans = []
    at = 0
    for piece in part.split(gap):
        start = text.find(piece, at)
        if start < 0:
            return None
        at = start + len(piece)
        spans.append((start, at))
    return spans
