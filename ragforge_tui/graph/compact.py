"""Making a graph smaller: indexes without deleted words, no code of folders that are gone, files without unused texts.

What the user forgot is removed too.

The embedded server keeps the words of deleted texts in its index files, and its log until it ends. So its indexes are
built again, which needs it alone; the caller then stops it. A Neo4j looks after its own files.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from ragforge_tui.graph.connection import Graph
from ragforge_tui.graph.repositories import Store


class Compacted(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of compacting.

    Attributes:
        indexes_dropped: Workspaces whose code index was removed, because the folder is gone.
        contents_before: Bytes of the files with texts on this machine.
        rebuilt: Whether the indexes of the embedded graph were built again.
        forgotten: Findings that were removed with their texts, because the user forgot them.
        in_use: Whether other processes use the graph or the files, so that part of the work was left.
    """

    indexes_dropped: list[str]
    forgotten: int
    contents_before: int
    contents_after: int
    rebuilt: bool
    in_use: bool


async def compact(graph: Graph) -> Compacted:
    """Remove what a graph and its files do not need."""
    store = Store(graph)
    gone = [
        index.workspace for index in await store.code.totals() if await asyncio.to_thread(_is_gone, index.workspace)
    ]
    for workspace in gone:
        await store.code.forget(workspace)
    forgotten = await store.memory_acts.purge()
    before = await graph.contents.size()
    in_use = await graph.used_by_others()
    compacted = not in_use and await store.contents.compact()
    rebuilt = graph.embedded and not in_use
    if rebuilt:
        await graph.server_sql("REBUILD INDEX *")
    return Compacted(
        indexes_dropped=gone,
        forgotten=forgotten,
        contents_before=before,
        contents_after=await graph.contents.size(),
        rebuilt=rebuilt,
        in_use=in_use or not compacted,
    )


def _is_gone(workspace: str) -> bool:
    """Return whether a folder was removed, and is not on a disk that is not mounted or on another machine."""
    folder = Path(workspace)
    try:
        return not folder.exists() and folder.parent != folder and any(folder.parent.iterdir())
    except OSError:
        return False
