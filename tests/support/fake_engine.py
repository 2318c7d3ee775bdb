"""An engine without a model and a graph: answers from a script, keeps turns in memory.

For tests of the screen and for looking at it. It implements the `Engine` protocol; a test reads `requests`, emits
events with `emit`, and ends it with `crash`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

import msgspec

from ragforge_tui.shared.errors import EngineGoneError, NotFoundError, RagforgeError
from ragforge_tui.shared.events import (
    Event,
    GraphChanged,
    MessageFinished,
    MessageStarted,
    ModelChanged,
    TextDelta,
    TurnCancelled,
    TurnCompleted,
    TurnStarted,
)
from ragforge_tui.shared.export_records import ConversationExport, ImportAdds
from ragforge_tui.shared.found_sessions import ListedSession, SessionImport
from ragforge_tui.shared.records import Conversation, Message, Turn, Usage
from ragforge_tui.shared.requests.extensions import ListMcpServers, McpServerState
from ragforge_tui.shared.requests.imports import ImportFoundSession, ListFoundSessions
from ragforge_tui.shared.requests.models import (
    Connected,
    ConnectProvider,
    DisconnectProvider,
    ListProviders,
    ProviderInfo,
)
from ragforge_tui.shared.requests.past import MakeInsights
from ragforge_tui.shared.requests.sessions import (
    ArchiveConversation,
    DeleteConversation,
    Deleted,
    ExportConversation,
    ListConversations,
    RestoreConversation,
    UpdateConversation,
)
from ragforge_tui.shared.requests.turns import (
    BranchConversation,
    CancelTurn,
    ConversationView,
    CreateConversation,
    FetchTurns,
    FindText,
    OpenConversation,
    RetryTurn,
    SendAccepted,
    SendMessage,
    TurnPage,
    Unqueue,
)
from ragforge_tui.shared.requests.work import (
    ChangeModelSettings,
    EffortState,
    FetchEffort,
    ListFiles,
    ListModels,
    SetModel,
)
from ragforge_tui.shared.tool_calls import described_tools
from ragforge_tui.shared.wire import PROTOCOL_VERSION, Empty, EngineState, Hello, Request
from tests.support import fake_sessions
from tests.support.fake_answers import answers, collected, result_type
from tests.support.fake_calls import CallShelf
from tests.support.fake_code import CodeShelf
from tests.support.fake_memory import MemoryShelf
from tests.support.fake_past import PastShelf
from tests.support.fake_personas import PersonaShelf
from tests.support.fake_remembered import RememberedShelf
from tests.support.fake_sessions import SessionShelf
from tests.support.fake_work import WorkShelf

R = TypeVar("R")
CLOCK = datetime(2026, 11, 3, 14, 2, tzinfo=UTC)

Script = Callable[["FakeEngine", Conversation, int, str], AsyncIterator[Event]]


def conversation(number: int, title: str = "", **changes: Any) -> Conversation:
    """A conversation with a stable id."""
    values: dict[str, Any] = {"created_at": CLOCK, "updated_at": CLOCK, "persona": "Ragnarök", "workspace": "/w"}
    return Conversation(uuid=f"{number:08x}-0000-4000-8000-000000000000", title=title, **(values | changes))


def message(owner: Conversation, turn: int, role: str, content: str, position: int = 0, **changes: Any) -> Message:
    """A stored message with a stable id."""
    values: dict[str, Any] = {"timestamp": CLOCK, "persona": owner.persona if role == "assistant" else ""}
    return Message(
        uuid=f"m-{owner.uuid[:8]}-{turn}-{position}",
        conversation_id=owner.uuid,
        turn_index=turn,
        position=position,
        role=cast(Any, role),
        content=content,
        **(values | changes),
    )


def turn(owner: Conversation, index: int, question: str, answer: str, **changes: Any) -> Turn:
    """A stored turn of two messages."""
    said = message(owner, index, "user", question)
    return Turn(turn_index=index, messages=[said, message(owner, index, "assistant", answer, 1, **changes)])


async def echo(engine: FakeEngine, owner: Conversation, index: int, text: str) -> AsyncIterator[Event]:
    """The default script: one reply that says what was said."""
    where: dict[str, Any] = {"conversation_id": owner.uuid, "turn_index": index}
    reply = message(owner, index, "assistant", f"You said: {text[:200]}", 1)
    reply.usage = Usage(input_tokens=100, output_tokens=20, cost_usd=0.01)
    reply.persona_glyph, reply.persona_color = glyph, color = engine.shelf.look(owner.persona)
    look = {"persona_glyph": glyph, "persona_color": color}
    yield MessageStarted(message_id=reply.uuid, persona=owner.persona, model="fake", **look, **where)
    yield TextDelta(message_id=reply.uuid, text=reply.content, **where)
    yield MessageFinished(message=reply, **where)
    yield TurnCompleted(text=reply.content, usage=reply.usage, **where)


class FakeEngine:
    """See the module.

    Attributes:
        requests: Everything that was asked, in order.
        failures: Errors to raise, by request type, once each.
        script: Makes the events of a turn.
    """

    def __init__(self, *, script: Script = echo, phase: str = "ready") -> None:
        self.script = script
        self.requests: list[Request[Any]] = []
        self.failures: dict[type[Any], RagforgeError] = {}
        self.conversations: dict[str, Conversation] = {}
        self.turns: dict[str, list[Turn]] = {}
        self.active: dict[str, int] = {}
        self.interrupted: dict[str, int] = {}
        self.found_sessions: list[ListedSession] = []
        self.models = ["openai/gpt-5", "anthropic/claude-sonnet-4-5", "offline"]
        self.providers = [
            ProviderInfo(id="anthropic", title="Anthropic (Claude)", host="api.anthropic.com"),
            ProviderInfo(id="openai", title="OpenAI", host="api.openai.com", key_from="the keyring", stored=True),
            ProviderInfo(id="ollama", title="Ollama", url="http://127.0.0.1:11434", asks_url=True, needs_key=False),
        ]
        self.model_settings: dict[str, Any] = {}
        self.offered = ["anthropic/claude-a", "anthropic/claude-b"]
        self.mcp_servers: list[McpServerState] = []
        self.model = ModelChanged(phase="ready", name="claude-sonnet", destination="api.anthropic.com")
        self.graph = GraphChanged(phase=cast(Any, phase), name="embedded")
        self.files = ["README.md", "src/app.py", "src/store.py", "docs/a guide.md"]
        self.shelf = PersonaShelf(self)
        self.memory = MemoryShelf(self)
        self.remembered = RememberedShelf()
        self.work = WorkShelf(self)
        self.code = CodeShelf()
        self.past = PastShelf()
        shelves = (self.shelf, self.memory, self.remembered, self.work, self.code, self.past)
        self._answers = collected(self, *shelves, CallShelf(self), SessionShelf(self))
        self.closed = False
        self.queue: list[tuple[str, str, str]] = []
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self._gone = False

    # -- the protocol

    async def request(self, request: Request[R]) -> R:
        """Answer from memory."""
        await asyncio.sleep(0)
        if self._gone:
            raise EngineGoneError("The engine ended.")
        self.requests.append(request)
        if error := self.failures.pop(type(request), None):
            raise error
        answer = self._answers.get(type(request))
        assert answer or result_type(request) is Empty, f"no part of the fake engine answers {type(request).__name__}"
        found = answer(request) if answer is not None else Empty()
        if inspect.isawaitable(found):
            found = await found
        # As through a pipe: what is known here changes nothing there.
        return cast(R, msgspec.structs.replace(found) if isinstance(found, Conversation) else found)

    async def events(self) -> AsyncIterator[Event]:
        """Until the engine ends."""
        while (event := await self._events.get()) is not None:
            yield event

    async def close(self) -> None:
        """End in order."""
        self.closed = True
        self._end()

    # -- for tests

    def emit(self, event: Event) -> None:
        """Say something."""
        self._events.put_nowait(event)

    def crash(self) -> None:
        """End without a word; a turn under way stays interrupted."""
        for uuid, index in self.active.items():
            self.interrupted[uuid] = index
        self.active.clear()
        self._end()

    def asked(self, kind: type[R]) -> list[R]:
        """Requests of one type."""
        return [request for request in self.requests if isinstance(request, kind)]

    def store(self, owner: Conversation, *turns: Turn) -> Conversation:
        """Have a conversation with these turns."""
        self.conversations[owner.uuid] = owner
        self.turns[owner.uuid] = list(turns)
        owner.next_turn = len(turns) + 1
        owner.message_count = sum(len(one.messages) for one in turns)
        return owner

    def heir(self) -> FakeEngine:
        """The engine started after this one: same memory."""
        fresh = FakeEngine(script=self.script)
        fresh.conversations, fresh.turns, fresh.interrupted = self.conversations, self.turns, self.interrupted
        return fresh

    # -- answers

    @answers(Hello)
    def _hello(self, request: Hello) -> Any:
        return EngineState(
            protocol=PROTOCOL_VERSION,
            version="0",
            pid=1,
            workspace="/w",
            model=self.model,
            graph=self.graph,
            log_file="",
            tools=described_tools(),
        )

    @answers(CreateConversation)
    def _create_conversation(self, request: CreateConversation) -> Any:
        fresh = conversation(0xC0 + len(self.conversations), request.title)
        fresh.persona, fresh.private = request.persona or fresh.persona, request.private
        return self._view(self.store(fresh), 30)

    @answers(OpenConversation)
    def _open_conversation(self, request: OpenConversation) -> Any:
        return self._view(self._find(request.ref), request.turns)

    @answers(FetchTurns)
    def _fetch_turns(self, request: FetchTurns) -> Any:
        stored = self.turns[request.conversation_id]
        chosen = [one for one in stored if request.start <= one.turn_index < request.end]
        return TurnPage(turns=chosen, first=1, last=len(stored))

    @answers(SendMessage)
    def _send_message(self, request: SendMessage) -> Any:
        return self._send(request.conversation_id, request.message_id, request.text)

    @answers(RetryTurn)
    def _retry_turn(self, request: RetryTurn) -> Any:
        self.interrupted.pop(request.conversation_id, None)
        index = len(self.turns[request.conversation_id])
        said = self.turns[request.conversation_id][-1].messages[0]
        self._start(request.conversation_id, index, said)
        return SendAccepted(turn_index=index)

    @answers(CancelTurn)
    def _cancel_turn(self, request: CancelTurn) -> Any:
        self._cancel(request.conversation_id)
        return Empty()

    @answers(Unqueue)
    def _unqueue(self, request: Unqueue) -> Any:
        kept = [waiting for waiting in self.queue if waiting[1] != request.message_id]
        dropped, self.queue = len(kept) < len(self.queue), kept
        return dropped

    @answers(ListConversations)
    def _list_conversations(self, request: ListConversations) -> Any:
        return fake_sessions.listed(self.conversations, request.filter)

    @answers(UpdateConversation)
    def _update_conversation(self, request: UpdateConversation) -> Any:
        owner = self._find(request.conversation_id)
        for name in ("title", "tags", "private"):
            if (value := getattr(request, name)) is not None:
                setattr(owner, name, value)
        return owner

    @answers(ArchiveConversation)
    def _archive_conversation(self, request: ArchiveConversation) -> Any:
        return self._status(request.conversation_id, "archived" if request.archived else "active")

    @answers(DeleteConversation)
    def _delete_conversation(self, request: DeleteConversation) -> Any:
        return Deleted(conversation=self._status(request.conversation_id, "deleted"))

    @answers(RestoreConversation)
    def _restore_conversation(self, request: RestoreConversation) -> Any:
        return self._status(request.conversation_id, "active")

    @answers(ExportConversation)
    def _export_conversation(self, request: ExportConversation) -> Any:
        return ConversationExport(conversation=self._find(request.ref), turns=self.turns[request.ref])

    @answers(ChangeModelSettings)
    def _change_model_settings(self, request: ChangeModelSettings) -> Any:
        self.model_settings |= request.changes
        return Empty()

    @answers(FetchEffort)
    def _fetch_effort(self, request: FetchEffort) -> Any:
        effort = str(self.model_settings.get("reasoning_effort") or "")
        return EffortState(model=self.model.name, effort=effort, taken="claude" in self.model.name)

    @answers(ListProviders)
    def _list_providers(self, request: ListProviders) -> Any:
        return self.providers

    @answers(ConnectProvider)
    def _connect_provider(self, request: ConnectProvider) -> Any:
        return Connected(provider=request.provider, url=request.url, models=self.offered, kept="Stored.")

    @answers(DisconnectProvider)
    def _disconnect_provider(self, request: DisconnectProvider) -> Any:
        return f"Removed {request.provider}."

    @answers(SetModel)
    def _set_model(self, request: SetModel) -> Any:
        self.model = ModelChanged(phase="ready", name=request.name, destination="api.example.com")
        return self.model

    @answers(ListFiles)
    def _list_files(self, request: ListFiles) -> Any:
        query = request.query
        limit = request.limit
        return [path for path in self.files if query.lower() in path.lower()][:limit]

    @answers(ListModels)
    def _list_models(self, request: ListModels) -> Any:
        return self.models

    @answers(FindText)
    def _find_text(self, request: FindText) -> Any:
        wanted = request.text.casefold()
        return [
            one.turn_index
            for one in self.turns[request.conversation_id]
            if any(wanted in said.content.casefold() for said in one.messages)
        ]

    @answers(MakeInsights)
    def _make_insights(self, request: MakeInsights) -> Any:
        return self.past.make(self)

    @answers(BranchConversation)
    def _branch_conversation(self, request: BranchConversation) -> Any:
        return self._branch(request.conversation_id, request.turn_index)

    @answers(ListFoundSessions)
    def _list_found_sessions(self, request: ListFoundSessions) -> Any:
        return list(self.found_sessions)

    @answers(ImportFoundSession)
    def _import_found_session(self, request: ImportFoundSession) -> Any:
        session = request.session
        self.found_sessions = [
            ListedSession(session=entry.session, imported=entry.imported or entry.session == session)
            for entry in self.found_sessions
        ]
        return SessionImport(outcome="imported", conversation_id="imported", adds=ImportAdds(turns=[1, 2]))

    @answers(ListMcpServers)
    def _list_mcp_servers(self, request: ListMcpServers) -> Any:
        return self.mcp_servers

    def _find(self, ref: str) -> Conversation:
        found = [one for one in self.conversations.values() if one.uuid.startswith(ref) and one.status != "deleted"]
        if not found or (ref and len(found) > 1):
            raise NotFoundError(f"No conversation answers to {ref!r}.")
        return max(found, key=lambda one: one.updated_at)

    def _view(self, owner: Conversation, count: int) -> ConversationView:
        stored = self.turns[owner.uuid]
        return ConversationView(
            conversation=owner,
            page=TurnPage(turns=stored[-count:], first=1, last=len(stored)),
            active_turn=self.active.get(owner.uuid),
            interrupted_turn=self.interrupted.get(owner.uuid),
            mode=self.work.modes.get(owner.uuid, "ask"),
        )

    def _branch(self, uuid: str, index: int) -> Conversation:
        parent = self.conversations[uuid]
        fresh = conversation(0xC0 + len(self.conversations), parent.title, branch_of=uuid, branch_turn=index)
        fresh.persona = parent.persona
        return self.store(fresh, *self.turns[uuid][:index])

    def _status(self, uuid: str, status: str) -> Conversation:
        owner = self.conversations[uuid]
        owner.status = cast(Any, status)
        return owner

    def _send(self, uuid: str, message_id: str, text: str) -> SendAccepted:
        if uuid in self.active:
            self.queue.append((uuid, message_id, text))
            return SendAccepted(turn_index=0, queued=True)
        owner = self.conversations[uuid]
        index = owner.next_turn
        owner.next_turn += 1
        said = message(owner, index, "user", text)
        said.uuid = message_id
        self.turns[uuid].append(Turn(turn_index=index, messages=[said]))
        self._start(uuid, index, said)
        return SendAccepted(turn_index=index)

    def _start(self, uuid: str, index: int, said: Message) -> None:
        self.active[uuid] = index
        self.emit(TurnStarted(conversation_id=uuid, turn_index=index, message=said))
        self._task = asyncio.create_task(self._run(uuid, index, said.content))

    async def _run(self, uuid: str, index: int, text: str) -> None:
        async for event in self.script(self, self.conversations[uuid], index, text):
            self.emit(event)
        self._finished(uuid)

    def _finished(self, uuid: str) -> None:
        self.active.pop(uuid, None)
        if self.queue:
            self._send(*self.queue.pop(0))

    def _cancel(self, uuid: str) -> None:
        if (index := self.active.get(uuid)) is None:
            return
        if self._task is not None:
            self._task.cancel()
        self.emit(TurnCancelled(conversation_id=uuid, turn_index=index))
        self._finished(uuid)

    def _end(self) -> None:
        self._gone = True
        if self._task is not None:
            self._task.cancel()
        self._events.put_nowait(None)


def sessions(engine: FakeEngine) -> Iterator[Conversation]:
    """A few stored conversations of different age."""
    ages = ((1, "Retries double turns", 3), (2, "Index allocation", 2), (3, "Café menu, in French", 1))
    for number, title, day in ages:
        owner = conversation(number, title, updated_at=CLOCK.replace(day=day))
        yield engine.store(owner, turn(owner, 1, f"About {title}", "An **answer**."))


async def endless(engine: FakeEngine, owner: Conversation, index: int, text: str) -> AsyncIterator[Event]:
    """An answer that does not end."""
    where: dict[str, Any] = {"conversation_id": owner.uuid, "turn_index": index}
    yield MessageStarted(message_id=f"m{index}", **where)
    yield TextDelta(message_id=f"m{index}", text="It goes on", **where)
    await asyncio.Event().wait()
