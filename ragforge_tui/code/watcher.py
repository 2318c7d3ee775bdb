"""Changes of a workspace's files while the chat runs.

Only folders with files that may be indexed are watched, each by itself: a recursive watch would take in dependencies
and exhaust the system's limit. A change that cannot be attributed to single files is reported as one of everything.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from pathlib import Path

from watchfiles import Change, awatch

from ragforge_tui.code.limits import INDEXING

MOST_PATHS = 100
"""More changes at once, such as those of a checkout, are looked at as a change of everything."""
_RULE_FILES = (".gitignore", "exclude")


class Watcher:
    """Watcher of folders below a workspace, until `close`.

    Attributes:
        folders: The folders watched, relative to the workspace.
    """

    def __init__(self, workspace: str, folders: Sequence[str]) -> None:
        self._root = Path(workspace)
        self.folders = list(folders)
        self._stop = asyncio.Event()

    async def changes(self) -> AsyncIterator[Collection[str] | None]:
        """Yield relative paths that changed, or None for a change of everything, also right after the start.

        Raises:
            OSError: The folders cannot be watched.
        """
        # Folders that vanished since they were listed cannot be watched; the first look notices that.
        folders = await asyncio.to_thread(self._existing)
        watched = awatch(
            *folders,
            watch_filter=None,
            debounce=int(INDEXING.changes * 1000),
            step=int(INDEXING.pause * 1000),
            stop_event=self._stop,
            recursive=False,
            # Without this, the stream would wait in a thread that cannot be cancelled.
            rust_timeout=500,
            yield_on_timeout=True,
            ignore_permission_denied=True,
        )
        told = False
        try:
            async for found in watched:
                if not told:
                    # What changed between the last look and the start of the watch was not seen.
                    told = True
                    yield None
                elif found:
                    yield self._paths(found)
        except RuntimeError as error:
            raise OSError(f"the workspace cannot be watched: {error}") from error

    def _existing(self) -> list[Path]:
        return [folder for name in self.folders if (folder := self._root / name).is_dir()]

    async def close(self) -> None:
        self._stop.set()

    def _paths(self, found: set[tuple[Change, str]]) -> Collection[str] | None:
        paths: set[str] = set()
        for change, name in found:
            path = Path(name)
            try:
                relative = path.relative_to(self._root).as_posix()
            except ValueError:
                return None
            if path.name in _RULE_FILES or (change != Change.deleted and path.is_dir()):
                return None
            paths.add(relative)
        return paths if len(paths) <= MOST_PATHS else None
