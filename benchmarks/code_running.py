"""Cost of the code index while it runs: first indexing, second start, one changed file, and delays of the engine.

    python -m benchmarks.code_running --source FOLDER [--graph embedded|bolt://…] [--vectors]

FOLDER is a project, such as an unpacked source distribution; it is copied, with a .git folder, so that it stays as it
is. The index runs as in the engine, in a process that also measures how late its event loop is, as a running turn
would be, and how much processor time the process used between two looks: a bound for what it delays by itself, which
does not depend on what else the machine does. At the end it measures what a turn asks of the index.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import logging
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import psutil

from ragforge_tui.code.knowledge import CodeKnowledge
from ragforge_tui.code.lookup import CodeLookup
from ragforge_tui.code.worker_client import WorkerClient
from ragforge_tui.graph import Graph, GraphTarget, Store, stop_server
from ragforge_tui.llm.embeddings import LocalEmbedder
from ragforge_tui.memory.context.code import code_section
from ragforge_tui.memory.retrieval import Questions
from ragforge_tui.settings.schema import CodeSettings, Paths, RecallSettings
from ragforge_tui.shared.events import CodeIndexChanged
from ragforge_tui.shared.pace import Pace

TICK = 0.01
ASKED = 60
CODE_TOKENS = 1_500
QUESTIONS = (
    "where is the session loaded from its cookie in the middleware",
    "how does the query compiler quote the names of a table",
    "which function renders the template of an error page",
    "explain how a migration is applied to the database schema",
    "why does `Form.full_clean` reject an empty value",
    "how are the signals dispatched to their receivers",
)


class Delays:
    """How late the event loop is, sampled every ten milliseconds, and the largest memory of the processes."""

    def __init__(self) -> None:
        self._late: list[float] = []
        self._busy: list[float] = []
        self.memory = {"engine": 0, "worker": 0, "server": 0}

    async def watch(self, worker: WorkerClient, server: int) -> None:
        """Sample until cancelled."""
        for count in itertools.count():
            started, used = time.perf_counter(), time.process_time()
            await asyncio.sleep(TICK)
            self._late.append(max(time.perf_counter() - started - TICK, 0.0))
            self._busy.append(time.process_time() - used)
            if count % 50 == 0:
                for name, pid in (("engine", os.getpid()), ("worker", worker.pid), ("server", server)):
                    with suppress(psutil.Error):
                        self.memory[name] = max(self.memory[name], psutil.Process(pid).memory_info().rss if pid else 0)

    def take(self) -> dict[str, float]:
        """Return median, 99th percentile and maximum of both in milliseconds, and start again."""
        figures = _spread("delay", self._late) | _spread("busy", self._busy)
        self._late, self._busy = [], []
        return figures


def _spread(name: str, seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds) or [0.0]
    at = {"p50": len(ordered) // 2, "p95": int(0.95 * (len(ordered) - 1)), "p99": int(0.99 * (len(ordered) - 1))}
    return {f"{name}_{each}_ms": 1000 * ordered[place] for each, place in {**at, "max": -1}.items()}


class Phases:
    """The time at which each phase of a run began."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.at: dict[str, float] = {}

    def __call__(self, state: CodeIndexChanged) -> None:
        if state.phase not in self.at:
            self.at[state.phase] = time.monotonic() - self.started
            print(f"  {self.at[state.phase]:8.1f} s {state.phase}", file=sys.stderr, flush=True)


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
        pace=Pace(),
        on_change=phases,
    )
    code.start(keep=True)
    try:
        yield code, phases
    finally:
        await code.close()


async def measure(
    store: Store, folder: Path, locks: Path, *, vectors: bool, delays: Delays, server: int
) -> dict[str, float]:
    """Return the figures of a first and a second start, and of one changed file.

    Seconds of processor time hardly depend on what else the machine does; the others do.
    """
    figures: dict[str, float] = {}
    server = server or (await store.graph.info()).get("pid", 0)
    before = {"engine": _cpu(os.getpid()), "server": _cpu(server)}
    async with index(store, folder, locks, vectors=vectors) as (code, phases):
        watching = asyncio.create_task(delays.watch(code._worker, server))
        await code.wait_indexed()
        figures["first_words_s"] = phases.at["linking"]
        figures["first_references_s"] = time.monotonic() - phases.started
        figures |= delays.take()
        if vectors:
            assert code._embedding is not None
            await asyncio.wait([code._embedding])
            figures["first_vectors_s"] = time.monotonic() - phases.started
            figures |= {f"vectors_{name}": value for name, value in delays.take().items()}
        for name in ("files", "scopes", "references", "unresolved", "vectors"):
            figures[name] = getattr(code.state, name)
        figures["worker_cpu_s"] = _cpu(code._worker.pid)
        figures["engine_cpu_s"] = _cpu(os.getpid()) - before["engine"]
        figures["server_cpu_s"] = _cpu(server) - before["server"]
        watching.cancel()
    async with index(store, folder, locks, vectors=vectors) as (code, phases):
        used = {"engine": _cpu(os.getpid()), "server": _cpu(server)}
        await code.wait_indexed()
        figures["second_start_s"] = time.monotonic() - phases.started
        for name, pid in (("engine", os.getpid()), ("server", server)):
            figures[f"second_start_{name}_cpu_s"] = _cpu(pid) - used[name]
        await asyncio.sleep(5)
        for name in ("changed_file_s", "changed_again_s"):
            _change_one(folder, name)
            figures[name] = await _found_after(store, str(folder), name)
            await asyncio.sleep(5)
        figures |= await asked(store, str(folder), LocalEmbedder() if vectors else None)
    figures |= {f"{name}_mb": value / 1e6 for name, value in delays.memory.items()}
    figures["cpus"], figures["load"] = os.cpu_count() or 1, os.getloadavg()[0]
    return figures


async def asked(store: Store, workspace: str, embedder: LocalEmbedder | None) -> dict[str, float]:
    """Return how long the code of a request and brain_search take, and how often the code came too late."""

    async def opened() -> Store:
        return store

    # Each answer that comes too late is counted.
    logging.disable(logging.WARNING)
    found = CodeLookup(
        Questions(opened, embedder, RecallSettings(), workspace),
        index=lambda: cast("CodeKnowledge", SimpleNamespace(ready=True)),
    )
    if embedder is not None:
        # As the engine does when it starts.
        await embedder.embed(["warm"])
    started = time.perf_counter()
    if embedder is not None:
        await store.code.search.vectors.load(workspace)
    figures = {"vectors_read_s": time.perf_counter() - started}
    times: dict[str, list[float]] = {"context": [], "brain": []}
    late, used = Counter[str](), time.process_time()
    for number in range(ASKED):
        question = QUESTIONS[number % len(QUESTIONS)]
        started = time.perf_counter()
        answer = await found.for_context(question)
        section = await asyncio.to_thread(code_section, answer.scopes, CODE_TOKENS, [])
        times["context"].append(time.perf_counter() - started)
        late[answer.missing] += 1
        figures["context_scopes"] = figures.get("context_scopes", 0.0) + len(section.items) / ASKED
    figures["context_engine_cpu_ms"] = 1000 * (time.process_time() - used) / ASKED
    for number in range(ASKED):
        started = time.perf_counter()
        await found.brain_search(QUESTIONS[number % len(QUESTIONS)])
        times["brain"].append(time.perf_counter() - started)
    for name, seconds in times.items():
        figures |= _spread(name, seconds)
    figures["late_percent"] = 100 * sum(count for text, count in late.items() if "not searched" in text) / ASKED
    figures["words_only_percent"] = 100 * sum(count for text, count in late.items() if "words only" in text) / ASKED
    return figures


def _cpu(pid: int) -> float:
    """Return the seconds of processor time of a process; 0 for none."""
    times = psutil.Process(pid).cpu_times() if pid else None
    return times.user + times.system if times else 0.0


def copied(source: str) -> tuple[Path, Path]:
    """Return a new folder, and the copy of the project in it."""
    home = Path(tempfile.mkdtemp(prefix="code-running-"))
    folder = home / "workspace"
    shutil.copytree(source, folder, symlinks=True)
    (folder / ".git").mkdir(exist_ok=True)
    (home / "state").mkdir()
    return home, folder


def _change_one(folder: Path, name: str) -> None:
    changed = next(path for path in sorted(folder.rglob("*.py")) if 2_000 < path.stat().st_size < 100_000)
    changed.write_text(changed.read_text() + f"\n\ndef {name}():\n    return 1\n")


async def _found_after(store: Store, workspace: str, name: str) -> float:
    """Return the seconds until the changed file's new function is found."""
    started = time.monotonic()
    for _ in range(2_400):
        if await store.code.by_name(workspace, name):
            break
        await asyncio.sleep(0.05)
    return time.monotonic() - started


async def main(arguments: argparse.Namespace) -> None:
    """Measure and print."""
    home, folder = copied(arguments.source)
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
            Store(graph),
            folder,
            Path(paths.state, "code"),
            vectors=arguments.vectors,
            delays=Delays(),
            server=arguments.server_pid,
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
    parser.add_argument("--server-pid", type=int, default=0, help="process of that Neo4j, if it runs on this machine")
    asyncio.run(main(parser.parse_args()))
