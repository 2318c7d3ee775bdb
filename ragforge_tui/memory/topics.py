"""Topics without a model: key terms, and names that differ only in a plural ending.

Used by the extractive summaries; a model proposes and compares topics itself. The graph stores them
(`graph/store/topics.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ragforge_tui.graph.store.topics import ProposedTopic, TopicLink, topic_key
from ragforge_tui.memory.keyterms import key_terms, stem

EXTRACTED_CONFIDENCE = 0.5
"""Confidence of a topic proposed from words alone."""


def topics_of(
    texts: Sequence[str], language: str = "", limit: int = 4, known: Collection[str] = ()
) -> list[ProposedTopic]:
    """Return up to `limit` topics of the texts, as far as they have key terms; a known topic keeps its name."""
    names = {_form(name): name for name in reversed(list(known))}
    terms = key_terms(texts, language, limit, preferred=frozenset(names))
    return [ProposedTopic(name=names.get(_form(term), term), confidence=EXTRACTED_CONFIDENCE) for term in terms]


def same_forms(names: Iterable[str]) -> list[TopicLink]:
    """Return links between names that differ only in plural endings."""
    first: dict[str, str] = {}
    links = []
    for name in names:
        earlier = first.setdefault(_form(name), name)
        if topic_key(earlier) != topic_key(name):
            links.append(TopicLink(a=earlier, b=name, confidence=1.0, reason="singular and plural"))
    return links


def _form(name: str) -> str:
    """Return a name without plural endings."""
    return " ".join(stem(word) for word in topic_key(name).split())
