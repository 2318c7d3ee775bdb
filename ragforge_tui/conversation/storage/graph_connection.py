"""Background connection to the graph that reports its status and reconnects.

The user interface is usable before the graph is open. Callers that need the store wait here, up to a limit. Used by the
agent and the recorder.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from ragforge_tui.graph import AsyncDriver, Graph, Store, driver_target, resolve_target
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.errors import ErrorInfo, GraphError, GraphUnavailableError
from ragforge_tui.shared.events import Event, GraphChanged, GraphPhase

log = logging.getLogger(__name__)

FIRST_WAIT_SECONDS = 30.0
"""Longest wait of a request for a starting graph; the embedded one takes a second, and longer after a crash."""
OPENING_SECONDS = 5.0
"""Longest wait of a chat's first message for a starting graph, after which it goes to the journal: one attempt to
connect, so that neither the start of the embedded graph nor a slow network costs the message its memory."""
RETRY_SECONDS = (2.0, 4.0, 8.0, 15.0, 30.0)
"""Pauses between attempts to reach an unreachable graph; the last one repeats."""


class GraphConnection:
    """Connection of one agent to its graph.

    Args:
        emit: Receives `GraphChanged` whenever the phase changes.
        on_ready: Awaited after each connection, before the store is handed out; drains the journal last.
        driver: Driver of the program, used in place of the settings' graph and left open.
        hurried: A user waits for the first answer, so that new conversations do not wait long for a graph that starts.
    """

    def __init__(
        self,
        loaded: Loaded,
        emit: Callable[[Event], None],
        on_ready: Callable[[Store], Awaitable[None]],
        driver: AsyncDriver | None = None,
        *,
        hurried: bool = False,
    ) -> None:
        self._loaded = loaded
        self._hurried = hurried
        self._driver = driver
        self._emit = emit
        self._on_ready = on_ready
        settings = loaded.settings.graph
        self._target = resolve_target(settings, loaded.origins) if driver is None else driver_target(driver, settings)
        self.state = GraphChanged(
            phase="starting",
            name="embedded" if self._target.embedded else self._target.uri,
            chosen_by=self._target.chosen_by,
        )
        self._graph: Graph | None = None
        self._store: Store | None = None
        self._settled = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start to open the graph; returns at once."""
        if self._task is None:
            self._task = asyncio.create_task(self._keep_open(), name="graph-connection")

    @property
    def address(self) -> str:
        return self._target.address

    @property
    def ready(self) -> bool:
        """Return whether the store can be used now."""
        return self._store is not None and self.state.phase == "ready"

    async def store(self, wait: float = FIRST_WAIT_SECONDS) -> Store:
        """Return the store; wait up to `wait` seconds while the graph opens.

        Raises:
            GraphError: The graph is unreachable, was refused, or did not open in time.
        """
        try:
            async with asyncio.timeout(wait):
                await self._settled.wait()
        except TimeoutError:
            raise GraphUnavailableError(
                f"The graph ({self.state.name}) is still starting.", todo="Try again in a moment."
            ) from None
        if self._store is not None and self.state.phase == "ready":
            return self._store
        error = self.state.error
        if error is None:
            raise GraphUnavailableError(f"The graph ({self.state.name}) cannot be reached.")
        raise GraphError(error.what, todo=error.todo, kept=error.kept, kind=error.kind)

    async def store_for_record(self) -> Store | None:
        """Return the store for a record, or None if the record goes to the journal because the graph still starts.

        Raises:
            GraphError: As `store`.
        """
        if self._hurried and self.state.phase == "starting":
            try:
                async with asyncio.timeout(OPENING_SECONDS):
                    await self._settled.wait()
            except TimeoutError:
                return None
        return await self.store()

    async def graph(self) -> Graph:
        """Return the open graph, for its facts such as version and sizes."""
        await self.store()
        assert self._graph is not None
        return self._graph

    def lost(self, error: ErrorInfo) -> None:
        """Report that a statement could not reach the graph, and reconnect in the background."""
        if self.state.phase == "ready":
            self._set_state("unreachable", error)
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._keep_open(), name="graph-connection")

    def _phase_changed(self, phase: GraphPhase, error: ErrorInfo | None) -> None:
        """Handle a lost server that the driver noticed; only polling detects its return."""
        if phase == "unreachable" and error is not None:
            self.lost(error)

    def set_journaled(self, count: int) -> None:
        """Set the number of records in the journal."""
        if count != self.state.journaled:
            self._set_state(self.state.phase, self.state.error, journaled=count)

    async def close(self) -> None:
        """Stop reconnecting and close the graph."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._graph is not None:
            await self._graph.close()

    async def _keep_open(self) -> None:
        attempt = 0
        while True:
            try:
                await self._open()
                return
            except GraphUnavailableError as error:
                log.warning("graph unreachable: %s", error)
                self._set_state("unreachable", error.info)
            except GraphError as error:
                log.error("graph refused: %s", error)
                self._set_state("refused", error.info)
                return
            except Exception:
                log.exception("opening the graph failed")
                self._set_state(
                    "unreachable",
                    ErrorInfo(
                        kind="graph",
                        what="The graph could not be opened.",
                        todo="See the log: run ragforge-chat doctor.",
                    ),
                )
            finally:
                self._settled.set()
            await asyncio.sleep(RETRY_SECONDS[min(attempt, len(RETRY_SECONDS) - 1)])
            attempt += 1

    async def _open(self) -> None:
        settings = self._loaded.settings
        if self._graph is None:
            self._graph = await Graph.open(
                self._target,
                self._loaded.paths,
                heap_mb=settings.graph.heap_mb,
                linger_seconds=settings.graph.linger_seconds,
                embedding_dimension=settings.agent.memory.embeddings.dimension,
                contents=settings.agent.memory.persistence.type,
                on_phase=self._phase_changed,
                driver=self._driver,
            )
        else:
            # It may still be unreachable, or another graph may answer in its place, which the journal then refuses.
            await self._graph.identify()
        store = Store(self._graph)
        await self._on_ready(store)
        # No other task runs between the end of the drain and this: it would append to a journal that nothing drains.
        self._store = store
        self._set_state("ready", None, journaled=0)

    def _set_state(self, phase: GraphPhase, error: ErrorInfo | None, *, journaled: int | None = None) -> None:
        self.state = GraphChanged(
            phase=phase,
            name=self.state.name,
            chosen_by=self.state.chosen_by,
            error=error,
            journaled=self.state.journaled if journaled is None else journaled,
        )
        self._emit(self.state)
