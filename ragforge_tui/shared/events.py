"""Events that the engine emits while it works.

All form one union, tagged by ``type`` in snake case. The screen dispatches them in one place, `ask --json` prints
them, and stored turns are replayed as the same events, so that a resumed session looks like a live one. Depends on
the record types alone.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Literal

import msgspec

from ragforge_tui.shared.errors import ErrorInfo
from ragforge_tui.shared.past_records import InsightEntry
from ragforge_tui.shared.prompts import OwnPrompt
from ragforge_tui.shared.records import Conversation, FileAccess, Message, Summary, Todo, ToolCall, Topic, Turn, Usage


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class _Event(msgspec.Struct, kw_only=True, tag_field="type", tag=_snake):
    pass


class _TurnEvent(_Event, kw_only=True):
    conversation_id: str
    turn_index: int


class TurnStarted(_TurnEvent):
    """The user's message is stored; a request to the model follows."""

    message: Message


class Steered(_TurnEvent):
    """A message of the user joined the running turn; the next request to the model holds it."""

    message: Message


class MessageStarted(_TurnEvent):
    """A reply of the model starts; its text follows in deltas. For `recalled` see `Message.recalled`."""

    message_id: str
    persona: str = ""
    persona_glyph: str = ""
    persona_color: str = ""
    model: str = ""
    recalled: str = ""


class ReasoningDelta(_TurnEvent):
    message_id: str
    text: str


class TextDelta(_TurnEvent):
    message_id: str
    text: str


class MessageFinished(_TurnEvent):
    """A reply ended, in any state; `message` is the stored record, and its tool calls have not run yet."""

    message: Message


class ToolCallStarted(_TurnEvent):
    call: ToolCall


class ToolCallOutput(_TurnEvent):
    """A running call has printed something.

    Attributes:
        lines: Its last lines so far, each without its line end.
    """

    call_id: str
    lines: list[str]


class ToolCallFinished(_TurnEvent):
    """A tool call ended; `call.result` is set."""

    call: ToolCall


ApprovalDecision = Literal["once", "session", "always", "no"]


class ApprovalRequested(_TurnEvent):
    """A tool call waits for the user's approval.

    Attributes:
        question: One plain line, such as ``Edit src/app.py?``.
        detail: A unified diff (kind ``write``), the command (kind ``command``), the path (kind
            ``secret``), or the address (kind ``web``).
        remembered: What memory knows about it, such as "This command needed `-p 1` last time (t3)"; usually empty.
        session_scope: Description of what "this session" would allow; empty if it is not offered.
        always: What "always" would allow in this workspace: kinds of programs and patterns, as rules name them, one for
            each command of a chain that is not allowed yet; empty if it is not offered.
        batch: Shared by the calls of one reply that are asked about together; empty for a call alone. A refusal with
            a reason refuses the calls of the batch that have no answer yet, too.
    """

    approval_id: str
    call: ToolCall
    kind: Literal["write", "command", "secret", "web"]
    question: str
    detail: str = ""
    remembered: str = ""
    session_scope: str = ""
    always: list[str] = []
    batch: str = ""


class AskedChoice(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that the agent offers. Both texts are the model's."""

    label: str
    description: str = ""


class QuestionAsked(_TurnEvent):
    """The agent asks the user; its call waits for the answer, which is given as that of an approval.

    The decision ``once`` comes with the answer as its feedback.
    """

    approval_id: str
    call: ToolCall
    question: str
    choices: list[AskedChoice] = []
    draft: str = ""
    """Text that an answer of the user's own starts with."""


CostScope = Literal["turn", "session"]


class CostLimitReached(_TurnEvent):
    """The next request would exceed a cost limit; the turn waits for a decision, as for an approval.

    ``once`` makes one more request, ``session`` raises the limit while the engine runs, ``no`` stops the turn.

    Attributes:
        limit: The limit in US dollars.
        spent: US dollars spent so far.
        raised: The limit in US dollars that ``session`` would set.
    """

    approval_id: str
    scope: CostScope
    limit: float
    spent: float
    raised: float


class ApprovalResolved(_TurnEvent):
    approval_id: str
    decision: ApprovalDecision


class TodosUpdated(_TurnEvent):
    todos: list[Todo]


class FilesAccessed(_TurnEvent):
    files: list[FileAccess]


class ModelRetry(_TurnEvent):
    """The provider failed temporarily, or limits requests; the request is sent again in `wait_seconds`."""

    attempt: int
    attempts: int
    wait_seconds: float
    reason: str
    limited: bool = False


class ModelWaiting(_TurnEvent):
    """The provider has sent nothing for a while. This is not an error yet; the user can stop the turn.

    Attributes:
        server: Name of the server, as in `ChatModel.server`.
        seconds: Length of the silence so far.
        begun: Whether the reply had started.
    """

    server: str
    seconds: int
    begun: bool = False

    def sentence(self) -> str:
        """Return the sentence shown to the user, without its full stop."""
        silent = "sent nothing more" if self.begun else "not answered"
        return f"{self.server} has {silent} for {self.seconds} s"


class TurnCompleted(_TurnEvent):
    """The turn is complete. `text` is its last reply; `usage` is the total of its requests."""

    text: str
    usage: Usage = Usage()


class TurnCancelled(_TurnEvent):
    text: str = ""


class TurnFailed(_TurnEvent):
    error: ErrorInfo
    text: str = ""


class TurnReset(_TurnEvent):
    """The reader fell behind and events were dropped: the turn must be fetched again."""


class TurnsMoved(_Event):
    """Turns that began without the graph have their final indexes, which differ from those shown so far.

    Attributes:
        moved: New indexes by those of the events so far; later events of a running turn carry the new one.
    """

    conversation_id: str
    moved: dict[int, int]


class TurnElsewhere(_TurnEvent):
    """Another process started or continued a turn of the conversation that is open here.

    Attributes:
        turn: The turn as stored so far; sent again about once a second while it is being answered.
        active: Whether it is still being answered.
        interrupted: Whether it ended without a complete answer, so that a retry is offered.
    """

    turn: Turn
    active: bool = False
    interrupted: bool = False


class MessageQueued(_Event):
    """A message waits for the current turn to end."""

    conversation_id: str
    text: str


class Notice(_Event):
    """Line of text for the user."""

    text: str
    level: Literal["info", "warning", "error"] = "info"
    conversation_id: str = ""


class TrustRequested(_Event):
    """Instructions found in the workspace (AGENTS.md, a persona) need the user's permission, once for each text.

    Attributes:
        persona: Name of the persona, empty for anything else.
        question: What is asked; empty for AGENTS.md and a persona, whose question the screen knows.
    """

    root: str
    files: list[str]
    text: str
    persona: str = ""
    question: str = ""


class OwnPromptsFound(_Event):
    """All skills and own commands that can be used now; more follow once the user has allowed those of the project."""

    prompts: list[OwnPrompt]


class ConversationChanged(_Event):
    """Title, status, model, persona or counters of a conversation changed."""

    conversation: Conversation


class SummaryStarted(_Event):
    """A summary of these turns is being written in the background."""

    conversation_id: str
    level: int
    start_turn_index: int
    end_turn_index: int


class SummaryCreated(_Event):
    """A summary is stored; the summaries it covers have left the frontier."""

    conversation_id: str
    summary: Summary


class TurnsCondensed(_Event):
    """Older turns no longer fit into the request: summaries stand for them from now on.

    Attributes:
        last_turn: The last turn that is not sent whole; it began with turn 1.
        summaries: Number of summaries that stand for them.
    """

    conversation_id: str
    last_turn: int
    summaries: int


class SummaryFailed(_Event):
    """A summary could not be stored; it will be retried later."""

    conversation_id: str
    level: int
    start_turn_index: int
    end_turn_index: int
    reason: str


class TopicsChanged(_Event):
    """Topics of this conversation were proposed, merged, related or split."""

    conversation_id: str
    topics: list[Topic]


class FindingsChanged(_Event):
    """Findings of this conversation were noted, closed, replaced or forgotten."""

    conversation_id: str


class InsightsProgress(_Event):
    """A run over past conversations has made so many of its insights; `entry` is the newest one."""

    done: int
    total: int
    entry: InsightEntry | None = None


class MemoryProgress(_Event):
    """A conversation's memory is being loaded, or its vectors made.

    Attributes:
        left: What cannot be searched yet, as a sentence; empty once all can be.
        percent: Share that is done.
    """

    conversation_id: str
    left: str = ""
    percent: int = 100


GraphPhase = Literal["starting", "ready", "unreachable", "refused"]


class GraphChanged(_Event):
    """State of the graph changed.

    Attributes:
        name: "embedded", or the URI without credentials.
        chosen_by: The setting, variable or flag that selected this graph.
    """

    phase: GraphPhase
    name: str
    chosen_by: str = ""
    error: ErrorInfo | None = None
    journaled: int = 0
    """Number of records in the journal that are not in the graph yet."""


class ModelChanged(_Event):
    """The model for the next turn changed.

    Attributes:
        phase: ``loading`` while the client library is imported.
        origin: The setting, variable or discovery that selected the model.
        destination: Server that receives the conversation ("api.openai.com", "this machine").
        window_learned: When a rejected request showed that the window is smaller than configured; None if it is as
            configured.
        window_assumed: Whether neither settings, nor the model's server, nor any table tell the window.
    """

    phase: Literal["loading", "ready", "failed"]
    name: str
    origin: str = ""
    destination: str = ""
    offline: bool = False
    context_window: int = 0
    window_learned: datetime | None = None
    window_assumed: bool = False
    error: ErrorInfo | None = None


class ProcessesChanged(_Event):
    """A background process of the agent started or ended; so many run now."""

    running: int


CodePhase = Literal[
    "off", "waiting", "looking", "reading", "linking", "embedding", "ready", "elsewhere", "left_out", "failed"
]


class CodeIndexChanged(_Event):
    """State of the index of the workspace's code changed.

    Attributes:
        phase: What the index does: look for changed files, read them, link references, make vectors. It is ``ready``
            when there is nothing to do, ``waiting`` for the graph, kept by a process ``elsewhere``, ``left_out`` where
            the folder ended the process that reads it, or ``failed``.
        done: Files done in this phase, of `todo`.
        files: Files in the index, with their `scopes`, `references`, and the names that no scope explains.
        problem: What the user should know; empty if nothing.
    """

    phase: CodePhase
    workspace: str = ""
    done: int = 0
    todo: int = 0
    files: int = 0
    scopes: int = 0
    references: int = 0
    unresolved: int = 0
    vectors: int = 0
    problem: str = ""

    @property
    def running(self) -> bool:
        return self.phase in ("looking", "reading", "linking", "embedding")


TurnEnd = TurnCompleted | TurnCancelled | TurnFailed

TurnEvent = (
    TurnStarted
    | Steered
    | MessageStarted
    | ReasoningDelta
    | TextDelta
    | MessageFinished
    | ToolCallStarted
    | ToolCallOutput
    | ToolCallFinished
    | ApprovalRequested
    | QuestionAsked
    | CostLimitReached
    | ApprovalResolved
    | TodosUpdated
    | FilesAccessed
    | ModelRetry
    | ModelWaiting
    | TurnCompleted
    | TurnCancelled
    | TurnFailed
    | TurnReset
)

MemoryEvent = (
    MemoryProgress
    | SummaryStarted
    | SummaryCreated
    | SummaryFailed
    | TurnsCondensed
    | TopicsChanged
    | FindingsChanged
    | InsightsProgress
)

Event = (
    TurnEvent
    | MemoryEvent
    | TurnElsewhere
    | TurnsMoved
    | MessageQueued
    | Notice
    | TrustRequested
    | OwnPromptsFound
    | ConversationChanged
    | GraphChanged
    | ModelChanged
    | CodeIndexChanged
    | ProcessesChanged
)
