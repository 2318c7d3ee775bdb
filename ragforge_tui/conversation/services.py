"""Parts of an agent that all of its conversations share, handed down as one object.

A conversation and everything below it takes `Services` instead of the agent, so that each can be read and tested
without it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ragforge_tui.code.knowledge import CodeKnowledge
from ragforge_tui.code.lookup import CodeLookup
from ragforge_tui.conversation.approvals.pending import Approvals
from ragforge_tui.conversation.budget import SessionBudget
from ragforge_tui.conversation.current_model import CurrentModel, PersonaModels
from ragforge_tui.conversation.hooks import Hooks
from ragforge_tui.conversation.live_export.writer import ExportWriter
from ragforge_tui.conversation.model_windows import ModelWindows
from ragforge_tui.conversation.own_prompts import OwnPrompts
from ragforge_tui.conversation.providers import ProviderAccess
from ragforge_tui.conversation.shared_memory import SharedMemory
from ragforge_tui.conversation.storage.graph_connection import GraphConnection
from ragforge_tui.conversation.storage.recorder import Recorder
from ragforge_tui.conversation.trust.instructions import InstructionTrust
from ragforge_tui.conversation.trust.personas import Personas
from ragforge_tui.conversation.trust.project import ProjectTrust
from ragforge_tui.graph import Store
from ragforge_tui.personas import user_name
from ragforge_tui.settings.schema import Settings
from ragforge_tui.shared.events import Event
from ragforge_tui.tools.mcp.servers import McpServers
from ragforge_tui.tools.registry import Toolbox


class EventBus:
    """Distribution of an agent's events to its listeners."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[Event], None]] = []

    def emit(self, event: Event) -> None:
        for listener in list(self._listeners):
            listener(event)

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Call `listener` with all events from now on."""
        self._listeners.append(listener)

    @contextmanager
    def subscribe(self) -> Iterator[asyncio.Queue[Event]]:
        """Yield a queue that receives all events from now on."""
        queue: asyncio.Queue[Event] = asyncio.Queue()
        listener = queue.put_nowait
        self._listeners.append(listener)
        try:
            yield queue
        finally:
            self._listeners.remove(listener)


@dataclass(frozen=True, kw_only=True)
class Services:
    """Shared parts of one agent.

    Attributes:
        workspace: The folder the agent works in.
        state: Folder of what is kept between sessions.
        project: The user's answers about other files of the workspace.
        mcp: The MCP servers of the session.
        prompts: Skills and commands of the user and, once allowed, of the workspace.
        hooks: Commands of the user that run at certain moments.
        windows: Context windows of models, also learned ones.
        providers: Providers that the user can connect.
        memory: Embedding model, summary model and memory tools.
        code: The index of the workspace's code.
        lookup: Questions about that code, None if it is not indexed.
        exports: Export files, updated as conversations grow.
    """

    settings: Settings
    workspace: Path
    state: Path
    events: EventBus
    graph: GraphConnection
    recorder: Recorder
    model: CurrentModel
    providers: ProviderAccess
    persona_models: PersonaModels
    approvals: Approvals
    budget: SessionBudget
    trust: InstructionTrust
    personas: Personas
    project: ProjectTrust
    toolbox: Toolbox
    mcp: McpServers
    prompts: OwnPrompts
    hooks: Hooks
    windows: ModelWindows
    memory: SharedMemory
    code: CodeKnowledge
    lookup: CodeLookup | None
    exports: ExportWriter

    @cached_property
    def user_name(self) -> str:
        """Name by which the agent addresses the user."""
        return user_name(self.settings.user.name)

    def emit(self, event: Event) -> None:
        self.events.emit(event)

    async def store(self) -> Store:
        """Return the graph's store; wait while the graph starts.

        Raises:
            GraphError: The graph is unreachable or was refused.
        """
        return await self.graph.store()
