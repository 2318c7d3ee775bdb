"""The engine host: `python -m ragforge_tui.engine.warm.host`, started by `client`.

It imports what engines need, which takes seconds, and then forks an engine for each chat in milliseconds; the engines
share the memory of what was imported. Each user has one host. It ends some time after its last engine, and at once when
a chat of another version of the program asks.

A fork carries only the thread that forks, so the host starts none. Where a fork is not safe at all (macOS), the host
becomes the engine itself and leaves its place to another host.
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
from ragforge_tui.engine.warm.identity import place, program_identity
from ragforge_tui.engine.warm.imports import ImportedEnvironment, import_engine, import_model, load_encoder
from ragforge_tui.engine.warm.inheritance import adopt
from ragforge_tui.engine.warm.launch import start_host
from ragforge_tui.engine.warm.messages import (
    HEAD_BYTES,
    ForkReply,
    ForkRequest,
    GraphServer,
    HostFiles,
    Refusal,
    framed,
    length_of,
    same_user,
)

log = logging.getLogger(__name__)

REQUEST_SECONDS = 5.0
"""Longest wait for the rest of a request; the other chats wait meanwhile."""
QUIET_SECONDS = 3.0
"""Time after the last start of a chat, after which the host does what no chat waits for."""


class Order(msgspec.Struct):
    """A chat that waits for its engine: its connection, its request, and the engine's standard streams."""

    connection: socket.socket
    request: ForkRequest
    descriptors: list[int]

    def answer(self, reply: ForkReply) -> None:
        """Send the reply; a chat that is gone gets none."""
        with contextlib.suppress(OSError):
            self.connection.sendall(b"".join(framed(reply)))

    def refuse(self, refusal: Refusal, why: str = "") -> None:
        """Send a refusal and close everything."""
        self.answer(ForkReply(refusal=refusal, why=why))
        self.close()

    def close(self) -> None:
        """Close this process's ends."""
        self.connection.close()
        for descriptor in self.descriptors:
            os.close(descriptor)


class EngineHost:
    """A process that waits for chats.

    Args:
        listener: The socket chats connect to.
        lock: Descriptor of the host's lock, held.
        forks: Whether engines are forked; else the host becomes the engine.
        keep_seconds: How long it waits for its first chat; each chat says how long to wait for the next.
    """

    def __init__(
        self, files: HostFiles, listener: socket.socket, lock: int, *, forks: bool, keep_seconds: float
    ) -> None:
        self._files = files
        self._listener = listener
        self._lock = lock
        self._forks = forks
        self._program = program_identity()  # before the imports, during which a file may change
        self._place = place()
        self._environment = ImportedEnvironment()
        self._keep_seconds = keep_seconds
        self._engines: set[int] = set()
        self._last_used = time.monotonic()
        self._engine_imported = self._model_imported = False
        # A host that cannot fork and follows another prepares once the chat of that one has started.
        self._spare_due = not forks
        self._encoder_due = False
        self._encoder_loaded = False
        self._stopping = False
        self._wake, self._woken = socket.socketpair()

    def wait_for_order(self) -> Order | None:
        """Return the request of a chat in the process that is to be its engine, None in the host when it ends."""
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
                ready = {key.fileobj for key, _ in selector.select(self._patience())}
                self._reap()
                if self._listener in ready:
                    order = self._next_order()
                    if order is not None and self._serve(order):
                        return order
                elif (self._encoder_due or self._spare_due) and self._quiet_seconds() >= QUIET_SECONDS:
                    self._use_quiet_time()
                elif not self._engines and self._quiet_seconds() >= self._keep_seconds:
                    log.info("no chat has asked for an engine for %.0f s", self._keep_seconds)
                    break
        self._leave()
        return None

    def changes(self) -> dict[bytes, bytes]:
        """Return the variables that the imports have set."""
        return self._environment.changes()

    def _patience(self) -> float | None:
        """Return the seconds until there is something to do without being asked."""
        if self._encoder_due or self._spare_due:
            return max(0.0, QUIET_SECONDS - self._quiet_seconds())
        return None if self._engines else max(0.0, self._keep_seconds - self._quiet_seconds())

    def _quiet_seconds(self) -> float:
        return time.monotonic() - self._last_used

    def _stop(self, *_: object) -> None:
        self._stopping = True

    def _use_quiet_time(self) -> None:
        """Import for the next chat what takes long."""
        if self._spare_due:
            self._spare_due = False
            self._prepare(model=True)
        if self._encoder_due:
            self._encoder_due, self._encoder_loaded = False, True
            load_encoder()
            gc.freeze()

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._woken.recv(4096)
        with contextlib.suppress(ChildProcessError):
            while pid := os.waitpid(-1, os.WNOHANG)[0]:
                if pid in self._engines:
                    self._engines.discard(pid)
                    self._last_used = time.monotonic()

    def _next_order(self) -> Order | None:
        try:
            connection, _ = self._listener.accept()
        except OSError:  # the chat has gone
            return None
        connection.settimeout(REQUEST_SECONDS)
        descriptors: list[int] = []
        try:
            if not same_user(connection, os.getuid()):
                raise ValueError("another user")
            head, descriptors, _, _ = socket.recv_fds(connection, HEAD_BYTES, 3)
            encoded = connection.recv(length_of(head), socket.MSG_WAITALL)
            if len(descriptors) != 3:
                raise ValueError("without its streams")
            return Order(connection, msgspec.msgpack.decode(encoded, type=ForkRequest), descriptors)
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            # A host that has not imported anything yet is of this version too, so nothing sensible was sent.
            log.warning("invalid request: %s", error)
            connection.close()
            for descriptor in descriptors:
                os.close(descriptor)
            return None

    def _serve(self, order: Order) -> bool:
        """Fork the engine, and return whether this is its process; refuse what does not fit."""
        request = order.request
        self._last_used = time.monotonic()
        self._keep_seconds = request.keep_minutes * 60
        if request.program != self._program:
            log.info("a chat of another version of the program asked")
            self._stopping = True
            self._leave()  # first, so that the chat can start another host at once
            order.refuse("other program")
            return False
        if differing := [name for name, value in self._place.items() if request.place.get(name) != value]:
            order.refuse("other place", ", ".join(differing))
            return False
        if request.graph is not None and not self._engine_imported:
            _start_graph(request.graph)
        self._prepare(model=request.needs_model)
        self._encoder_due = request.needs_encoder and not self._encoder_loaded
        if differing := self._environment.differing(request.environment):
            order.refuse("other place", ", ".join(differing))
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
        order.close()
        self._last_used = time.monotonic()
        return False

    def _prepare(self, *, model: bool) -> None:
        """Import what is not imported yet."""
        if self._engine_imported and (self._model_imported or not model):
            return
        gc.disable()  # collecting what is imported is a fifth of the work and frees nothing
        with self._environment.recorded():
            if not self._engine_imported:
                import_engine()
                self._engine_imported = True
            if model:
                import_model()
                self._model_imported = True
        gc.enable()
        gc.freeze()  # A collection in an engine would copy the pages that it shares.

    def _leave(self) -> None:
        """Stop to be the host; another can start at once."""
        if self._lock >= 0:
            self._files.socket.unlink(missing_ok=True)
            self._release()

    def _release(self) -> None:
        self._listener.close()
        os.close(self._lock)
        self._lock = -1


def _start_graph(graph: GraphServer) -> None:
    """Start the embedded graph, which takes longer than the imports; the engine waits for it and reports failures."""
    from ragforge_tui.graph.embedded.attach import start_supervisor
    from ragforge_tui.graph.embedded.files import ServerFiles
    from ragforge_tui.shared.errors import GraphUnavailableError

    files = ServerFiles.of(graph.paths)
    try:
        files.create_folders()
        if not files.supervised():
            start_supervisor(files, heap_mb=graph.heap_mb, linger_seconds=graph.linger_seconds)
    except (OSError, GraphUnavailableError) as error:
        log.warning("the embedded graph was not started ahead: %s", error)


def _become_engine(order: Order, changes: dict[bytes, bytes]) -> int:
    """Run the engine in this process, and return its exit status."""
    from ragforge_tui.engine import child

    try:
        adopt(order.request, order.descriptors)
    except (OSError, ValueError) as error:
        order.answer(ForkReply(refusal="failed", why=str(error)))
        return 1
    os.environb.update(changes)
    order.answer(ForkReply(pid=os.getpid()))
    return child.main()


def main(arguments: list[str] | None = None) -> int:
    """Run the host; in the process of an engine, run the engine. Return the exit status."""
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
    order = host.wait_for_order()
    if order is None:
        return 0
    status = _become_engine(order, host.changes())
    logging.shutdown()
    # The interpreter's end would visit, and so copy, all memory that is shared with the host.
    os._exit(status)


if __name__ == "__main__":
    sys.exit(main())
