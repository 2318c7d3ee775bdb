"""The graph engine in this process: the library of the `arcadedb` package, which speaks Bolt and HTTP on loopback.

Its settings are handed over in memory and its password in a file, so that no command line shows them.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import time
from typing import Any

from ragforge_tui.graph.embedded import http
from ragforge_tui.graph.embedded.files import DATABASE, ServerFiles
from ragforge_tui.graph.embedded.ports import ServerPorts
from ragforge_tui.shared.errors import GraphUnavailableError
from ragforge_tui.shared.files import atomic_write

log = logging.getLogger(__name__)

PORT_SECONDS = 10.0
"""Longest time until a started engine answers; its ports cannot always be seen at the first look (`ports.py`)."""
LOGGING = b"""handlers = java.util.logging.ConsoleHandler
.level = INFO
io.undertow.level = WARNING
org.xnio.level = WARNING
org.jboss.level = WARNING
java.util.logging.ConsoleHandler.level = INFO
java.util.logging.ConsoleHandler.formatter = com.arcadedb.log.LogFormatter
"""


class Engine:
    """The engine, running on a prepared data folder until `stop`; one in a process.

    Attributes:
        bolt_port: Where it speaks Bolt.
        http_port: Where it answers HTTP.

    Args:
        heap_mb: Its largest heap.

    Raises:
        GraphUnavailableError: It does not start.
    """

    def __init__(self, files: ServerFiles, ports: ServerPorts, *, heap_mb: int) -> None:
        self._server = _load(files, heap_mb)
        try:
            self._server.start()
        except Exception as error:
            log.exception("the engine did not start")
            locked = "LockException" in str(error)
            raise GraphUnavailableError(
                "Another program uses the embedded graph's data." if locked else "The embedded graph does not start.",
                todo="End that program, then start again." if locked else f"See the end of {files.log}.",
                kind="graph_start",
            ) from error
        self.http_port, self.bolt_port = _find_ports(ports)

    def stop(self) -> None:
        """Write what is in memory and close the data."""
        self._server.stop()


def _load(files: ServerFiles, heap_mb: int) -> Any:
    """Return a server that has not started; the library reads the environment when it is loaded."""
    # A path may hold spaces, which separate the arguments: the file is named from the working folder.
    os.chdir(files.home)
    logging_config = files.home / "logging.properties"
    atomic_write(logging_config, LOGGING)
    # An engine that ran out of memory is half dead; gone, it is started again.
    arguments = [
        f"-Xmx{heap_mb}m",
        "-XX:+ExitOnOutOfMemoryError",
        f"-Djava.util.logging.config.file={logging_config.name}",
    ]
    os.environ["ARCADEDB_NATIVE_ISOLATE_ARGS"] = " ".join(arguments)
    os.environ["ARCADEDB_LOG_DIR"] = str(files.root / "log")
    # Its package imports numpy where there is one, for data frames: 12 MB and a third of the time until it runs.
    sys.modules["numpy"] = None  # type: ignore[assignment]
    from arcadedb._native.server import NativeServer

    settings = {
        # Production flushes the write-ahead log with every transaction.
        "mode": "production",
        "host": "127.0.0.1",
        # Port 0: it takes free ports itself, so that no other process can take them in between.
        "http_port": 0,
        "bolt_host": "127.0.0.1",
        "bolt_port": 0,
        "server_plugins": "Bolt:com.arcadedb.bolt.BoltProtocolPlugin",
        "studio_enabled": False,
        "server_rootPasswordPath": str(files.password),
        # Passwords of 256 random bits need no stretching, which would take 0.3 s of each start.
        "server_saltIterations": 1,
        # Five wrong passwords lock a user out for 30 s. The chat's own user has a name that cannot be guessed, so
        # other accounts on this machine can lock out root only, which nothing here uses.
        "server_defaultDatabases": f"{DATABASE}[{files.read_username()}:{files.read_password()}:admin]",
    }
    return NativeServer(str(files.root), None, settings)


def _find_ports(ports: ServerPorts) -> tuple[int, int]:
    """Return the ports of HTTP and Bolt.

    Raises:
        GraphUnavailableError: They cannot be found.
    """
    end = time.monotonic() + PORT_SECONDS
    while time.monotonic() < end:
        found = ports.listening()
        http_port = next((port for port in found if http.status(port, "ready") == 204), 0)
        bolt_port = next((port for port in found if port != http_port and _speaks_bolt(port)), 0)
        if http_port and bolt_port:
            return http_port, bolt_port
        time.sleep(0.1)
    raise GraphUnavailableError("The embedded graph started, but does not answer.", kind="graph_start")


def _speaks_bolt(port: int) -> bool:
    """Return whether a port answers a Bolt handshake, which offers 5.8 to 5.0 and 4.4 to 4.2 as a driver would."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.sendall(bytes.fromhex("6060b017 00080805 00020404 00000000 00000000"))
            return any(connection.recv(4)[2:])
    except OSError:
        return False
