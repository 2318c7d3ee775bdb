"""Throttle of background work, which waits while a request is prepared.

One object per agent. Background threads would delay the Python code that prepares requests and handles keys, so their
work is done in small pieces, each of which waits here first, and on more than one core only while no turn is running.
Low thread priority would not help: a thread that is not scheduled on a busy machine may be holding the interpreter's
lock.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager

MOST_WORKERS = 4


class Pace:
    """Throttle of one agent's background work.

    Args:
        workers: Maximum number of pieces at once; None for one per core, at most `MOST_WORKERS`.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._most = workers or min(os.cpu_count() or 1, MOST_WORKERS)
        self._urgent = 0
        self._turns = 0
        self._awaited = 0
        self._unblocked = asyncio.Event()
        """Set while nothing urgent is prepared, or something waits for background work."""
        self._unblocked.set()

    @contextmanager
    def urgent(self) -> Iterator[None]:
        """Hold background work back inside the context, which prepares something that the user waits for."""
        self._urgent += 1
        if not self._awaited:
            self._unblocked.clear()
        try:
            yield
        finally:
            self._urgent -= 1
            if not self._urgent:
                self._unblocked.set()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Limit background work to one core inside the context; tools and a local model need the others."""
        self._turns += 1
        try:
            yield
        finally:
            self._turns -= 1

    @property
    def turn_runs(self) -> bool:
        return self._turns > 0

    @property
    def workers(self) -> int:
        """Number of pieces that may run at once."""
        return 1 if self._turns else self._most

    @contextmanager
    def awaited(self) -> Iterator[None]:
        """Run background work inside the context even while urgent work holds it back."""
        self._awaited += 1
        self._unblocked.set()
        try:
            yield
        finally:
            self._awaited -= 1
            if not self._awaited and self._urgent:
                self._unblocked.clear()

    @property
    def needed(self) -> bool:
        """Whether something waits for the result of background work."""
        return self._awaited > 0

    async def clear(self) -> None:
        """Wait before a piece of background work until nothing is urgent, or something waits for background work."""
        while not self._unblocked.is_set():
            await self._unblocked.wait()
