"""The AOT cache (JEP 514) of the embedded server's classes, made once per checkout by using a server as the tests do.

It halves the processor time of a start, of which a test run has some sixty.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from unittest import mock

from ragforge_tui.graph import Graph, GraphTarget, Store, stop_server
from ragforge_tui.graph.embedded import attach
from ragforge_tui.settings.schema import Paths
from ragforge_tui.shared.files import locked
from tests.support.light_server import CACHE, light_servers
from tests.support.records import conversation, one_turn
from tests.support.sizes import DIMENSION, HEAP_MB, paths_under

STOP_TIMEOUT = 60.0


def ensure_server_cache() -> None:
    """Make the cache when it is missing; the workers of one run ask at the same time."""
    CACHE.parent.mkdir(exist_ok=True)
    with locked(CACHE.with_suffix(".lock")):
        if not CACHE.exists():
            _make()


def _make() -> None:
    partial = CACHE.with_suffix(".partial")
    with (
        tempfile.TemporaryDirectory() as home,
        light_servers(f"-XX:AOTCacheOutput={partial}"),
        mock.patch.object(attach, "STOP_TIMEOUT", STOP_TIMEOUT),
    ):
        paths = paths_under(Path(home))
        asyncio.run(_use(paths))
        stop_server(paths)
    if partial.exists() and partial.stat().st_size:  # else the machine was too busy: the next run makes it
        partial.rename(CACHE)


async def _use(paths: Paths) -> None:
    target = GraphTarget(embedded=True)
    graph = await Graph.open(target, paths, heap_mb=HEAP_MB, linger_seconds=60, embedding_dimension=DIMENSION)
    try:
        store = Store(graph)
        c = await store.conversations.create(conversation())
        await one_turn(store, c.uuid, "a question")
        await store.turns.between(c.uuid, start=1, end=2)
        await store.search.turns("question")
        await store.conversations.purge(c.uuid)
    finally:
        await graph.close()
