"""What the engine says while it works, as typed events.

One union, tagged by ``type`` in snake case. The screen matches on it in one place, `ask --json` prints it, and
stored turns are replayed as the same events, so a resumed session looks like the live one. Leans on nothing.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from ragforge_tui.errors import ErrorInfo
from ragforge_tui.models import Conversation, FileAccess, Message, Summary, Todo, ToolCall, Topic, Turn, Usage


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class _Event(msgspec.Struct, kw_only=True, tag_field="type", tag=_snake):
    pass


class _TurnEvent(_Event, kw_only=True):
    conversation_id: str
    turn_index: int


class TurnStarted(_TurnEvent):
    """The person's message is stored; the model is asked next."""

    message: Message


class MessageStarted(_TurnEvent):
    """A reply of the model begins; its text follows in deltas."""

    message_id: str
    persona: str = ""
    persona_glyph: str = ""
    persona_color: str = ""
    model: str = ""


class ReasoningDelta(_TurnEvent):
    message_id: str
    text: str


class TextDelta(_TurnEvent):
    message_id: str
    text: str


class MessageFinished(_TurnEvent):
    """A reply ended, in whatever state; `message` is the stored record, its tool calls not yet run."""

    message: Message


class ToolCallStarted(_TurnEvent):
    call: ToolCall


class ToolCallFinished(_TurnEvent):
    """`call.result` is set."""

    call: ToolCall


ApprovalScope = Literal["once", "session"]
ApprovalDecision = Literal["once", "session", "always", "no"]


class ApprovalRequested(_TurnEvent):
    """A tool call waits for the person.

    Attributes:
        question: One plain line, such as ``Edit src/app.py?``.
        detail: A unified diff (kind ``write``), the command (kind ``command``), or the path (kind ``secret``).
        session_scope: What "this session" would cover, in words; empty when it is not offered.
        always: The pattern of commands that "always" would allow for good; empty when it is not offered.
    """

    approval_id: str
    call: ToolCall
    kind: Literal["write", "command", "secret"]
    question: str
    detail: str = ""
    session_scope: str = ""
    always: str = ""


CostScope = Literal["turn", "session"]


class CostLimitReached(_TurnEvent):
    """The next request would go beyond a limit on cost: the turn waits, answered and resolved as an approval is.

    ``once`` makes one more request, ``session`` raises the limit while the engine runs, ``no`` stops the turn.

    Attributes:
        limit: In US dollars, as `spent`.
        raised: The limit that ``session`` would set.
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
    """The provider failed in a way that may pass; asked again in `wait_seconds`."""

    attempt: int
    attempts: int
    wait_seconds: float
    reason: str


class ModelWaiting(_TurnEvent):
    """The provider has been silent for a while; nothing is wrong yet, and a stop ends the wait.

    Attributes:
        server: Who is waited for, as `ChatModel.server` names it.
        seconds: Length of the silence so far.
        begun: The answer had begun before.
    """

    server: str
    seconds: int
    begun: bool = False

    def sentence(self) -> str:
        """Return what is shown, without its full stop."""
        silent = "sent nothing more" if self.begun else "not answered"
        return f"{self.server} has {silent} for {self.seconds} s"


class TurnCompleted(_TurnEvent):
    """`text` is the last reply of the turn; `usage` sums the turn's requests."""

    text: str
    usage: Usage = Usage()


class TurnCancelled(_TurnEvent):
    text: str = ""


class TurnFailed(_TurnEvent):
    error: ErrorInfo
    text: str = ""


class TurnReset(_TurnEvent):
    """More was said than this reader took in: fetch the turn again."""


class TurnElsewhere(_TurnEvent):
    """A turn that another process began or went on with in the conversation that is looked at here.

    Attributes:
        turn: As it is stored by now; said again, with more in it, about once a second while it is answered.
        active: It is still being answered.
        interrupted: It ended without a whole answer: a retry is offered.
    """

    turn: Turn
    active: bool = False
    interrupted: bool = False


class MessageQueued(_Event):
    """A message waits for the turn under way."""

    conversation_id: str
    text: str


class Notice(_Event):
    """A line for the person."""

    text: str
    level: Literal["info", "warning", "error"] = "info"
    conversation_id: str = ""


class TrustRequested(_Event):
    """Instructions found in the workspace (AGENTS.md, a persona) wait to be allowed, once per text.

    Attributes:
        persona: The name of the persona it is about, empty for AGENTS.md.
    """

    root: str
    files: list[str]
    text: str
    persona: str = ""


class ConversationChanged(_Event):
    """Title, status, model, persona or counters changed."""

    conversation: Conversation


class SummaryStarted(_Event):
    """A summary of these turns is being made in the background."""

    conversation_id: str
    level: int
    start_turn_index: int
    end_turn_index: int


class SummaryCreated(_Event):
    """A summary is stored; those it summarises have left the frontier."""

    conversation_id: str
    summary: Summary


class SummaryFailed(_Event):
    """No summary could be stored; it is tried again later."""

    conversation_id: str
    level: int
    start_turn_index: int
    end_turn_index: int
    reason: str


class TopicsChanged(_Event):
    """Topics were proposed, merged or related by a summary of this conversation."""

    conversation_id: str
    topics: list[Topic]


GraphPhase = Literal["starting", "ready", "unreachable", "refused"]


class GraphChanged(_Event):
    """State of the graph. `name` says which ("embedded", or the URI without credentials) and what chose it."""

    phase: GraphPhase
    name: str
    chosen_by: str = ""
    error: ErrorInfo | None = None
    journaled: int = 0
    """Records waiting in the journal to be written in."""


class ModelChanged(_Event):
    """The model that will answer next, and where it came from.

    Attributes:
        phase: ``loading`` while the client library is imported.
        destination: Where what is said goes, in words ("api.openai.com", "this machine").
    """

    phase: Literal["loading", "ready", "failed"]
    name: str
    origin: str = ""
    destination: str = ""
    offline: bool = False
    context_window: int = 0
    error: ErrorInfo | None = None


TurnEnd = TurnCompleted | TurnCancelled | TurnFailed

TurnEvent = (
    TurnStarted
    | MessageStarted
    | ReasoningDelta
    | TextDelta
    | MessageFinished
    | ToolCallStarted
    | ToolCallFinished
    | ApprovalRequested
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

MemoryEvent = SummaryStarted | SummaryCreated | SummaryFailed | TopicsChanged

Event = (
    TurnEvent
    | MemoryEvent
    | TurnElsewhere
    | MessageQueued
    | Notice
    | TrustRequested
    | ConversationChanged
    | GraphChanged
    | ModelChanged
)
