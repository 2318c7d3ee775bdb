"""The files of the embedded graph, and the locks that let one server serve every chat of a user.

The chat that wants a server (`attach`) and the server have only these in common: a folder, an address file and two
locks. Imports no driver, so that the server stays small.
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import IO, Literal

import msgspec
import psutil

from ragforge_tui.settings.schema import Paths
from ragforge_tui.shared.errors import ErrorInfo
from ragforge_tui.shared.files import STATE_BYTES, FileLock, atomic_write, make_private, read_regular
from ragforge_tui.shared.json_text import decode_json

DATABASE = "ragforge"


class ServerAddress(msgspec.Struct, kw_only=True, frozen=True):
    """The content of ``server.json``: the server's address, or the reason why there is none.

    Attributes:
        pid: The server's process, 0 while there is none.
        started: Its start time (seconds since the epoch), so that a reused pid is not taken for it.
        username: Who logs in there.
    """

    phase: Literal["starting", "ready", "failed"]
    at: datetime
    pid: int = 0
    started: float = 0.0
    bolt_port: int = 0
    http_port: int = 0
    version: str = ""
    username: str = ""
    error: ErrorInfo | None = None

    def alive(self) -> bool:
        return self.pid > 0 and process_alive(self.pid, self.started)


class ServerFiles:
    """Paths of everything the embedded graph keeps, made from the program's folders."""

    def __init__(self, home: Path, logs: Path) -> None:
        self.home = home
        self.logs = logs
        self.root = home / "server"
        self.address = home / "server.json"
        self.username = home / "username"
        self.password = home / "password"
        self.version = home / "version.json"
        self.backups = home / "backups"
        self.users_lock = home / "users.lock"
        self.server_lock = home / "server.lock"
        self.log = logs / "graph-server.log"

    @classmethod
    def of(cls, paths: Paths) -> ServerFiles:
        """Return the files in the program's data and state folders."""
        # Resolved, since the server works in a folder of its own.
        return cls(Path(paths.data).resolve() / "graph", Path(paths.state).resolve() / "logs")

    def create_folders(self) -> None:
        """Make the folders, readable by their owner alone."""
        for folder in (self.home, self.logs):
            make_private(folder)

    def read_address(self) -> ServerAddress | None:
        """Return the content of the address file, None if it is missing or invalid."""
        try:
            return decode_json(read_regular(self.address, STATE_BYTES), ServerAddress)
        except (OSError, msgspec.MsgspecError):
            return None

    def write_address(self, address: ServerAddress) -> None:
        atomic_write(self.address, msgspec.json.encode(address))

    def read_username(self) -> str:
        """Return the name the chat logs in with; empty when there is none yet."""
        return _read(self.username)

    def read_password(self) -> str:
        """Return the server's password; empty when there is none yet."""
        return _read(self.password)

    def size(self) -> int:
        """Return the size of the data on disk in bytes."""
        return sum(path.stat().st_size for path in self.root.rglob("*") if path.is_file())

    def served(self) -> bool:
        """Return whether a server's process is running, by its lock."""
        lock = FileLock(self.server_lock)
        if lock.try_acquire(shared=True):
            lock.release()
            return False
        return True


def _read(path: Path) -> str:
    try:
        return read_regular(path, STATE_BYTES).decode().strip()
    except FileNotFoundError:
        return ""


def open_private_log(path: Path) -> IO[bytes]:
    """Open a log for appending, readable by its owner alone."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "ab")


def process_alive(pid: int, started: float) -> bool:
    """Return whether the process with this pid and start time runs (a zombie does not)."""
    try:
        process = psutil.Process(pid)
        return abs(process.create_time() - started) < 2 and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
