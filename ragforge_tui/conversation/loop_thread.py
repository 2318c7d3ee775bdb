"""A thread with an event loop, for programs without one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from ragforge_tui.shared.wire import CLOSE_SECONDS

T = TypeVar("T")


class LoopThread:
    """Thread that runs an event loop until it is closed."""

    def __init__(self) -> None:
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="ragforge-agent", daemon=True)
        self._thread.start()
        self._started.wait()

    def _serve(self) -> None:
        with asyncio.Runner() as runner:
            runner.run(self._until_closed())

    async def _until_closed(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._closing = asyncio.Event()
        self._started.set()
        await self._closing.wait()

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of `work`, run in the thread; if the caller is interrupted, stop it and wait for its end.

        Raises:
            RuntimeError: The thread was closed, or is the caller itself.
        """
        if not self.running or threading.current_thread() is self._thread:
            work.close()
            if self.running:
                raise RuntimeError("An async function of the agent cannot wait for it: use ConversationAgent there.")
            raise RuntimeError("The agent is closed.")
        ended = threading.Event()

        async def until_ended() -> T:
            try:
                return await work
            finally:
                ended.set()

        future = asyncio.run_coroutine_threadsafe(until_ended(), self._loop)
        try:
            return future.result()
        except BaseException:
            if not ended.is_set():
                future.cancel()
                ended.wait(CLOSE_SECONDS)
            raise

    def close(self) -> None:
        """End the thread; repeated, do nothing."""
        if self.running:
            self._loop.call_soon_threadsafe(self._closing.set)
            self._thread.join()
