"""One embedded server for all chats of a user, and what a kill -9 of anybody leaves."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest
from neo4j import AsyncManagedTransaction

from ragforge_tui.graph import Graph, GraphTarget, server_status, stop_server
from ragforge_tui.graph.embedded.attach import ServerHold
from ragforge_tui.graph.embedded.files import ServerAddress, ServerFiles
from ragforge_tui.settings.schema import Paths
from ragforge_tui.shared.errors import GraphUnavailableError
from tests.conftest import open_graph, paths_under
from tests.support.waiting import until

HOLDER = """
import asyncio, sys
from ragforge_tui.settings.schema import Paths
from ragforge_tui.shared.errors import GraphUnavailableError
from ragforge_tui.graph.embedded.attach import ServerHold
hold = ServerHold(Paths(config="", data=sys.argv[1], state=sys.argv[2]), heap_mb=256, linger_seconds=0)
address = asyncio.run(hold.ensure_server())
sys.stdout.write(f"{address.pid}\\n")
sys.stdout.flush()
sys.stdin.read()
"""
KILL_POINTS = int(os.environ.get("RAGFORGE_TEST_KILLS", "3"))


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Paths]:
    """Data shared by this module's tests; no server outlives it."""
    paths = paths_under(tmp_path_factory.mktemp("served"))
    yield paths
    stop_server(paths)


def hold_on(paths: Paths, linger: float = 0) -> ServerHold:
    return ServerHold(paths, heap_mb=256, linger_seconds=linger)


def readable_by_others(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if stat.S_IMODE(path.stat().st_mode) & 0o077]


async def gone(paths: Paths, address: ServerAddress) -> None:
    """Wait until the server has ended."""
    await until(lambda: not address.alive())


def another_chat(paths: Paths) -> tuple[subprocess.Popen[str], int]:
    """A process that holds the server; and the server's pid as it sees it."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, paths.data, paths.state],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    return process, int(process.stdout.readline())


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


async def test_the_server_lives_as_long_as_its_last_chat(paths: Paths) -> None:
    hold = hold_on(paths)
    address = await hold.ensure_server()
    chat, seen = await asyncio.to_thread(another_chat, paths)
    assert seen == address.pid
    hold.release()
    await asyncio.sleep(1)
    assert address.alive()
    chat.kill()
    chat.wait()
    await gone(paths, address)
    assert server_status(paths) is None


async def test_a_chat_that_comes_while_it_lingers_keeps_it(paths: Paths) -> None:
    first = hold_on(paths, linger=30)
    address = await first.ensure_server()
    first.release()
    second = hold_on(paths)
    assert (await second.ensure_server()).pid == address.pid
    second.release()
    assert stop_server(paths)
    assert not address.alive()


async def test_the_server_listens_on_loopback_and_its_files_are_private(paths: Paths) -> None:
    hold = hold_on(paths)
    address = await hold.ensure_server()
    listening = {c.laddr.ip for c in psutil.Process(address.pid).net_connections("tcp") if c.status == "LISTEN"}
    assert {ip.removeprefix("::ffff:") for ip in listening} == {"127.0.0.1"}
    assert readable_by_others(Path(paths.data)) == []
    hold.release()
    await gone(paths, address)


async def test_a_killed_server_is_started_again(paths: Paths) -> None:
    hold = hold_on(paths)
    address = await hold.ensure_server()
    kill(address.pid)
    await until(lambda: not address.alive())
    again = await hold.ensure_server()
    assert again.pid != address.pid
    hold.release()
    await gone(paths, again)


@pytest.mark.slow
async def test_everything_killed_at_once(paths: Paths) -> None:
    chat, _ = await asyncio.to_thread(another_chat, paths)
    address = server_status(paths)
    assert address
    for pid in (chat.pid, address.pid):
        kill(pid)
    chat.wait()
    # A killed process is there until the kernel is done with it; a chat that comes in between would find it dead
    # at its first statement, which is another test.
    await until(lambda: not address.alive())
    hold = hold_on(paths)
    again = await hold.ensure_server()
    assert again.pid != address.pid
    hold.release()
    await gone(paths, again)


@pytest.mark.slow
async def test_a_server_that_is_terminated_ends_in_order(paths: Paths) -> None:
    hold = hold_on(paths)
    address = await hold.ensure_server()
    psutil.Process(address.pid).terminate()
    await until(lambda: not address.alive())
    assert not ServerFiles.of(paths).address.exists()
    assert "ArcadeDB Server is down" in ServerFiles.of(paths).log.read_text()
    hold.release()


async def test_a_second_server_on_the_same_data_is_refused_in_words(paths: Paths, tmp_path: Path) -> None:
    hold = hold_on(paths)
    address = await hold.ensure_server()
    other = paths_under(tmp_path)
    ServerFiles.of(other).create_folders()
    ServerFiles.of(other).root.symlink_to(ServerFiles.of(paths).root)
    with pytest.raises(GraphUnavailableError, match="Another program uses the embedded graph's data"):
        await hold_on(other).ensure_server()
    assert address.alive()
    graph = await open_graph(GraphTarget(embedded=True), paths)
    assert graph.identity
    await graph.close()
    hold.release()
    await gone(paths, address)


@pytest.mark.slow
async def test_a_server_out_of_memory_ends_and_the_next_statement_starts_another(tmp_path: Path) -> None:
    paths = paths_under(tmp_path)
    graph = await Graph.open(GraphTarget(embedded=True), paths, heap_mb=48, linger_seconds=0)
    address = server_status(paths)
    assert address
    everything = (
        "UNWIND range(1, 400) AS i WITH [y IN range(1, 100000) | toString(y + i)] AS z RETURN size(collect(z)) AS n"
    )
    too_much = asyncio.create_task(graph.rows(everything))
    await until(lambda: not address.alive() or too_much.done())
    too_much.cancel()
    await asyncio.gather(too_much, return_exceptions=True)
    assert not address.alive()
    assert await graph.query_readonly("RETURN 1 AS one") == [{"one": 1}]
    await graph.close()
    stop_server(paths)


@pytest.mark.slow
async def test_nothing_acknowledged_is_lost_to_kills(tmp_path: Path) -> None:
    paths = paths_under(tmp_path)
    chance = random.Random(20)
    graph = await open_graph(GraphTarget(embedded=True), paths)
    written: list[int] = []
    done = asyncio.Event()

    async def write() -> None:
        while not done.is_set():
            number = len(written)
            await graph.write(partial(_merge, number=number), deadline=90)
            written.append(number)

    writer = asyncio.create_task(write())
    for _ in range(KILL_POINTS):
        await asyncio.sleep(chance.uniform(0.05, 0.4))
        await until(lambda: server_status(paths) is not None)
        address = server_status(paths)
        assert address
        kill(address.pid)
        before = len(written)
        await until(lambda before=before: len(written) > before or writer.done())  # type: ignore[misc]
    done.set()
    await writer
    assert await _numbers(graph) == written
    await graph.close()
    # Another process finds the same.
    await until(lambda: server_status(paths) is None)
    again = await open_graph(GraphTarget(embedded=True), paths)
    assert await _numbers(again) == written
    await again.close()
    stop_server(paths)


async def _merge(tx: AsyncManagedTransaction, number: int) -> None:
    result = await tx.run("MERGE (c:Conversation {uuid: $uuid}) SET c.next_turn = $n", uuid=str(number), n=number)
    await result.consume()


async def _numbers(graph: Graph) -> list[int]:
    rows = await graph.query_readonly("MATCH (c:Conversation) RETURN c.next_turn AS n ORDER BY n")
    return [row["n"] for row in rows]
