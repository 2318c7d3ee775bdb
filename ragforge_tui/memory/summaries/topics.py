"""Topics in a model's answer: their limits, and which of them it takes for the same, so that they are merged. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ragforge_tui.graph.store.topic_names import ProposedTopic, TopicLink, topic_key
from ragforge_tui.memory.prose import clean_text, cut

MAX_TOPICS = 4
TOPIC_CHARS = 60
DESCRIPTION_CHARS = 160
MERGE_CONFIDENCE = 0.8
"""Confidence from which two topics are merged; below it, they are related."""


def limited_topics(topics: Iterable[ProposedTopic]) -> list[ProposedTopic]:
    """Return topics with names and descriptions of limited length, without duplicates."""
    found: dict[str, ProposedTopic] = {}
    for topic in topics:
        name = cut(topic.name, TOPIC_CHARS)
        if topic_key(name):
            described = cut(topic.description, DESCRIPTION_CHARS)
            found.setdefault(topic_key(name), msgspec.structs.replace(topic, name=name, description=described))
    return list(found.values())


def read_topics(value: Any) -> list[ProposedTopic]:
    """Return the topics in a model's answer."""
    topics = []
    for item in value if isinstance(value, list) else []:
        name = clean_text(item.get("name") if isinstance(item, Mapping) else item)
        if topic_key(name):
            confidence = item.get("confidence") if isinstance(item, Mapping) else None
            description = clean_text(item.get("description")) if isinstance(item, Mapping) else ""
            topics.append(ProposedTopic(name=name, description=description, confidence=_share(confidence, 1.0)))
    return topics


def read_links(value: Any) -> list[TopicLink]:
    """Return which topics a model takes for the same or for related."""
    links = []
    for item in value if isinstance(value, list) else []:
        if not isinstance(item, Mapping):
            continue
        a, b = clean_text(item.get("a")), clean_text(item.get("b"))
        if topic_key(a) and topic_key(b) and topic_key(a) != topic_key(b):
            confidence, reason = _share(item.get("confidence"), 0.0), clean_text(item.get("reason"))[:300]
            same = confidence >= MERGE_CONFIDENCE
            links.append(TopicLink(a=a, b=b, confidence=confidence, same=same, reason=reason))
    return links


def _share(value: Any, default: float) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return default
    return min(1.0, max(0.0, number)) if number == number else default
