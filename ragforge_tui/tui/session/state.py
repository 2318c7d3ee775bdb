"""What a chat knows of its engine: connection, conversation, running turns, and cost.

Pure. `EngineSession` owns it, `chat_events.py` applies events to it, and header, status line and panes are drawn from
it. What only a widget knows, such as its draft or its cursor, stays in the widget.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from ragforge_tui.settings.schema import Settings, TuiSettings
from ragforge_tui.shared import events
from ragforge_tui.shared.persona_records import PersonaBrief
from ragforge_tui.shared.prompts import OwnPrompt
from ragforge_tui.shared.records import Conversation, Message, Usage
from ragforge_tui.shared.requests.memory import MemoryDue
from ragforge_tui.shared.requests.turns import ConversationView
from ragforge_tui.shared.requests.work import Mode


class ChatOptions(msgspec.Struct, kw_only=True, frozen=True):
    """Options of one chat.

    Attributes:
        resume: Id or unique prefix to resume; empty string: pick one; None: do not resume.
        continue_last: Open the newest conversation of the workspace.
        state_dir: Folder of prompt history and drafts.
        exports_dir: Folder of exported conversations.
        workspace: The folder the agent works in, absolute.
        persona: Persona of a new conversation; empty: the default one.
        settings: All settings, for the settings screen; `origins` names the source of each.
        config_file: The user's settings file, where changes are saved; None: nothing is saved.
        served: Whether a browser shows the chat instead of a terminal.
        message: Sent once the conversation is open.
    """

    resume: str | None = None
    continue_last: bool = False
    tui: TuiSettings = TuiSettings()
    state_dir: Path
    exports_dir: Path = Path()
    workspace: str = ""
    persona: str = ""
    version: str = ""
    settings: Settings = msgspec.field(default_factory=Settings)
    origins: dict[str, str] = {}
    config_file: Path | None = None
    served: bool = False
    message: str = ""


class Retry(msgspec.Struct, frozen=True):
    """A request that is sent again at a time of the clock, and why it is."""

    word: str
    at: float


Activity = Literal["idle", "thinking", "answering", "running"]
Connection = Literal["starting", "up", "lost", "closing"]


class Spent(msgspec.Struct):
    """Tokens and cost in US dollars since the chat started."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0

    def add(self, usage: Usage | None) -> None:
        if usage is not None:
            self.input_tokens += usage.input_tokens
            self.output_tokens += usage.output_tokens
            self.cost += usage.cost_usd or 0.0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


class EngineState(msgspec.Struct):
    """The engine and the open conversation, as the last events left them; one per chat screen.

    Attributes:
        opening: The conversation requested at the start is not loaded yet.
        next_private: The conversation that the next message begins is to be private.
        first_turn: Lowest turn index of the open conversation.
        persona: The persona of the next conversation.
        persona_styles: Glyph and color of each persona, by name; `greetings` their greetings.
        folder: The folder of the chat, and its git `branch`; empty for none.
        code: What the index of the workspace's code does; None while unknown.
        processes: Number of the agent's background processes that run.
        running: Turns that this engine is answering, by conversation.
        followed: A turn that another process answers.
        own_prompts: Skills and own commands that can be used.
        summarising: Summaries being written for the open conversation, by level and first turn.
        due: What the summarizer is waiting for; None while unknown.
        mode: What the agent may do without asking.
        mode_unsent: The engine does not know the mode yet.
        context_used: Tokens of the last request of the open conversation; 0 while unknown.
        stale: Events of the running turn were missed: it is read again when it ends.
        last_deleted: Id of the conversation deleted last here, empty for none.
        refusable_persona: A project persona that waits for the user's consent, and the persona before it.
        unfinished_persona: What was typed in the form of a new persona before it was cancelled.
        deleted_persona: The deleted persona that was speaking, and its replacement.
    """

    connection: Connection = "starting"
    conversation: Conversation | None = None
    opening: bool = False
    next_private: bool = False
    first_turn: int = 1
    persona: str = ""
    persona_styles: dict[str, tuple[str, str]] = {}
    greetings: dict[str, str] = {}
    folder: str = ""
    branch: str = ""
    model: events.ModelChanged | None = None
    graph: events.GraphChanged | None = None
    code: events.CodeIndexChanged | None = None
    memory: events.MemoryProgress | None = None
    """Progress of the open conversation's memory, while it cannot search all turns."""
    processes: int = 0
    running: dict[str, int] = {}
    followed: int | None = None
    mode: Mode = "ask"
    mode_unsent: bool = False
    stale: bool = False
    tools: set[str] = set()
    own_prompts: list[OwnPrompt] = []
    summarising: set[tuple[int, int]] = set()
    due: MemoryDue | None = None
    answering: bool = False
    turn_started: float | None = None
    retry: Retry | None = None
    """The request that waits to be sent again; None while none does."""
    context_used: int = 0
    spent: Spent = msgspec.field(default_factory=Spent)
    last_deleted: str = ""
    refusable_persona: tuple[str, str] = ("", "")
    unfinished_persona: PersonaBrief | None = None
    deleted_persona: tuple[str, str] = ("", "")

    @property
    def conversation_id(self) -> str:
        """Id of the open conversation, or an empty string."""
        return self.conversation.uuid if self.conversation else ""

    @property
    def private(self) -> bool:
        """Whether the open conversation is private, or the next one is to be."""
        return self.conversation.private if self.conversation else self.next_private

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
        """Whether the engine accepts messages; until the graph answers it keeps a journal."""
        return self.connection == "up"

    @property
    def can_open(self) -> bool:
        """Whether the engine can open a conversation, or report that the graph is unavailable."""
        return self.ready and self.graph is not None and self.graph.phase != "starting"

    @property
    def activity(self) -> Activity:
        """The current activity."""
        if not self.busy:
            return "idle"
        if self.tools:
            return "running"
        return "answering" if self.answering else "thinking"

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
        """Forget the open conversation; what was chosen for the next one stays."""
        self.conversation = None
        self.context_used = 0
        if not self.mode_unsent:
            self.mode = "ask"
        self.summarising.clear()
        self.due = None
        self.memory = None
        self.followed = None
        self.stale = False
        self._clear_turn()

    def engine_lost(self) -> None:
        """Forget what only the lost engine knew: running turns, summaries, questions."""
        self.connection = "lost"
        self.processes = 0
        self.mode_unsent = self.mode != "ask"
        self.running.clear()
        self.summarising.clear()
        self.code = None
        self.followed = None
        self.stale = False
        self._clear_turn()

    def _clear_turn(self) -> None:
        self.tools.clear()
        self.answering = False
        self.turn_started = None
        self.retry = None


def sent_tokens(messages: Iterable[Message]) -> int:
    """Return the tokens of the last request among these messages, 0 if no provider counted any."""
    counted = [message.usage.input_tokens for message in messages if message.usage is not None]
    return next((tokens for tokens in reversed(counted) if tokens), 0)


Level = Literal["info", "warning", "error"]


class SessionScreen(Protocol):
    """The screen of an `EngineSession`."""

    def state_changed(self) -> None:
        """Redraw whatever depends on the `EngineState`."""

    def queue_changed(self) -> None:
        """Redraw the messages that wait to be sent."""

    def message_sending(self) -> None:
        """Note that a message is being stored; it is worth showing only if that takes long."""

    def message_returned(self, text: str, materials: Sequence[str]) -> None:
        """Put a message that was not sent back into the prompt."""

    def notice(self, text: str, level: Level = "info", *, passing: bool = False) -> None:
        """Show a sentence in the transcript; a `passing` one disappears with the next answer."""


class SessionListener(Protocol):
    """Receives what happens in an `EngineSession`."""

    def handle(self, event: events.Event) -> None:
        """Apply an event of the engine to the state, and show it."""

    def conversation_opened(self, view: ConversationView) -> None:
        """Show another conversation."""

    def conversation_created(self) -> None:
        """Note that the first message of the empty screen started a conversation."""

    def conversation_closed(self) -> None:
        """Show an empty screen."""

    def engine_ready(self) -> None:
        """Start background work that needs an engine."""

    def engine_lost(self, ended: events.TurnEvent | None) -> None:
        """Drop what only the lost engine could have answered; `ended` ends the turn on the screen."""
