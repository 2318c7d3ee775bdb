"""Restores a backup in a process that is killed: ``python -m tests.support.restoring FILE BATCHES``.

Reads target and folders as one line from standard input; dies after so many batches of nodes and relationships.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec

from ragforge_tui.graph import Graph, GraphTarget
from ragforge_tui.graph.backup import restore
from ragforge_tui.settings.schema import Paths
from tests.support.sizes import DIMENSION, HEAP_MB, LINGER


async def restored(target: GraphTarget, paths: Paths, file: Path, batches: int) -> None:
    """Restore until so many batches are stored."""
    graph = await Graph.open(
        target, paths, heap_mb=HEAP_MB, linger_seconds=LINGER, embedding_dimension=DIMENSION, restoring=True
    )
    write, left = restore._Restoring._write, iter(range(batches))

    async def counted(run: restore._Restoring, statement: str, rows: list[Any]) -> int:
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return await write(run, statement, rows)

    with mock.patch.object(restore._Restoring, "_write", counted):
        await restore.restore(graph, file, replace=True, keep=file.with_name("kept"))
    await graph.close()


if __name__ == "__main__":
    asyncio.run(
        restored(
            *msgspec.json.decode(sys.stdin.buffer.readline(), type=tuple[GraphTarget, Paths]),
            Path(sys.argv[1]),
            int(sys.argv[2]),
        )
    )
