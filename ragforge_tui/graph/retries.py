"""The decision whether a failed transaction is worth another attempt."""

from __future__ import annotations

import asyncio
import random

from neo4j.exceptions import ConstraintError, DriverError, Neo4jError

from ragforge_tui.graph.errors import lost

LOST_PATIENCE = 3.0
"""Seconds a broken connection to a server of somebody else's is tried again before it counts as away."""
CONSTRAINT_ATTEMPTS = 25


class Retries:
    """The decision whether a failed transaction is worth another attempt, and the wait before it."""

    def __init__(self) -> None:
        self._constraints = 0
        self._tries = 0
        self._lost_since: float | None = None

    def worth(self, error: BaseException, *, patient: bool) -> bool:
        """Whether to try again; `patient` when a lost server is started again by us."""
        if isinstance(error, ConstraintError):
            self._constraints += 1
            return self._constraints < CONSTRAINT_ATTEMPTS
        if lost(error):
            clock = asyncio.get_running_loop().time()
            self._lost_since = self._lost_since or clock
            return patient or clock - self._lost_since < LOST_PATIENCE
        return isinstance(error, DriverError | Neo4jError) and error.is_retryable()

    async def wait(self) -> None:
        """Wait a little longer each time, never in step with other writers."""
        self._tries += 1
        longest = 0.5 if self._lost_since else 0.1
        await asyncio.sleep(min(0.01 * 2**self._tries, longest) * random.uniform(0.3, 1.0))
