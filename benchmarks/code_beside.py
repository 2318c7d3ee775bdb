"""A chat while its workspace is indexed: from a key to its letter, and from a message to its request to the model.

    python -m benchmarks.code_beside --source FOLDER [--graph embedded|bolt://…] [--vectors] [--rounds N]

The real program runs in a pseudo-terminal, with a scripted server for a model, in a copy of FOLDER that it begins to
index. In rounds, the process that parses and makes vectors runs and is stopped in turn, so that the same chat is
measured with and without an index in progress, and other load of the machine counts for both alike. Needs a checkout
(it uses tests/support).
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import random
import shutil
import signal
import statistics
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from benchmarks.code_running import QUESTIONS, copied
from benchmarks.echo import PAUSE, p95, wanted_and_stolen
from ragforge_tui.graph import stop_server
from ragforge_tui.memory.context.sections import CODE_SECTION, TITLES
from tests.support.model_script import Recorded
from tests.support.openai_server import OpenAIServer
from tests.support.sizes import paths_under
from tests.support.terminal import PATIENCE, Terminal

LETTERS = "".join(chr(code) for code in range(0x1401, 0x1600))
"""Letters that are nowhere else on the screen, each used once."""
SETTLE_SECONDS = 3.0
"""Time after which statements that were sent before the stop have ended."""
WORK_SECONDS = 30.0
"""Time without work after which the index has ended."""
STATES = ("indexing", "stopped")


class Arrivals(list[Recorded]):
    """Requests that a server received; tells when the next one of the agent loop arrives."""

    def __init__(self) -> None:
        super().__init__()
        self.next: asyncio.Future[float] | None = None

    def append(self, request: Recorded) -> None:
        """Keep a request."""
        super().append(request)
        if request.body.get("tools") and self.next is not None and not self.next.done():
            self.next.set_result(time.perf_counter())


class Chat(Terminal):
    """The program in a terminal, with the moment at which a text is drawn."""

    _mark = b""
    _seen: asyncio.Future[float] | None = None

    def _read(self) -> None:
        before = len(self.written)
        super()._read()
        if self._seen is not None and not self._seen.done() and self._mark in self.written[max(before - 8, 0) :]:
            self._seen.set_result(time.perf_counter())

    async def echo(self, letter: str) -> float:
        """Return the milliseconds from a key to its letter."""
        self._mark, self._seen = letter.encode(), asyncio.get_running_loop().create_future()
        since = time.perf_counter()
        self.type(letter)
        async with asyncio.timeout(PATIENCE):
            return (await self._seen - since) * 1000

    async def ask(self, question: str, arrivals: Arrivals) -> float:
        """Return the milliseconds from the Enter key to the request at the model's server."""
        self.type(f"\x15\x1b[200~{question}\x1b[201~")
        await asyncio.sleep(0.5)
        arrivals.next = asyncio.get_running_loop().create_future()
        since = time.perf_counter()
        self.type("\r")
        async with asyncio.timeout(PATIENCE):
            return (await arrivals.next - since) * 1000

    def parser(self) -> psutil.Process | None:
        """Return the process that parses; None when the index has ended it."""
        found = (child for child in self.engine().children() if "ragforge_tui.code.worker" in child.cmdline())
        return next(found, None)


async def measure(
    chat: Chat, arrivals: Arrivals, graph: str, *, rounds: int, keys: int, turns: int
) -> dict[str, list[float]]:
    """Return milliseconds by what was measured and by state.

    Args:
        graph: What the status line shows once the graph is ready.
    """
    letters, questions = iter(LETTERS), itertools.cycle(QUESTIONS)
    chance = random.Random(1)
    await chat.wait_for(graph)
    await chat.echo(next(letters))
    for _ in range(3):
        await chat.ask(next(questions), arrivals)
        await asyncio.sleep(1.5)
    times: dict[str, list[float]] = {f"{what}_{state}": [] for what in ("key", "turn") for state in STATES}
    for _ in range(rounds):
        for state in STATES:
            parser = await _parser(chat, state)
            if parser is None:
                return times
            await asyncio.sleep(SETTLE_SECONDS)
            for letter in itertools.islice(letters, keys):
                times[f"key_{state}"].append(await chat.echo(letter))
                await asyncio.sleep(chance.uniform(*PAUSE))
            for question in itertools.islice(questions, turns):
                times[f"turn_{state}"].append(await chat.ask(question, arrivals))
                await asyncio.sleep(1.0)
            parser.resume()
    return times


async def _parser(chat: Chat, state: str) -> psutil.Process | None:
    """Return the process that parses once it works, stopped if that is the state to measure; None if it has ended."""
    before: float | None = None
    with suppress(psutil.NoSuchProcess, TimeoutError):
        async with asyncio.timeout(WORK_SECONDS):
            while True:
                if (parser := chat.parser()) is not None:
                    used = sum(parser.cpu_times()[:2])
                    if before is not None and used > before:
                        if state == "stopped":
                            parser.suspend()
                        return parser
                    before = used
                await asyncio.sleep(0.1)
    return None


def _environment(home: Path, address: str, graph: str, *, vectors: bool) -> dict[str, str]:
    config = home / "config.yaml"
    config.write_text(
        f"agent: {{memory: {{embeddings: {{enabled: {str(vectors).lower()}}}}}}}\n"
        "graph: {linger_seconds: 1, adopt: true}\nuser: {name: Ada}\n",
        encoding="utf-8",
    )
    environment = {
        **os.environ,
        "RAGFORGE_HOME": str(home),
        "RAGFORGE_CONFIG": str(config),
        "RAGFORGE_MODEL": "openai/scripted",
        "RAGFORGE_API_BASE": address,
        "RAGFORGE_API_KEY": "test",
        "COLORTERM": "truecolor",
        # The workspace may have modules that are named like those of the standard library.
        "PYTHONSAFEPATH": "1",
    }
    return environment if graph == "embedded" else {**environment, "NEO4J_URI": graph, "NEO4J_USERNAME": "neo4j"}


def _rows(times: dict[str, list[float]]) -> Iterator[tuple[str, float]]:
    for what in ("key", "turn"):
        for state in STATES:
            values = times[f"{what}_{state}"]
            yield f"{what}s_{state}", len(values)
            yield f"{what}_{state}_p50_ms", statistics.median(values)
            yield f"{what}_{state}_p95_ms", p95(values)
            yield f"{what}_{state}_max_ms", max(values)
        medians = [statistics.median(times[f"{what}_{state}"]) for state in STATES]
        yield f"{what}_ratio", medians[0] / medians[1]


async def main(arguments: argparse.Namespace) -> None:
    """Measure and print."""
    home, folder = copied(arguments.source)
    wanted, stolen = wanted_and_stolen()
    try:
        async with OpenAIServer() as server:
            server.requests = arrivals = Arrivals()
            environment = _environment(home, server.base_url, arguments.graph, vectors=arguments.vectors)
            graph = "bolt" if "://" in arguments.graph else "embedded"
            chat = Chat([], cwd=folder, env=environment)
            try:
                times = await measure(
                    chat, arrivals, graph, rounds=arguments.rounds, keys=arguments.keys, turns=arguments.turns
                )
            finally:
                with suppress(psutil.Error, AssertionError):
                    os.kill(chat.engine().pid, signal.SIGTERM)
                chat.close()
    finally:
        stop_server(paths_under(home))
        shutil.rmtree(home, ignore_errors=True)
    if min(map(len, times.values())) < 2:
        raise SystemExit("The index ended before anything was measured: FOLDER is too small.")
    figures = dict(_rows(times))
    asked = [request for request in arrivals if request.body.get("tools")]
    figures["with_code"] = sum(TITLES[CODE_SECTION].encode() in request.raw for request in asked) / len(asked)
    figures["load"] = os.getloadavg()[0]
    wanted, stolen = (after - before for after, before in zip(wanted_and_stolen(), (wanted, stolen), strict=True))
    figures["stolen_percent"] = 100 * stolen / max(wanted, 0.01)
    for name, value in figures.items():
        print(f"  {name:24} {value:12,.2f}")
    print("code_beside", *(f"{name}={value:.2f}" for name, value in figures.items()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", required=True)
    parser.add_argument("--graph", default="embedded", help="embedded, or the bolt:// address of a Neo4j")
    parser.add_argument("--vectors", action="store_true", help="make vectors with the local model too")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--keys", type=int, default=20, help="in each state of each round")
    parser.add_argument("--turns", type=int, default=4, help="in each state of each round")
    asyncio.run(main(parser.parse_args()))
