"""The chat's side of the embedded server: start it or attach to it, and hold it.

The hold is a shared flock, so it ends with the process however that ends.
"""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
from collections.abc import Callable
from typing import NoReturn

import psutil

from ragforge_tui.graph.embedded.data import require_installed
from ragforge_tui.graph.embedded.files import ServerAddress, ServerFiles, open_private_log
from ragforge_tui.settings.schema import Paths
from ragforge_tui.shared.daemon import daemon_command, daemon_environment
from ragforge_tui.shared.errors import ErrorInfo, GraphUnavailableError, storage_error
from ragforge_tui.shared.files import FileLock
from ragforge_tui.shared.records import now

log = logging.getLogger(__name__)

ATTACH_TIMEOUT = 150.0
STOP_TIMEOUT = 20.0
"""Seconds that a server has to end in order; it ends itself a little earlier."""
MAX_SPAWNS = 5
SERVER = ["-m", "ragforge_tui.graph.embedded.server"]
_POLL = 0.05


class ServerHold:
    """One chat's hold on the embedded server."""

    def __init__(self, paths: Paths, *, heap_mb: int, linger_seconds: float) -> None:
        self.files = ServerFiles.of(paths)
        self._heap_mb = heap_mb
        self._linger = linger_seconds
        self._lock = FileLock(self.files.users_lock)
        self._held = False
        self._server: subprocess.Popen[bytes] | None = None

    async def ensure_server(self, *, on_wait: Callable[[], None] = lambda: None) -> ServerAddress:
        """Start the server or attach to the one that runs; its address once its database answers.

        Args:
            on_wait: Called once when it is not there yet.

        Raises:
            GraphUnavailableError: It cannot be started.
        """
        began, spawns, told = now(), 0, False
        try:
            async with asyncio.timeout(ATTACH_TIMEOUT):
                await self._hold()
                while True:
                    address = self.files.read_address()
                    if address and address.phase == "ready" and address.alive():
                        return address
                    if address and address.phase == "failed" and address.at >= began and address.error:
                        _raise(address.error)
                    if not told:
                        told = True
                        on_wait()
                    if not self._spawning() and not self.files.served():
                        spawns += 1
                        self._spawn(spawns)
                    await asyncio.sleep(_POLL)
        except TimeoutError:
            raise self._not_started(f"did not answer within {ATTACH_TIMEOUT:.0f} s") from None
        except OSError as error:
            if (info := storage_error(error)) is not None:
                raise GraphUnavailableError(info.what, todo=info.todo, kind="graph_start") from error
            raise self._not_started(f"failed: {error}") from error

    async def stop_server(self, address: ServerAddress) -> None:
        """End a server that refuses the login in the files; the next one makes its users from them."""
        log.warning("server %s refused its login and is started again", address.pid)
        await asyncio.to_thread(_stop, address)

    def release(self) -> None:
        """Release the hold; without any hold the server ends after its lingering time."""
        self._lock.release()
        self._held = False

    async def _hold(self) -> None:
        if self._held:
            return
        self.files.create_folders()
        # A server that is about to end holds it alone; a flock has no event to wait for.
        while not self._lock.try_acquire(shared=True):  # noqa: ASYNC110
            await asyncio.sleep(_POLL)
        os.utime(self.files.users_lock)
        self._held = True

    def _spawning(self) -> bool:
        return self._server is not None and self._server.poll() is None

    def _spawn(self, attempt: int) -> None:
        require_installed()
        if attempt > MAX_SPAWNS:
            raise self._not_started("ends each time it is started")
        self._server = start_server(self.files, heap_mb=self._heap_mb, linger_seconds=self._linger)

    def _not_started(self, what: str) -> GraphUnavailableError:
        return GraphUnavailableError(
            f"The embedded graph {what}.",
            todo=f"See {self.files.log}, or run `ragforge-chat doctor`.",
            kind="graph_start",
        )


def start_server(files: ServerFiles, *, heap_mb: int, linger_seconds: float) -> subprocess.Popen[bytes]:
    """Start the server, which ends at once if another one runs. The folders must exist.

    Raises:
        OSError: It cannot be started.
    """
    command = daemon_command(
        *SERVER,
        f"--home={files.home}",
        f"--logs={files.logs}",
        f"--heap-mb={heap_mb}",
        f"--linger-seconds={linger_seconds}",
    )
    with open_private_log(files.log) as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=files.home,
            env=daemon_environment(),
            start_new_session=True,
        )


def server_status(paths: Paths) -> ServerAddress | None:
    """Return the address of the running embedded server, None if none runs. Starts nothing."""
    address = ServerFiles.of(paths).read_address()
    return address if address and address.alive() else None


def stop_server(paths: Paths) -> bool:
    """Stop the embedded server now. Blocks; False when it was not running.

    A chat that still runs starts it again with its next statement.
    """
    address = server_status(paths)
    if address is None:
        return False
    _stop(address)
    return True


def _stop(address: ServerAddress) -> None:
    """End a server in order, or kill it if it is still there after `STOP_TIMEOUT`; return once it is gone.

    Raises:
        GraphUnavailableError: It cannot be ended.
    """
    if not address.alive():
        return
    try:
        process = psutil.Process(address.pid)
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT)
        except psutil.TimeoutExpired:
            log.warning("server %s did not end in %s s and is killed", address.pid, STOP_TIMEOUT)
            process.kill()
            process.wait(STOP_TIMEOUT)
    except psutil.NoSuchProcess:
        return
    except (psutil.Error, OSError) as error:
        raise GraphUnavailableError(
            f"The embedded graph's process {address.pid} cannot be ended: {error}.",
            todo=f"End it: kill -9 {address.pid}",
            kind="graph_start",
        ) from error


def _raise(error: ErrorInfo) -> NoReturn:
    raise GraphUnavailableError(error.what, todo=error.todo, kept=error.kept, kind=error.kind)
