"""The process that holds the embedded graph: ``python -m ragforge_tui.graph.embedded.server``.

Every chat holds a shared flock on ``users.lock``. Twice a second this process tries to lock it exclusively; once no
chat has held it for the lingering time, it stops the engine and ends. Nothing is lost with it when it is killed: the
engine writes each transaction to the disk before it acknowledges it, and the next statement of any chat starts
another process.
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

import msgspec
import psutil

from ragforge_tui.graph.embedded import data
from ragforge_tui.graph.embedded.engine import Engine
from ragforge_tui.graph.embedded.files import ServerAddress, ServerFiles, open_private_log
from ragforge_tui.graph.embedded.heap import heap_for
from ragforge_tui.graph.embedded.ports import ServerPorts
from ragforge_tui.shared.errors import ErrorInfo, GraphUnavailableError, storage_error
from ragforge_tui.shared.files import FileLock
from ragforge_tui.shared.records import now

log = logging.getLogger(__name__)

POLL_SECONDS = 0.5
LOCK_ATTEMPTS = 10
START_SECONDS = 120
STOP_SECONDS = 15
_LOG_LIMIT = 4 * 1024 * 1024


class GraphServer:
    """The engine, held until no chat needs it."""

    def __init__(self, files: ServerFiles, *, heap_mb: int, linger_seconds: float) -> None:
        self._files = files
        self._least_heap_mb = heap_mb
        self._linger = linger_seconds
        self._users = FileLock(files.users_lock)
        self._stop = threading.Event()
        self._address = ServerAddress(
            phase="starting", at=now(), pid=os.getpid(), started=psutil.Process().create_time()
        )

    def run(self) -> int:
        """Serve until no chat needs the graph, and return the process's exit status."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stop.set())
        try:
            engine = self._start()
            signal.alarm(0)
            self._serve()
            signal.alarm(STOP_SECONDS)
            engine.stop()
        except GraphUnavailableError as error:
            return self._fail(error.info)
        except OSError as error:
            log.exception("the server ended")
            todo = "Free some space or fix the folder's permissions, then start again."
            what = f"The embedded graph failed: {error}."
            return self._fail(storage_error(error) or ErrorInfo(kind="graph_unreachable", what=what, todo=todo))
        self._files.address.unlink(missing_ok=True)
        return 0

    def _start(self) -> Engine:
        self._announce(self._address)
        version = data.require_installed()
        data.prepare(self._files, version)  # may copy all data
        signal.alarm(START_SECONDS)  # its default action ends the process, whatever the engine does
        ports = ServerPorts(self._address.pid, self._address.started)
        engine = Engine(self._files, ports, heap_mb=heap_for(self._files, self._least_heap_mb))
        data.record_version(self._files, version)
        log.info("the graph is ready: version %s, pid %s", version, self._address.pid)
        self._announce(
            msgspec.structs.replace(
                self._address,
                phase="ready",
                bolt_port=engine.bolt_port,
                http_port=engine.http_port,
                version=version,
                username=self._files.read_username(),
            )
        )
        return engine

    def _serve(self) -> None:
        last_used = time.monotonic()
        while not self._stop.wait(POLL_SECONDS):
            if not self._users.try_acquire():
                last_used = time.monotonic()
                continue
            # Held exclusively from here on: a new chat waits until this process has ended or released it again.
            if self._idle(last_used) >= self._linger:
                log.info("nobody uses the graph any more")
                return
            self._users.release()

    def _idle(self, last_used: float) -> float:
        # A visit shorter than a poll is seen by the time it wrote on the lock file.
        unused = time.monotonic() - last_used
        since_visit = time.time() - self._files.users_lock.stat().st_mtime
        return min(unused, since_visit) if since_visit >= 0 else unused  # negative: the clock was set back

    def _announce(self, address: ServerAddress) -> None:
        self._files.write_address(msgspec.structs.replace(address, at=now()))

    def _fail(self, error: ErrorInfo) -> int:
        log.error("failed: %s", error.sentence())
        with contextlib.suppress(OSError):  # the disk may be what failed
            self._announce(ServerAddress(phase="failed", at=now(), error=error))
        return 1


def _open_log(path: Path) -> None:
    """Append all that this process and the engine write to the log; what was there is put aside when it is long."""
    if path.exists() and path.stat().st_size > _LOG_LIMIT:
        path.replace(path.with_name(f"{path.name}.1"))
    with open_private_log(path) as output:
        for descriptor in (1, 2):
            os.dup2(output.fileno(), descriptor)


def main(arguments: list[str] | None = None) -> int:
    """Run the server's process."""
    parser = argparse.ArgumentParser(prog="ragforge_tui.graph.embedded.server", description="Hold the embedded graph.")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--logs", type=Path, required=True)
    parser.add_argument("--heap-mb", type=int, default=512)
    parser.add_argument("--linger-seconds", type=float, default=20.0)
    options = parser.parse_args(arguments)
    os.umask(0o077)
    files = ServerFiles(options.home, options.logs)
    files.create_folders()
    alone = FileLock(files.server_lock)
    for _ in range(LOCK_ATTEMPTS):
        if alone.try_acquire():
            _open_log(files.log)
            logging.basicConfig(
                stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(process)d %(levelname)s %(message)s"
            )
            return GraphServer(files, heap_mb=options.heap_mb, linger_seconds=options.linger_seconds).run()
        time.sleep(0.05)  # a chat that looks whether we are there holds it for an instant
    return 0  # another one serves already


if __name__ == "__main__":
    sys.exit(main())
