"""Topics without a model: from key terms, and which names are the same but for a plural.

Used by the extractive summaries; a model proposes and compares topics itself. The graph keeps them
(`graph/store/topics.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ragforge_tui.graph.store.topic_links import ProposedTopic, TopicLink, topic_key
from ragforge_tui.memory.keyterms import key_terms, stem

EXTRACTED_CONFIDENCE = 0.5
"""Of a topic that words alone propose."""


def topics_of(
    texts: Sequence[str], language: str = "", limit: int = 4, known: Collection[str] = ()
) -> list[ProposedTopic]:
    """Two to four topics of what was said, as far as there are words for them; a known one is named as it was."""
    names = {_form(name): name for name in reversed(list(known))}
    terms = key_terms(texts, language, limit, preferred=frozenset(names))
    return [ProposedTopic(name=names.get(_form(term), term), confidence=EXTRACTED_CONFIDENCE) for term in terms]


def same_forms(names: Iterable[str]) -> list[TopicLink]:
    """Which of these names differ in nothing but plural endings."""
    first: dict[str, str] = {}
    links = []
    for name in names:
        known = first.setdefault(_form(name), name)
        if topic_key(known) != topic_key(name):
            links.append(TopicLink(a=known, b=name, confidence=1.0, reason="singular and plural"))
    return links


def _form(name: str) -> str:
    """A name without plural endings."""
    return " ".join(stem(word) for word in topic_key(name).split())
