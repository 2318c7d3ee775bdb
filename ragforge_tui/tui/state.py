"""What the screen knows: connection, conversation, what is going on, what it cost.

Pure. `dispatch` and the controller change it, header and status line are drawn from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from ragforge_tui.events import GraphChanged, ModelChanged
from ragforge_tui.models import Conversation, Message, Usage
from ragforge_tui.protocol import Mode
from ragforge_tui.requests.tree import MemoryDue

Activity = Literal["idle", "thinking", "answering", "running", "waiting"]
Connection = Literal["starting", "up", "lost", "closing"]


class Spent(msgspec.Struct):
    """Tokens and money since this chat was started."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0

    def add(self, usage: Usage | None) -> None:
        """Count one request."""
        if usage is not None:
            self.input_tokens += usage.input_tokens
            self.output_tokens += usage.output_tokens
            self.cost += usage.cost_usd or 0.0

    @property
    def tokens(self) -> int:
        """Both directions."""
        return self.input_tokens + self.output_tokens


class ChatState(msgspec.Struct):
    """All of it; one per screen.

    Attributes:
        opening: A conversation that was asked for at the start is not there yet.
        persona: Who speaks in a new conversation.
        looks: Glyph and colour of each persona, by name.
        running: Turns this engine is answering, by conversation.
        followed: A turn another process answers, which is polled.
        summarising: Summaries being made for the open conversation, by level and first turn.
        due: What the summariser waits for; None while it is not known.
        mode: What the agent may do without asking.
        mode_unsent: The engine was not told of it yet, or is a new one that knows nothing.
        questions: How many wait for the person; `asked_now`: the first of them has the keyboard.
        looked_for: What was looked for last in a conversation.
        editing: The turn whose message is being written anew in the prompt, 0 for none.
        context_used: Tokens of the last request of the open conversation; 0 while none is known.
        stale: Events of the turn under way were missed: fetch it again when it ends.
    """

    connection: Connection = "starting"
    conversation: Conversation | None = None
    opening: bool = False
    persona: str = ""
    looks: dict[str, tuple[str, str]] = {}
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
    hint: str = ""

    @property
    def conversation_id(self) -> str:
        """Of the open conversation, or an empty string."""
        return self.conversation.uuid if self.conversation else ""

    @property
    def closing(self) -> bool:
        """Whether the person is leaving."""
        return self.connection == "closing"

    @property
    def busy(self) -> bool:
        """Whether a turn of the open conversation is under way."""
        return self.followed is not None or self.conversation_id in self.running

    @property
    def ready(self) -> bool:
        """Whether a message can be given to the engine; without a graph it keeps a journal, so only a start waits."""
        return self.connection == "up" and self.graph is not None and self.graph.phase != "starting"

    @property
    def activity(self) -> Activity:
        """What is going on, in one word."""
        if self.questions:
            return "waiting"
        if not self.busy:
            return "idle"
        if self.tools:
            return "running"
        return "answering" if self.answering else "thinking"

    def turn_begins(self, conversation_id: str, turn_index: int, clock: float) -> None:
        """A turn of this engine starts."""
        self.running[conversation_id] = turn_index
        if conversation_id == self.conversation_id:
            self._clear_turn()
            self.turn_started = clock

    def turn_ends(self, conversation_id: str) -> None:
        """It ended, however."""
        self.running.pop(conversation_id, None)
        if conversation_id == self.conversation_id:
            self._clear_turn()

    def leave_conversation(self) -> None:
        """Nothing is open any more; a mode that was chosen for what comes next stays."""
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
        """The engine ended: no turn is under way, nothing waits for an answer."""
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
    """Tokens of the last request among these messages, 0 when no provider counted any."""
    counted = [message.usage.input_tokens for message in messages if message.usage is not None]
    return next((tokens for tokens in reversed(counted) if tokens), 0)
