"""Engine in this process: the protocol without a pipe, for scripts, the command line and pilot tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Any, cast

from ragforge_tui.conversation import SETTLE_SECONDS, ConversationAgent
from ragforge_tui.engine.handlers import EngineContext, answer
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.errors import EngineGoneError
from ragforge_tui.shared.events import Event
from ragforge_tui.shared.wire import Empty, R, Request, Shutdown


class InProcessEngine:
    """Engine in this process; see `wire.Engine`. Create it inside a running event loop."""

    def __init__(
        self,
        loaded: Loaded,
        *,
        approve_all: bool = False,
        interactive: bool = False,
        settle_seconds: float | None = None,
    ) -> None:
        self._settle_seconds = SETTLE_SECONDS if settle_seconds is None else settle_seconds
        self.agent = ConversationAgent(loaded, approve_all=approve_all, interactive=interactive)
        self._context = EngineContext.of(self.agent, loaded)
        self._stack = ExitStack()
        self._events = self._stack.enter_context(self.agent.subscribe())
        self._closed = asyncio.Event()
        self.agent.start()

    async def request(self, request: Request[R]) -> R:
        """Send a request and return its answer."""
        if self._closed.is_set():
            raise EngineGoneError("The engine was closed.")
        result: Any = Empty()
        if isinstance(request, Shutdown):
            await self.close()
        else:
            result = await answer(self._context, request)
        return cast("R", result)

    async def events(self) -> AsyncIterator[Event]:
        """Yield all events since the engine was created, until it is closed."""
        closed = asyncio.create_task(self._closed.wait())
        try:
            while not (self._closed.is_set() and self._events.empty()):
                event = asyncio.create_task(self._events.get())
                await asyncio.wait({event, closed}, return_when=asyncio.FIRST_COMPLETED)
                if event.done():
                    yield event.result()
                else:
                    event.cancel()
        finally:
            closed.cancel()

    async def close(self) -> None:
        """Shut down; a running turn is stored as interrupted."""
        if not self._closed.is_set():
            self._context.close()
            await self.agent.close(settle_seconds=self._settle_seconds)
            self._stack.close()
            self._closed.set()
