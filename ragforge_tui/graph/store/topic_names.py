"""Identity of topics: the normal form of a name, the id derived from it, and topics as summaries propose them."""

from __future__ import annotations

import re
import unicodedata

import msgspec

from ragforge_tui.graph.store.records import derived

MAX_NAME_CHARS = 80


class ProposedTopic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic as a summary proposes it."""

    name: str
    description: str = ""
    confidence: float = 1.0


class TopicLink(msgspec.Struct, frozen=True, kw_only=True):
    """That two topics, by their names, are the same, or else near each other."""

    a: str
    b: str
    confidence: float
    same: bool = True
    reason: str = ""


def topic_key(name: str) -> str:
    """Return the form in which names are compared: NFKC, case folded, letters and digits of all scripts."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return " ".join(re.sub(r"[^\w\s+#]|_", " ", folded).split())


def topic_uuid(name: str, private_to: str = "") -> str:
    """Return the id of the topic with this name; `private_to` is the private conversation it belongs to."""
    return derived("topic", private_to, topic_key(name))
