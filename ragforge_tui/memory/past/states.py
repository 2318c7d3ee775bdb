"""What became of past statements: which of them were corrected, done or forgotten since. Pure.

A statement is known by its words: the findings that the memory keeps are seldom worded as the sentence they come from.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ragforge_tui.memory.findings.settled import Settled
from ragforge_tui.memory.language import language_of
from ragforge_tui.memory.retrieval import terms
from ragforge_tui.shared.finding_records import KeptFinding
from ragforge_tui.shared.past_records import Quote
from ragforge_tui.shared.records import SHORT_ID

_SAME_POINT = 0.6
"""Share of the fewer words of two statements from which they state the same."""
_FEWEST_WORDS = 2


def same_point(one: str, other: str) -> bool:
    """Return whether two statements share most of their words."""
    first, second = _words(one), _words(other)
    least = min(len(first), len(second))
    return least >= _FEWEST_WORDS and len(first & second) >= _SAME_POINT * least


def _words(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in terms.content_words(text, language_of(text)))


def with_states(quotes: Sequence[Quote], settled: Settled) -> list[Quote]:
    """Return the quotes, each with what became of its statement; findings that were forgotten are left out."""
    found = []
    for quote in quotes:
        place = (quote.conversation_id, quote.turn_index)
        ended = [
            one
            for one in settled.gone
            if (one.conversation_id, one.turn_index) == place and same_point(one.text, quote.quote)
        ]
        if quote.role == "memory" and any(one.state == "forgotten" for one in ended):
            continue
        notes = [note for one in ended if (note := _note(one, settled.replacing.get(one.replaced_by)))]
        found.append(msgspec.structs.replace(quote, note=notes[0]) if notes else quote)
    return found


def _note(finding: KeptFinding, successor: KeptFinding | None) -> str:
    if finding.state == "done":
        return f"done in {finding.closed_by}" if finding.closed_by else "done since"
    if finding.state != "replaced":
        return ""
    if successor is None:
        return "corrected since"
    elsewhere = successor.conversation_id != finding.conversation_id
    return f"corrected in {f'{successor.conversation_id[:SHORT_ID]} ' if elsewhere else ''}t{successor.turn_index}"


def own_words_first(quotes: Sequence[Quote]) -> list[Quote]:
    """Return the quotes, best first, with each sentence of the user's before the assistant's echo of it."""
    placed = list(quotes)
    for quote in quotes:
        if quote.role != "user":
            continue
        at = placed.index(quote)
        echo = next(
            (
                place
                for place, other in enumerate(placed[:at])
                if other.role == "assistant" and other.date >= quote.date and same_point(quote.quote, other.quote)
            ),
            None,
        )
        if echo is not None:
            placed.insert(echo, msgspec.structs.replace(placed.pop(at), score=placed[echo].score))
    return placed
