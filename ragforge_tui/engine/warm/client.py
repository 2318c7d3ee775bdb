"""The chat's side of the engine host: find it or start it, and request an engine."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path

import msgspec

from ragforge_tui.engine.warm.identity import confinement, program_identity
from ragforge_tui.engine.warm.inheritance import current_limits, current_umask
from ragforge_tui.engine.warm.launch import start_host
from ragforge_tui.engine.warm.messages import (
    ForkReply,
    ForkRequest,
    GraphServer,
    HostFiles,
    same_user,
)
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.files import STATE_BYTES, FileLock, read_regular

log = logging.getLogger(__name__)

HOST_SECONDS = 40.0
"""Longest wait for a host that is still importing; then the chat starts an engine of its own."""
READY_SECONDS = 1.0
"""Longest wait of a command that does not need the host: its own engine would be ready about as soon."""
_APPEAR_SECONDS, _POLL = 0.5, 0.01
"""Longest wait, and the pause between attempts, for the socket of a host that another chat is starting."""
_BACKLOG = 64
_FORKS = sys.platform.startswith("linux")


class WarmEngine:
    """An engine that a host has forked. The end of the connection reports its end.

    Attributes:
        pid: The engine's process id.
    """

    def __init__(self, pid: int, connection: socket.socket) -> None:
        self.pid = pid
        self._connection = connection

    async def wait(self) -> None:
        """Wait until the engine has ended."""
        with suppress(OSError):
            await asyncio.get_running_loop().sock_recv(self._connection, 1)
        self._connection.close()


def request_fork(loaded: Loaded, descriptors: tuple[int, int, int]) -> socket.socket | None:
    """Ask a running host for an engine without waiting for it; return the connection for `requested_engine`.

    The engine then starts while this process imports its screen.

    Args:
        descriptors: The engine's standard input, output and error.

    Returns:
        None if no host runs, or if it does not take the request at once; `warm_engine` deals with both.
    """
    files = HostFiles.of(loaded.paths)
    if not _is_enabled(loaded, files) or not files.socket.exists():
        return None
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.setblocking(False)
        connection.connect(str(files.socket))
        line = msgspec.json.encode(_request(loaded)) + b"\n"
        if same_user(connection, os.getuid()) and socket.send_fds(connection, [line], list(descriptors)) == len(line):
            return connection
    except (OSError, ValueError) as error:
        log.info("the engine host was not asked ahead: %s", error)
    connection.close()
    return None


async def requested_engine(connection: socket.socket) -> WarmEngine | None:
    """Return the engine that `request_fork` asked for; None if the host has none, which is logged.

    Raises:
        TimeoutError: The host hangs; another request would wait as long.
    """
    try:
        async with asyncio.timeout(HOST_SECONDS):
            return _engine(connection, await _reply(connection))
    except TimeoutError:
        connection.close()
        raise
    except _RefusedError as refused:
        log.info("the engine host has no engine for this chat: %s", refused)
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        log.warning("the engine host failed: %s: %s", type(error).__name__, error)
    connection.close()
    return None


async def warm_engine(loaded: Loaded, descriptors: tuple[int, int, int], *, start: bool) -> WarmEngine | None:
    """Return an engine forked by the user's host, or None after logging why the host cannot serve this chat.

    Args:
        descriptors: The engine's standard input, output and error.
        start: Start a host if none runs, and wait until it has imported everything.
    """
    files = HostFiles.of(loaded.paths)
    if not _is_enabled(loaded, files):
        return None
    try:
        request = await asyncio.to_thread(_request, loaded)
        async with asyncio.timeout(HOST_SECONDS if start else READY_SECONDS):
            # Two attempts: a host of another version ends at the first, and one without chats may be about to end.
            for _ in range(2):
                if engine := await _request_engine(files, request, descriptors, start=start):
                    return engine
        if start:
            log.warning("the engine host ended during the request")
    except _RefusedError as refused:
        log.info("the engine host cannot serve this chat: %s", refused)
    except (OSError, TimeoutError, ValueError, msgspec.MsgspecError) as error:
        log.warning("the engine host failed: %s: %s", type(error).__name__, error)
    return None


def host_pid(loaded: Loaded) -> int | None:
    """Return the process id of the user's engine host, None if none is running."""
    lock = FileLock(HostFiles.of(loaded.paths).lock)
    try:
        if lock.try_acquire(shared=True):
            lock.release()
            return None
        return int(read_regular(HostFiles.of(loaded.paths).lock, STATE_BYTES))
    except (OSError, ValueError):
        return None


class _RefusedError(Exception):
    """The host cannot serve this chat."""


async def _request_engine(
    files: HostFiles, request: ForkRequest, descriptors: tuple[int, int, int], *, start: bool
) -> WarmEngine | None:
    """Return the engine, or None if no host is running or it is ending."""
    connection = await _connect(files, request.keep_minutes * 60, start=start)
    if connection is None:
        return None
    try:
        await _send(connection, request, descriptors)
        return _engine(connection, await _reply(connection))
    except BaseException:
        connection.close()
        raise


def _engine(connection: socket.socket, reply: ForkReply | None) -> WarmEngine | None:
    """Return the engine of a reply; None, with the connection closed, if the host ended or is ending."""
    if reply is not None and reply.pid:
        return WarmEngine(reply.pid, connection)
    connection.close()
    if reply is not None and reply.refusal != "other program":
        raise _RefusedError(f"{reply.refusal} ({reply.why})")
    return None


def _is_enabled(loaded: Loaded, files: HostFiles) -> bool:
    return loaded.settings.engine.keep_warm_minutes > 0 and files.usable


async def _connect(files: HostFiles, keep_seconds: float, *, start: bool) -> socket.socket | None:
    if start:
        _ensure_host(files, keep_seconds)
    connection = socket.socket(socket.AF_UNIX)
    connection.setblocking(False)
    end = asyncio.get_running_loop().time() + (_APPEAR_SECONDS if start else 0)
    while True:
        try:
            await asyncio.get_running_loop().sock_connect(connection, str(files.socket))
        except (FileNotFoundError, ConnectionRefusedError):
            # Another chat may hold the lock without having created the socket yet.
            if asyncio.get_running_loop().time() < end:
                await asyncio.sleep(_POLL)
                continue
            connection.close()
            return None
        if same_user(connection, os.getuid()):
            return connection
        connection.close()
        raise _RefusedError("it belongs to another user")


def _ensure_host(files: HostFiles, keep_seconds: float) -> None:
    """Start a host unless the lock shows that one is running.

    The host inherits the lock and the socket. The socket is listening before the host has started, so that chats can
    connect at once.
    """
    files.create_folder()
    lock = os.open(files.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with socket.socket(socket.AF_UNIX) as listener:
            files.socket.unlink(missing_ok=True)
            listener.bind(str(files.socket))
            listener.listen(_BACKLOG)
            start_host(files, listener, lock, keep_seconds=keep_seconds, forks=_FORKS)
    except BlockingIOError:
        pass
    finally:
        os.close(lock)


async def _send(connection: socket.socket, request: ForkRequest, descriptors: tuple[int, int, int]) -> None:
    """Send a request; a host that has ended shows when its reply is read."""
    line = msgspec.json.encode(request) + b"\n"
    with suppress(BrokenPipeError, ConnectionResetError):
        socket.send_fds(connection, [line[:1]], list(descriptors))
        await asyncio.get_running_loop().sock_sendall(connection, line[1:])


async def _reply(connection: socket.socket) -> ForkReply | None:
    """Return the reply; None if the host ended."""
    line = b""
    try:
        while not line.endswith(b"\n"):
            line += (more := await asyncio.get_running_loop().sock_recv(connection, STATE_BYTES))
            if not more:
                return None
    except (BrokenPipeError, ConnectionResetError):
        return None
    return msgspec.json.decode(line, type=ForkReply)


def _request(loaded: Loaded) -> ForkRequest:
    settings = loaded.settings
    embeddings = settings.agent.memory.embeddings
    graph = None
    if not settings.graph.uri:
        graph = GraphServer(
            paths=loaded.paths, heap_mb=settings.graph.heap_mb, linger_seconds=settings.graph.linger_seconds
        )
    return ForkRequest(
        program=program_identity(),
        confinement=confinement(),
        environment=dict(os.environb),
        folder=os.fsencode(Path.cwd()),
        umask=current_umask(),
        limits=current_limits(),
        niceness=os.nice(0),
        keep_minutes=settings.engine.keep_warm_minutes,
        needs_model=settings.model.name != "offline",
        needs_encoder=embeddings.enabled and not embeddings.model,
        graph=graph,
    )
