"""Public Python API: an agent that creates, finds and holds open conversations.

    async with ConversationAgent(load()) as agent:
        conversation = await agent.create_conversation(title="Retries")
        answer = await conversation.send_message("Why does the retry double turns?")

The agent owns what the conversations of one process share: graph, model, tools and approvals. The engine exposes it
to user interfaces.
"""

from __future__ import annotations

import asyncio
import getpass
import logging
import uuid
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

from ragforge_tui.conversation.approvals.allowed_commands import AllowedCommands
from ragforge_tui.conversation.approvals.pending import Approvals
from ragforge_tui.conversation.budget import SessionBudget
from ragforge_tui.conversation.conversation import OPENING_TURNS, Conversation
from ragforge_tui.conversation.current_model import CurrentModel, PersonaModels
from ragforge_tui.conversation.live_export.writer import ExportWriter
from ragforge_tui.conversation.model_windows import ModelWindows
from ragforge_tui.conversation.services import EventBus, Services
from ragforge_tui.conversation.shared_memory import SharedMemory
from ragforge_tui.conversation.storage.graph_connection import GraphConnection
from ragforge_tui.conversation.storage.recorder import Recorder
from ragforge_tui.conversation.trust.instructions import InstructionTrust
from ragforge_tui.conversation.trust.personas import Personas
from ragforge_tui.graph import Journal, Store
from ragforge_tui.llm import ChatModel
from ragforge_tui.personas import Persona, PersonaLibrary
from ragforge_tui.settings.check import without_effect
from ragforge_tui.settings.schema import LIVE_MODEL_SETTINGS, Loaded
from ragforge_tui.shared import records
from ragforge_tui.shared.errors import GraphError, NotFoundError, RagforgeError
from ragforge_tui.shared.events import Event, GraphChanged, ModelChanged, Notice
from ragforge_tui.shared.records import ConversationFilter, now
from ragforge_tui.tools.registry import Toolbox

log = logging.getLogger(__name__)

SETTLE_SECONDS = 3.0
"""Longest wait of closing for the memory; the next start finishes the remaining work."""


class ConversationAgent:
    """An agent with a memory.

    Args:
        loaded: Settings, folders and workspace.
        approve_all: Run tools without asking.
        interactive: A user answers questions; otherwise every question is answered with a refusal.
    """

    def __init__(self, loaded: Loaded, *, approve_all: bool = False, interactive: bool = False) -> None:
        self.settings = settings = loaded.settings
        self.workspace = workspace = Path(loaded.workspace)
        self.interactive = interactive
        self.closing = False
        state, data = Path(loaded.paths.state), Path(loaded.paths.data)
        memory_settings = settings.agent.memory
        self._events = EventBus()
        graph = GraphConnection(loaded, self.emit, self._on_graph_ready)
        windows = ModelWindows(state / "model-windows.json")
        model = CurrentModel(settings.model, windows, self.emit)
        memory = SharedMemory(loaded, graph, model)
        toolbox = Toolbox(workspace, settings.tools, undo_dir=data / "undo", state_dir=state, memory=memory.source)
        exports = ExportWriter(memory_settings.export, loaded.paths, graph.store, self.emit, workspace=loaded.workspace)
        self._events.listen(exports.on_event)
        self._allowed = AllowedCommands(settings.tools.allow_commands, loaded.config_file)
        self.services = Services(
            settings=settings,
            workspace=workspace,
            events=self._events,
            graph=graph,
            recorder=Recorder(
                Journal(state / "journal", graph.address), graph, auto_save=memory_settings.persistence.auto_save
            ),
            model=model,
            persona_models=PersonaModels(model, self.emit),
            approvals=Approvals(approve_all=approve_all, interactive=interactive, allowed=self._allowed),
            budget=SessionBudget(settings.model.max_cost, settings.model.max_session_cost),
            trust=InstructionTrust(
                workspace,
                state / "trust.json",
                self.emit,
                interactive=interactive,
                enabled=settings.tools.agents_md,
            ),
            personas=Personas(
                PersonaLibrary(data / "personas", workspace),
                workspace,
                state / "trust.json",
                self.emit,
                default=settings.personas.default,
                user=lambda: self.user_name,
                tools=lambda: [schema["function"]["name"] for schema in toolbox.schemas()],
                interactive=interactive,
            ),
            toolbox=toolbox,
            windows=windows,
            memory=memory,
            exports=exports,
        )
        self._open: dict[str, Conversation] = {}
        self._leftovers: asyncio.Task[int] | None = None
        self._chores: asyncio.Task[None] | None = None
        self._left_behind_reported = False

    async def __aenter__(self) -> ConversationAgent:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def start(self) -> None:
        """Start to open the graph and the model in the background; returns at once."""
        self.services.graph.start()
        self.services.model.start()
        self._leftovers = asyncio.create_task(self.services.toolbox.end_leftovers())
        for sentence in without_effect(self.settings.agent.memory):
            self.emit(Notice(text=sentence, level="warning"))
        for sentence in self._allowed.problems():
            self.emit(Notice(text=sentence, level="warning"))

    async def close(self, *, settle_seconds: float = SETTLE_SECONDS) -> None:
        """Stop running turns, store them as interrupted, and close the graph and the model.

        Args:
            settle_seconds: Seconds the memory may still use to catch up.
        """
        self.closing = True
        services = self.services
        services.approvals.close()
        for conversation in self._open.values():
            conversation.close()
        for conversation in self._open.values():
            await conversation.wait_idle()
        await self._settle_memories(settle_seconds)
        await services.exports.close()
        if self._leftovers is not None:
            await self._leftovers
        if self._chores is not None:
            self._chores.cancel()
            await asyncio.gather(self._chores, return_exceptions=True)
        await services.toolbox.close()
        await services.model.close()
        await services.graph.close()
        services.recorder.close()

    async def _settle_memories(self, seconds: float) -> None:
        """Wait up to `seconds` for all memories to catch up, then stop them; the next start finishes the rest."""
        memories = [conversation.memory for conversation in self._open.values()]
        try:
            async with asyncio.timeout(seconds):
                for memory in memories:
                    await memory.settle()
        except TimeoutError:
            log.info("the memory is not up to date; the next start finishes it")
        for memory in memories:
            await memory.close()

    async def _on_graph_ready(self, store: Store) -> int:
        """Drain the journal into the graph that became reachable, then start chores in the background."""
        left = await self.services.recorder.drain(store)
        if not self._left_behind_reported:
            self._left_behind_reported = True
            for sentence in await asyncio.to_thread(self.services.recorder.left_behind):
                self.emit(Notice(text=sentence, level="warning"))
        self._chores = asyncio.create_task(self._do_chores(store, self.services.recorder.take_drained()))
        for conversation in self._open.values():
            conversation.memory.wake()
        return left

    async def finish_turns(self) -> None:
        """Wait for the running turns and drop the queued ones."""
        conversations = list(self._open.values())
        for conversation in conversations:
            conversation.unqueue()
        for conversation in conversations:
            await conversation.wait_idle()

    # --- events --------------------------------------------------------------------------------------------------

    def emit(self, event: Event) -> None:
        """Send an event to all subscribers."""
        self._events.emit(event)

    def subscribe(self) -> AbstractContextManager[asyncio.Queue[Event]]:
        """Yield a queue that receives all events from now on."""
        return self._events.subscribe()

    # --- what conversations share ----------------------------------------------------------------------------------

    @property
    def graph_state(self) -> GraphChanged:
        """Return the graph's location and status."""
        return self.services.graph.state

    @property
    def model_state(self) -> ModelChanged:
        """Return the current model and its status."""
        return self.services.model.state

    @property
    def user_name(self) -> str:
        """Return the name by which the agent addresses the user."""
        return self.services.user_name

    async def store(self) -> Store:
        """Return the graph's store; wait while the graph starts.

        Raises:
            GraphError: The graph is unreachable or was refused.
        """
        return await self.services.store()

    async def model(self) -> ChatModel:
        """Return the current model; wait while it loads."""
        return await self.services.model.model()

    async def set_model(self, name: str) -> ModelChanged:
        """Use another model from the next turn on; an empty name selects the one discovered automatically."""
        return await self.services.model.change(name)

    def change_model_settings(self, changes: dict[str, int | float | None]) -> None:
        """Apply changed settings of `LIVE_MODEL_SETTINGS`, by name, from the next request on."""
        self.services.model.update(**{name: value for name, value in changes.items() if name in LIVE_MODEL_SETTINGS})

    async def model_names(self) -> list[str]:
        """Return the names of the available models."""
        return await self.services.model.names()

    async def model_for(self, persona: Persona) -> ChatModel:
        """Return the model for a persona: the current one, unless the persona may choose another."""
        return await self.services.persona_models.model_for(persona)

    async def workspace_instructions(self) -> list[tuple[str, str]]:
        """Return the allowed AGENTS.md files; the user is asked before their first use."""
        return await self.services.trust.instructions()

    # --- conversations ---------------------------------------------------------------------------------------------

    async def create_conversation(
        self, *, title: str = "", tags: list[str] | None = None, persona: str = ""
    ) -> Conversation:
        """Create a conversation in this workspace.

        Raises:
            NotFoundError: The persona does not exist.
        """
        chosen = self.services.personas.find(persona)
        record = records.Conversation(
            uuid=str(uuid.uuid4()),
            title=title,
            tags=tags or [],
            created_at=(created := now()),
            updated_at=created,
            persona=chosen.name,
            model=self.model_state.name,
            workspace=str(self.workspace),
            owner=getpass.getuser(),
        )
        await self.services.recorder.create_conversation(record)
        conversation = Conversation(self.services, record, [])
        self._open[record.uuid] = conversation
        if self.interactive:
            conversation.memory.start()
        return conversation

    async def load_conversation(self, ref: str = "", *, turns: int = OPENING_TURNS) -> Conversation:
        """Open a stored conversation by id or unique prefix, by default the newest of this workspace.

        Args:
            turns: Number of its newest turns to read at once; more are read when a message is sent.

        Raises:
            NotFoundError: No conversation matches, or more than one does.
        """
        if ref in self._open:
            return self._open[ref]
        store = await self.store()
        record = (
            await store.conversations.resolve(ref) if ref else await store.conversations.latest(str(self.workspace))
        )
        if record is None:
            raise NotFoundError(f"There is no conversation in {self.workspace} yet.", todo="Send a message to start.")
        if record.status == "deleted":
            raise NotFoundError(
                f"The conversation {record.uuid[:8]} was deleted.", todo=f"ragforge-chat restore {record.uuid[:8]}"
            )
        if record.uuid not in self._open:
            end = record.next_turn
            newest = await store.turns.between(record.uuid, start=max(1, end - max(turns, 1)), end=end)
            self._open[record.uuid] = conversation = Conversation(self.services, record, newest)
            if self.interactive:
                conversation.memory.start()
        return self._open[record.uuid]

    async def branch_conversation(self, ref: str, turn_index: int) -> Conversation:
        """Create a conversation that continues from a turn of another one, which stays unchanged.

        Args:
            ref: Id or unique prefix of the parent conversation.
            turn_index: The last turn both share, 0 for none.

        Raises:
            NotFoundError: The conversation or the turn does not exist.
            RagforgeError: The turn is still being answered.
        """
        store = await self.store()
        parent = await store.conversations.resolve(ref)
        if not 0 <= turn_index < parent.next_turn:
            raise NotFoundError(f"The conversation {parent.uuid[:8]} has no turn {turn_index}.")
        here = self._open.get(parent.uuid)
        if here is not None and here.active_turn is not None and turn_index >= here.active_turn:
            raise RagforgeError(f"Turn {turn_index} is still being answered.", todo="Stop it, or wait until it ends.")
        record = records.Conversation(
            uuid=str(uuid.uuid4()),
            title=parent.title,
            tags=list(parent.tags),
            created_at=(created := now()),
            updated_at=created,
            persona=parent.persona,
            model=parent.model,
            workspace=parent.workspace,
            owner=parent.owner,
            private=parent.private,
            branch_of=parent.uuid,
            branch_turn=turn_index,
        )
        await store.conversations.create(record)
        branch = await self.load_conversation(record.uuid)
        branch.mode = here.mode if here is not None else branch.mode
        return branch

    def opened(self, conversation_id: str) -> Conversation | None:
        """Return the conversation if this process has it open."""
        return self._open.get(conversation_id)

    async def list_conversations(self, filter: ConversationFilter | None = None) -> list[records.Conversation]:
        """Return stored conversations, newest first."""
        return await (await self.store()).conversations.matching(filter or ConversationFilter())

    async def archive_conversation(self, ref: str, *, archived: bool = True) -> records.Conversation:
        """Archive a conversation, or make it active again."""
        return await self._set_status(ref, "archived" if archived else "active", None)

    async def delete_conversation(self, ref: str, *, immediately: bool = False) -> None:
        """Hide a conversation; it is purged after seven days, or now if `immediately` is set."""
        store = await self.store()
        record = await store.conversations.resolve(ref)
        open_here = self._open.pop(record.uuid, None)
        if open_here is not None:
            open_here.unqueue()
            open_here.cancel()
            await open_here.wait_idle()
            await open_here.memory.close()
        if immediately:
            await self._purge_one(store, record.uuid)
        else:
            await store.conversations.update(record.uuid, status="deleted", deleted_at=now())

    async def restore_conversation(self, conversation_id: str) -> records.Conversation:
        """Restore a deleted conversation by its id or a unique prefix."""
        store = await self.store()
        deleted = await store.conversations.matching(ConversationFilter(status="deleted", limit=10_000))
        matches = [record for record in deleted if record.uuid.startswith(conversation_id)]
        if len(matches) != 1 or not conversation_id:
            raise NotFoundError(f"No single deleted conversation has an id that starts with {conversation_id!r}.")
        return self._as_stored(await store.conversations.update(matches[0].uuid, status="active", deleted_at=None))

    async def _set_status(self, ref: str, status: records.ConversationStatus, deleted_at: None) -> records.Conversation:
        store = await self.store()
        record = await store.conversations.resolve(ref)
        return self._as_stored(await store.conversations.update(record.uuid, status=status, deleted_at=deleted_at))

    def _as_stored(self, changed: records.Conversation) -> records.Conversation:
        if changed.uuid in self._open:
            # Changed in place: the conversation's memory shares this record.
            here = self._open[changed.uuid].record
            here.status, here.deleted_at, here.updated_at = changed.status, changed.deleted_at, changed.updated_at
        return changed

    async def _purge_one(self, store: Store, uuid: str) -> bool:
        """Remove a conversation and its exports; return False if its branches still need it."""
        purged = await store.conversations.purge(uuid)
        if purged:
            await asyncio.to_thread(self.services.recorder.forget, uuid)
            await self.services.exports.removed(uuid)
        return purged

    async def _do_chores(self, store: Store, drained: set[str]) -> None:
        """Index conversations from the journal, purge expired ones and create missing vectors.

        Unfinished work is not lost: turns are indexed when their conversation is opened, the rest at the next start.
        """
        try:
            for uuid in drained - set(self._open):
                await self.services.memory.index(uuid)
            purged = [await self._purge_one(store, uuid) for uuid in await store.conversations.expired()]
            if any(purged):
                log.info("purged %d deleted conversations", sum(purged))
            if self.interactive:
                await self.services.memory.catch_up(set(self._open))
        except GraphError as error:
            log.warning("chores not finished: %s", error)
