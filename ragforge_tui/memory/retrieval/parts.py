"""Parts of a message that asks several things.

A message with three questions has a vector that is near none of their answers, and the words of one outweigh those of
another. So each part is searched by itself too. Most messages ask one thing: these have no parts and cost nothing.
"""

from __future__ import annotations

import re

from ragforge_tui.memory.language import language_of
from ragforge_tui.memory.prose import sentences, user_prose
from ragforge_tui.memory.retrieval.terms import asked_words

MOST_PARTS = 4
MOST_SENTENCES = 12
"""A longer message is a report, a specification or a log, not a list of questions."""
MOST_CHARS = 2_000

_NEXT_QUESTION = re.compile(
    r"(?:[,;]\s*|\s+)(?:and|but|und|et|y|e|en)\s+(?:also\s+|auch\s+|aussi\s+)?"
    r"(?=(?:what|which|where|when|who|whose|why|how|did|was|were|"
    r"welche[rsmn]?|wo|wann|wer|warum|wieso|wie|"
    r"que|quoi|quel(?:le)?s?|qui|où|quand|pourquoi|comment|combien|"
    r"qué|cuál(?:es)?|dónde|cuándo|quién|cómo|cosa|quale|dove|quando|chi|perché|come|wat|welke|waar|wanneer|wie)\b)",
    re.IGNORECASE,
)
"""What joins two questions in one sentence."""


def parts_of(message: str) -> list[str]:
    """Return what a message asks, a text for each; nothing if it asks one thing.

    A part without a word of its own subject is none ("And why?"); it belongs to the one before.
    """
    if len(message) > MOST_CHARS:
        return []
    found = sentences(user_prose(message))
    if len(found) > MOST_SENTENCES:
        return []
    language = language_of(message)
    parts: list[str] = []
    asked: set[str] = set()
    for piece in (piece.strip() for sentence in found for piece in _NEXT_QUESTION.split(sentence)):
        own = {word.casefold() for word in asked_words(piece, language)}
        if own - asked or not parts:
            parts.append(piece)
        else:
            parts[-1] = f"{parts[-1]} {piece}"
        asked |= own
    parts = [part for part in parts if asked_words(part, language)]
    return _questions_first(parts) if len(parts) > 1 else []


def _questions_first(parts: list[str]) -> list[str]:
    """Return at most `MOST_PARTS` parts in their order; those that are questions stay."""
    chosen = sorted(range(len(parts)), key=lambda place: not parts[place].endswith("?"))[:MOST_PARTS]
    return [parts[place] for place in sorted(chosen)]
