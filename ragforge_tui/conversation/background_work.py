"""Work that is requested repeatedly and runs in the background, at most one run at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class BackgroundWork:
    """One kind of work that is requested repeatedly, with at most one run at a time.

    Requests are coalesced: the work itself finds what has to be done, so two requests while it runs cause one more run.

    Args:
        work: Does everything that is due; must not raise.
    """

    def __init__(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        self._name = name
        self._work = work
        self._requested = False
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    def ask(self) -> None:
        """Run now, or once more after the current run."""
        self._requested = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self.running:
            self._task = asyncio.create_task(self._run(), name=self._name)

    def ask_in(self, seconds: float) -> None:
        """Run after a delay, unless `ask` is called earlier."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self.ask)

    async def settle(self) -> None:
        """Wait until the current run ends; a delayed run is not awaited."""
        while self.running:
            assert self._task is not None
            await asyncio.wait({self._task})

    async def stop(self) -> None:
        """Cancel the current run and a delayed one; the work may be requested again."""
        self._requested = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while self._requested:
            self._requested = False
            await self._work()
