"""Client side of the pipe: starts the engine's process, sends requests and returns answers and events.

Imports only the protocol and its records, because it runs in the user interface's process.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from ragforge_tui.engine.start import INTERACTIVE, EngineOptions, EngineStart
from ragforge_tui.engine.warm.client import request_fork, requested_engine, warm_engine
from ragforge_tui.engine.warm.launch import open_log
from ragforge_tui.engine.warm.messages import HostFiles
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.errors import EngineGoneError, RagforgeError
from ragforge_tui.shared.events import Event
from ragforge_tui.shared.wire import (
    CLOSE_SECONDS,
    MAX_LINE_BYTES,
    R,
    ReplyLine,
    Request,
    RequestLine,
    Shutdown,
    response_type,
)

log = logging.getLogger(__name__)


class EngineProcess(Protocol):
    """Process of an engine: a child of this process, or a fork of the engine host."""

    @property
    def pid(self) -> int: ...

    async def wait(self) -> object: ...


class RequestedEngine(msgspec.Struct):
    """An engine that the host was asked for before there was an event loop.

    Attributes:
        connection: To the host, which has yet to reply.
        request_end, reply_end: This process's ends of the engine's pipes.
        unsent: What the pipe did not take of the first line.
    """

    connection: socket.socket
    request_end: int
    reply_end: int
    unsent: bytes

    def close(self) -> None:
        """Close the pipes, which ends the engine if there is one."""
        os.close(self.request_end)
        os.close(self.reply_end)


def request_engine(loaded: Loaded, options: EngineOptions = INTERACTIVE) -> RequestedEngine | None:
    """Ask a running engine host for an engine, without waiting for it; None if no host runs.

    Its first line is sent too, so that it opens the graph and its model meanwhile.
    """
    descriptors: list[int] = []
    try:
        stdin, request_end = os.pipe()
        descriptors += [stdin, request_end]
        reply_end, stdout = os.pipe()
        descriptors += [reply_end, stdout]
        descriptors.append(stderr := open_log(HostFiles.of(loaded.paths)))
        connection = request_fork(loaded, (stdin, stdout, stderr))
        if connection is None:
            return None
        line = _first_line(loaded, options)
        os.set_blocking(request_end, False)
        unsent = line[os.write(request_end, line) :]
        descriptors.remove(request_end)
        descriptors.remove(reply_end)
        return RequestedEngine(connection, request_end, reply_end, unsent)
    except OSError as error:
        log.warning("no engine was requested: %s", error)
        return None
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


class ChildEngine:
    """Engine in a process of its own; see `wire.Engine`.

    Args:
        stdin: The pipe that carries requests.
        stdout: The pipe that carries replies and events.
    """

    def __init__(self, process: EngineProcess, stdin: asyncio.StreamWriter, stdout: asyncio.StreamReader) -> None:
        self._process = process
        self._stdin = stdin
        self._stdout = stdout
        self._ids = itertools.count(1)
        self._waiting: dict[int, tuple[asyncio.Future[Any], Any]] = {}
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._encoder = msgspec.json.Encoder()
        self._gone = False
        # Beyond it comes the time that the memory may use; then the engine is left to finish alone.
        self._close_seconds = CLOSE_SECONDS
        self._reader = asyncio.create_task(self._read(), name="engine-reader")

    @classmethod
    async def start(
        cls,
        loaded: Loaded,
        options: EngineOptions = INTERACTIVE,
        requested: RequestedEngine | None = None,
        *,
        from_host: bool = True,
    ) -> ChildEngine:
        """Start an engine in a session of its own, so that it outlives this terminal.

        The user's engine host forks it, and is started if none is running. If that fails, the engine is a child of this
        process.

        Args:
            requested: An engine that the host was asked for with these settings and options.
            from_host: Whether a host may fork it. After a crash none may: what ended the engine may have put another
                program in the host's place, which would be sent the whole environment with its keys.

        Raises:
            EngineGoneError: The process cannot be started.
        """
        if not from_host:
            return await cls._start_child(loaded, options)
        if requested is not None:
            try:
                if engine := await cls._start_requested(requested, options):
                    return engine
            except TimeoutError:
                log.warning("the engine host hangs")
                return await cls._start_child(loaded, options)
        engine = await cls.start_warm(loaded, options, start_host=True)
        return engine or await cls._start_child(loaded, options)

    @classmethod
    async def start_warm(
        cls, loaded: Loaded, options: EngineOptions = INTERACTIVE, *, start_host: bool = False
    ) -> ChildEngine | None:
        """Let the engine host fork an engine; return None if it cannot.

        Args:
            start_host: Start a host if none runs.
        """
        descriptors: list[int] = []
        try:
            stdin, request_end = os.pipe()
            descriptors += [stdin, request_end]
            reply_end, stdout = os.pipe()
            descriptors += [reply_end, stdout]
            descriptors.append(stderr := open_log(HostFiles.of(loaded.paths)))
            warm = await warm_engine(loaded, (stdin, stdout, stderr), start=start_host)
            if warm is None:
                return None
            descriptors.remove(request_end)
            descriptors.remove(reply_end)
            engine = cls(warm, await _writer(request_end), await _reader(reply_end))
            engine._begin(_first_line(loaded, options), options)
            return engine
        except OSError as error:
            log.warning("no engine from the host: %s", error)
            return None
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    @classmethod
    async def _start_requested(cls, requested: RequestedEngine, options: EngineOptions) -> ChildEngine | None:
        try:
            warm = await requested_engine(requested.connection)
        except BaseException:
            requested.close()
            raise
        if warm is None:
            requested.close()
            return None
        engine = cls(warm, await _writer(requested.request_end), await _reader(requested.reply_end))
        engine._begin(requested.unsent, options)
        return engine

    @classmethod
    async def _start_child(cls, loaded: Loaded, options: EngineOptions) -> ChildEngine:
        try:
            stderr = open_log(HostFiles.of(loaded.paths))
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
        assert process.stdin is not None
        assert process.stdout is not None
        engine = cls(process, process.stdin, process.stdout)
        engine._begin(_first_line(loaded, options), options)
        return engine

    def _begin(self, first_line: bytes, options: EngineOptions) -> None:
        self._stdin.write(first_line)
        if options.settle_seconds is not None:
            self._close_seconds += options.settle_seconds

    @property
    def pid(self) -> int:
        return self._process.pid

    async def request(self, request: Request[R]) -> R:
        """Send a request and return its answer."""
        if self._gone:
            raise _gone()
        id = next(self._ids)
        encoded = self._encoder.encode(RequestLine(id=id, request=request)) + b"\n"
        if len(encoded) > MAX_LINE_BYTES:
            limit = MAX_LINE_BYTES // 1024 // 1024
            raise RagforgeError(
                f"This is larger than {limit} MiB.", kept="Nothing was sent.", todo="Send less at once."
            )
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting[id] = (future, response_type(request))
        try:
            self._stdin.write(encoded)
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
                async with asyncio.timeout(self._close_seconds):
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
            future.set_exception(RagforgeError.received(line.error_class, line.error))
        else:
            future.set_result(msgspec.json.decode(line.result, type=type_))


def _first_line(loaded: Loaded, options: EngineOptions) -> bytes:
    # Through the pipe, not argv: settings may contain passwords.
    return msgspec.json.encode(EngineStart(loaded=loaded, options=options)) + b"\n"


async def _writer(pipe: int) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(pipe, "wb", buffering=0)
    )
    return asyncio.StreamWriter(transport, protocol, None, loop)


async def _reader(pipe: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=MAX_LINE_BYTES)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(pipe, "rb", buffering=0)
    )
    return reader


def _gone() -> EngineGoneError:
    return EngineGoneError(
        "The engine ended unexpectedly.",
        kept="The conversation is stored.",
        todo="Use /retry once it has restarted.",
    )
