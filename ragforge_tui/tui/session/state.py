"""State of the chat: connection, conversation, running turns, cost.

Pure. `EngineSession` updates it; header, status line and panes are drawn from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from ragforge_tui.shared.events import (
    ConversationChanged,
    Event,
    GraphChanged,
    MessageFinished,
    MessageStarted,
    ModelChanged,
    ReasoningDelta,
    SummaryCreated,
    SummaryFailed,
    SummaryStarted,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
    TurnReset,
)
from ragforge_tui.shared.records import Conversation, Message, Usage
from ragforge_tui.shared.requests.tree import MemoryDue
from ragforge_tui.shared.wire import Mode

Activity = Literal["idle", "thinking", "answering", "running", "waiting"]
Connection = Literal["starting", "up", "lost", "closing"]


class Spent(msgspec.Struct):
    """Tokens and cost in US dollars since the chat started."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0

    def add(self, usage: Usage | None) -> None:
        """Add the usage of one request."""
        if usage is not None:
            self.input_tokens += usage.input_tokens
            self.output_tokens += usage.output_tokens
            self.cost += usage.cost_usd or 0.0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


class ChatState(msgspec.Struct):
    """Everything that header, status line, panes and commands need to know; one per chat screen.

    Attributes:
        opening: The conversation requested at the start is not loaded yet.
        first_turn: Lowest turn index of the open conversation.
        persona: The persona of the next conversation.
        persona_looks: Glyph and color of each persona, by name.
        running: Turns that this engine is answering, by conversation.
        followed: A turn that another process answers.
        summarising: Summaries being written for the open conversation, by level and first turn.
        due: What the summarizer is waiting for; None while unknown.
        mode: What the agent may do without asking.
        mode_unsent: The engine does not know the mode yet.
        questions: Number of questions waiting for the user; `asked_now`: the first of them has the focus.
        looked_for: The last text searched for in a conversation.
        editing: The turn whose message is being edited in the prompt, 0 for none.
        context_used: Tokens of the last request of the open conversation; 0 while unknown.
        stale: Events of the running turn were missed: it is read again when it ends.
        last_deleted: Id of the conversation deleted last here, empty for none.
        refusable_persona: A project persona that waits for the user's consent, and the persona before it.
        deleted_persona: The deleted persona that was speaking, and its replacement.
        hint: A word shown in the status line for a moment.
    """

    connection: Connection = "starting"
    conversation: Conversation | None = None
    opening: bool = False
    first_turn: int = 1
    persona: str = ""
    persona_looks: dict[str, tuple[str, str]] = {}
    model: ModelChanged | None = None
    graph: GraphChanged | None = None
    running: dict[str, int] = {}
    followed: int | None = None
    mode: Mode = "ask"
    mode_unsent: bool = False
    stale: bool = False
    tools: set[str] = set()
    summarising: set[tuple[int, int]] = set()
    due: MemoryDue | None = None
    answering: bool = False
    questions: int = 0
    asked_now: bool = False
    looked_for: str = ""
    turn_started: float | None = None
    editing: int = 0
    context_used: int = 0
    spent: Spent = msgspec.field(default_factory=Spent)
    last_deleted: str = ""
    refusable_persona: tuple[str, str] = ("", "")
    deleted_persona: tuple[str, str] = ("", "")
    hint: str = ""

    @property
    def conversation_id(self) -> str:
        """Id of the open conversation, or an empty string."""
        return self.conversation.uuid if self.conversation else ""

    @property
    def speaker(self) -> str:
        return (self.conversation.persona if self.conversation else "") or self.persona

    @property
    def closing(self) -> bool:
        return self.connection == "closing"

    @property
    def busy(self) -> bool:
        """Whether a turn of the open conversation is running."""
        return self.followed is not None or self.conversation_id in self.running

    @property
    def ready(self) -> bool:
        """Whether the engine accepts messages; without a graph it keeps a journal, so only the start has to wait."""
        return self.connection == "up" and self.graph is not None and self.graph.phase != "starting"

    @property
    def activity(self) -> Activity:
        """The current activity."""
        if self.questions:
            return "waiting"
        if not self.busy:
            return "idle"
        if self.tools:
            return "running"
        return "answering" if self.answering else "thinking"

    def take_in(self, event: Event) -> None:
        """Update what an event changes by itself; starts and ends of turns are the session's."""
        here = getattr(event, "conversation_id", "") == self.conversation_id
        match event:
            case MessageStarted() | ReasoningDelta() | TextDelta():
                if here:
                    self.answering = isinstance(event, TextDelta)
            case MessageFinished():
                self.spent.add(event.message.usage)
                if here:
                    self.context_used = sent_tokens([event.message]) or self.context_used
            case ToolCallStarted():
                if here:
                    self.tools.add(event.call.uuid)
            case ToolCallFinished():
                self.tools.discard(event.call.uuid)
            case SummaryStarted():
                if here:
                    self.summarising.add((event.level, event.start_turn_index))
            case SummaryCreated(summary=summary):
                self.summarising.discard((summary.level, summary.start_turn_index))
            case SummaryFailed():
                self.summarising.discard((event.level, event.start_turn_index))
            case ConversationChanged():
                if event.conversation.uuid == self.conversation_id:
                    self.conversation = event.conversation
            case TurnReset():
                self.stale = self.stale or here
            case _:
                pass

    def turn_starts(self, conversation_id: str, turn_index: int, clock: float) -> None:
        """Note that this engine started a turn at `clock` seconds."""
        self.running[conversation_id] = turn_index
        if conversation_id == self.conversation_id:
            self._clear_turn()
            self.turn_started = clock

    def turn_ends(self, conversation_id: str) -> None:
        """Note that a turn ended, for whatever reason."""
        self.running.pop(conversation_id, None)
        if conversation_id == self.conversation_id:
            self._clear_turn()

    def leave_conversation(self) -> None:
        """Forget the open conversation; a mode chosen for the next one stays."""
        self.conversation = None
        self.editing = 0
        self.context_used = 0
        if not self.mode_unsent:
            self.mode = "ask"
        self.summarising.clear()
        self.due = None
        self.followed = None
        self.stale = False
        self._clear_turn()

    def engine_lost(self) -> None:
        """Forget what only the lost engine knew: running turns, summaries, questions."""
        self.connection = "lost"
        self.mode_unsent = self.mode != "ask"
        self.running.clear()
        self.summarising.clear()
        self.followed = None
        self.stale = False
        self.questions = 0
        self.asked_now = False
        self._clear_turn()

    def _clear_turn(self) -> None:
        self.tools.clear()
        self.answering = False
        self.turn_started = None


def sent_tokens(messages: Iterable[Message]) -> int:
    """Return the tokens of the last request among these messages, 0 if no provider counted any."""
    counted = [message.usage.input_tokens for message in messages if message.usage is not None]
    return next((tokens for tokens in reversed(counted) if tokens), 0)
