"""The heap of the embedded server: what the settings say, and more for a large graph where memory allows."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psutil

from ragforge_tui.graph.embedded.files import ServerFiles

HEAP_STEP = 512 * 2**20
"""The heap may grow by `heap_mb` for each so many bytes of data (some 25 000 turns). Building their vector index takes
130 MB; a server with less cannot answer a search by meaning."""
CONTAINER_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Of the cgroup that a container sees as its root, in both versions."""


def heap_for(files: ServerFiles, heap_mb: int) -> int:
    """Return the largest heap for the data that is there, in MiB.

    Never less than `heap_mb`, and else at most a quarter of the memory that this process may use.
    """
    most = min([psutil.virtual_memory().total, *_container_limits()]) // 4 // 2**20
    return max(heap_mb, min(heap_mb * (1 + files.size() // HEAP_STEP), most))


def _container_limits() -> list[int]:
    """Return the limits of the container's memory in bytes."""
    limits: list[int] = []
    for path in CONTAINER_LIMITS:
        with suppress(OSError, ValueError):
            limits.append(int(path.read_text("ascii")))  # "max" is no limit.
    return limits
