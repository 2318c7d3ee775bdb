"""What an export of a conversation holds: its records, and what the memory made of them.

Shared words like `models`, which these are made of. Used by the graph (reading and storing them), `export/` and the
protocol.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from ragforge_tui.models import Conversation, Summary, Topic, Turn


class TopicEdge(msgspec.Struct, frozen=True, kw_only=True):
    """What leads to a topic in an export: from a summary that has it, or from another topic.

    Attributes:
        source: Id of the summary (``has``) or of the other topic.
        target: Id of the topic; of ``has`` the one the summary named, whatever it was merged into later.
        conversation_id: The conversation whose summary said so; empty when a person did.
    """

    kind: Literal["has", "related", "merged"]
    source: str
    target: str
    confidence: float = 1.0
    reason: str = ""
    conversation_id: str = ""
    at: datetime | None = None


class StoredContext(msgspec.Struct, kw_only=True):
    """What a request held, as the graph keeps it: `items` is JSON, its texts stand in the turns and summaries.

    Attributes:
        messages: Ids of the replies to that request.
    """

    uuid: str
    turn_index: int
    messages: list[str]
    items: str
    tokens: int = 0
    digest: str = ""
    created_at: datetime


class Spoken(msgspec.Struct, frozen=True, kw_only=True):
    """That a message was spoken as a persona, both by their ids."""

    turn_index: int
    message: str
    persona: str


class PersonaText(msgspec.Struct, frozen=True, kw_only=True):
    """The very text of a persona that spoke."""

    uuid: str
    name: str
    digest: str
    text: str


class SystemText(msgspec.Struct, frozen=True, kw_only=True):
    """A text requests began with, by its digest."""

    uuid: str
    digest: str
    text: str


class MemoryExport(msgspec.Struct, kw_only=True):
    """What the memory made of a conversation. Vectors and search keys are made anew where it is imported."""

    summaries: list[Summary] = []
    topics: list[Topic] = []
    topic_edges: list[TopicEdge] = []
    personas: list[PersonaText] = []
    system_texts: list[SystemText] = []


class ConversationExport(msgspec.Struct, kw_only=True):
    """A whole conversation as it is exported and imported: lossless, ids kept. Version 1 ended with the turns."""

    format: Literal["ragforge-conversation"] = "ragforge-conversation"
    version: int = 2
    conversation: Conversation
    turns: list[Turn]
    contexts: list[StoredContext] = []
    spoken: list[Spoken] = []
    memory: MemoryExport = msgspec.field(default_factory=MemoryExport)
