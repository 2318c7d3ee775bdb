"""Fuzzy matching of file names, for search_files and for completing @names while the user types.

Fast on a hundred thousand files: the list of a workspace comes from git if there is a repository, is cached and is
refreshed in the background; matching runs in a thread.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from ragforge_tui.shared import git
from ragforge_tui.tools.search.ignore import IgnoreRules
from ragforge_tui.tools.search.path_index import PathIndex

log = logging.getLogger(__name__)

_FRESH_SECONDS = 3.0
_SHARE = 20
_MOST_FILES = 500_000
_GIT_TIMEOUT = 20.0
_FILES_FIRST = 6
_FOLDERS_SHOWN = 8
_FOLDERS_NAMED = 2


async def match_files(
    workspace: Path | str, query: str, ignore: Sequence[str], limit: int, *, folders: bool = False
) -> list[str]:
    """Return files of a workspace whose path matches a query, best first; for an empty query those nearest to its root.

    The first call lists the workspace. Later calls use that list at once, while a stale list is refreshed in the
    background. A limit of 0 only warms up the list.

    Args:
        folders: Return folders that contain files too, with a trailing slash; ``src/`` returns that folder's contents.
    """
    return await asyncio.to_thread(_match, Path(workspace), query, tuple(ignore), limit, folders)


def best_matches(paths: Iterable[str], query: str, limit: int) -> list[str]:
    """Return the best paths for a query, in the order of `PathIndex.best`."""
    return PathIndex(paths).best(query, limit)


class _Files:
    """Cached list of the files of one workspace."""

    def __init__(self, workspace: Path, ignore: tuple[str, ...]) -> None:
        self._workspace = workspace
        self._ignore = ignore
        self._building = threading.Lock()
        self._index: PathIndex | None = None
        self.folders = PathIndex(())
        self._stale_at = 0.0

    def index(self) -> PathIndex:
        """Return the cached list, possibly stale; built now if there is none yet."""
        index = self._index
        if index is None:
            # Keys typed while the first list is being built wait for it instead of building their own.
            with self._building:
                return self._index or self._build()
        if time.monotonic() > self._stale_at and self._building.acquire(blocking=False):
            threading.Thread(target=self._refresh, name="file list", daemon=True).start()
        return index

    def _refresh(self) -> None:
        try:
            self._build()
        except Exception:
            log.exception("files of %s not listed", self._workspace)
        finally:
            self._building.release()

    def _build(self) -> PathIndex:
        started = time.monotonic()
        paths = list_files(self._workspace, self._ignore)
        self.folders = PathIndex(_folders_of(paths))
        self._index = index = PathIndex(paths)
        # A slow listing is repeated less often, so that it takes at most one part in `_SHARE` of the time.
        now = time.monotonic()
        self._stale_at = now + max(_FRESH_SECONDS, _SHARE * (now - started))
        return index


_lists: dict[tuple[str, tuple[str, ...]], _Files] = {}
_lists_lock = threading.Lock()


def _match(workspace: Path, query: str, ignore: tuple[str, ...], limit: int, folders: bool) -> list[str]:
    with _lists_lock:
        key = (str(workspace), ignore)
        if key not in _lists and len(_lists) >= 8:
            _lists.clear()
        files = _lists.setdefault(key, _Files(workspace, ignore))
    index = files.index()
    if not limit:
        return []
    # Ask for some more, because some may have been deleted since they were listed.
    most = limit + 20
    matches = _with_folders(index, files.folders, query, most) if folders else index.best(query, most)
    return [path for path in matches if os.path.lexists(workspace / path)][:limit]


def _folders_of(paths: Iterable[str]) -> set[str]:
    """Return every folder that contains one of the paths, at any depth."""
    folders: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return folders


def _with_folders(files: PathIndex, folders: PathIndex, query: str, most: int) -> list[str]:
    """Return files and folders for a query.

    A folder precedes the files only if the query names it or lies in it.
    """
    matches = files.best(query, most)
    head, slash, rest = query.rpartition("/")
    if slash and head in folders:
        subfolders = [f"{path}/" for path in folders.within(f"{head}/", rest, _FOLDERS_SHOWN)]
        folder_itself = [f"{head}/"] if not rest else []
        children = [*files.within(f"{head}/", rest, most), *subfolders]
        # Users mostly type the start of a name: a folder that starts with the query ranks before a file that merely
        # contains it.
        children.sort(key=lambda path: not path[len(head) + 1 :].lower().startswith(rest.lower()))
        matches = [*folder_itself, *children, *matches]
    else:
        candidates = folders.best(query, 2 * _FOLDERS_SHOWN)
        exact = [path for path in candidates if path.rpartition("/")[2].lower() == query.lower()][:_FOLDERS_NAMED]
        others = [path for path in candidates if path not in exact][:_FOLDERS_SHOWN]
        matches = [
            *(f"{path}/" for path in exact),
            *matches[:_FILES_FIRST],
            *(f"{path}/" for path in others),
            *matches[_FILES_FIRST:],
        ]
    return list(dict.fromkeys(matches))[:most]


def list_files(workspace: Path, ignore: Sequence[str]) -> list[str]:
    """Return all files below a folder that are not ignored and whose names are printable text."""
    rules = IgnoreRules(workspace, ignore)
    listed = git.list_files(workspace, most=_MOST_FILES, timeout=_GIT_TIMEOUT)
    if listed is None:
        walked = rules.walk(most=_MOST_FILES)
        listed = [entry.path for entry in walked if not entry.is_folder]
    elif ignore:
        listed = [path for path in listed if not rules.ignored_by_person(path, is_folder=False)]
    return [path for path in listed if path.isprintable()]
