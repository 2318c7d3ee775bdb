"""The records everything speaks of: conversations, messages, tool calls, results.

They mirror the labels and properties of the graph and cross the pipe between engine and
screen as they are. Times are timezone-aware UTC. Leans on nothing.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

import msgspec

Role = Literal["user", "assistant", "system"]
MessageState = Literal["complete", "streaming", "interrupted", "failed", "superseded"]
ConversationStatus = Literal["active", "archived", "deleted"]
FileAccessKind = Literal["read", "write", "search", "list"]
TodoStatus = Literal["pending", "in_progress", "completed"]

EXTRACTIVE = "extractive"
"""Who made a summary that no model wrote."""


def now() -> datetime:
    """The current time, UTC, aware."""
    return datetime.now(UTC)


class Conversation(msgspec.Struct, kw_only=True):
    """One conversation, without its messages."""

    uuid: str
    title: str = ""
    tags: list[str] = []
    status: ConversationStatus = "active"
    summary: str = ""
    created_at: datetime
    updated_at: datetime
    message_count: int = 0
    total_chars: int = 0
    next_turn: int = 1
    """The turn index the next user message will get; turns count from 1."""
    persona: str = ""
    model: str = ""
    workspace: str = ""
    owner: str = ""
    private: bool = False
    branch_of: str | None = None
    branch_turn: int | None = None
    deleted_at: datetime | None = None
    """When it was hidden; purged seven days later."""


class FileAccess(msgspec.Struct, frozen=True, kw_only=True):
    """That a tool call touched a file. `path` is relative to the workspace, with forward slashes."""

    path: str
    access: FileAccessKind


class ToolResult(msgspec.Struct, kw_only=True):
    """What a tool call gave back.

    Attributes:
        result: JSON text of an object ``{"text": …}``: `text` is what the model was told; a tool may add
            ``diff`` (unified), ``exit_status``, ``todos``, ``before`` and ``after`` (digests of file contents
            kept for undo) and ``truncated`` (full size in bytes when the text was cut).
        result_size_bytes: Size of the whole result before any cut.
    """

    uuid: str
    tool_call_id: str
    success: bool
    result: str
    error: str | None = None
    timestamp: datetime
    result_size_bytes: int = 0


class ToolCall(msgspec.Struct, kw_only=True):
    """One call of a tool. `result` is None while it runs, or when its outcome was lost with a crash."""

    uuid: str
    message_id: str
    tool_name: str
    arguments: str
    """JSON text, exactly as the model wrote it (it may be malformed)."""
    reasoning: str = ""
    iteration: int = 1
    ordinal: int = 0
    timestamp: datetime
    duration_ms: int | None = None
    success: bool | None = None
    result: ToolResult | None = None
    files: list[FileAccess] = []


REFUSED = "refused by the person"
"""The error of a call the person said no to; what they said may follow after a colon."""
REFUSED_BECAUSE = "refused: "
"""Begins the error of a call that was refused without asking anybody, before the reason."""
STOPPED = "stopped"
"""The error of a call that was stopped before it was through."""
CallEnd = Literal["ok", "failed", "refused", "stopped", "unknown"]


def call_end(call: ToolCall) -> CallEnd:
    """How a call ended; ``unknown`` also while it runs. A call that nobody let run did not fail."""
    success = call.result.success if call.result is not None else call.success
    if success is None:
        return "unknown"
    if success:
        return "ok"
    error = (call.result.error if call.result is not None else "") or ""
    if error == STOPPED:
        return "stopped"
    refused = error == REFUSED or error.startswith((f"{REFUSED}: ", REFUSED_BECAUSE))
    return "refused" if refused else "failed"


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens and cost of one request. `cost_usd` is None when the price is unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None


class Message(msgspec.Struct, kw_only=True):
    """One message: the person's, or one reply of the model with the calls it made."""

    uuid: str
    conversation_id: str
    turn_index: int = 0
    """From 1; 0 until the store has allocated it."""
    position: int = 0
    """Order within the turn: 0 is the person's message."""
    role: Role
    content: str = ""
    doing: str = ""
    """Of the person's message: the tool they use themselves by it, which no model is asked to answer."""
    reasoning: str = ""
    state: MessageState = "complete"
    writer: str = ""
    """The process that writes a streaming message: ``host|boot id|pid|start time``."""
    lease_until: datetime | None = None
    timestamp: datetime
    token_count: int = 0
    char_count: int = 0
    persona: str = ""
    persona_glyph: str = ""
    """Glyph and colour are those the persona had when it spoke."""
    persona_color: str = ""
    model: str = ""
    error: str = ""
    usage: Usage | None = None
    tool_calls: list[ToolCall] = []


class Turn(msgspec.Struct, kw_only=True):
    """All messages of one turn index, in order of position."""

    turn_index: int
    messages: list[Message] = []


class Todo(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the agent's plan."""

    content: str
    status: TodoStatus = "pending"


class ConversationFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which conversations to list; the defaults show the active ones, newest first."""

    status: ConversationStatus | Literal["any"] = "active"
    tags: list[str] = []
    """Any of these."""
    query: str = ""
    """Words looked for in title and summary, case-insensitively."""
    workspace: str | None = None
    order: Literal["updated", "created"] = "updated"
    limit: int = 50


class ConversationPeek(msgspec.Struct, frozen=True, kw_only=True):
    """How a conversation begins and ends; texts are cut, empty where nothing was said."""

    conversation: Conversation
    first: str = ""
    last: str = ""
    last_role: Role = "user"


class ConversationChanges(msgspec.Struct, frozen=True, kw_only=True):
    """Conversations that changed since some moment, and how many there are in all, changed or not."""

    changed: list[Conversation]
    count: int


class ConversationPulse(msgspec.Struct, frozen=True, kw_only=True):
    """What tells whether anything was done to a conversation: its record, and how often a summary was stored."""

    conversation: Conversation
    summaries: int = 0


class SearchHit(msgspec.Struct, frozen=True, kw_only=True):
    """A message that matches a search.

    Attributes:
        snippet: Plain text around the best match, at most 300 characters.
        highlights: (start, end) offsets of matched words in `snippet`.
        score: The index's own score: comparable within one search only.
    """

    conversation_id: str
    title: str
    turn_index: int
    message_uuid: str
    role: Role
    snippet: str
    highlights: list[tuple[int, int]]
    timestamp: datetime
    score: float


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something worth knowing later, with the turns it was found in. In the graph: ``text [t3, t4]``."""

    text: str
    turns: list[int] = []


class Summary(msgspec.Struct, kw_only=True):
    """What a run of turns (level 1), or of summaries of the level below, was about.

    Attributes:
        ordinal: From 1, by level, in order of the turns.
        conversation_summary: What was asked and answered; at most 500 characters.
        actions_summary: What was done with tools and why; at most 500 characters, empty when nothing was.
        start_turn_index: First turn covered; ranges are inclusive.
        char_range_start: Offset of the first turn in the user and assistant text of the conversation.
        parent_summaries: Ids of the summaries of the level below that this one summarises; empty at level 1.
        parent: Id of the summary that summarises this one, empty while it stands on the frontier.
        made_by: The model's name, or `EXTRACTIVE`.
    """

    uuid: str
    conversation_id: str
    level: int
    ordinal: int = 0
    conversation_summary: str
    actions_summary: str = ""
    key_findings: list[Finding] = []
    files_mentioned: list[str] = []
    tools_used: list[str] = []
    topics: list[str] = []
    start_turn_index: int
    end_turn_index: int
    turn_count: int
    char_range_start: int = 0
    char_range_end: int = 0
    summary_char_count: int = 0
    parent_summaries: list[str] = []
    parent: str = ""
    made_by: str = ""
    created_at: datetime


class RelatedTopic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic near another one; `relation` ``merged`` names one that was merged into it."""

    uuid: str
    name: str
    relation: Literal["related", "merged"] = "related"
    confidence: float = 1.0
    reason: str = ""


class Topic(msgspec.Struct, kw_only=True):
    """A subject that summaries share."""

    uuid: str
    name: str
    description: str = ""
    aliases: list[str] = []
    created_at: datetime
    summaries: int = 0
    """How many summaries have it; 0 where nobody counted."""
    conversations: int = 0
    related: list[RelatedTopic] = []


class SimilarConversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation like another one. `score` is the plain cosine of their summaries."""

    conversation: Conversation
    score: float


class AccessedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the workspace as the agent last touched it, in the group it is shown in."""

    path: str
    group: Literal["read", "modified", "found"]
    tool: str
    turn_index: int
    timestamp: datetime
    count: int = 1
    """Accesses of this file by tools and mentions of the conversation."""


ContextItemKind = Literal[
    "system", "instructions", "persona", "message", "goal", "summary", "turn", "query", "file", "topic", "code", "note"
]


class ContextItem(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One thing a request held, and where it came from.

    Attributes:
        source: Id of what it was taken from: a message, a summary, a topic; a path; the digest of a `system` text.
        turn_index: The turn it stands for, 0 when it is none; of a summary the first one it covers.
        last_turn: Of a summary: the last turn it covers.
        role: As which it was sent.
        form: Of a `message` item, a turn sent as real messages: ``whole``, ``results:N`` (results of calls
            cut to about N characters), ``short`` (results and long arguments by head and tail), ``trimmed:N`` (short,
            and at most N characters of each text) or ``text:N`` (without calls).
        positions: Of a `message` item: which messages of the turn were sent.
        spans: Which characters of the source's text were sent, as (start, end); empty: all of them.
        cut: Characters of the source's text that were left out.
        text: What was sent. In the graph only where it cannot be looked up.
    """

    kind: ContextItemKind
    source: str = ""
    conversation_id: str = ""
    title: str = ""
    turn_index: int = 0
    last_turn: int = 0
    level: int = 0
    date: datetime | None = None
    role: str = "user"
    form: str = ""
    positions: list[int] = []
    spans: list[tuple[int, int]] = []
    tokens: int = 0
    cut: int = 0
    text: str = ""


class ContextSection(msgspec.Struct, kw_only=True):
    """A part of a request, such as the frontier of the summaries or the recalled turns.

    Attributes:
        budget: Tokens it could take, 0 for parts without a limit of their own.
        left_out: How many items had no room.
    """

    name: str
    title: str
    budget: int = 0
    tokens: int = 0
    left_out: int = 0
    items: list[ContextItem] = []


class ContextRecord(msgspec.Struct, kw_only=True):
    """What one request to a model held before the turn's own messages, section by section, as it was sent.

    Attributes:
        budget: Tokens the past could take.
        tokens: Tokens of all sections.
        digest: SHA-256 of the parts of what was sent, as hexadecimal digits.
        whole: All earlier turns of the conversation were sent as they are.
        verified: What was looked up again is what was sent, by its digest.
    """

    conversation_id: str
    turn_index: int
    model: str = ""
    strategy: str = "hybrid"
    whole: bool = False
    budget: int = 0
    tokens: int = 0
    digest: str = ""
    verified: bool = True
    created_at: datetime
    sections: list[ContextSection] = []
