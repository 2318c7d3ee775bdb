"""Context that a short or referring question needs before the search. Used by `Recall` alone; pure text."""

from __future__ import annotations

import re

from ragforge_tui.memory.language import language_of
from ragforge_tui.memory.recall.terms import telling_words

FEWEST_WORDS = 3
"""Content words below which a message cannot be understood without the one before it."""
PREVIOUS_CHARS = 500

_REFERRING = re.compile(
    r"^\W*(?:(?:and|but|so|then|et|mais|alors|und|y|e)\b\W*)?"
    r"(?:it|its|he|she|they|them|that|this|these|those|his|her|their|"
    r"il|elle|ils|elles|ça|cela|ce|celui|celle|ceux|son|sa|ses|leur|"
    r"er|sie|es|das|dies|diese|dieser|ello|eso|esto|ese|esa)\b",
    re.IGNORECASE,
)


def context_of(question: str, previous_turn: str) -> str:
    """Return the user's previous message for a question that is too short or refers back; else nothing."""
    if len(telling_words(question, language_of(question))) >= FEWEST_WORDS and not _REFERRING.match(question):
        return ""
    return said_in(previous_turn)[:PREVIOUS_CHARS]


def said_in(turn_text: str) -> str:
    """Return the user's message from a turn's text, where it is quoted with ``>``."""
    lines: list[str] = []
    for line in turn_text.splitlines():
        if not line.startswith(">"):
            break
        lines.append(line[1:].strip())
    return "\n".join(lines)
