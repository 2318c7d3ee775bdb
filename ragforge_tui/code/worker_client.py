"""The engine's side of the process that parses: starts it when it is needed, and again when it dies."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from typing import TypeVar

import msgspec

from ragforge_tui.code.worker import Request

log = logging.getLogger(__name__)

T = TypeVar("T")

ANSWER_SECONDS = 300.0
"""Longest answer: the references of a large workspace. A grammar that hangs on a file is ended with its process."""
END_SECONDS = 2.0
IDLE_SECONDS = 30.0
"""Time after which a process without requests is ended, because it remembers all parsed files."""
_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV")


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
                    data = await self._exchange(msgspec.msgpack.encode(request))
            except (TimeoutError, OSError, asyncio.IncompleteReadError) as error:
                await self._end()
                raise WorkerDiedError(f"the process that parses ended: {error!r}") from error
            except BaseException:
                # An answer that nobody waits for would be taken for that of the next request.
                await self._end()
                raise
            self._idle = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._end_idle)
        return await asyncio.to_thread(msgspec.msgpack.decode, data, type=answer)

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
        process.stdin.write(len(data).to_bytes(4, "big") + data)
        await process.stdin.drain()
        length = int.from_bytes(await process.stdout.readexactly(4), "big")
        return await process.stdout.readexactly(length)

    async def _start(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # Modules of the workspace are parsed, never imported.
            "-m",
            "ragforge_tui.code.worker",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=os.sep,
            # Without the providers' keys: the process reads foreign files. One thread for products of matrices, because
            # those of OpenBLAS wait for each other busily: ten times the processor time for each vector.
            env={name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
            | {"OPENBLAS_NUM_THREADS": "1"},
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
