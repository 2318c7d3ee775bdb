"""Work in the background that is asked for again and again, such as making what is missing in the graph.

Used by `ConversationMemory`. Requests are coalesced: the work finds by itself what there is to do, so being asked twice
while it runs means running once more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class BackgroundWork:
    """One kind of work, never running twice at once.

    Args:
        work: Does all there is to do; must not raise.
    """

    def __init__(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        self._name = name
        self._work = work
        self._wanted = False
        self._task: asyncio.Task[None] | None = None
        self._later: asyncio.TimerHandle | None = None

    @property
    def running(self) -> bool:
        """Whether the work is in progress."""
        return self._task is not None and not self._task.done()

    def ask(self) -> None:
        """Run now, or once more when it is running."""
        self._wanted = True
        if self._later is not None:
            self._later.cancel()
            self._later = None
        if not self.running:
            self._task = asyncio.create_task(self._run(), name=self._name)

    def ask_in(self, seconds: float) -> None:
        """Run after so many seconds unless asked for earlier."""
        if self._later is not None:
            self._later.cancel()
        self._later = asyncio.get_running_loop().call_later(seconds, self.ask)

    async def settle(self) -> None:
        """Wait until it is not running; what is put off is not waited for."""
        while self.running:
            assert self._task is not None
            await asyncio.wait({self._task})

    async def stop(self) -> None:
        """Cancel the run in progress and what is put off; it may be asked for again."""
        self._wanted = False
        if self._later is not None:
            self._later.cancel()
            self._later = None
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while self._wanted:
            self._wanted = False
            await self._work()
