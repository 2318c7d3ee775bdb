"""Short forms of summaries for lists: titles of those without one, and their findings in one list. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ragforge_tui.memory.summaries.offline.phrases import all_phrases
from ragforge_tui.shared.records import Finding, Summary

TITLE_WORDS = 6
_ASKED = re.compile(
    r"(?:the )?(?:user|person) (?:first )?(?:asked|said|wanted|requested)"
    r"(?: (?:me|the assistant|for|to|that|about))*\s+",
    re.I,
)
"""How models begin a summary, in the form they are asked for it."""
_QUOTES = " \t“”„\"'«»‘’…:;,."


def title_from(text: str) -> str:
    """Return the first words of a summary's text, without what all of them begin with."""
    for label in _beginnings():
        if text.startswith(label):
            text = text.removeprefix(label)
            break
    else:
        text = _ASKED.sub("", text, count=1) if _ASKED.match(text) else text
    words = text.split()
    title = " ".join(words[:TITLE_WORDS]).strip(_QUOTES)
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


def gathered_findings(tree: Iterable[Summary]) -> list[Finding]:
    """Return the findings of a conversation, newest first and each once.

    A higher level repeats only the most important ones of its parts, so they come from the lowest level; except for
    open points, which its parts may have settled since.

    Args:
        tree: All summaries, marked with their parents.
    """
    found: dict[str, Finding] = {}
    for summary in sorted(tree, key=lambda one: (-one.end_turn_index, one.level)):
        for finding in summary.key_findings:
            wanted = not summary.parent if finding.kind == "open" else summary.level == 1
            if wanted:
                found.setdefault(finding.text.casefold(), finding)
    return sorted(found.values(), key=lambda finding: -max(finding.turns, default=0))
