"""Cost of the code index while it runs: first indexing, second start, one changed file, and delays of the engine.

    python -m benchmarks.code_running --source FOLDER [--graph embedded|neo4j] [--vectors]

FOLDER is a project, such as an unpacked source distribution; it is copied, with a .git folder, so that it stays as it
is. The index runs as in the engine, in a process that also measures how late its event loop is, as a running turn
would be.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil

from ragforge_tui.code.knowledge import CodeKnowledge
from ragforge_tui.graph import Graph, GraphTarget, Store, stop_server
from ragforge_tui.llm.embeddings import LocalEmbedder
from ragforge_tui.settings.schema import CodeSettings, Paths
from ragforge_tui.shared.events import CodeIndexChanged

TICK = 0.01


class Delays:
    """How late the event loop is, sampled every ten milliseconds, and the largest memory of this process."""

    def __init__(self) -> None:
        self._late: list[float] = []
        self.rss = 0
        self.worker_rss = 0

    async def watch(self, worker: Any) -> None:
        """Sample until cancelled."""
        own = psutil.Process()
        count = 0
        while True:
            started = time.perf_counter()
            await asyncio.sleep(TICK)
            self._late.append(max(time.perf_counter() - started - TICK, 0.0))
            count += 1
            if count % 50 == 0:
                self.rss = max(self.rss, own.memory_info().rss)
                try:
                    self.worker_rss = max(
                        self.worker_rss, psutil.Process(worker.pid).memory_info().rss if worker.pid else 0
                    )
                except psutil.Error:
                    continue

    def take(self) -> tuple[float, float, float]:
        """Return median, 99th percentile and maximum in milliseconds, and start again."""
        late, self._late = sorted(self._late) or [0.0], []
        return tuple(1000 * value for value in (statistics.median(late), late[int(0.99 * (len(late) - 1))], late[-1]))  # type: ignore[return-value]


class Phases:
    """The time at which each phase of a run began."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.at: dict[str, float] = {}

    def __call__(self, state: CodeIndexChanged) -> None:
        self.at.setdefault(state.phase, time.monotonic() - self.started)


@asynccontextmanager
async def index(
    store: Store, folder: Path, locks: Path, *, vectors: bool
) -> AsyncIterator[tuple[CodeKnowledge, Phases]]:
    """Run an index over a folder until the block ends."""
    phases = Phases()

    async def opened() -> Store:
        return store

    code = CodeKnowledge(
        folder,
        CodeSettings(),
        ignore=[],
        locks=locks,
        store=opened,
        embedder=LocalEmbedder() if vectors else None,
        is_busy=lambda: False,
        on_change=phases,
    )
    code.start(keep=True)
    try:
        yield code, phases
    finally:
        await code.close()


async def measure(store: Store, folder: Path, locks: Path, *, vectors: bool, delays: Delays) -> dict[str, float]:
    """Return the figures of a first and a second start, and of one changed file.

    Seconds of processor time hardly depend on what else the machine does; the others do.
    """
    figures: dict[str, float] = {}
    server = (await store.graph.info()).get("pid", 0)
    before = {"engine": _cpu(os.getpid()), "server": _cpu(server)}
    async with index(store, folder, locks, vectors=vectors) as (code, phases):
        watching = asyncio.create_task(delays.watch(code._worker))
        await code.wait_indexed()
        figures["first_total_s"] = time.monotonic() - phases.started
        figures["first_words_s"] = phases.at["linking"]
        figures["first_references_s"] = phases.at.get("embedding", figures["first_total_s"])
        figures["median_delay_ms"], figures["p99_delay_ms"], figures["max_delay_ms"] = delays.take()
        for name in ("files", "scopes", "references", "unresolved", "vectors"):
            figures[name] = getattr(code.state, name)
        figures["worker_cpu_s"] = _cpu(code._worker.pid)
        figures["engine_cpu_s"] = _cpu(os.getpid()) - before["engine"]
        figures["server_cpu_s"] = _cpu(server) - before["server"]
        watching.cancel()
    async with index(store, folder, locks, vectors=vectors) as (code, phases):
        await code.wait_indexed()
        figures["second_start_s"] = time.monotonic() - phases.started
        await asyncio.sleep(5)
        _change_one(folder)
        figures["changed_file_s"] = await _found_after(store, str(folder))
        await asyncio.sleep(2)
    figures["engine_mb"], figures["worker_mb"] = delays.rss / 1e6, delays.worker_rss / 1e6
    figures["cpus"] = os.cpu_count() or 1
    return figures


def _cpu(pid: int) -> float:
    """Return the seconds of processor time of a process; 0 for none."""
    times = psutil.Process(pid).cpu_times() if pid else None
    return times.user + times.system if times else 0.0


def _copied(source: str) -> tuple[Path, Path]:
    """Return a new folder, and the copy of the project in it."""
    home = Path(tempfile.mkdtemp(prefix="code-running-"))
    folder = home / "workspace"
    shutil.copytree(source, folder, symlinks=True)
    (folder / ".git").mkdir(exist_ok=True)
    (home / "state").mkdir()
    return home, folder


def _change_one(folder: Path) -> None:
    changed = next(path for path in sorted(folder.rglob("*.py")) if path.stat().st_size > 2_000)
    changed.write_text(changed.read_text() + "\n\ndef benchmark_probe():\n    return 1\n")


async def _found_after(store: Store, workspace: str) -> float:
    """Return the seconds until the changed file's new function is found."""
    started = time.monotonic()
    for _ in range(2_400):
        if await store.code.by_name(workspace, "benchmark_probe"):
            break
        await asyncio.sleep(0.05)
    return time.monotonic() - started


async def main(arguments: argparse.Namespace) -> None:
    """Measure and print."""
    home, folder = _copied(arguments.source)
    paths = Paths(config=str(home / "config"), data=str(home / "data"), state=str(home / "state"))
    target = (
        GraphTarget(uri=arguments.graph, username="neo4j", password=os.environ.get("NEO4J_PASSWORD", ""), adopt=True)
        if "://" in arguments.graph
        else GraphTarget(embedded=True, chosen_by="benchmark")
    )
    graph = await Graph.open(target, paths, linger_seconds=1)
    try:
        before = (await graph.info()).get("size_bytes", 0)
        figures = await measure(
            Store(graph), folder, Path(paths.state, "code"), vectors=arguments.vectors, delays=Delays()
        )
        figures["graph_mb"] = ((await graph.info()).get("size_bytes", 0) - before) / 1e6
    finally:
        await graph.close()
        if target.embedded:
            stop_server(paths)
        shutil.rmtree(home, ignore_errors=True)
    for name, value in figures.items():
        print(f"  {name:22} {value:12,.2f}")
    print("code_running", *(f"{name}={value:.2f}" for name, value in figures.items()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", required=True)
    parser.add_argument("--graph", default="embedded", help="embedded, or the bolt:// address of a Neo4j")
    parser.add_argument("--vectors", action="store_true", help="make vectors with the local model too")
    asyncio.run(main(parser.parse_args()))
