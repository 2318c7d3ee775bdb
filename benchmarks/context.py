"""What recall and a whole context cost as a conversation grows: ``python -m benchmarks.context [--graph neo4j]``.

Imports made-up conversations of 100, 1 000 and 10 000 turns, opens each with an engine as the chat does, waits until
its memory is loaded, and asks; last one of 100 turns beside that of 10 000, which other conversations are searched for
then: with words as frequent as in the texts (`beside`: about half of them stand in most turns), and with such as are
left of a real question without its small words (`telling`). The vector of a question is known beforehand and not
timed, nor is a model asked. The floor is one round trip of the bare driver in the same run. Memory is the engine's
resident set after each size.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import psutil

from benchmarks import synthetic
from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.graph import Store, stop_server
from ragforge_tui.settings.schema import (
    AgentSettings,
    EmbeddingSettings,
    GraphSettings,
    Loaded,
    MemorySettings,
    ModelSettings,
    Paths,
    Settings,
    SummarizationSettings,
)

if TYPE_CHECKING:
    from neo4j import AsyncManagedTransaction

SIZES = (100, 1_000, 10_000)
WARM_UP = 3


class MadeVectors:
    """An embedder whose vectors cost nothing: what is timed is memory, not the model."""

    name = "made-up"
    dimension = synthetic.DIMENSION

    def __init__(self, text: synthetic.Text) -> None:
        self._text = text

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """See `Embedder`."""
        return np.stack([self._text.vector() for _ in texts])


async def main(backend: str, questions: int) -> None:
    """Store, measure, print the table and the last line."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        loaded = loaded_in(Path(folder), backend)
        try:
            figures = await measure(loaded, questions)
        finally:
            if backend == "embedded":
                await asyncio.to_thread(stop_server, loaded.paths)
    largest, smallest = SIZES[-1], SIZES[0]
    for what in ("recall", "context"):
        figures[f"{what}_growth"] = figures[f"{what}_{largest}_p95_ms"] / figures[f"{what}_{smallest}_p95_ms"]
    print(f"context graph={backend} " + " ".join(f"{name}={value:.2f}" for name, value in figures.items()))


async def measure(loaded: Loaded, questions: int) -> dict[str, float]:
    """Percentiles by size."""
    text = synthetic.Text()
    figures: dict[str, float] = {}
    async with ConversationAgent(loaded) as agent:
        agent.services.memory.questions.model.embedder = MadeVectors(text)
        store = await agent.store()
        floor = await round_trips(store, questions)
        figures["round_trip_p50_ms"] = statistics.median(floor)
        print(f"{'turns':>8}{'ready s':>10}{'recall p50':>12}{'p95':>8}{'context p50':>13}{'p95':>8}{'MiB':>8}")
        stored: list[str] = []
        asked = questions + WARM_UP
        try:
            for name, size in [*((str(size), size) for size in SIZES), ("beside", SIZES[0])]:
                if name != "beside":
                    # The largest stays, to be found from beside it.
                    await forget(agent, stored)
                stored.append(
                    (
                        await store.transfer.import_(synthetic.conversation(size, text, loaded.workspace))
                    ).conversation.uuid
                )
                await one_size(agent, stored[-1], name, [text.message(8) for _ in range(asked)], figures)
            await one_size(agent, stored[-1], "telling", [text.question() for _ in range(asked)], figures)
        finally:
            await forget(agent, stored)
    return figures


async def forget(agent: ConversationAgent, stored: list[str]) -> None:
    """Delete what was stored, at once."""
    while stored:
        await agent.delete_conversation(stored.pop(), immediately=True)


async def one_size(
    agent: ConversationAgent,
    uuid: str,
    size: str,
    asked: Sequence[str],
    figures: dict[str, float],
) -> None:
    """Open, wait, ask; adds to the figures and prints a row."""
    since = time.perf_counter()
    conversation = await agent.load_conversation(uuid)
    conversation.memory.start()
    await conversation.memory.settle()
    if conversation.memory.behind:
        raise SystemExit(conversation.memory.behind)
    ready = time.perf_counter() - since
    recall = await timed_each(conversation.memory.recall.recall, asked)
    context = await timed_each(conversation.build_context, asked)
    resident = psutil.Process().memory_info().rss / 2**20
    row = []
    for name, times in (("recall", recall), ("context", context)):
        p50, p95 = statistics.median(times), statistics.quantiles(times, n=20)[-1]
        figures |= {f"{name}_{size}_p50_ms": p50, f"{name}_{size}_p95_ms": p95}
        row += [p50, p95]
    figures[f"ready_{size}_s"] = ready
    figures[f"rss_{size}_mib"] = resident
    print(f"{size:>8}{ready:>10.1f}{row[0]:>12.1f}{row[1]:>8.1f}{row[2]:>13.1f}{row[3]:>8.1f}{resident:>8.0f}")
    sys.stdout.flush()


async def timed_each(work: Callable[[str], Awaitable[object]], asked: Sequence[str]) -> list[float]:
    """Milliseconds of each question but the first few."""
    times: list[float] = []
    for question in asked:
        since = time.perf_counter()
        await work(question)
        times.append((time.perf_counter() - since) * 1000)
    return times[WARM_UP:]


async def round_trips(store: Store, count: int) -> list[float]:
    """Milliseconds of one read each."""

    async def work(tx: AsyncManagedTransaction) -> None:
        await (await tx.run("RETURN 1 AS one")).consume()

    async def one(_: str) -> None:
        await store.graph.read(work)

    return await timed_each(one, [""] * (count + WARM_UP))


def loaded_in(folder: Path, backend: str) -> Loaded:
    """Settings of the offline assistant on that backend, without summaries, all folders under one."""
    graph = GraphSettings()
    if backend == "neo4j":
        graph = GraphSettings(
            uri=os.environ["NEO4J_URI"],
            username=os.environ.get("NEO4J_USERNAME", "neo4j"),
            password=os.environ.get("NEO4J_PASSWORD", ""),
            database=os.environ.get("NEO4J_DATABASE", ""),
        )
    memory = MemorySettings(
        embeddings=EmbeddingSettings(dimension=synthetic.DIMENSION), summarization=SummarizationSettings(enabled=False)
    )
    workspace = folder / "workspace"
    workspace.mkdir()
    return Loaded(
        settings=Settings(graph=graph, model=ModelSettings(name="offline"), agent=AgentSettings(memory=memory)),
        paths=Paths(config=str(folder / "config"), data=str(folder / "data"), state=str(folder / "state")),
        workspace=str(workspace.resolve()),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What recall and a whole context cost as a conversation grows.")
    parser.add_argument("--graph", choices=("embedded", "neo4j"), default="embedded")
    parser.add_argument("--questions", type=int, default=60)
    arguments = parser.parse_args()
    if arguments.graph == "neo4j" and not os.environ.get("NEO4J_URI"):
        parser.error("--graph neo4j needs NEO4J_URI")
    asyncio.run(main(arguments.graph, max(20, arguments.questions)))
