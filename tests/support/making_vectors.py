"""Process that makes a conversation's vectors, prints a line after 128 and then waits to be killed.

Its input is a line of JSON: the graph's target, the folders, the conversation's id.
"""

from __future__ import annotations

import asyncio
import sys

import msgspec

from ragforge_tui.graph import Graph, GraphTarget, Store
from ragforge_tui.settings.schema import Paths
from tests.support.fake_embedder import FakeEmbedder
from tests.support.recall_conversations import ready, recall_of
from tests.support.sizes import DIMENSION


async def main(given: str) -> None:
    """Make vectors until the embedder answers no more."""
    target, paths, uuid = msgspec.json.decode(given, type=tuple[GraphTarget, Paths, str])
    store = Store(await Graph.open(target, paths, embedding_dimension=DIMENSION))
    embedder = FakeEmbedder()
    embedder.stuck_after = 128
    recall = recall_of(store, await store.conversations.get(uuid), embedder)
    making = asyncio.create_task(ready(recall))
    while recall.progress()[0] < 128:
        await asyncio.sleep(0.01)
    print("stuck", flush=True)
    await making


if __name__ == "__main__":
    asyncio.run(main(sys.stdin.readline()))
