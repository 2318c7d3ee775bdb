"""Pace of background work, which waits while a request is prepared or the user types.

One object per agent. A request and a key are served by Python in the engine and on the screen, which threads of the
background would delay; so that work asks before each small piece, and uses more than one core only while nothing else
runs. Time, not priority: a thread of low priority that holds the interpreter's lock would delay everything on a busy
machine.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

TYPING_SECONDS = 1.0
"""Time after a key in which the next one is expected."""
MOST_WORKERS = 4


class Pace:
    """Permission for background work, given piece by piece.

    Args:
        workers: Most pieces at once; None for one a core, at most `MOST_WORKERS`.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._most = workers or min(os.cpu_count() or 1, MOST_WORKERS)
        self._urgent = 0
        self._turns = 0
        self._typed_until = 0.0
        self._awaited = 0
        self._needed = asyncio.Event()
        """Set while background work is waited for."""
        self._changed = asyncio.Event()
        """Set while nothing urgent holds it back."""
        self._changed.set()

    @contextmanager
    def urgent(self) -> Iterator[None]:
        """Hold background work back inside the context: something that the user waits for is prepared."""
        self._urgent += 1
        if not self._awaited:
            self._changed.clear()
        try:
            yield
        finally:
            self._urgent -= 1
            if not self._urgent:
                self._changed.set()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Leave all cores but one to the tools of a turn and to a model on this machine inside the context."""
        self._turns += 1
        try:
            yield
        finally:
            self._turns -= 1

    def typed(self) -> None:
        """Hold background work back for a moment: the user types."""
        self._typed_until = time.monotonic() + TYPING_SECONDS

    @property
    def turn_runs(self) -> bool:
        return self._turns > 0

    @property
    def workers(self) -> int:
        """Number of pieces that may run at once."""
        return 1 if self._turns else self._most

    @contextmanager
    def awaited(self) -> Iterator[None]:
        """Let background work go on inside the context: what is prepared waits for it."""
        self._awaited += 1
        self._needed.set()
        self._changed.set()
        try:
            yield
        finally:
            self._awaited -= 1
            if not self._awaited:
                self._needed.clear()
                if self._urgent:
                    self._changed.clear()

    async def clear(self) -> None:
        """Wait until nothing urgent is prepared and the user does not type, unless this work is waited for."""
        while not self._awaited:
            if self._urgent:
                await self._changed.wait()
            elif (left := self._typing_left()) > 0:
                with suppress(TimeoutError):
                    async with asyncio.timeout(left):
                        await self._needed.wait()
            else:
                return

    def _typing_left(self) -> float:
        return self._typed_until - time.monotonic()
