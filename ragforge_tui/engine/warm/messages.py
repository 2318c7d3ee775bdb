"""What a chat and the engine host say to each other, and the files by which they find each other.

A chat connects to the host's socket and sends one `ForkRequest` with three descriptors: the engine's standard input,
output and error. The engine answers with one `ForkReply`, once it is what the request asks for, and holds the
connection until it ends, so that the chat notices its end.
"""

from __future__ import annotations

import socket
import struct
import sys
from pathlib import Path
from typing import Literal

import msgspec

from ragforge_tui.settings.schema import Paths

MAX_SOCKET_PATH = 100
"""Longest path of a socket in bytes: 108 on Linux, 104 on macOS."""
MAX_REQUEST_BYTES = 16 * 1024 * 1024
_LENGTH = struct.Struct("!I")

Refusal = Literal["other program", "other place", "failed"]


class GraphServer(msgspec.Struct, kw_only=True, frozen=True):
    """The embedded graph that the engine will need, so that the host can start it first."""

    paths: Paths
    heap_mb: int
    linger_seconds: float


class ForkRequest(msgspec.Struct, kw_only=True, frozen=True):
    """What the engine takes over from the chat's process, and what the host must have in common with it.

    Attributes:
        program: See `program_identity`.
        place: See `place`.
        environment: All variables, as bytes because they may hold anything.
        folder: The working folder.
        limits: Soft and hard limits by the name that `resource` gives them.
        niceness: The process's niceness.
        keep_minutes: How long the host is kept without an engine.
        needs_model: Whether LiteLLM has to be imported before the fork.
        needs_encoder: Whether engines use the local model that makes vectors.
        graph: The embedded graph that is started if it does not run.
    """

    program: str
    place: dict[str, str]
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
    """The engine's pid, or why there is none: another program, another place (`why` names it), or an error."""

    pid: int = 0
    refusal: Refusal | None = None
    why: str = ""


class HostFiles:
    """Paths of the host's socket and lock, of which each user has one; the lock is held as long as the host lives."""

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
        """Whether the socket's path is short enough."""
        return len(str(self.socket).encode()) <= MAX_SOCKET_PATH

    def create_folder(self) -> None:
        """Make the folder, readable by its owner alone."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder.chmod(0o700)


def same_user(connection: socket.socket, uid: int) -> bool:
    """Return whether the other end of a connection is a process of this user; systems that cannot tell say yes."""
    if not sys.platform.startswith("linux"):
        return True
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return bool(struct.unpack("3i", credentials)[1] == uid)


def framed(message: msgspec.Struct) -> tuple[bytes, bytes]:
    """Return the length and the encoded message; the length is sent with the descriptors."""
    encoded = msgspec.msgpack.encode(message)
    return _LENGTH.pack(len(encoded)), encoded


def length_of(head: bytes) -> int:
    """Return the length of the message that follows.

    Raises:
        ValueError: It is not one.
    """
    if len(head) != _LENGTH.size:
        raise ValueError("the connection ended")
    length: int = _LENGTH.unpack(head)[0]
    if length > MAX_REQUEST_BYTES:
        raise ValueError(f"a message of {length} bytes")
    return length


HEAD_BYTES = _LENGTH.size
