"""The engine's side of the process that parses: starts it when it is needed, and again when it dies."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from typing import TypeVar

import msgspec

from ragforge_tui.code.worker import Request
from ragforge_tui.shared.daemon import daemon_command, daemon_environment

log = logging.getLogger(__name__)

T = TypeVar("T")

ANSWER_SECONDS = 300.0
"""Longest answer: the references of a large workspace. A grammar that hangs on a file is ended with its process."""
LINE_BYTES = 2**30
END_SECONDS = 2.0
IDLE_SECONDS = 30.0
"""Time after which a process without requests is ended, because it remembers all parsed files."""


class WorkerGoneError(Exception):
    """The process ended or did not answer; it knows nothing any more and is started again by the next request."""


class WorkerDiedError(WorkerGoneError):
    """A request ended the process, or took it too long."""


class WorkerClient:
    """Client of the process that parses; one request at a time."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._busy = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None
        self._ending: asyncio.Task[None] | None = None
        self._generation = 0

    @property
    def pid(self) -> int:
        """Return the id of the process, 0 if none runs."""
        return self._process.pid if self._process is not None else 0

    async def ask(self, request: Request, answer: type[T]) -> T:
        """Return the answer to a request.

        Raises:
            WorkerDiedError: The process died, or was ended because it did not answer.
        """
        async with self._busy:
            if self._idle is not None:
                self._idle.cancel()
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    data = await self._exchange(msgspec.json.encode(request))
            except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
                await self._end()
                raise WorkerDiedError(f"the process that parses ended: {error!r}") from error
            except BaseException:
                # An answer that nobody waits for would be taken for that of the next request.
                await self._end()
                raise
            self._idle = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._end_idle)
        return await asyncio.to_thread(msgspec.json.decode, data, type=answer)

    async def close(self) -> None:
        """End the process."""
        if self._idle is not None:
            self._idle.cancel()
        await self._end()

    def _end_idle(self) -> None:
        if not self._busy.locked():
            self._ending = asyncio.create_task(self._end(), name="code-worker-end")

    async def ensure(self) -> int:
        """Start the process if it does not run, and return which one it is, counted from 1.

        Raises:
            WorkerGoneError: It cannot be started.
        """
        async with self._busy:
            try:
                await self._running()
            except OSError as error:
                raise WorkerGoneError(f"the process that parses cannot be started: {error}") from error
            return self._generation

    async def _running(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            self._process = await self._start()
            self._generation += 1
        return self._process

    async def _exchange(self, data: bytes) -> bytes:
        process = await self._running()
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(data + b"\n")
        await process.stdin.drain()
        return await process.stdout.readuntil()

    async def _start(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *daemon_command("-m", "ragforge_tui.code.worker"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=os.sep,
            env=daemon_environment(),
            limit=LINE_BYTES,
            start_new_session=True,
        )

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), END_SECONDS)
