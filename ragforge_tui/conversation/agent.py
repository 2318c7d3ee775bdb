"""Public Python API: an agent that creates, finds and holds open conversations.

The agent owns what the conversations of one process share: graph, model, tools and approvals. The engine exposes it
to user interfaces.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Literal

from ragforge_tui.code.knowledge import CodeKnowledge
from ragforge_tui.code.linker import CodeLinker
from ragforge_tui.code.lookup import CodeLookup
from ragforge_tui.conversation.approvals.pending import Approvals, Approve
from ragforge_tui.conversation.approvals.rules import Rules
from ragforge_tui.conversation.attempts import AttemptFinder
from ragforge_tui.conversation.background_work import BackgroundWork
from ragforge_tui.conversation.budget import SessionBudget
from ragforge_tui.conversation.conversation import SETTLE_SECONDS, Conversation
from ragforge_tui.conversation.current_model import CurrentModel, PersonaModels
from ragforge_tui.conversation.hooks import Hooks
from ragforge_tui.conversation.library import ConversationLibrary
from ragforge_tui.conversation.live_export.writer import ExportWriter
from ragforge_tui.conversation.model_windows import ModelWindows
from ragforge_tui.conversation.options import GivenModel, GivenSettings, GivenTool, ResolvedOptions, resolve_options
from ragforge_tui.conversation.other_agents import import_found_session, read_imported
from ragforge_tui.conversation.own_prompts import OwnPrompts
from ragforge_tui.conversation.past import Past
from ragforge_tui.conversation.providers import ProviderAccess
from ragforge_tui.conversation.remembered import Remembered
from ragforge_tui.conversation.services import EventBus, Services
from ragforge_tui.conversation.shared_memory import SharedMemory
from ragforge_tui.conversation.storage.graph_connection import GraphConnection
from ragforge_tui.conversation.storage.recorder import Recorder
from ragforge_tui.conversation.trust.instructions import InstructionTrust
from ragforge_tui.conversation.trust.personas import Personas
from ragforge_tui.conversation.trust.project import ProjectTrust
from ragforge_tui.graph import AsyncDriver, Journal, Store
from ragforge_tui.llm import ChatModel, Connections
from ragforge_tui.llm.embeddings import Embedder
from ragforge_tui.personas import Persona, PersonaLibrary
from ragforge_tui.settings.check import remarks
from ragforge_tui.settings.folders import program_files
from ragforge_tui.settings.schema import LIVE_MODEL_SETTINGS
from ragforge_tui.shared.errors import GraphError, RagforgeError
from ragforge_tui.shared.events import CodeIndexChanged, Event, GraphChanged, ModelChanged, Notice, ProcessesChanged
from ragforge_tui.shared.found_sessions import FoundSession, SessionImport
from ragforge_tui.tools.mcp.servers import McpServers
from ragforge_tui.tools.registry import Toolbox
from ragforge_tui.tools.shell.background import Process

log = logging.getLogger(__name__)


class ConversationAgent(ConversationLibrary):
    """An agent with a memory.

    The graph opens in the background, and the first call that needs it waits. Use it as an async context manager, or
    call `close` at the end; `SyncConversationAgent` is the same for programs without an event loop.

    Args:
        settings: Settings in the form of config.yaml, on top of the files and the environment that the command line
            reads; None for these alone. A `Settings` object, or what `load` returns, is used as it is.
        model: Name of a model; or an object with the methods of `ChatModel`; or a function from messages in OpenAI's
            format to a text or a message, see `FunctionModel`.
        graph: URI of a Neo4j, empty for the embedded graph; or an own ``neo4j.AsyncDriver``, which is left open.
            ``settings["graph"]`` names its database, and allows to `adopt` a graph that holds other data.
        embedder: Own source of vectors; wrap a function in `FunctionEmbedder`.
        tools: Functions that the model may call in addition to the built-in tools, see `tool`.
        approve: ``"all"`` runs every call; a function gets each question and returns whether the call may run, or why
            not. Without it, a call that needs approval is refused, the model sees that, and the turn continues.
        persona: Persona of new conversations.
        workspace: Folder the agent works in; None for the current one.
        home: Folder for the embedded graph, personas and state of this program alone; None for the user's own.
        approve_all: The same as ``approve="all"``.
        interactive: A user answers the questions; the engine sets it for a screen.

    Raises:
        ConfigError: A setting is invalid, or the workspace does not exist.
        TypeError: A model, driver, embedder or tool is not one.

    Examples:
        ```python
        from ragforge_tui import ConversationAgent

        def stock(item: str) -> int:
            '''Return how many pieces of an item are left.'''
            return {"bolt": 12}.get(item, 0)

        async with ConversationAgent(model="offline", tools=[stock]) as agent:
            conversation = await agent.create_conversation("Orders", tags=["shop"])
            answer = await conversation.send_message("Which files are here?")
            print(answer.content)
        ```
    """

    def __init__(
        self,
        settings: GivenSettings = None,
        *,
        model: GivenModel = None,
        graph: str | AsyncDriver | None = None,
        embedder: Embedder | None = None,
        tools: Sequence[GivenTool] = (),
        approve: Approve | Literal["all"] | None = None,
        persona: str = "",
        workspace: str | Path | None = None,
        home: str | Path | None = None,
        approve_all: bool = False,
        interactive: bool = False,
    ) -> None:
        options = resolve_options(
            settings,
            model=model,
            graph=graph,
            embedder=embedder,
            tools=tools,
            persona=persona,
            workspace=workspace,
            home=home,
        )
        self._build(options, approve_all or approve == "all", interactive, None if approve == "all" else approve)

    def _build(self, options: ResolvedOptions, approve_all: bool, interactive: bool, approve: Approve | None) -> None:
        loaded = options.loaded
        self.settings = settings = loaded.settings
        self.workspace = workspace = Path(loaded.workspace)
        self.interactive = interactive
        self.closing = False
        state, data = Path(loaded.paths.state), Path(loaded.paths.data)
        memory_settings = settings.agent.memory
        self._events = EventBus()
        graph = GraphConnection(loaded, self.emit, self._on_graph_ready, options.driver, hurried=interactive)
        windows = ModelWindows(state / "model-windows.json")
        connections = Connections(loaded.paths)
        model = CurrentModel(settings.model, windows, self.emit, connections, own=options.model)
        memory = SharedMemory(loaded, graph, model, embedder=options.embedder)
        lookup = None
        if settings.agent.code.enabled:
            lookup = CodeLookup(memory.questions, index=lambda: self.services.code)
        toolbox = Toolbox(
            workspace,
            settings.tools,
            undo_dir=data / "undo",
            state_dir=state,
            memory=memory.source,
            code=lookup,
            added=options.tools,
            program_files=program_files(loaded.paths, loaded.config_file),
            folders=[Path(loaded.paths.config), data, state],
            settings_file=Path(loaded.config_file) if loaded.config_file else None,
            remembers=memory_settings.remember,
        )
        toolbox.processes.changed = self._on_process_changed
        exports = ExportWriter(memory_settings.export, loaded.paths, graph.store, self.emit, workspace=loaded.workspace)
        self._events.listen(exports.on_event)
        rules = Rules(
            toolbox.workspace.guard,
            settings.tools.rules,
            settings.tools.allow_commands,
            config_file=loaded.config_file,
        )
        project = ProjectTrust(workspace, state / "trust.json", self.emit, interactive=interactive)

        async def may_start(file: str, text: str) -> bool:
            question = f"Start the MCP servers of {file}? They are programs and addresses that this folder names."
            return await project.allowed("mcp", question, [(file, text)])

        hooks = Hooks(settings.hooks, workspace, self.emit)
        self._events.listen(hooks.on_event)
        self.services = Services(
            settings=settings,
            workspace=workspace,
            state=state,
            events=self._events,
            graph=graph,
            recorder=Recorder(
                Journal(state / "journal", graph.address), graph, auto_save=memory_settings.persistence.auto_save
            ),
            model=model,
            providers=ProviderAccess(connections),
            persona_models=PersonaModels(model, self.emit),
            approvals=Approvals(approve_all=approve_all, interactive=interactive, rules=rules, approve=approve),
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
                tools=toolbox.names,
                interactive=interactive,
            ),
            project=project,
            toolbox=toolbox,
            mcp=McpServers(settings.mcp, workspace, toolbox, self.emit, may_start),
            hooks=hooks,
            prompts=OwnPrompts(workspace, Path(loaded.paths.config), project, toolbox, self.emit),
            windows=windows,
            memory=memory,
            code=CodeKnowledge(
                workspace,
                settings.agent.code,
                ignore=settings.tools.ignore,
                locks=state / "code",
                store=graph.store,
                embedder=memory.embedder,
                pace=memory.pace,
                on_change=self._on_code_changed,
            ),
            lookup=lookup,
            exports=exports,
        )
        self.past = Past(graph, memory, self.emit)
        self._open: dict[str, Conversation] = {}
        self.remembered = Remembered(graph, lambda: [one.memory for one in self._open.values()])
        self._loading: asyncio.Task[None] | None = None
        self._leftovers: asyncio.Task[int] | None = None
        self._chores: asyncio.Task[None] | None = None
        self._imports = BackgroundWork("imports", self._read_imported)
        self._left_behind_reported = False
        self._left_out = ""
        """Why the workspace has no index of code, as the user was told."""
        self._closed = False

    async def __aenter__(self) -> ConversationAgent:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def start(self) -> None:
        """See `ConversationLibrary.start`. The first call that needs the graph does the same."""
        if self._leftovers is not None:
            return
        self._loading = asyncio.create_task(self._load_model_first(), name="load-model")
        self.services.graph.start()
        self.services.model.start()
        self.services.code.start(keep=self.interactive)
        self.services.prompts.start()
        self.services.mcp.start()
        self._leftovers = asyncio.create_task(self.services.toolbox.end_leftovers())
        for sentence in remarks(self.settings):
            self.emit(Notice(text=sentence, level="warning"))
        for sentence in self.services.approvals.rules.problems():
            self.emit(Notice(text=sentence, level="warning"))

    async def close(self, *, settle_seconds: float = SETTLE_SECONDS, summaries: bool = True) -> None:
        """Stop running turns, store them as interrupted, and close the graph and the model; repeated, do nothing.

        Args:
            settle_seconds: Seconds the memory may still use to catch up.
            summaries: Wait for a model's titles and summaries too; the next start makes them otherwise.
        """
        if self._closed:
            return
        self.closing = self._closed = True
        services = self.services
        services.approvals.close()
        await self.past.insights.cancel()
        for conversation in self._open.values():
            conversation.close()
        for conversation in self._open.values():
            await conversation.wait_idle()
        services.memory.active_turns.end()
        await self._settle_memories(settle_seconds, model=summaries)
        await services.code.close()
        await services.recorder.settle()
        await services.exports.close()
        if self._leftovers is not None:
            await self._leftovers
        for task in (self._chores, self._loading):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        await services.hooks.close()
        await services.prompts.close()
        await services.mcp.close()
        await services.toolbox.close()
        await services.model.close()
        await services.graph.close()
        services.recorder.close()

    async def _settle_memories(self, seconds: float, *, model: bool) -> None:
        """Wait up to `seconds` for all memories to catch up, then stop them; the next start finishes the rest."""
        memories = [conversation.memory for conversation in self._open.values()]
        try:
            async with asyncio.timeout(seconds):
                for memory in memories:
                    await memory.settle(model=model)
                await self._imports.settle()
        except TimeoutError:
            log.info("the memory is not up to date; the next start finishes it")
        await self._imports.stop()
        for memory in memories:
            await memory.close()

    async def import_session(self, found: FoundSession) -> SessionImport:
        """Import another agent's session, which the memory reads in the background."""
        imported = await import_found_session(await self.services.store(), found)
        if imported.conversation_id and self.settings.agent.memory.enabled:
            self._imports.ask()
        return imported

    async def _read_imported(self) -> None:
        try:
            await read_imported(self.services, leave=set(self._open))
        except RagforgeError as error:
            log.warning("imported turns are not read yet: %s", error)

    async def _load_model_first(self) -> None:
        """Hold background work back until the model can be asked: importing its client takes seconds of this process.

        Indexes, vectors and chores would delay the first answer by as much as they need themselves.
        """
        with self.services.memory.pace.urgent():
            try:
                await self.services.model.model()
            except RagforgeError as error:
                log.info("background work starts without a model: %s", error)

    def _on_process_changed(self, process: Process) -> None:
        """Show how many background processes run, and that one has ended unless somebody stopped it."""
        self.emit(ProcessesChanged(running=self.services.toolbox.processes.running))
        if process.ending and not process.stopped:
            level: Literal["info", "warning"] = "info" if process.success else "warning"
            self.emit(
                Notice(text=f"{process.name}: {process.ending}", level=level, conversation_id=process.conversation)
            )

    async def _on_graph_ready(self, store: Store) -> None:
        """Drain the journal into the graph that became reachable, then start chores in the background."""
        places = await self.services.recorder.drain(store)
        for conversation in self._open.values():
            conversation.turns_placed(places)
        self._chores = asyncio.create_task(self._do_chores(store, self.services.recorder.take_drained()))
        for conversation in self._open.values():
            conversation.memory.wake()

    async def finish_turns(self) -> None:
        """Wait for the running turns and drop the queued ones."""
        conversations = list(self._open.values())
        for conversation in conversations:
            conversation.unqueue()
        for conversation in conversations:
            await conversation.wait_idle()

    # --- events --------------------------------------------------------------------------------------------------

    def emit(self, event: Event) -> None:
        self._events.emit(event)

    def subscribe(self) -> AbstractContextManager[asyncio.Queue[Event]]:
        """Yield a queue that receives all events from now on."""
        return self._events.subscribe()

    def _on_code_changed(self, state: CodeIndexChanged) -> None:
        self.emit(state)
        if state.phase == "left_out" and state.problem != self._left_out:
            self._left_out = state.problem
            self.emit(Notice(text=state.problem, level="warning"))

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

    async def model(self) -> ChatModel:
        """Return the current model; wait while it loads."""
        return await self.services.model.model()

    async def set_model(self, name: str) -> ModelChanged:
        """Use another model from the next turn on; an empty name selects the one discovered automatically."""
        return await self.services.model.change(name)

    def change_model_settings(self, changes: dict[str, int | float | str | None]) -> None:
        """Apply changed settings of `LIVE_MODEL_SETTINGS`, by name, from the next request on."""
        self.services.model.update(**{name: value for name, value in changes.items() if name in LIVE_MODEL_SETTINGS})

    async def model_names(self) -> list[str]:
        """Return the names of the available models."""
        return await self.services.model.names()

    async def model_for(self, persona: Persona) -> ChatModel:
        """Return the model for a persona: the current one, unless the persona may choose another."""
        return await self.services.persona_models.model_for(persona)

    async def _do_chores(self, store: Store, drained: set[str]) -> None:
        """Index conversations from the journal, purge expired ones, create missing vectors and count tokens.

        Unfinished work is not lost: turns are indexed when their conversation is opened, the rest at the next start.
        """
        if not self._left_behind_reported:
            self._left_behind_reported = True
            for sentence in await asyncio.to_thread(self.services.recorder.left_behind):
                self.emit(Notice(text=sentence, level="warning"))
        try:
            for uuid in drained:
                self.services.exports.turn_stored(uuid)
            await self.services.memory.pace.clear()
            for uuid in drained:
                opened = self._open.get(uuid)
                if opened is None or not opened.memory.started:
                    await self.services.memory.index(uuid)
            for uuid in await store.purges.expired():
                await self.services.memory.pace.clear()
                for sentence in (await self._purge_one(store, uuid)).left:
                    self.emit(Notice(text=f"A deleted conversation, {uuid[:8]}: {sentence}", level="warning"))
            if self.interactive:
                await self.services.memory.open_indexes()
                await self.services.memory.catch_up(set(self._open))
                if self.settings.agent.memory.enabled:
                    finder = AttemptFinder(self.services.store, self.workspace, self.services.memory.pace)
                    await finder.catch_up(set(self._open))
                    self._imports.ask()
                await self._link_code()
        except GraphError as error:
            log.warning("chores not finished: %s", error)

    @property
    def code(self) -> CodeLookup:
        """Questions about the code of the workspace, once it is indexed: see `index_code`.

        Raises:
            RagforgeError: Code is not indexed.

        Examples:
            ```python
            await agent.index_code()
            for scope in await agent.code.search("greeting", limit=3):
                print(scope.kind, scope.name, scope.file, scope.start_line)
            ```
        """
        if self.services.lookup is None:
            raise RagforgeError("Code is not indexed.", todo="Set agent.code.enabled to true.", kind="code_off")
        return self.services.lookup

    async def index_code(self) -> str:
        """Index the code of the workspace if it has no index yet, and link the turns that were not examined.

        Returns:
            What the user should know about the index, such as files left out; empty if nothing.

        Raises:
            GraphError: The graph is unreachable or was refused.
        """
        problem = await self.services.code.index_once()
        await self._link_code()
        return problem

    async def _link_code(self) -> None:
        """Link the turns of conversations that are not open to the code they touch, once the code is indexed."""
        services = self.services
        await services.code.wait_indexed()
        if services.code.ready:
            linker = CodeLinker(services.store, services.workspace, services.memory.pace)
            await linker.catch_up(set(self._open))
