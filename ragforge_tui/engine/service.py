"""Answers to the requests for one agent, shared by both forms of the engine."""

from __future__ import annotations

import os
from typing import Any

from ragforge_tui import __version__
from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.engine.following import ConversationWatcher
from ragforge_tui.engine.handlers import EngineContext, answer, handles, memory, personas, sessions, turns, work
from ragforge_tui.engine.process import log_file
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.tool_calls import described_tools
from ragforge_tui.shared.wire import PROTOCOL_VERSION, EngineState, Hello, Request

SUBJECTS = (memory, personas, sessions, turns, work)
"""Modules with handlers; importing one registers them."""


class EngineService:
    """Service that answers requests for one agent."""

    def __init__(self, agent: ConversationAgent, loaded: Loaded) -> None:
        self._engine = EngineContext(agent, loaded, ConversationWatcher(agent) if agent.interactive else None)

    async def handle(self, request: Request[Any]) -> Any:
        """Answer one request.

        Raises:
            RagforgeError: The request failed; the message is meant for the user.
        """
        return await answer(self._engine, request)

    def close(self) -> None:
        """Stop watching for changes by other processes."""
        if self._engine.watcher is not None:
            self._engine.watcher.stop()


@handles(Hello)
async def hello(engine: EngineContext, _: Hello) -> EngineState:
    """Return the state of the engine."""
    return EngineState(
        protocol=PROTOCOL_VERSION,
        version=__version__,
        pid=os.getpid(),
        workspace=engine.loaded.workspace,
        model=engine.agent.model_state,
        graph=engine.agent.graph_state,
        log_file=str(log_file(engine.loaded.paths)),
        tools=described_tools(),
    )
