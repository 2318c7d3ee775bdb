"""What storing a turn costs: ``python -m benchmarks.writes [--graph embedded|neo4j|both] [--turns N]``.

Stores turns as the engine does (the question, an answer begun, a tool call begun and ended, the answer finished) and
compares with a bare round trip of the driver in the same run. A conversation with its texts in the graph and one with
texts in files take turns, so that a busy machine slows both. The embedded graph is one in a folder of its own; a
Neo4j is named by NEO4J_URI, NEO4J_USERNAME, NEO4J_PASSWORD and NEO4J_DATABASE, and what was stored there is purged at
the end. Both are measured by default when NEO4J_URI is set.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec

from ragforge_tui.graph import Graph, GraphTarget, Store, stop_server, writer_id
from ragforge_tui.settings.schema import Paths
from ragforge_tui.shared.records import Conversation, FileAccess, Message, ToolCall, ToolResult, now

CONTENTS: tuple[Literal["graph", "hybrid"], ...] = ("graph", "hybrid")
WARM_UP = 20
ROUND_TRIPS = 200


async def main(backend: str, turns: int) -> None:
    """Measure, print the table and the last line."""
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        paths = Paths(config=f"{folder}/config", data=f"{folder}/data", state=f"{folder}/state")
        if backend != "neo4j":
            target = GraphTarget(embedded=True, chosen_by="benchmark")
            figures |= await measure("embedded", target, paths, turns)
            await asyncio.to_thread(stop_server, paths)
        if backend != "embedded":
            target = GraphTarget(
                uri=os.environ["NEO4J_URI"],
                username=os.environ.get("NEO4J_USERNAME", "neo4j"),
                password=os.environ.get("NEO4J_PASSWORD", ""),
                database=os.environ.get("NEO4J_DATABASE", ""),
                chosen_by="benchmark",
            )
            figures |= await measure("neo4j", target, paths, turns)
    print("writes " + " ".join(f"{key}={value:.2f}" for key, value in figures.items()))


async def measure(name: str, target: GraphTarget, paths: Paths, turns: int) -> dict[str, float]:
    """Figures of one backend, printed as a table too."""
    graphs = [await Graph.open(target, paths, contents=contents) for contents in CONTENTS]
    stores = [Store(graph) for graph in graphs]
    moment = now()
    talks = [Conversation(uuid=str(uuid.uuid4()), created_at=moment, updated_at=moment, private=True) for _ in CONTENTS]
    messages: list[list[float]] = [[] for _ in CONTENTS]
    whole: list[list[float]] = [[] for _ in CONTENTS]
    try:
        for store, talk in zip(stores, talks, strict=True):
            await store.conversations.create(talk)
            await timed(WARM_UP, lambda store=store, talk=talk: one_turn(store, talk.uuid))  # type: ignore[misc]
        trips = await timed(ROUND_TRIPS, lambda: graphs[0].write(ping))
        for _ in range(turns):
            for n, (store, talk) in enumerate(zip(stores, talks, strict=True)):
                messages[n] += await timed(1, lambda: store.messages.begin_turn(user_message(talk.uuid)))  # noqa: B023
                whole[n] += await timed(1, lambda: one_turn(store, talk.uuid))  # noqa: B023
    finally:
        for store, talk in zip(stores, talks, strict=True):
            await store.purges.purge(talk.uuid)
            await store.graph.close()
    print(f"{name:<28}{'p50 ms':>10}{'p95 ms':>10}")
    show("bare round trip", trips)
    figures = {f"{name}_bare_p50_ms": quantile(trips, 50)}
    for n, contents in enumerate(CONTENTS):
        show(f"user's message, {contents}", messages[n])
        show(f"whole turn, {contents}", whole[n])
        figures |= {
            f"{name}_{contents}_message_p50_ms": quantile(messages[n], 50),
            f"{name}_{contents}_turn_p50_ms": quantile(whole[n], 50),
            f"{name}_{contents}_turn_p95_ms": quantile(whole[n], 95),
            f"{name}_{contents}_turns_per_s": 1000 * turns / sum(whole[n]),
        }
    return figures


def show(label: str, times: list[float]) -> None:
    """Print a row of the table."""
    print(f"  {label:<26}{quantile(times, 50):>10.2f}{quantile(times, 95):>10.2f}")


async def timed(count: int, work: Callable[[], Awaitable[Any]]) -> list[float]:
    """Milliseconds of each of `count` runs."""
    times = []
    for _ in range(count):
        start = time.perf_counter()
        await work()
        times.append((time.perf_counter() - start) * 1000)
    return times


async def ping(tx: Any) -> None:
    """The least a transaction can do."""
    await (await tx.run("RETURN 1")).consume()


def user_message(conversation_id: str) -> Message:
    """A question of ordinary length."""
    return Message(
        uuid=str(uuid.uuid4()),
        conversation_id=conversation_id,
        role="user",
        content="What does the parser do with an empty line? " * 4,
        timestamp=now(),
    )


async def one_turn(store: Store, conversation_id: str) -> None:
    """A turn with one tool call, stored as it happens."""
    asked = await store.messages.begin_turn(user_message(conversation_id))
    answer = Message(
        uuid=str(uuid.uuid4()),
        conversation_id=conversation_id,
        turn_index=asked.turn_index,
        role="assistant",
        state="streaming",
        writer=writer_id(),
        timestamp=now(),
    )
    await store.messages.add(answer, asked.uuid)
    call = ToolCall(
        uuid=str(uuid.uuid4()), message_id=answer.uuid, tool_name="read_file", arguments="{}", timestamp=now()
    )
    await store.tool_calls.start(call, conversation_id)
    result = ToolResult(
        uuid=str(uuid.uuid4()),
        tool_call_id=call.uuid,
        success=True,
        result=msgspec.json.encode({"text": "line of a file\n" * 100}).decode(),
        timestamp=now(),
    )
    files = [FileAccess(path="src/parser.py", access="read")]
    done = msgspec.structs.replace(call, success=True, duration_ms=2, result=result, files=files)
    await store.tool_calls.finish(done, "/benchmark")
    done_answer = msgspec.structs.replace(answer, content="It skips it. " * 40, state="complete")
    await store.messages.finish(done_answer, asked.uuid)


def quantile(times: list[float], percent: int) -> float:
    """A percentile of the times."""
    return statistics.quantiles(times, n=100, method="inclusive")[percent - 1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What storing a turn costs.")
    named = bool(os.environ.get("NEO4J_URI"))
    parser.add_argument("--graph", choices=("embedded", "neo4j", "both"), default="both" if named else "embedded")
    parser.add_argument("--turns", type=int, default=200)
    arguments = parser.parse_args()
    if arguments.graph != "embedded" and not named:
        parser.error(f"--graph {arguments.graph} needs NEO4J_URI")
    asyncio.run(main(arguments.graph, arguments.turns))
