"""Results of recall: turns packed into a number of tokens, and their text.

Packing is greedy, best first, labels counted; it is independent of the search. It guarantees that the rendered text
never exceeds the tokens allowed and that no text is repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from ragforge_tui.llm.tokens import count_tokens
from ragforge_tui.memory.retrieval.candidates import Candidate, FindingCandidate, SummaryCandidate, cosine
from ragforge_tui.shared.records import SHORT_ID, TITLE_CHARS

CUT_MARK = " […] "
"""Marks text left out of a turn; the stored context finds the pieces again by it."""
MIN_CUT_TOKENS = 60
"""Tokens below which a turn that is too large is left out instead of cut."""
MOST_MISSES = 25
"""Consecutive candidates that do not fit, after which no more are tried."""
MAX_SHARE_OF_ONE = 0.4
"""Largest share of the tokens for one turn; a longer one is cut to its head and tail."""

SAME_COSINE = 0.95
"""Cosine above which two turns count as duplicates."""

Count = Callable[[str], int]
SEPARATOR = "\n\n"


class Recalled(msgspec.Struct, kw_only=True):
    """Result of recall, each kind best first.

    Attributes:
        text: The turns as one text, each with its label.
        tokens: Tokens of `text`.
        reason: Reason for which vectors were not searched although they are enabled; empty if they were.
        missing: Searches that failed or took too long; a sentence each.
    """

    turns: list[Candidate] = []
    findings: list[FindingCandidate] = []
    summaries: list[SummaryCandidate] = []
    tokens: int = 0
    text: str = ""
    reason: str = ""
    missing: list[str] = []


def heading(turn: Candidate) -> str:
    """Return the line above the turns of a day; it names another conversation, so that the two are not confused."""
    day = f"# {turn.date.day} {turn.date:%B %Y}"
    return day if turn.own else f"{day}, in {conversation_name(turn.conversation_id, turn.title)}"


def conversation_name(conversation_id: str, title: str) -> str:
    """Return how another conversation is named: by the id its turns are opened with, and its title."""
    return f"conversation {conversation_id[:SHORT_ID]} “{' '.join(title.split())[:TITLE_CHARS] or 'untitled'}”"


def label(turn_index: int) -> str:
    """Return the prefix by which a turn can be cited and opened."""
    return f"[t{turn_index}] "


def render_turns(turns: Sequence[Candidate]) -> str:
    """Return turns as one text, by conversation and day; the best turn's day first."""
    days: dict[str, list[str]] = {}
    for turn in turns:
        days.setdefault(heading(turn), []).append(label(turn.turn_index) + turn.text)
    return SEPARATOR.join("\n".join((day, SEPARATOR.join(texts))) for day, texts in days.items())


def pack(
    ranked: Iterable[Candidate],
    max_tokens: int,
    *,
    others_tokens: int | None = None,
    count: Count = count_tokens,
) -> list[Candidate]:
    """Return the best candidates that fit, best first; none is nearly equal to another.

    Args:
        ranked: Candidates, best first.
        others_tokens: Most tokens for turns of other conversations; None for no separate limit.
    """
    packed: list[Candidate] = []
    texts: set[str] = set()
    headings: set[str] = set()
    left, left_others = max_tokens, max_tokens if others_tokens is None else others_tokens
    largest = max(int(max_tokens * MAX_SHARE_OF_ONE), MIN_CUT_TOKENS)
    misses = 0
    for candidate in ranked:
        if left < MIN_CUT_TOKENS // 4 or misses > MOST_MISSES:
            break
        key = " ".join(candidate.text.split())
        if not key or key in texts:
            continue
        above = heading(candidate)
        overhead = count(label(candidate.turn_index)) + 1 + (0 if above in headings else count(above) + 1)
        available = (left if candidate.own else min(left, left_others)) - overhead
        fitted = _fitted(candidate, min(available, largest), count) if available > 0 else None
        if fitted is None:
            misses += 1
            continue
        if any((cosine(candidate.vector, turn.vector) or 0.0) > SAME_COSINE for turn in packed):
            continue
        misses = 0
        turn, tokens = fitted
        packed.append(turn)
        texts.add(key)
        headings.add(above)
        left -= tokens + overhead
        if not candidate.own:
            left_others -= tokens + overhead
    return packed


def drop_to_fit(
    turns: Sequence[Candidate], max_tokens: int, count: Count = count_tokens
) -> tuple[list[Candidate], str, int]:
    """Return turns, their text and its tokens, less the last turns if the whole exceeds its parts."""
    remaining = list(turns)
    while True:
        text = render_turns(remaining)
        tokens = count(text)
        if tokens <= max_tokens:
            return remaining, text, tokens
        remaining.pop()


def _fitted(candidate: Candidate, most: int, count: Count) -> tuple[Candidate, int] | None:
    text, cut = candidate.text, 0
    tokens = count(text) if candidate.tokens is None else candidate.tokens
    if tokens > most:
        shortened = _cut(candidate.text, tokens, most, count) if most >= MIN_CUT_TOKENS else None
        if shortened is None:
            return None
        text, tokens, cut = shortened
    source = candidate.text if cut else ""
    return msgspec.structs.replace(candidate, text=text, cut=cut, source=source), tokens


def _cut(text: str, tokens: int, most: int, count: Count) -> tuple[str, int, int] | None:
    """Return head and tail of a text that fit, their tokens, and how many characters are missing."""
    keep = int(len(text) * most / tokens)
    while keep > len(CUT_MARK):
        head, tail = text[: keep * 2 // 3].rstrip(), text[len(text) - keep // 3 :].lstrip()
        shortened = f"{head}{CUT_MARK}{tail}"
        needed = count(shortened)
        if needed <= most:
            return shortened, needed, len(text) - len(head) - len(tail)
        keep = int(keep * 0.9)
    return None
