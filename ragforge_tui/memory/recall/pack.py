"""From a ranking to turns within a number of tokens: greedy by score, then in order of time, labels counted.

Used by `Recall`. Knows nothing of how candidates were found; what it promises is that the rendered text never has more
tokens than allowed, that nothing is said twice, and that turns stand in order of time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

import msgspec

from ragforge_tui.llm.tokens import count_tokens
from ragforge_tui.memory.recall.results import RecalledTurn, heading, label, render_turns

CUT_MARK = " […] "
"""Stands where something was left out of a turn; the context of a turn finds the pieces again by it."""
MIN_CUT_TOKENS = 60
"""Room below which a turn too large for it is left out instead of cut."""
MOST_MISSES = 25
"""Candidates in a row that find no room after which no more are tried."""
MAX_SHARE_OF_ONE = 0.5
"""Most of the room that one turn may take; what is longer is cut to its head and tail."""

Count = Callable[[str], int]


class Candidate(msgspec.Struct, kw_only=True):
    """A turn that may be recalled.

    Attributes:
        date: When its sitting began.
        tokens: Of `text`, None when nobody counted them.
        own: It is of the open conversation.
    """

    conversation_id: str
    title: str = ""
    turn_index: int
    date: datetime
    text: str
    tokens: int | None = None
    score: float
    own: bool = True


Same = Callable[[Candidate, Sequence[RecalledTurn]], bool]


def pack(
    ranked: Iterable[Candidate],
    max_tokens: int,
    *,
    others_tokens: int | None = None,
    same: Same | None = None,
    count: Count = count_tokens,
) -> list[RecalledTurn]:
    """The best candidates that fit, in order of time.

    Args:
        ranked: Best first.
        others_tokens: Most tokens for turns of other conversations; None: no limit of their own.
        same: Whether a candidate says what one of the packed says already.
    """
    packed: list[RecalledTurn] = []
    texts: set[str] = set()
    groups: set[tuple[str, datetime]] = set()
    left, left_others = max_tokens, max_tokens if others_tokens is None else others_tokens
    largest = max(int(max_tokens * MAX_SHARE_OF_ONE), MIN_CUT_TOKENS)
    misses = 0
    for candidate in ranked:
        if left < MIN_CUT_TOKENS // 4 or misses > MOST_MISSES:
            break
        key = " ".join(candidate.text.split())
        if not key or key in texts:
            continue
        group = (candidate.conversation_id, candidate.date)
        overhead = count(f"{label(candidate.turn_index)}") + 1
        if group not in groups:
            overhead += count(heading(candidate.date, title=candidate.title, own=candidate.own)) + 1
        room = (left if candidate.own else min(left, left_others)) - overhead
        fitted = _fitted(candidate, min(room, largest), count) if room > 0 else None
        if fitted is None:
            misses += 1
            continue
        if same and same(candidate, packed):
            continue
        misses = 0
        turn, tokens = fitted
        packed.append(turn)
        texts.add(key)
        groups.add(group)
        left -= tokens + overhead
        if not candidate.own:
            left_others -= tokens + overhead
    return in_time(packed)


def in_time(turns: Sequence[RecalledTurn]) -> list[RecalledTurn]:
    """In order of time: other conversations first, the older before the newer, each by turn; then this one."""
    begins: dict[str, datetime] = {}
    for turn in turns:
        known = begins.get(turn.conversation_id)
        if known is None or turn.date < known:
            begins[turn.conversation_id] = turn.date
    return sorted(turns, key=lambda t: (t.own, begins[t.conversation_id], t.conversation_id, t.turn_index))


def within(
    turns: Sequence[RecalledTurn], max_tokens: int, count: Count = count_tokens
) -> tuple[list[RecalledTurn], str, int]:
    """Turns, their text and its tokens, less the worst turns should the whole have more tokens than its parts."""
    kept = list(turns)
    while True:
        text = render_turns(kept)
        tokens = count(text)
        if tokens <= max_tokens:
            return kept, text, tokens
        kept.remove(min(kept, key=lambda turn: turn.score))


def _fitted(candidate: Candidate, most: int, count: Count) -> tuple[RecalledTurn, int] | None:
    text, cut = candidate.text, 0
    tokens = count(text) if candidate.tokens is None else candidate.tokens
    if tokens > most:
        shortened = _cut(candidate.text, tokens, most, count) if most >= MIN_CUT_TOKENS else None
        if shortened is None:
            return None
        text, tokens, cut = shortened
    turn = RecalledTurn(
        conversation_id=candidate.conversation_id,
        title=candidate.title,
        turn_index=candidate.turn_index,
        date=candidate.date,
        text=text,
        cut=cut,
        score=candidate.score,
        own=candidate.own,
    )
    return turn, tokens


def _cut(text: str, tokens: int, most: int, count: Count) -> tuple[str, int, int] | None:
    """Head and tail of a text that fit, their tokens, and how many characters are missing."""
    keep = int(len(text) * most / tokens)
    while keep > len(CUT_MARK):
        head, tail = text[: keep * 2 // 3].rstrip(), text[len(text) - keep // 3 :].lstrip()
        shortened = f"{head}{CUT_MARK}{tail}"
        needed = count(shortened)
        if needed <= most:
            return shortened, needed, len(text) - len(head) - len(tail)
        keep = int(keep * 0.9)
    return None
