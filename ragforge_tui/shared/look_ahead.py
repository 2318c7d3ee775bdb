"""Search that may start before its result is needed: while a user reads a draft again, or a message is stored."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

FRESH_SECONDS = 10.0
"""Age up to which a result is used; what it found may change meanwhile."""

K = TypeVar("K")
T = TypeVar("T")


class LookAhead(Generic[K, T]):
    """The newest search of one kind, whose result is taken once it is needed.

    Args:
        search: Starts the search for a key: the question with all that its result depends on.
        complete: Returns whether a result lacks nothing.
    """

    def __init__(self, search: Callable[[K], Coroutine[Any, Any, T]], complete: Callable[[T], bool]) -> None:
        self._search = search
        self._complete = complete
        self._key: K | None = None
        self._task: asyncio.Task[T] | None = None
        self._started = 0.0

    def start(self, key: K) -> None:
        """Start the search for a key, unless it is under way or found everything a moment ago."""
        task = self._task_for(key)
        if task is None or (task.done() and (task.exception() is not None or not self._complete(task.result()))):
            self._begin(key)

    async def result(self, key: K) -> T:
        """Return what the search that was started for a key found, or that of a new one; raises what it raised."""
        task = self._task_for(key) or self._begin(key)
        self._task = None
        return await asyncio.shield(task)

    def _task_for(self, key: K) -> asyncio.Task[T] | None:
        task = self._task
        fresh = time.monotonic() - self._started < FRESH_SECONDS
        return task if task is not None and self._key == key and fresh and not task.cancelled() else None

    def _begin(self, key: K) -> asyncio.Task[T]:
        # An earlier search runs to its end: cancelling it would cost the graph a connection.
        self._key, self._started = key, time.monotonic()
        self._task = asyncio.create_task(self._search(key))
        self._task.add_done_callback(_retrieved)
        return self._task


def _retrieved(task: asyncio.Task[Any]) -> None:
    """Mark the error of a search whose result nobody needed as seen."""
    if not task.cancelled():
        task.exception()
