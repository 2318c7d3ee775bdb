"""The ports the embedded server itself listens on, so that its password goes to no other process.

A port does not prove who answers there: between the end of one server and the start of the next, any local user can
bind it. A chat checks here before it sends the password.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import psutil

from ragforge_tui.graph.embedded.files import process_alive

log = logging.getLogger(__name__)

_ATTEMPTS = 2
"""On macOS access to the user's own process is sometimes denied while it opens or closes files (psutil #1901)."""


class ForeignPortError(ConnectionError):
    """The port is not one the embedded server listens on; nothing was sent."""


class ServerPorts:
    """The listening sockets of one server process.

    Attributes:
        pid: The process; it must be the user's own, so that its sockets can be seen without privileges.
        started: Its start time in seconds since the epoch, so that a reused pid is not taken for it.
    """

    def __init__(self, pid: int, started: float) -> None:
        self.pid = pid
        self.started = started
        self._seen: dict[int, tuple[Path, str]] = {}
        self._warned = False

    def listening(self) -> list[int]:
        """Return the ports in ascending order; none when the process has ended. Blocks for some milliseconds."""
        paths = {port: Path(f"/proc/{self.pid}/fd/{number}") for port, number in self._sockets().items()}
        self._seen = {port: (path, _link(path)) for port, path in paths.items()}
        return sorted(paths)

    def holds(self, port: int) -> bool:
        """Return whether the process listens on a port now. Blocks for some milliseconds unless `still_holds`."""
        return self.still_holds(port) or port in self.listening()

    def still_holds(self, port: int) -> bool:
        """Return whether the socket seen on a port is still open: one system call, and never true without /proc."""
        path, link = self._seen.get(port, (Path(), ""))
        return bool(link) and _link(path) == link

    def _sockets(self) -> dict[int, int]:
        """Return the file descriptor of the listening socket by port."""
        for attempt in range(_ATTEMPTS):
            try:
                if not process_alive(self.pid, self.started):
                    break
                found = psutil.Process(self.pid).net_connections("tcp")
                # The port alone: its address is written in several ways, and only 127.0.0.1 was requested.
                return {each.laddr.port: each.fd for each in found if each.status == psutil.CONN_LISTEN}
            except (psutil.Error, OSError) as error:
                if attempt == _ATTEMPTS - 1 and not self._warned:
                    self._warned = True
                    log.warning("the ports of server %s cannot be seen: %s", self.pid, error)
        return {}


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""


def connected_to(pid: int, port: int) -> bool:
    """Return whether processes other than this one are connected to a port of a server of this user. Blocks.

    Return False where connections cannot be listed.
    """
    try:
        here = {each.laddr.port for each in psutil.Process().net_connections("tcp") if _to(each.raddr, port)}
        found = psutil.Process(pid).net_connections("tcp")
    except (psutil.Error, OSError) as error:
        log.warning("the connections of server %s cannot be seen: %s", pid, error)
        return False
    there = {each.raddr.port for each in found if each.status == psutil.CONN_ESTABLISHED and _to(each.laddr, port)}
    return not there <= here


def _to(address: Any, port: int) -> bool:
    return bool(address) and address.port == port
