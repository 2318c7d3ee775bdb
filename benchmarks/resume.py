"""How long opening a stored conversation takes: ``python -m benchmarks.resume [--graph G] [--contents C]``.

Stores conversations of 10, 1 000 and 10 000 turns, then opens each with a fresh engine while the graph is up, from the
engine's making to its answer (`first`), and once more with the same engine, which leaves only the reading (`again`).
Ten turns are less than the page that is read at opening, so the largest is also compared with 1 000. The embedded
graph is one of its own in a temporary home; `--graph neo4j` takes NEO4J_URI, NEO4J_USERNAME, NEO4J_PASSWORD and
NEO4J_DATABASE, and what was stored there is purged at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Literal

from ragforge_tui.engine import connect_in_process
from ragforge_tui.graph import Graph, Store, resolve_target, stop_server
from ragforge_tui.settings.schema import (
    AgentSettings,
    GraphSettings,
    Loaded,
    MemorySettings,
    ModelSettings,
    Paths,
    PersistenceSettings,
    Settings,
)
from ragforge_tui.shared.export_records import ConversationExport
from ragforge_tui.shared.records import Conversation, FileAccess, Message, Role, ToolCall, ToolResult, Turn, now
from ragforge_tui.shared.requests.turns import OpenConversation

SIZES = (10, 1_000, 10_000)
QUESTION = "What does the parser do with an empty line? " * 4
ANSWER = "It **skips** it:\n\n- the reader strips the line\n- an empty one is not handed on\n\n" * 6


async def main(backend: str, runs: int, contents: Literal["graph", "hybrid"]) -> None:
    """Store, measure, print the table and the last line."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        loaded = loaded_in(Path(folder), backend, contents)
        try:
            times = await measure(loaded, runs)
        finally:
            if backend == "embedded":
                await asyncio.to_thread(stop_server, loaded.paths)
    print(f"{backend:<14}{'first ms':>12}{'again ms':>12}")
    figures: dict[str, float] = {}
    for size in SIZES:
        first, again = (statistics.median(pair[place] for pair in times[size]) for place in (0, 1))
        print(f"{size:>8} turns{first:>12.1f}{again:>12.1f}")
        figures |= {f"first_{size}_ms": first, f"again_{size}_ms": again}
    large = SIZES[-1]
    ratios = ""
    for size in SIZES[:-1]:
        first, again = (figures[f"{kind}_{large}_ms"] / figures[f"{kind}_{size}_ms"] for kind in ("first", "again"))
        print(f"{large:>6} : {size:<6}{first:>11.2f}{again:>12.2f}")
        ratios += f" ratio_to_{size}={first:.2f} again_ratio_to_{size}={again:.2f}"
    rest = " ".join(f"{key}={value:.1f}" for key, value in figures.items())
    print(f"resume graph={backend} contents={contents} runs={runs}{ratios} {rest}")


async def measure(loaded: Loaded, runs: int) -> dict[int, list[tuple[float, float]]]:
    """Milliseconds of each opening, by size; the sizes take turns, so that a busy machine slows all."""
    target = resolve_target(loaded.settings.graph, loaded.origins)
    kept = loaded.settings.agent.memory.persistence.type
    graph = await Graph.open(target, loaded.paths, contents=kept)
    store = Store(graph)
    stored = {size: conversation_of(size, loaded.workspace) for size in SIZES}
    try:
        for size, export in stored.items():
            since = time.perf_counter()
            await store.transfer.import_(export)
            print(f"stored {size} turns in {time.perf_counter() - since:.1f} s", file=sys.stderr)
        await opened(loaded, stored[SIZES[0]].conversation.uuid)  # The engine's imports.
        times: dict[int, list[tuple[float, float]]] = {size: [] for size in SIZES}
        for _ in range(runs):
            for size, export in stored.items():
                times[size].append(await opened(loaded, export.conversation.uuid))
        return times
    finally:
        if not graph.embedded:
            for export in stored.values():
                await store.purges.purge(export.conversation.uuid)
        await graph.close()


async def opened(loaded: Loaded, conversation_id: str) -> tuple[float, float]:
    """Milliseconds until a fresh engine has opened the conversation, and until the same one has again."""
    since = time.perf_counter()
    engine = await connect_in_process(loaded)
    try:
        await engine.request(OpenConversation(ref=conversation_id))
        first = time.perf_counter()
        view = await engine.request(OpenConversation(ref=conversation_id))
        again = time.perf_counter()
    finally:
        await engine.close()
    if not view.page.turns:
        raise RuntimeError(f"conversation {conversation_id} came back empty")
    return (first - since) * 1000, (again - first) * 1000


def loaded_in(folder: Path, backend: str, contents: Literal["graph", "hybrid"]) -> Loaded:
    """Settings of the offline assistant on that backend, all folders under one."""
    graph = GraphSettings()
    if backend == "neo4j":
        graph = GraphSettings(
            uri=os.environ["NEO4J_URI"],
            username=os.environ.get("NEO4J_USERNAME", "neo4j"),
            password=os.environ.get("NEO4J_PASSWORD", ""),
            database=os.environ.get("NEO4J_DATABASE", ""),
        )
    workspace = folder / "workspace"
    workspace.mkdir()
    return Loaded(
        settings=Settings(
            graph=graph,
            model=ModelSettings(name="offline"),
            agent=AgentSettings(memory=MemorySettings(persistence=PersistenceSettings(type=contents))),
        ),
        paths=Paths(config=str(folder / "config"), data=str(folder / "data"), state=str(folder / "state")),
        workspace=str(workspace.resolve()),
    )


def conversation_of(turns: int, workspace: str) -> ConversationExport:
    """A conversation of that many turns: a question, a tool call, an answer."""
    moment = now()
    told = Conversation(
        uuid=str(uuid.uuid4()),
        title=f"{turns} turns",
        created_at=moment,
        updated_at=moment,
        message_count=2 * turns,
        total_chars=turns * (len(QUESTION) + len(ANSWER)),
        next_turn=turns + 1,
        workspace=workspace,
    )
    return ConversationExport(conversation=told, turns=[turn_of(told.uuid, index) for index in range(1, turns + 1)])


def turn_of(conversation_id: str, index: int) -> Turn:
    """One turn as it is stored."""
    asked = message(conversation_id, index, 0, "user", f"{index}. {QUESTION}")
    answer = message(conversation_id, index, 1, "assistant", f"{index}. {ANSWER}")
    call_id = str(uuid.uuid4())
    result = ToolResult(
        uuid=str(uuid.uuid4()),
        tool_call_id=call_id,
        success=True,
        result='{"text": "' + "line of a file " * 40 + '"}',
        timestamp=asked.timestamp,
    )
    answer.tool_calls = [
        ToolCall(
            uuid=call_id,
            message_id=answer.uuid,
            tool_name="read_file",
            arguments='{"path": "src/parser.py"}',
            timestamp=asked.timestamp,
            duration_ms=2,
            success=True,
            result=result,
            files=[FileAccess(path="src/parser.py", access="read")],
        )
    ]
    return Turn(turn_index=index, messages=[asked, answer])


def message(conversation_id: str, index: int, position: int, role: Role, text: str) -> Message:
    """A whole message."""
    return Message(
        uuid=str(uuid.uuid4()),
        conversation_id=conversation_id,
        turn_index=index,
        position=position,
        role=role,
        content=text,
        char_count=len(text),
        timestamp=now(),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="How long opening a stored conversation takes.")
    parser.add_argument("--graph", choices=("embedded", "neo4j"), default="embedded")
    parser.add_argument("--contents", choices=("graph", "hybrid"), default="graph")
    parser.add_argument("--runs", type=int, default=7)
    arguments = parser.parse_args()
    if arguments.graph == "neo4j" and not os.environ.get("NEO4J_URI"):
        parser.error("--graph neo4j needs NEO4J_URI")
    asyncio.run(main(arguments.graph, max(5, arguments.runs), arguments.contents))
