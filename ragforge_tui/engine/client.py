"""Client side of the pipe: starts the child process, sends requests and returns answers and events.

Imports only the protocol and its records, because it runs in the user interface's process.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.errors import EngineGoneError, ErrorInfo, RagforgeError
from ragforge_tui.shared.events import Event
from ragforge_tui.shared.wire import MAX_LINE_BYTES, R, ReplyLine, Request, RequestLine, Shutdown, response_type

CLOSE_SECONDS = 10.0
"""Longest wait for an orderly shutdown; after it the child is left to finish alone."""


class ChildEngine:
    """Engine in a child process; see `wire.Engine`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._ids = itertools.count(1)
        self._waiting: dict[int, tuple[asyncio.Future[Any], Any]] = {}
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._encoder = msgspec.json.Encoder()
        self._gone = False
        self._reader = asyncio.create_task(self._read(), name="engine-reader")

    @classmethod
    async def start(cls, loaded: Loaded) -> ChildEngine:
        """Start the child in a separate session, so that it outlives this terminal.

        Raises:
            EngineGoneError: The process cannot be started.
        """
        try:
            stderr = _open_log(loaded)
            try:
                process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-P",  # Do not import modules of the current folder that have the same names as ours.
                    "-m",
                    "ragforge_tui.engine.child",
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=stderr,
                    start_new_session=True,
                    limit=MAX_LINE_BYTES,
                )
            finally:
                os.close(stderr)
        except OSError as error:
            raise EngineGoneError(f"The engine could not be started: {error.strerror or error}.") from error
        engine = cls(process)
        # Through the pipe, not argv: settings may contain passwords.
        engine._stdin.write(engine._encoder.encode(loaded) + b"\n")
        return engine

    @property
    def pid(self) -> int:
        return self._process.pid

    async def request(self, request: Request[R]) -> R:
        """Send a request and return its answer."""
        if self._gone:
            raise _gone()
        id = next(self._ids)
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting[id] = (future, response_type(request))
        line = RequestLine(id=id, request=request)
        try:
            self._stdin.write(self._encoder.encode(line) + b"\n")
            await self._stdin.drain()
            return await future
        except (BrokenPipeError, ConnectionResetError):
            raise _gone() from None
        finally:
            self._waiting.pop(id, None)

    async def events(self) -> AsyncIterator[Event]:
        """Yield all events since the start of the engine, until it ends."""
        while (event := await self._events.get()) is not None:
            yield event

    async def close(self) -> None:
        """Shut the child down; a running turn is stored as interrupted."""
        if not self._gone:
            with suppress(BrokenPipeError, ConnectionResetError):
                self._stdin.write(self._encoder.encode(RequestLine(id=0, request=Shutdown())) + b"\n")
                await self._stdin.drain()
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self._process.wait()
        self._stdin.close()
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)

    async def _read(self) -> None:
        decoder = msgspec.json.Decoder(ReplyLine)
        try:
            while line := await self._stdout.readline():
                self._take(decoder.decode(line))
        finally:
            self._gone = True
            for future, _ in self._waiting.values():
                if not future.done():
                    future.set_exception(_gone())
            self._events.put_nowait(None)

    def _take(self, line: ReplyLine) -> None:
        if line.event is not None:
            self._events.put_nowait(line.event)
        if line.id is None or line.id not in self._waiting:
            return
        future, type_ = self._waiting[line.id]
        if future.done():
            return
        if line.error is not None:
            future.set_exception(_error(line.error))
        else:
            future.set_result(msgspec.json.decode(line.result, type=type_))


def _gone() -> EngineGoneError:
    return EngineGoneError(
        "The engine ended unexpectedly.",
        kept="The conversation is stored.",
        todo="Use /retry once it has restarted.",
    )


def _error(info: ErrorInfo) -> RagforgeError:
    return RagforgeError(info.what, todo=info.todo, kept=info.kept, kind=info.kind)


def _open_log(loaded: Loaded) -> int:
    """Return a descriptor for the child's stray output: a log file, or the null device if it cannot be opened."""
    folder = Path(loaded.paths.state) / "logs"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return os.open(folder / "engine-stderr.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY)
