"""Moves texts in processes that are killed: ``python -m tests.support.moving files|graph STATEMENTS…``.

Reads target and folders as one line from standard input. For each number, and each further line, a forked process moves
texts and dies before that statement of its move, in whatever state files and graph are in then; its exit status is
printed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Literal, cast

import msgspec

from ragforge_tui.graph import Graph, GraphTarget, Store
from ragforge_tui.graph.store import contents
from ragforge_tui.settings.schema import Paths
from tests.support.sizes import DIMENSION, HEAP_MB, LINGER


async def move(target: GraphTarget, paths: Paths, to: Literal["files", "graph"], statements: int) -> None:
    """Move texts in small batches until the given statement."""
    contents._NODES_AT_ONCE = 3
    graph = await Graph.open(target, paths, heap_mb=HEAP_MB, linger_seconds=LINGER, embedding_dimension=DIMENSION)
    run, left = graph._run, iter(range(statements))

    async def counted(access: str, work: Callable[[Any], Awaitable[Any]], deadline: float) -> Any:
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return await run(access, work, deadline)

    graph._run = counted  # type: ignore[method-assign]
    await Store(graph).contents.move(to)
    await graph.close()


def main() -> None:
    """Fork a process for each number, when asked to."""
    target, paths = msgspec.json.decode(sys.stdin.buffer.readline(), type=tuple[GraphTarget, Paths])
    to = cast(Literal["files", "graph"], sys.argv[1])
    for statements in map(int, sys.argv[2:]):
        sys.stdin.buffer.readline()
        child = os.fork()
        if not child:
            asyncio.run(move(target, paths, to, statements))
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
