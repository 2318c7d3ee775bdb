"""Records of an exported conversation: those of `records`, and those that the memory derived from them.

Used by the graph, which reads and stores them, by `export/` and by the protocol.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from ragforge_tui.shared.attempt_records import Attempt
from ragforge_tui.shared.finding_records import KeptFinding
from ragforge_tui.shared.records import Commit, Conversation, Insight, Summary, Topic, Turn


class TopicEdge(msgspec.Struct, frozen=True, kw_only=True):
    """Edge to a topic in an export, from a summary that has it or from another topic.

    Attributes:
        source: Id of the summary (``has``) or of the other topic.
        target: Id of the topic; for ``has``, the topic that the summary named, even if it was merged later.
        description: For ``has``: the summary's description of the topic.
        conversation_id: The conversation whose summary proposed the edge; empty if the user did.
    """

    kind: Literal["has", "related", "merged"]
    source: str
    target: str
    confidence: float = 1.0
    reason: str = ""
    description: str = ""
    conversation_id: str = ""
    at: datetime | None = None


class StoredContext(msgspec.Struct, kw_only=True):
    """Content of a request as stored in the graph: `items` is JSON that references texts in turns and summaries.

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
    """Link from a message to the persona that was active, by their ids."""

    turn_index: int
    message: str
    persona: str


class MessageCommit(msgspec.Struct, frozen=True, kw_only=True):
    """Commit that a message produced."""

    turn_index: int
    message: str
    workspace: str = ""
    commit: Commit


class PersonaText(msgspec.Struct, frozen=True, kw_only=True):
    """Exact text of a persona that was used."""

    uuid: str
    name: str
    digest: str
    text: str


class SystemText(msgspec.Struct, frozen=True, kw_only=True):
    """System text at the start of requests, identified by its digest."""

    uuid: str
    digest: str
    text: str


class MemoryExport(msgspec.Struct, kw_only=True):
    """Memory's records of a conversation. Vectors and search keys are left out: an import computes them again."""

    summaries: list[Summary] = []
    insight: Insight | None = None
    topics: list[Topic] = []
    topic_edges: list[TopicEdge] = []
    personas: list[PersonaText] = []
    system_texts: list[SystemText] = []
    commits: list[MessageCommit] = []
    findings: list[KeptFinding] = []
    attempts: list[Attempt] = []


class ConversationExport(msgspec.Struct, kw_only=True):
    """Whole conversation for export and import: lossless, with its ids. Version 1 ended with the turns."""

    format: Literal["ragforge-conversation"] = "ragforge-conversation"
    version: int = 2
    conversation: Conversation
    turns: list[Turn]
    contexts: list[StoredContext] = []
    spoken: list[Spoken] = []
    memory: MemoryExport = msgspec.field(default_factory=MemoryExport)


class ImportAdds(msgspec.Struct, frozen=True, kw_only=True):
    """Records that an import adds to the graph.

    Attributes:
        turns: Indexes of the added turns, ascending.
        calls: Tool calls and results of calls, counted together.
        grown: Indexes of turns that are there and hold more now.
    """

    turns: list[int] = []
    messages: int = 0
    calls: int = 0
    summaries: int = 0
    contexts: int = 0
    insights: int = 0
    findings: int = 0
    grown: list[int] = []

    def __bool__(self) -> bool:
        memory = self.summaries or self.contexts or self.insights or self.findings
        return bool(self.messages or self.calls or self.grown or memory)

    def text(self) -> str:
        """Return the additions in words, "nothing new" if there are none."""
        parts = []
        if self.turns:
            first, last = self.turns[0], self.turns[-1]
            parts.append(f"turn {first}" if first == last else f"{len(self.turns)} turns ({first} to {last})")
        for count, one, many in (
            (self.messages, "message", "messages"),
            (self.calls, "tool call or result", "tool calls and results"),
            (self.summaries, "summary", "summaries"),
            (self.contexts, "stored context", "stored contexts"),
            (self.insights, "insight", "insights"),
            (self.findings, "finding", "findings"),
        ):
            if count:
                parts.append(f"{count} {one if count == 1 else many}")
        return ", ".join(parts) or "nothing new"


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of an import.

    Attributes:
        created: Whether the conversation is new in the graph.
    """

    conversation: Conversation
    created: bool
    adds: ImportAdds
