"""Titles of summaries that have none: the first words of their text. Pure."""

from __future__ import annotations

import re

from ragforge_tui.memory.summaries.offline.phrases import all_phrases

TITLE_WORDS = 6
_ASKED = re.compile(
    r"(?:the )?(?:user|person) (?:first )?(?:asked|said|wanted|requested)"
    r"(?: (?:me|the assistant|for|to|that|about))*\s+",
    re.I,
)
"""How models begin a summary, in the form they are asked for it."""
_QUOTED = re.compile(r"[“„«\"]\s*([^”“»\"]+)")
_EDGES = " \t“”„\"'«»‘’…:;,."


def title_from(text: str) -> str:
    """Return the first words of a summary's text, without what all of them begin with."""
    label = next((label for label in _beginnings() if text.startswith(label)), "")
    text = text.removeprefix(label) if label else _ASKED.sub("", text, count=1) if _ASKED.match(text) else text
    if quoted := _QUOTED.match(text):
        text = quoted[1]
    words = text.split()
    title = " ".join(words[:TITLE_WORDS]).strip(_EDGES)
    title = title[:1].upper() + title[1:]
    return f"{title} …" if len(words) > TITLE_WORDS and title else title


def _beginnings() -> list[str]:
    """Return what precedes the first quotation of an extract, in all languages, the longest first."""
    found = {
        text.removesuffix("{}")
        for wording in all_phrases()
        for text in (wording.asked, wording.said, wording.user, wording.user_before)
    }
    return sorted(found - {""}, key=len, reverse=True)
