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


class ImportAdds(msgspec.Struct, frozen=True, kw_only=True):
    """What an import adds to the graph.

    Attributes:
        turns: Indexes of the turns that begin here, ascending.
        calls: Tool calls and results of calls, counted together.
    """

    turns: list[int] = []
    messages: int = 0
    calls: int = 0
    summaries: int = 0
    contexts: int = 0

    def __bool__(self) -> bool:
        return bool(self.messages or self.calls or self.summaries or self.contexts)

    def text(self) -> str:
        """Return the additions in words, "nothing new" when there are none."""
        parts = []
        if self.turns:
            first, last = self.turns[0], self.turns[-1]
            parts.append(f"turn {first}" if first == last else f"{len(self.turns)} turns ({first} to {last})")
        for count, one, many in (
            (self.messages, "message", "messages"),
            (self.calls, "tool call or result", "tool calls and results"),
            (self.summaries, "summary", "summaries"),
            (self.contexts, "stored context", "stored contexts"),
        ):
            if count:
                parts.append(f"{count} {one if count == 1 else many}")
        return ", ".join(parts) or "nothing new"


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of an import.

    Attributes:
        created: Whether the conversation was not in the graph before.
    """

    conversation: Conversation
    created: bool
    adds: ImportAdds
