"""Waiting in tests: for something to hold, or for the event loop to have nothing to do; one limit for both."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any

PATIENCE = 180.0
"""Seconds after which something that has not happened never will, also on a machine that does much else."""


async def nap() -> None:
    """Sleep for a moment."""
    await asyncio.sleep(0.01)


async def until(holds: Callable[[], Any], what: str = "", *, pause: Callable[[], Awaitable[None]] = nap) -> Any:
    """Wait until something holds, and return what `holds` gave.

    Args:
        holds: Called again and again, and awaited if it gives an awaitable.
        what: Named when it does not happen.
        pause: Waits between two calls; `stirred` until the loop did something.

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
        await pause()
    raise AssertionError(f"never happened: {what or inspect.getsource(holds).strip()}")


async def quiet(soon: float = 0.02) -> None:
    """Wait until the event loop has nothing to do: nothing is ready, in a thread, or due within `soon` seconds.

    That is a fact about the program and not about the time it took, so it holds on a busy machine as on an idle one.
    """
    seen = await _watched().told(lambda due: due is None or due > soon, PATIENCE)
    assert seen, "the event loop always has something to do"


async def calm(most: float = 2.0) -> None:
    """Wait until the event loop has nothing to do, at most so many seconds.

    For a key that was pressed: an app that ends may leave a thread behind, and what is expected is waited for anyway.
    """
    await _watched().told(lambda due: due is None or due > 0.02, most)


async def stirred() -> None:
    """Wait until something happened and all that follows at once from it is done.

    Something outside the loop, such as a file, is looked for again after a second.
    """
    watch = _watched()
    # What is ready now is what happens; otherwise the loop has to sleep first.
    slept = watch.has_work

    def told(_: float | None) -> bool:
        nonlocal slept
        before, slept = slept, True
        return before

    await watch.told(told, 1.0, threads=True)


class _Watch:
    """Sees an event loop go to sleep, and for how long."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Any = loop
        self._threads = 0
        self._waiting: list[tuple[Callable[[float | None], bool], bool, asyncio.Future[None]]] = []
        self._select, self._run = self._loop._selector.select, self._loop.run_in_executor
        self._loop._selector.select = self._selected
        self._loop.run_in_executor = self._counted

    @property
    def has_work(self) -> bool:
        return bool(self._loop._ready)

    async def told(self, wanted: Callable[[float | None], bool], seconds: float, *, threads: bool = False) -> bool:
        """Wait until the loop is about to sleep for a time that is wanted; with `threads` also if threads are at work.

        Returns:
            Whether it was, within so many seconds.
        """
        entry = wanted, threads, self._loop.create_future()
        self._waiting.append(entry)
        try:
            await asyncio.wait_for(entry[2], seconds)
        except TimeoutError:
            return False
        finally:
            self._waiting.remove(entry)
        return True

    def _selected(self, timeout: float | None = None) -> Any:
        if timeout is None or timeout > 0:
            for wanted, threads, future in self._waiting:
                if not future.done() and (threads or not self._threads) and wanted(timeout):
                    future.set_result(None)
                    timeout = 0
        return self._select(timeout)

    def _counted(self, executor: Any, function: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self._run(executor, function, *args)
        self._threads += 1
        future.add_done_callback(self._done)
        return future

    def _done(self, _: asyncio.Future[Any]) -> None:
        self._threads -= 1


def _watched() -> _Watch:
    loop: Any = asyncio.get_running_loop()
    if not hasattr(loop, "watch"):
        loop.watch = _Watch(loop)
    watch: _Watch = loop.watch
    return watch
