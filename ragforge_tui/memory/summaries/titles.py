"""Titles of summaries that have none: the first words of their text. Pure."""

from __future__ import annotations

import re

from ragforge_tui.memory.prose import without_formulas

TITLE_WORDS = 6
_ASKED = re.compile(
    r"(?:the )?(?:user|person) (?:first )?(?:asked|said|wanted|requested)"
    r"(?: (?:me|the assistant|for|to|that|about))*\s+",
    re.I,
)
"""Usual first words of a model's summary."""
_QUOTED = re.compile(r"[^“„«\"]{0,40}:\s*[“„«\"]\s*([^”“»\"]+)")
"""First words of an extract in every language: a few words, then a quote of the user."""
_EDGES = " \t“”„\"'«»‘’…:;,."


def title_from(text: str) -> str:
    """Return the first words of a summary's text, without the usual opening phrase and with "…" for formulas."""
    text = without_formulas(text)
    if quoted := _QUOTED.match(text):
        text = quoted[1]
    elif asked := _ASKED.match(text):
        text = text[asked.end() :]
    words = text.split()
    title = " ".join(words[:TITLE_WORDS]).strip(_EDGES)
    title = title[:1].upper() + title[1:]
    return f"{title} …" if len(words) > TITLE_WORDS and title else title
