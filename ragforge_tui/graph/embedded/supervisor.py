"""The small process that holds the embedded server: ``python -m ragforge_tui.graph.embedded.supervisor``.

Java cannot watch a lock, so this process does. Every chat holds a shared flock on ``users.lock``. When the supervisor
can lock it exclusively for the lingering time, it stops the server and ends. It restarts a server that died, and
adopts one that a killed supervisor left behind. It owns nothing that would be lost with it: after a kill, the next
chat or one that still runs starts another.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path

from ragforge_tui.graph.embedded import server as embedded
from ragforge_tui.graph.embedded.files import ServerAddress, ServerFiles
from ragforge_tui.graph.embedded.server import LoginRefusedError, Server
from ragforge_tui.shared.errors import ErrorInfo, GraphUnavailableError
from ragforge_tui.shared.files import FileLock
from ragforge_tui.shared.records import now

log = logging.getLogger(__name__)

POLL_SECONDS = 0.5
LOCK_ATTEMPTS = 10
MAX_FAILURES = 4
"""Starts that may fail within the window before it is given up."""
FAILURE_WINDOW = 120.0


class Supervisor:
    """The holder of one server until no chat needs it."""

    def __init__(self, files: ServerFiles, *, heap_mb: int, linger_seconds: float) -> None:
        self._files = files
        self._least_heap_mb = self._heap_mb = heap_mb
        self._linger = linger_seconds
        self._users = FileLock(files.users_lock)
        self._wake = threading.Event()
        self._stopping = False
        self._unused = False
        self._server: Server | None = None
        self._failures: list[float] = []

    def run(self) -> int:
        """Serve until no chat needs the server, and return the process's exit status."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_stop)
        signal.signal(signal.SIGCHLD, self._on_child)
        try:
            self._hold()
        except GraphUnavailableError as error:
            self._fail(error.info)
            return 1
        except OSError as error:
            log.exception("supervisor ended")
            todo = "Free some space or fix the folder's permissions, then start again."
            self._fail(ErrorInfo(kind="graph_unreachable", what=f"The embedded graph failed: {error}.", todo=todo))
            return 1
        finally:
            if self._server is not None:
                embedded.stop(self._server)
        self._files.address.unlink(missing_ok=True)
        return 0

    def make_archive(self) -> None:
        """Make the archive of the server's classes if it ended unused; other chats can start a server meanwhile."""
        if self._unused:
            self._users.release()
            embedded.class_archive(self._files, self._heap_mb).make()

    def _hold(self) -> None:
        self._server = self._adopt() or self._start()
        last_used = time.monotonic()
        while not self._stopping:
            self._wake.wait(POLL_SECONDS)
            self._wake.clear()
            self._reap()
            if not self._server.alive() and not self._stopping:
                log.warning("server %s died", self._server.pid)
                self._server = self._start()
            if not self._users.try_acquire():
                last_used = time.monotonic()
                continue
            # Held exclusively from here on: a new chat waits until this process has ended or released it again.
            if self._idle(last_used) >= self._linger:
                log.info("nobody uses the graph any more")
                self._unused = True
                return
            self._users.release()

    def _idle(self, last_used: float) -> float:
        # A visit shorter than a poll is seen by the time it wrote on the lock file.
        unused = time.monotonic() - last_used
        since_visit = time.time() - self._files.users_lock.stat().st_mtime
        return min(unused, since_visit) if since_visit >= 0 else unused  # negative: the clock was set back

    def _adopt(self) -> Server | None:
        version = embedded.require_installed()
        found = embedded.find_running(self._files)
        if found is None:
            return None
        ready = self._wait_ready(found) if found.version == version else None
        if ready:
            log.info("server %s adopted", ready.pid)
            self._announce("ready", ready)
            return ready
        log.info("server %s of version %s was left behind and is stopped", found.pid, found.version)
        embedded.stop(found)
        return None

    def _start(self) -> Server:
        version = embedded.require_installed()  # read each time: the package may have been upgraded meanwhile
        embedded.prepare(self._files, version)
        self._heap_mb = embedded.heap_for(self._files, self._least_heap_mb)
        while True:
            self._server = server = embedded.start(self._files, version, heap_mb=self._heap_mb)
            self._announce("starting", server)
            if ready := self._wait_ready(server):
                embedded.record_version(self._files, version)
                self._announce("ready", ready)
                return ready
            embedded.stop(server)
            if self._stopping:
                return server
            embedded.class_archive(self._files, self._heap_mb).discard()  # a damaged one could be the cause
            self._count_failure()

    def _wait_ready(self, server: Server) -> Server | None:
        try:
            return embedded.wait_ready(self._files, server, stopping=lambda: self._stopping)
        except LoginRefusedError:
            # The password file was changed or restored. The files are right by definition: they are the user's.
            log.warning("server %s refused the login in %s; its users are made again", server.pid, self._files.home)
            embedded.stop(server)
            embedded.forget_users(self._files)
            return None

    def _count_failure(self) -> None:
        at = time.monotonic()
        self._failures = [failure for failure in self._failures if at - failure < FAILURE_WINDOW] + [at]
        if len(self._failures) >= MAX_FAILURES:
            raise GraphUnavailableError(
                "The embedded graph does not start.",
                todo=f"See {self._files.server_log}; `ragforge-chat doctor` shows more.",
                kind="graph_start",
            )
        self._wake.wait(0.2 * 2 ** len(self._failures))

    def _announce(self, phase: str, server: Server) -> None:
        self._files.write_address(
            ServerAddress(
                phase="ready" if phase == "ready" else "starting",
                at=now(),
                supervisor=os.getpid(),
                pid=server.pid,
                started=server.started,
                bolt_port=server.bolt_port,
                http_port=server.http_port,
                version=server.version,
                username=self._files.read_username(),
            )
        )

    def _fail(self, error: ErrorInfo) -> None:
        log.error("failed: %s", error.sentence())
        with contextlib.suppress(OSError):  # the disk may be what failed
            self._files.write_address(ServerAddress(phase="failed", at=now(), supervisor=os.getpid(), error=error))

    def _on_stop(self, *_: object) -> None:
        self._stopping = True
        self._wake.set()

    def _on_child(self, *_: object) -> None:
        self._wake.set()

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def main(arguments: list[str] | None = None) -> int:
    """Run the supervisor process."""
    parser = argparse.ArgumentParser(
        prog="ragforge_tui.graph.embedded.supervisor", description="Supervise the embedded graph."
    )
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--logs", type=Path, required=True)
    parser.add_argument("--heap-mb", type=int, default=512)
    parser.add_argument("--linger-seconds", type=float, default=20.0)
    options = parser.parse_args(arguments)
    os.umask(0o077)
    files = ServerFiles(options.home, options.logs)
    files.create_folders()
    logging.basicConfig(
        filename=files.supervisor_log, level=logging.INFO, format="%(asctime)s %(process)d %(levelname)s %(message)s"
    )
    alone = FileLock(files.supervisor_lock)
    for _ in range(LOCK_ATTEMPTS):
        if alone.try_acquire():
            supervisor = Supervisor(files, heap_mb=options.heap_mb, linger_seconds=options.linger_seconds)
            status = supervisor.run()
            alone.release()
            supervisor.make_archive()
            return status
        time.sleep(0.05)  # a chat that looks whether we are there holds it for an instant
    return 0  # another one serves already


if __name__ == "__main__":
    sys.exit(main())
