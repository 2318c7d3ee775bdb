"""Topics without a model: from key terms, and which names are the same but for a plural.

Used by the extractive summaries; a model proposes and compares topics itself. The graph keeps them (`graph/topics.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ragforge_tui.graph.topic_links import ProposedTopic, TopicLink, topic_key
from ragforge_tui.memory.keyterms import key_terms, stem

EXTRACTED_CONFIDENCE = 0.5
"""Of a topic that words alone propose."""


def topics_of(texts: Sequence[str], language: str = "", limit: int = 4) -> list[ProposedTopic]:
    """Two to four topics of what was said, as far as there are words for them."""
    return [ProposedTopic(name=name, confidence=EXTRACTED_CONFIDENCE) for name in key_terms(texts, language, limit)]


def same_forms(names: Iterable[str]) -> list[TopicLink]:
    """Which of these names differ in nothing but plural endings."""
    first: dict[str, str] = {}
    links = []
    for name in names:
        form = " ".join(stem(word) for word in topic_key(name).split())
        known = first.setdefault(form, name)
        if topic_key(known) != topic_key(name):
            links.append(TopicLink(a=known, b=name, confidence=1.0, reason="singular and plural"))
    return links
