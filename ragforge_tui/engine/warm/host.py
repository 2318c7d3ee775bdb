"""The engine host: `python -m ragforge_tui.engine.warm.host`, started by `client`.

It imports what engines need, which takes seconds, and then forks an engine for each chat in milliseconds; the engines
share the memory of the imported modules. Each user has one host. It ends some time after its last engine, and at once
when a chat of another version of the program connects.

A fork copies only the thread that calls it, so the host starts no threads. Where forking is not safe at all (macOS),
the host itself becomes the engine, after starting its successor.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import logging
import os
import selectors
import signal
import socket
import sys
import time
from pathlib import Path

import msgspec

from ragforge_tui.engine.process import close_to_others
from ragforge_tui.engine.warm.identity import confinement, program_identity
from ragforge_tui.engine.warm.imports import ImportedEnvironment, import_engine, import_model, load_encoder
from ragforge_tui.engine.warm.inheritance import adopt
from ragforge_tui.engine.warm.launch import start_host
from ragforge_tui.engine.warm.messages import (
    MAX_REQUEST_BYTES,
    ForkReply,
    ForkRequest,
    GraphServer,
    HostFiles,
    Refusal,
    same_user,
)

log = logging.getLogger(__name__)

REQUEST_SECONDS = 1.0
"""Longest wait for a whole request."""
READ_BYTES = 65_536
MAX_ARRIVING = 8
"""Requests that are awaited at the same time; then the oldest is dropped."""
QUIET_SECONDS = 3.0
"""Time after the last start of a chat before the host imports anything for later chats."""


class ArrivingRequest:
    """A connection whose request has not arrived completely; reading it never waits."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.deadline = time.monotonic() + REQUEST_SECONDS
        self._descriptors: list[int] = []
        self._line = bytearray()
        connection.setblocking(False)

    def read(self) -> WaitingChat | None:
        """Read what is there; return the chat once its request is complete.

        Raises:
            OSError, ValueError, msgspec.MsgspecError: The request is invalid, or its sender is gone.
        """
        with contextlib.suppress(BlockingIOError):
            while not self._line.endswith(b"\n"):
                more, descriptors, _, _ = socket.recv_fds(self.connection, READ_BYTES, 3)
                self._line += more
                self._descriptors += descriptors
                if not more or len(self._descriptors) != 3 or len(self._line) > MAX_REQUEST_BYTES:
                    raise ValueError(f"{len(self._line)} bytes and {len(self._descriptors)} streams")
            request = msgspec.json.decode(self._line, type=ForkRequest)
            self.connection.settimeout(REQUEST_SECONDS)
            return WaitingChat(self.connection, request, self._descriptors)
        return None

    def close(self) -> None:
        self.connection.close()
        for descriptor in self._descriptors:
            os.close(descriptor)


class WaitingChat(msgspec.Struct):
    """A chat that waits for its engine: its connection, its request, and the engine's standard streams."""

    connection: socket.socket
    request: ForkRequest
    descriptors: list[int]

    def reply(self, reply: ForkReply) -> None:
        """Send the reply, unless the chat is gone."""
        with contextlib.suppress(OSError):
            self.connection.sendall(msgspec.json.encode(reply) + b"\n")

    def refuse(self, refusal: Refusal, why: str = "") -> None:
        """Send a refusal and close everything."""
        self.reply(ForkReply(refusal=refusal, why=why))
        self.close()

    def close(self) -> None:
        """Close the descriptors of this process; an engine that was forked keeps its own."""
        self.connection.close()
        for descriptor in self.descriptors:
            os.close(descriptor)


class EngineHost:
    """Loop of the host: accept chats, import what they need, fork their engines.

    Args:
        listener: The socket chats connect to.
        lock: Descriptor of the host's lock, held.
        forks: Whether engines are forked; otherwise the host becomes the engine.
        keep_seconds: Longest wait for the first chat; each chat's request sets the wait for the next one.
    """

    def __init__(
        self, files: HostFiles, listener: socket.socket, lock: int, *, forks: bool, keep_seconds: float
    ) -> None:
        self._files = files
        self._listener = listener
        self._lock = lock
        self._forks = forks
        self._program = program_identity()  # before the imports: a file may change during them
        self._confinement = confinement()
        self._environment = ImportedEnvironment()
        self._keep_seconds = keep_seconds
        self._engines: set[int] = set()
        self._arriving: dict[socket.socket, ArrivingRequest] = {}
        self._last_used = time.monotonic()
        self._engine_imported = self._model_imported = False
        # A host that cannot fork waits with its imports, so that they do not slow the chat its predecessor serves.
        self._imports_due = not forks
        self._encoder_needed = self._encoder_loaded = False
        self._stopping = False
        self._wake, self._woken = socket.socketpair()

    def run(self) -> WaitingChat | None:
        """Serve chats. Return None when the host ends; in the process of an engine, return the chat to serve."""
        self._listener.setblocking(False)
        self._wake.setblocking(False)
        self._woken.setblocking(False)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for ignored in (signal.SIGINT, signal.SIGHUP):
            signal.signal(ignored, signal.SIG_IGN)
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while not self._stopping:
                ready: set[object] = {key.fileobj for key, _ in selector.select(self._seconds_to_next_task())}
                self._reap()
                self._drop_late(ready, selector)
                for request in [request for connection, request in self._arriving.items() if connection in ready]:
                    if self._stopping:
                        break
                    chat = self._read(request, selector)
                    if chat is not None and self._serve(chat):
                        return chat
                if self._listener in ready:
                    self._accept(selector)
                elif self._arriving:
                    continue
                elif (self._encoder_due() or self._imports_due) and self._quiet_seconds() >= QUIET_SECONDS:
                    self._import_ahead()
                elif not self._engines and self._quiet_seconds() >= self._keep_seconds:
                    log.info("no chat has asked for an engine for %.0f s", self._keep_seconds)
                    break
        self._leave()
        return None

    def changes(self) -> dict[bytes, bytes]:
        """Return the variables that the imports have set."""
        return self._environment.changes()

    def _seconds_to_next_task(self) -> float | None:
        """Return the seconds until the host imports ahead, ends or drops a request; None if there is nothing to do."""
        if self._arriving:
            return max(0.0, min(request.deadline for request in self._arriving.values()) - time.monotonic())
        if self._encoder_due() or self._imports_due:
            return max(0.0, QUIET_SECONDS - self._quiet_seconds())
        return None if self._engines else max(0.0, self._keep_seconds - self._quiet_seconds())

    def _encoder_due(self) -> bool:
        """Return whether to load the encoder for later chats.

        Engines that were forked without it have their own, beside which this one would be 120 MB unused.
        """
        return self._encoder_needed and not self._encoder_loaded and not self._engines

    def _quiet_seconds(self) -> float:
        return time.monotonic() - self._last_used

    def _stop(self, *_: object) -> None:
        self._stopping = True

    def _import_ahead(self) -> None:
        """Import what the next chat will need, while no chat waits."""
        if self._imports_due:
            self._imports_due = False
            self._import_missing(model=True)
        if self._encoder_due():
            self._encoder_loaded = True
            load_encoder()
            gc.freeze()

    def _reap(self) -> None:
        """Forget the engines that have ended."""
        with contextlib.suppress(BlockingIOError):
            self._woken.recv(4096)
        with contextlib.suppress(ChildProcessError):
            while pid := os.waitpid(-1, os.WNOHANG)[0]:
                if pid in self._engines:
                    self._engines.discard(pid)
                    self._last_used = time.monotonic()

    def _accept(self, selector: selectors.BaseSelector) -> None:
        if self._stopping:
            return  # and the listener is closed
        try:
            connection, _ = self._listener.accept()
        except OSError:  # the chat has gone
            return
        if not same_user(connection, os.getuid()):
            log.warning("invalid request: another user")
            connection.close()
            return
        if len(self._arriving) >= MAX_ARRIVING:
            self._drop(next(iter(self._arriving.values())), selector, "too many others")
        self._arriving[connection] = ArrivingRequest(connection)
        selector.register(connection, selectors.EVENT_READ)

    def _read(self, request: ArrivingRequest, selector: selectors.BaseSelector) -> WaitingChat | None:
        try:
            chat = request.read()
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            self._drop(request, selector, str(error))
            return None
        if chat is not None:
            selector.unregister(request.connection)
            del self._arriving[request.connection]
        return chat

    def _drop_late(self, ready: set[object], selector: selectors.BaseSelector) -> None:
        """Drop requests that did not arrive in time; what arrived during the host's own work is in time."""
        now = time.monotonic()
        for request in list(self._arriving.values()):
            if request.deadline <= now and request.connection not in ready:
                self._drop(request, selector, f"incomplete after {REQUEST_SECONDS:.0f} s")

    def _drop(self, request: ArrivingRequest, selector: selectors.BaseSelector, why: str) -> None:
        log.warning("invalid request: %s", why)
        selector.unregister(request.connection)
        del self._arriving[request.connection]
        request.close()

    def _serve(self, chat: WaitingChat) -> bool:
        """Fork the engine, or refuse a chat that this host cannot serve; return whether this process is the engine."""
        request = chat.request
        self._last_used = time.monotonic()
        self._keep_seconds = request.keep_minutes * 60
        if request.program != self._program:
            log.info("a chat of another version of the program connected")
            self._stopping = True
            self._leave()  # before the refusal, so that the chat can start another host at once
            chat.refuse("other program")
            return False
        if differing := [name for name, value in self._confinement.items() if request.confinement.get(name) != value]:
            chat.refuse("other confinement", ", ".join(differing))
            return False
        if request.graph is not None and not self._engine_imported:
            _start_graph(request.graph)
        self._import_missing(model=request.needs_model)
        self._encoder_needed = request.needs_encoder
        if differing := self._environment.differing(request.environment):
            chat.refuse("other environment", ", ".join(differing))
            return False
        if not self._forks:
            start_host(self._files, self._listener, self._lock, keep_seconds=self._keep_seconds, forks=False)
            self._release()
            return True
        pid = os.fork()
        if pid == 0:
            self._release()
            for end in (self._wake, self._woken):
                end.close()
            signal.set_wakeup_fd(-1)
            return True
        self._engines.add(pid)
        chat.close()
        self._last_used = time.monotonic()
        return False

    def _import_missing(self, *, model: bool) -> None:
        if self._engine_imported and (self._model_imported or not model):
            return
        with self._environment.recorded():
            if not self._engine_imported:
                import_engine()
                self._engine_imported = True
            if model:
                import_model()
                self._model_imported = True
        gc.freeze()  # A collection in an engine would touch, and so copy, the pages that it shares.

    def _leave(self) -> None:
        """Give up the socket and the lock, so that another host can start."""
        if self._lock >= 0:
            self._files.socket.unlink(missing_ok=True)
            self._release()

    def _release(self) -> None:
        for request in self._arriving.values():
            request.close()  # Their chats ask again.
        self._arriving.clear()
        self._listener.close()
        os.close(self._lock)
        self._lock = -1


def _start_graph(graph: GraphServer) -> None:
    """Start the embedded graph beside the imports; the engine waits for it and reports failures."""
    from ragforge_tui.graph.embedded.attach import start_server
    from ragforge_tui.graph.embedded.files import ServerFiles
    from ragforge_tui.shared.errors import GraphUnavailableError

    files = ServerFiles.of(graph.paths)
    try:
        files.create_folders()
        if not files.served():
            start_server(files, heap_mb=graph.heap_mb, linger_seconds=graph.linger_seconds)
    except (OSError, GraphUnavailableError) as error:
        log.warning("the embedded graph was not started ahead: %s", error)


def _become_engine(chat: WaitingChat, changes: dict[bytes, bytes]) -> int:
    """Run the engine in this process, and return its exit status."""
    from ragforge_tui.engine import child

    try:
        adopt(chat.request, chat.descriptors)
    except (OSError, ValueError) as error:
        chat.reply(ForkReply(refusal="failed", why=str(error)))
        return 1
    os.environb.update(changes)
    chat.reply(ForkReply(pid=os.getpid()))
    return child.main()


def main(arguments: list[str] | None = None) -> int:
    """Run the host, or the engine in a process that became one; return the exit status."""
    parser = argparse.ArgumentParser(prog="ragforge_tui.engine.warm.host", description="Fork engines.")
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--listener", type=int, required=True)
    parser.add_argument("--lock", type=int, required=True)
    parser.add_argument("--keep-seconds", type=float, required=True)
    parser.add_argument("--no-fork", action="store_true")
    options = parser.parse_args(arguments)
    os.umask(0o077)
    listener = socket.socket(fileno=options.listener)
    for descriptor in (options.listener, options.lock):
        os.set_inheritable(descriptor, False)
    os.ftruncate(options.lock, 0)
    os.pwrite(options.lock, f"{os.getpid()}\n".encode(), 0)  # for `doctor`
    close_to_others()
    host = EngineHost(
        HostFiles(options.state),
        listener,
        options.lock,
        forks=not options.no_fork,
        keep_seconds=options.keep_seconds,
    )
    chat = host.run()
    if chat is None:
        return 0
    status = _become_engine(chat, host.changes())
    logging.shutdown()
    # A regular exit of the interpreter would touch, and so copy, all memory that is shared with the host.
    os._exit(status)


if __name__ == "__main__":
    sys.exit(main())
