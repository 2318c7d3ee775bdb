"""Waiting in tests: one function, one limit."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any

PATIENCE = 180.0
"""Seconds after which something that has not happened never will, also on a machine that does much else."""


async def until(
    holds: Callable[[], Any], what: str = "", *, pause: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> Any:
    """Wait until something holds, and return what `holds` gave.

    Args:
        holds: Called again and again, and awaited if it gives an awaitable.
        what: Named when it does not happen.
        pause: Sleeps between two calls; a pilot's lets the screen go on.

    Raises:
        AssertionError: It did not happen.
    """
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = holds()
        if inspect.isawaitable(found):
            found = await found
        if found:
            return found
        await pause(0.01)
    raise AssertionError(f"never happened: {what or inspect.getsource(holds).strip()}")
