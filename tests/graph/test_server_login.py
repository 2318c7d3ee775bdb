"""The embedded server's login: nobody else gets it, and nobody can shut the user out."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest
from neo4j import AsyncGraphDatabase
from neo4j.exceptions import ServiceUnavailable

from ragforge_tui.graph import Graph, GraphTarget, server_status, stop_server
from ragforge_tui.graph.connection import ServerLogin
from ragforge_tui.graph.embedded import http
from ragforge_tui.graph.embedded.files import ServerAddress, ServerFiles
from ragforge_tui.graph.embedded.ports import ForeignPortError, ServerPorts
from ragforge_tui.settings.schema import Paths
from tests.support.sizes import HEAP_MB, paths_under

HANDSHAKE = bytes.fromhex("6060b017")
BOLT_5_4 = bytes.fromhex("00000405")


class Listener:
    """A foreign process's part: it answers as a server would, up to the password, and keeps what it was sent."""

    def __init__(self) -> None:
        self.received = b""
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(ConnectionError):  # the other side may go at any time
            while data := connection.recv(65536):
                self.received += data
                connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n" if b"HTTP" in data else BOLT_5_4)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Paths]:
    """Data shared by this module's tests; no server outlives it. The path needs quoting."""
    folder = tmp_path_factory.mktemp("login") / 'my "own" back\\slash'
    folder.mkdir()
    paths = paths_under(folder)
    yield paths
    stop_server(paths)


@pytest.fixture
def listener() -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.close()


async def opened(paths: Paths, *, linger: float = 20) -> Graph:
    return await Graph.open(GraphTarget(embedded=True), paths, heap_mb=HEAP_MB, linger_seconds=linger)


async def one(paths: Paths) -> int:
    """What a chat gets that starts now."""
    graph = await opened(paths)
    try:
        (row,) = await graph.query_readonly("RETURN 1 AS one")
        return int(row["one"])
    finally:
        await graph.close()


def running(paths: Paths) -> ServerAddress:
    address = server_status(paths)
    assert address
    return address


def guess(address: ServerAddress, username: str) -> None:
    """Log in with eight wrong passwords, as any account of this machine can."""
    ports = ServerPorts(address.pid, address.started)
    for number in range(8):
        with pytest.raises(http.HttpError) as caught:
            login = http.Login(ports, address.http_port, username, f"wrong {number}")
            http.request(login, "query/ragforge", {"language": "sql", "command": "SELECT 1"})
        assert caught.value.status == 403


async def test_a_command_line_shows_neither_ports_nor_login(paths: Paths) -> None:
    assert await one(paths) == 1
    address, files = running(paths), ServerFiles.of(paths)
    line = " ".join(psutil.Process(address.pid).cmdline())
    for secret in (str(address.http_port), str(address.bolt_port), files.read_username(), files.read_password()):
        assert secret not in line
    for path in (files.log, files.username, files.password, files.address):
        assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("username", ["root", ""])
async def test_the_server_for_other_agents_and_the_web_page_are_closed(paths: Paths, username: str) -> None:
    """The library has both, and a request of root could turn the former on for all later starts."""
    files = ServerFiles.of(paths)
    (files.root / "config").mkdir(parents=True, exist_ok=True)
    stop_server(paths)
    (files.root / "config" / "mcp-config.json").write_text('{"enabled": true}')
    assert await one(paths) == 1
    address = running(paths)
    login = http.Login(
        ServerPorts(address.pid, address.started),
        address.http_port,
        username or address.username,
        files.read_password(),
    )
    with pytest.raises(http.HttpError) as caught:
        await asyncio.to_thread(http.request, login, "mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert caught.value.status == 503
    for page in ("../../", "../../studio", "../../swagger"):
        assert await asyncio.to_thread(http.status, address.http_port, page) == 404


async def test_the_port_of_another_process_gets_no_password(paths: Paths, listener: Listener) -> None:
    assert await one(paths) == 1
    address, files = running(paths), ServerFiles.of(paths)
    files.write_address(msgspec.structs.replace(address, bolt_port=listener.port, http_port=listener.port))
    try:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await opened(paths)
        login = http.Login(
            ServerPorts(address.pid, address.started), listener.port, address.username, files.read_password()
        )
        with pytest.raises(ForeignPortError):
            http.request(login, "query/ragforge")
    finally:
        files.write_address(address)
    assert listener.received.startswith(HANDSHAKE)  # it was asked for its protocol, and no more
    header = base64.b64encode(f"{address.username}:{files.read_password()}".encode())
    for secret in (files.read_password().encode(), address.username.encode(), header, b"Authorization"):
        assert secret not in listener.received


async def test_a_connection_opened_later_is_checked_too(listener: Listener) -> None:
    """A driver opens further connections to the port it knows, which may be somebody else's by then."""
    ports = ServerPorts(os.getppid(), psutil.Process(os.getppid()).create_time())
    login = ServerLogin(ports, listener.port, "somebody", "the-password")
    async with AsyncGraphDatabase.driver(f"bolt://127.0.0.1:{listener.port}", auth=login) as driver:
        with pytest.raises(ServiceUnavailable, match="not the embedded server's"):
            await driver.verify_connectivity()
    assert listener.received.startswith(HANDSHAKE)
    assert b"the-password" not in listener.received


@pytest.mark.parametrize("known", [False, True])
async def test_wrong_passwords_lock_no_one_out(paths: Paths, known: bool) -> None:
    """Any account can have root locked; with the name of the chat's own user known, the server starts again."""
    assert await one(paths) == 1
    address = running(paths)
    await asyncio.to_thread(guess, address, address.username if known else "root")
    assert await one(paths) == 1
    assert (running(paths).pid == address.pid) is not known


@pytest.mark.parametrize("while_it_runs", [False, True])
async def test_the_password_in_the_file_holds(paths: Paths, while_it_runs: bool) -> None:
    files = ServerFiles.of(paths)
    assert await one(paths) == 1
    if not while_it_runs:
        assert stop_server(paths)
    password = f"another-password-{while_it_runs}"
    files.password.write_text(password)
    assert await one(paths) == 1
    assert files.read_password() == password


def test_ports_belong_to_the_process_that_listens() -> None:
    ports = ServerPorts(os.getpid(), psutil.Process().create_time())
    other = ServerPorts(os.getppid(), psutil.Process(os.getppid()).create_time())
    reused = ServerPorts(os.getpid(), psutil.Process().create_time() - 60)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        assert ports.holds(port)
        assert not other.holds(port)
        assert not reused.holds(port)
    assert not ports.still_holds(port)
    assert not ports.holds(port)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="without /proc every check is a full one")
def test_a_port_seen_before_is_checked_with_one_call() -> None:
    ports = ServerPorts(os.getpid(), psutil.Process().create_time())
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        assert not ports.still_holds(port)
        assert ports.holds(port)
        assert ports.still_holds(port)
