"""Messages between a chat and the engine host, and the paths of the host's files.

A chat connects to the host's socket and sends one `ForkRequest` with three descriptors: the engine's standard input,
output and error. The engine replies with one `ForkReply` as soon as it runs with the environment of the request, and
keeps the connection open, so that the chat notices its end. Both are lines of JSON, like everything that processes of
the program send each other.
"""

from __future__ import annotations

import socket
import struct
import sys
from pathlib import Path
from typing import Literal

import msgspec

from ragforge_tui.settings.schema import Paths
from ragforge_tui.shared.files import make_private

MAX_SOCKET_PATH = 100
"""Longest path of a socket in bytes: 108 on Linux, 104 on macOS."""
MAX_REQUEST_BYTES = 16 * 1024 * 1024

Refusal = Literal["other program", "other confinement", "other environment", "failed"]


class GraphServer(msgspec.Struct, kw_only=True, frozen=True):
    """The embedded graph that the engine will need; the host starts it before its own imports."""

    paths: Paths
    heap_mb: int
    linger_seconds: float


class ForkRequest(msgspec.Struct, kw_only=True, frozen=True):
    """Description of the chat's process: what must equal the host's, and what the engine takes over.

    Attributes:
        program: See `program_identity`; must be equal.
        confinement: See `confinement`; must be equal.
        environment: All variables, as bytes because their values need not be text.
        folder: The working folder.
        limits: Soft and hard limits, by their names in `resource`.
        keep_minutes: How long the host lives on without an engine.
        needs_model: Whether LiteLLM has to be imported before the fork.
        needs_encoder: Whether the engine uses the local embedding model.
        graph: The embedded graph, which is started if it is not running.
    """

    program: str
    confinement: dict[str, str]
    environment: dict[bytes, bytes]
    folder: bytes
    umask: int
    limits: dict[str, tuple[int, int]]
    niceness: int
    keep_minutes: float
    needs_model: bool
    needs_encoder: bool
    graph: GraphServer | None = None


class ForkReply(msgspec.Struct, kw_only=True, frozen=True):
    """The engine's process id, or why there is none; `why` names the difference or holds the error."""

    pid: int = 0
    refusal: Refusal | None = None
    why: str = ""


class HostFiles:
    """Paths of the user's host: its socket, the lock it holds as long as it lives, and its log."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.folder = state / "engine"
        self.socket = self.folder / "host.sock"
        self.lock = self.folder / "host.lock"
        self.log = state / "logs" / "engine-stderr.log"

    @classmethod
    def of(cls, paths: Paths) -> HostFiles:
        """Return the files in the program's state folder."""
        return cls(Path(paths.state))

    @property
    def usable(self) -> bool:
        """Whether the path of the socket is short enough for the operating system."""
        return len(str(self.socket).encode()) <= MAX_SOCKET_PATH

    def create_folder(self) -> None:
        """Create the folder, readable by its owner alone."""
        make_private(self.folder)
        self.folder.chmod(0o700)


def same_user(connection: socket.socket, uid: int) -> bool:
    """Return whether the peer of a connection is a process of this user; outside Linux it is assumed to be."""
    if not sys.platform.startswith("linux"):
        return True
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return bool(struct.unpack("3i", credentials)[1] == uid)
