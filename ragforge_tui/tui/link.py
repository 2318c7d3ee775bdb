"""The screen's hold on an engine: start one, read its events, start another when it ends, ask it things.

The base of `controller.py`, which says what the events and the end of an engine mean for the chat.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ragforge_tui.errors import EngineGoneError, ErrorInfo, RagforgeError
from ragforge_tui.events import Event
from ragforge_tui.protocol import Engine, Request
from ragforge_tui.tui.state import ChatState
from ragforge_tui.tui.unrun import begin

if TYPE_CHECKING:
    from ragforge_tui.tui.app import ChatApp

log = logging.getLogger(__name__)

R = TypeVar("R")
Level = Literal["info", "warning", "error"]

CLOSE_SECONDS = 10.0
STEADY_SECONDS = 30.0
"""An engine that lived this long is not part of a row of crashes."""
MAX_CRASHES = 3


class EngineLink(ABC):
    """Holds one engine at a time, as long as the chat runs."""

    def __init__(self, view: ChatApp, connect: Callable[[], Awaitable[Engine]], state: ChatState) -> None:
        self.view = view
        self.state = state
        self.engine: Engine | None = None
        self.connected = asyncio.Event()
        """Set while there is an engine to ask."""
        self._connect = connect
        self._start_again = asyncio.Event()

    @abstractmethod
    def take_in(self, event: Event) -> None:
        """What the engine says."""

    @abstractmethod
    async def greet(self, engine: Engine) -> None:
        """A new engine is there."""

    @abstractmethod
    def engine_lost(self, error: ErrorInfo | None, *, give_up: bool) -> None:
        """The engine ended by itself, or could not be started."""

    @abstractmethod
    def notice(self, text: str, level: Level) -> None:
        """A line for the person."""

    async def run_link(self) -> None:
        """Hold an engine: connect, read its events, start another one when it ends. Runs as long as the chat."""
        crashes = 0
        loop = asyncio.get_running_loop()
        while not self.state.closing:
            since = loop.time()
            error = await self._live_once()
            if self.state.closing:
                return
            crashes = 1 if loop.time() - since > STEADY_SECONDS else crashes + 1
            self.engine_lost(error, give_up=crashes > MAX_CRASHES)
            if crashes > MAX_CRASHES:
                self._start_again.clear()
                await self._start_again.wait()
                crashes = 0
            self.state.connection = "starting"
            self.view.refresh_chrome()
            await asyncio.sleep(0.1 * crashes)

    async def _live_once(self) -> ErrorInfo | None:
        """One engine from start to end; what went wrong when it could not be started."""
        try:
            engine = await self._connect()
        except RagforgeError as error:
            return error.info
        except Exception as error:
            log.exception("engine not started")
            return ErrorInfo(kind="engine", what=f"The engine could not be started: {error}.", todo="See the log.")
        self.engine = engine
        self.connected.set()
        self.spawn(self.greet(engine), group="greet", exclusive=True)
        try:
            async for event in engine.events():
                self.take_in(event)
        except RagforgeError as error:
            log.warning("events ended: %s", error)
        finally:
            self.engine = None
            self.connected.clear()
        return None

    async def ask(self, request: Request[R]) -> R:
        """Ask the engine.

        Raises:
            RagforgeError: As the engine raised it; `EngineGoneError` also while none is there.
        """
        if self.engine is None:
            raise EngineGoneError("The engine is not there yet.", todo="Try again in a moment.")
        return await self.engine.request(request)

    def spawn(self, work: Coroutine[Any, Any, None], *, group: str, exclusive: bool = False) -> None:
        """Run something beside the screen; its errors become notices."""
        begin(self.view, self._guarded(work), group=group, exclusive=exclusive, inner=work)

    async def _guarded(self, work: Awaitable[None]) -> None:
        try:
            await work
        except EngineGoneError as error:
            if self.engine is not None or self.state.connection == "starting":
                self.notice(error.info.sentence(), "error")
        except RagforgeError as error:
            self.notice(error.info.sentence(), "error")
        except Exception as error:
            log.exception("request failed")
            self.notice(f"That did not work: {error}. See the log.", "error")

    async def close(self) -> None:
        """End the engine in order; what is under way is stored as interrupted."""
        self.state.connection = "closing"
        self.view.refresh_chrome()
        if self.engine is not None:
            try:
                await asyncio.wait_for(self.engine.close(), CLOSE_SECONDS)
            except (TimeoutError, RagforgeError) as error:
                log.warning("engine did not close in order: %r", error)
