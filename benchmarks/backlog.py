"""What a message costs while the memory of an import is still being made: ``python -m benchmarks.backlog``.

Imports a made-up conversation, opens it as the chat does, with the local embedding model, and sends messages from then
on. Timed is from the message to the request; a message that a turn of the conversation answers should recall that turn.
Printed are what was recalled, the processor time until all keys and vectors are made (of this process: the graph's
server has its own), and the time until it was so.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks import synthetic
from benchmarks.context import loaded_in
from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.conversation.conversation import Conversation
from ragforge_tui.graph import Store, stop_server
from ragforge_tui.llm.functions import FunctionModel
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.errors import GraphUnavailableError

WORDS_ASKED = 6
PAUSE = 0.5
"""Seconds between two messages."""


class Requests:
    """A model that answers at once and notes when it was asked, and the processor time of the process until then."""

    def __init__(self) -> None:
        self.at = self.processor = 0.0

    def answer(self, messages: list[dict[str, object]]) -> str:
        """Note the times."""
        self.at, self.processor = time.perf_counter(), time.process_time()
        return "Noted."


async def main(backend: str, turns: int, messages: int) -> None:
    """Import, send, wait for the vectors, print the last line."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        loaded = loaded_in(Path(folder), backend)
        try:
            figures = await measure(loaded, turns, messages)
        finally:
            if backend == "embedded":
                await asyncio.to_thread(stop_server, loaded.paths)
    values = " ".join(f"{name}={value:.1f}" for name, value in figures.items())
    print(f"backlog graph={backend} turns={turns} {values} load={os.getloadavg()[0]:.1f}")


async def measure(loaded: Loaded, turns: int, messages: int) -> dict[str, float]:
    """Milliseconds of each message, share of them with something recalled, seconds of processor until all is made."""
    requests = Requests()
    export = synthetic.conversation(turns, synthetic.Text(), loaded.workspace)
    async with ConversationAgent(loaded, model=FunctionModel(requests.answer)) as agent:
        store = await ready_store(agent)
        uuid = (await store.transfer.import_(export)).conversation.uuid
        try:
            since, processor = time.perf_counter(), time.process_time()
            conversation = await agent.load_conversation(uuid)
            conversation.prepare()
            times: list[float] = []
            busy: list[float] = []
            found = 0
            for number in range(messages):
                # Of the older half, which no request holds anyway.
                source = export.turns[(number * 37 + turns // 4) % (turns // 2)].messages[1].content.split()
                began, used = time.perf_counter(), time.process_time()
                recalled = await sent(conversation, " ".join(source[: 4 * WORDS_ASKED : 4]))
                times.append((requests.at - began) * 1000)
                busy.append((requests.processor - used) * 1000)
                found += recalled
                turns_read = conversation.memory.recall.index.turns
                print(f"{number:>4}{times[-1]:>10.0f} ms, {busy[-1]:.0f} of processor, {turns_read} turns, {recalled}")
                await asyncio.sleep(PAUSE)
            await conversation.memory.settle()
            made, _ = conversation.memory.recall.progress()
            figures = {
                "p50_ms": statistics.median(times),
                "p95_ms": statistics.quantiles(times, n=20)[-1],
                "first_ms": times[0],
                "message_processor_p50_ms": statistics.median(busy),
                "recalled_percent": 100 * found / messages,
                "vectors": float(made),
                "processor_s": time.process_time() - processor,
                "ready_s": time.perf_counter() - since,
            }
        finally:
            await agent.delete_conversation(uuid, immediately=True)
    return figures


async def ready_store(agent: ConversationAgent) -> Store:
    """Return the store; on a busy machine the server takes longer to start than a chat would wait."""
    while True:
        try:
            return await agent.store()
        except GraphUnavailableError:
            await asyncio.sleep(PAUSE)


async def sent(conversation: Conversation, text: str) -> bool:
    """Send a message and return whether it recalled anything."""
    context = (await conversation.send_message(text)).context_used
    return context is not None and any(section.name == "recalled" for section in context.sections)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What a message costs while the memory of an import is being made.")
    parser.add_argument("--graph", choices=("embedded", "neo4j"), default="embedded")
    parser.add_argument("--turns", type=int, default=5_000)
    parser.add_argument("--messages", type=int, default=20)
    arguments = parser.parse_args()
    if arguments.graph == "neo4j" and not os.environ.get("NEO4J_URI"):
        parser.error("--graph neo4j needs NEO4J_URI")
    asyncio.run(main(arguments.graph, arguments.turns, arguments.messages))
