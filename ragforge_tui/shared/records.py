"""Records that every part of the program shares: conversations, messages, tool calls, results, summaries, topics.

They mirror the labels and properties of the graph and cross the pipe between engine and screen unchanged. Times are
timezone-aware UTC.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Literal

import msgspec

from ragforge_tui.shared.json_text import decode_json

Role = Literal["user", "assistant", "system"]
MessageState = Literal["complete", "streaming", "interrupted", "failed", "superseded"]
ConversationStatus = Literal["active", "archived", "deleted"]
FileAccessKind = Literal["read", "write", "search", "list"]
TodoStatus = Literal["pending", "in_progress", "completed"]

EXTRACTIVE = "extractive"
"""Author recorded for a summary that was extracted without a model."""
TITLE_CHARS = 60
"""Most characters of a conversation's or a summary's title."""
SHORT_ID = 8
"""Characters of an id that are shown; a user may give as few."""
PURGE_AFTER_DAYS = 7
"""Days from the deletion of a conversation until it is purged."""


def now() -> datetime:
    """Return the current time as a timezone-aware UTC datetime."""
    return datetime.now(UTC)


class Conversation(msgspec.Struct, kw_only=True):
    """Conversation without its messages."""

    uuid: str
    title: str = ""
    tags: list[str] = []
    status: ConversationStatus = "active"
    summary: str = ""
    summary_made_by: str = ""
    """Name of the model that wrote `summary`, or `EXTRACTIVE`; empty if that is unknown."""
    created_at: datetime
    updated_at: datetime
    message_count: int = 0
    total_chars: int = 0
    next_turn: int = 1
    """Turn index of the next user message; turns count from 1."""
    persona: str = ""
    model: str = ""
    workspace: str = ""
    owner: str = ""
    private: bool = False
    branch_of: str | None = None
    branch_turn: int | None = None
    helper_of: str = ""
    """Id of the tool call that started it as a helper of the agent; such a conversation is not listed."""
    deleted_at: datetime | None = None
    """Time of the deletion, which hides it at once; it is purged `PURGE_AFTER_DAYS` later."""


class FileAccess(msgspec.Struct, frozen=True, kw_only=True):
    """Access of a tool call to a file. `path` is relative to the workspace, with forward slashes."""

    path: str
    access: FileAccessKind


class LineChange(msgspec.Struct, frozen=True, kw_only=True):
    """Change of a file's lines by one call, from which `blame` finds the turn that wrote a line.

    Attributes:
        path: As in `FileAccess`.
        before: SHA-256 of the earlier content; empty for a missing file, as in `after`.
        hunks: The changed lines, without their text; see `tools.line_changes`.
    """

    path: str
    before: str
    after: str
    hunks: str


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """Commit of a git repository. Author and subject are foreign text.

    Attributes:
        trailer: Conversation and turn that its message names, if it does: ``<id> t<turn>``.
    """

    hash: str
    author: str = ""
    subject: str = ""
    committed_at: datetime
    trailer: str = ""


class ToolResult(msgspec.Struct, kw_only=True):
    """Result of a tool call.

    Attributes:
        result: JSON text of an object ``{"text": …}``, where `text` is what the model received. A tool may add
            ``diff`` (unified), ``exit_status``, ``todos``, ``before`` and ``after`` (digests of file contents
            stored for undo), ``commits`` (a list of `Commit`), ``remembered`` (the line of memory that the user and the
            model got) and ``truncated`` (full size in bytes if the text was cut).
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
    """Call of a tool. `result` is None while it runs, or if a crash lost its outcome."""

    uuid: str
    message_id: str
    tool_name: str
    arguments: str
    """JSON text exactly as the model wrote it, possibly malformed."""
    reasoning: str = ""
    iteration: int = 1
    ordinal: int = 0
    timestamp: datetime
    duration_ms: int | None = None
    success: bool | None = None
    result: ToolResult | None = None
    files: list[FileAccess] = []
    changes: list[LineChange] = []
    """Lines that it changed: only on the way to the graph, and in an export."""


REFUSED = "refused by the person"
"""Error of a call that the user refused; the user's feedback may follow after a colon. A stored value."""
REFUSED_BECAUSE = "refused: "
"""Prefix of the error of a call that was refused without asking the user; the reason follows. A stored value."""
STOPPED = "stopped"
"""Error of a call that was stopped before it finished. A stored value."""
CallEnd = Literal["ok", "failed", "refused", "stopped", "unknown"]


def call_end(call: ToolCall) -> CallEnd:
    """Return the outcome of a call; ``unknown`` also while it runs. A call that was not allowed to run did not fail."""
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
    """Tokens and cost of one request.

    Attributes:
        input_tokens: Tokens sent, `cached_tokens` of them read from the provider's cache.
        output_tokens: Tokens received, `reasoning_tokens` of them for reasoning where the provider counts it.
        cost_usd: None if the price is unknown.
        retries: How often the request was sent again before it was answered.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None
    reasoning_tokens: int = 0
    retries: int = 0


class Message(msgspec.Struct, kw_only=True):
    """Message of the user, or one reply of the model with its tool calls."""

    uuid: str
    conversation_id: str
    turn_index: int = 0
    """Counts from 1; 0 until the store has allocated it."""
    position: int = 0
    """Order within the turn: 0 is the user's message."""
    role: Role
    content: str = ""
    doing: str = ""
    """Tool that a user's message runs directly, without a request to a model; else empty."""
    material: str = ""
    """Ranges of a user's message that the user did not type, such as pastes and standard input, as JSON."""
    note: str = ""
    """Text sent with a user's message in requests: changes of mode, date and workspace. Not shown in the chat."""
    reasoning: str = ""
    state: MessageState = "complete"
    writer: str = ""
    """Process that writes a streaming message: ``host|boot id|pid|start time``."""
    lease_until: datetime | None = None
    timestamp: datetime
    token_count: int = 0
    """Tokens of `content`; what a reply cost, its reasoning and calls included, is in `usage`."""
    char_count: int = 0
    persona: str = ""
    persona_glyph: str = ""
    """Glyph of the persona at the time of the reply, as `persona_color` is its colour then."""
    persona_color: str = ""
    model: str = ""
    error: str = ""
    failed_tests: str = ""
    """Outcome of the last test run of its turn, if that failed; on the answer that ends the turn."""
    recalled: str = ""
    """Memory recalled for a turn's first reply: a JSON list of `RecalledPlace`; empty without other conversations."""
    usage: Usage | None = None
    tool_calls: list[ToolCall] = []

    @property
    def materials(self) -> list[str]:
        """The texts in a user's message that the user did not type."""
        try:
            ranges = decode_json(self.material, list[tuple[int, int]]) if self.material else []
        except msgspec.MsgspecError:
            return [self.content]
        return [text for start, end in ranges if (text := self.content[start:end])]

    @property
    def typed(self) -> str:
        """Typed part of a message: only that is the user's word."""
        text = self.content
        for material in self.materials:
            text = text.replace(material, "\n")
        return text


def material_ranges(content: str, materials: Iterable[str]) -> str:
    """Return `Message.material` of a message that holds these texts; all of it counts if one cannot be found."""
    starts = [(content.find(text), len(text)) for text in materials if text]
    ranges = [(at, at + size) if at >= 0 else (0, len(content)) for at, size in starts]
    return msgspec.json.encode(ranges).decode() if ranges else ""


RECALLED = frozenset({"findings", "summaries", "recalled"})
"""Sections of a request that recall fills; the frontier is always sent."""


class RecalledPlace(msgspec.Struct, frozen=True, omit_defaults=True):
    """Amount of memory that was recalled from one conversation for a request.

    Attributes:
        conversation_id: Empty for the conversation of the request.
        turn_index: The first of its recalled turns.
        turns: Number of recalled turns; `notes` of its summaries and findings.
    """

    conversation_id: str = ""
    title: str = ""
    turn_index: int = 0
    turns: int = 0
    notes: int = 0


def recalled_places(recalled: str) -> list[RecalledPlace]:
    """Return the places in `Message.recalled`; none if it is empty or unreadable."""
    try:
        return decode_json(recalled, list[RecalledPlace]) if recalled else []
    except msgspec.MsgspecError:
        return []


class Turn(msgspec.Struct, kw_only=True):
    """Messages of one turn index, in order of position."""

    turn_index: int
    messages: list[Message] = []


class Todo(msgspec.Struct, frozen=True, kw_only=True):
    """Entry of the agent's plan."""

    content: str
    status: TodoStatus = "pending"


class ConversationFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Filter for listing conversations; the defaults select the active ones, newest first."""

    status: ConversationStatus | Literal["any"] = "active"
    tags: list[str] = []
    """Conversations with any of these tags; empty: all."""
    query: str = ""
    """Words searched for in title and summary, ignoring case."""
    workspace: str | None = None
    since: datetime | None = None
    """Only those that changed at this time or later."""
    until: datetime | None = None
    """Only those that began before this time."""
    order: Literal["updated", "created"] = "updated"
    limit: int = 50


class ConversationPeek(msgspec.Struct, frozen=True, kw_only=True):
    """First and last message of a conversation; texts are cut, and empty without a message."""

    conversation: Conversation
    first: str = ""
    last: str = ""
    last_role: Role = "user"


class ConversationChanges(msgspec.Struct, frozen=True, kw_only=True):
    """Conversations that changed since a point in time, and the count of all, changed or not."""

    changed: list[Conversation]
    count: int


class ConversationPulse(msgspec.Struct, frozen=True, kw_only=True):
    """Data for detecting changes of a conversation: its record, and the number of summaries stored so far."""

    conversation: Conversation
    summaries: int = 0


class SearchHit(msgspec.Struct, frozen=True, kw_only=True):
    """Message that matches a search.

    Attributes:
        snippet: Plain text around the best match, at most 300 characters.
        highlights: (start, end) offsets of matched words in `snippet`.
        score: Score of the full-text index, comparable within one search only.
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


FindingKind = Literal["", "decision", "fact", "preference", "open"]
"""Kind of a finding; ``open`` is a task or question that was still open, empty means unknown."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Statement worth knowing later, with the turns it comes from. Stored as ``decision: text [t3, t4]``."""

    text: str
    turns: list[int] = []
    kind: FindingKind = ""


class Summary(msgspec.Struct, kw_only=True):
    """Summary of consecutive turns (level 1), or of consecutive summaries of the next lower level.

    Attributes:
        ordinal: Number within the level, from 1, in order of the turns.
        title: Three to six words, at most 60 characters.
        conversation_summary: Questions and answers, in at most 500 characters.
        actions_summary: Tool use and its reasons, in at most 500 characters; empty if no tool was used.
        start_turn_index: First turn covered; ranges are inclusive.
        char_range_start: Offset of the first turn in the user and assistant text of the conversation.
        parent_summaries: Ids of the lower-level summaries that this one summarises; empty at level 1.
        parent: Id of the summary that summarises this one; empty while this one is on the frontier.
        made_by: Name of the model, or `EXTRACTIVE`.
    """

    uuid: str
    conversation_id: str
    level: int
    ordinal: int = 0
    title: str = ""
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


class Insight(msgspec.Struct, kw_only=True):
    """Main topic, findings and open tasks of one whole conversation.

    Attributes:
        key_findings: Decisions, facts and preferences, with the turns they come from.
        action_items: Open tasks, with the turns that mention them.
        made_by: Name of the model, or `EXTRACTIVE`.
        tried: For an extract: the model whose answers could not be used, so that it is not asked again.
        up_to_turn: The last turn that was read.
        fingerprint: State of the conversation that was read; see `fingerprint`.
    """

    uuid: str
    conversation_id: str
    main_topic: str
    key_findings: list[Finding] = []
    action_items: list[Finding] = []
    made_by: str = ""
    tried: str = ""
    up_to_turn: int = 0
    fingerprint: str = ""
    created_at: datetime


def fingerprint(conversation: Conversation) -> str:
    """Return a text that changes with every message: last turn, messages and characters. Import and export keep it."""
    return f"{conversation.next_turn - 1}.{conversation.message_count}.{conversation.total_chars}"


class RelatedTopic(msgspec.Struct, frozen=True, kw_only=True):
    """Topic related to another one; with the relation ``merged``, a topic that was merged into it."""

    uuid: str
    name: str
    relation: Literal["related", "merged"] = "related"
    confidence: float = 1.0
    reason: str = ""


class Topic(msgspec.Struct, kw_only=True):
    """Subject that summaries have in common."""

    uuid: str
    name: str
    description: str = ""
    aliases: list[str] = []
    created_at: datetime
    summaries: int = 0
    """Number of summaries that have it; 0 if they were not counted."""
    conversations: int = 0
    related: list[RelatedTopic] = []
    similarity: float | None = None
    """Cosine to the query that found it; None if it was found by its words."""


class SimilarConversation(msgspec.Struct, frozen=True, kw_only=True):
    """Conversation similar to another one, or to a text.

    Attributes:
        score: The cosine similarity of their summaries; for a text also the share of its words in title and summary,
            times 0.9, if that is more.
    """

    conversation: Conversation
    score: float


class AccessedFile(msgspec.Struct, frozen=True, kw_only=True):
    """File of the workspace with the agent's last access, in the group it is displayed in."""

    path: str
    group: Literal["read", "modified", "found"]
    tool: str
    turn_index: int
    timestamp: datetime
    count: int = 1
    """Number of accesses by tools and mentions in the conversation."""
    removed: bool = False
    """Whether a file that the agent modified no longer exists."""


ContextItemKind = Literal[
    "system",
    "instructions",
    "persona",
    "tools",
    "environment",
    "message",
    "goal",
    "finding",
    "summary",
    "turn",
    "query",
    "file",
    "topic",
    "code",
    "note",
    "frame",
]


NOT_SEARCHED = "were not searched"
"""In each sentence on a search that matters and did not run, or came too late."""


class ContextItem(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Piece of a request to the model, with its source.

    Attributes:
        source: Id of the message, summary or topic it was taken from; a path; or the digest of a text that is stored
            once, such as the instructions.
        turn_index: Turn it represents, 0 for none; for a summary, the first turn covered.
        last_turn: For a summary: the last turn covered.
        role: Role under which it was sent.
        age: For a summary, how long ago its last turn was when it was sent.
        form: For a `message` item, a turn sent as real messages: ``whole``, ``reasoned`` (with the model's reasoning),
            ``results:N`` (results of calls cut to about N characters), ``short`` (results and long arguments by head
            and tail), ``texts:N`` (short, and at most N characters of each text) or ``text:N`` (without calls). For
            any item: ``kept``, when its text is stored because its source no longer yields it.
        positions: For a `message` item: the messages of the turn that were sent.
        spans: Characters of the source's text that were sent, as (start, end); empty: all of them.
        cut: Number of characters of the source's text that were left out.
        text: Text as sent. The graph stores it only if it cannot be looked up.
    """

    kind: ContextItemKind
    source: str = ""
    conversation_id: str = ""
    title: str = ""
    turn_index: int = 0
    last_turn: int = 0
    level: int = 0
    age: str = ""
    date: datetime | None = None
    role: str = "user"
    form: str = ""
    positions: list[int] = []
    spans: list[tuple[int, int]] = []
    tokens: int = 0
    cut: int = 0
    text: str = ""


class ContextSection(msgspec.Struct, kw_only=True):
    """Part of a request, such as the frontier of the summaries or the recalled turns.

    Attributes:
        budget: Most tokens for this part; 0 without a limit of its own.
        left_out: Number of items that did not fit.
    """

    name: str
    title: str
    budget: int = 0
    tokens: int = 0
    left_out: int = 0
    items: list[ContextItem] = []


class ContextRecord(msgspec.Struct, kw_only=True):
    """Content of one request to a model before the turn's own messages, by section, as sent.

    Attributes:
        budget: Most tokens for the past.
        tokens: Tokens of the past: the earlier turns and the memory block. `sent_tokens` counts all.
        digest: SHA-256 of the parts as sent, as hexadecimal digits.
        whole: Whether all earlier turns of the conversation were sent unchanged.
        verified: Whether the texts looked up again have the digest of those sent.
        missing: Searches that failed or took too long, so that their results are not in the request; a sentence each.
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
    missing: list[str] = []
    created_at: datetime
    sections: list[ContextSection] = []

    @property
    def unsearched(self) -> list[str]:
        """Those of `missing` about relevant searches that did not run, for user and model."""
        return [sentence for sentence in self.missing if NOT_SEARCHED in sentence]

    @property
    def sent_tokens(self) -> int:
        return sum(section.tokens for section in self.sections)
