"""Fuzzy matching of file names, and the files of a workspace for completing @names while the person types.

Used by search_files and by the engine. Quick on a hundred thousand files: the list comes from git where there is a
repository and is kept and renewed beside the keys; matching runs in a thread.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from ragforge_tui import git
from ragforge_tui.tools.ignore import IgnoreRules
from ragforge_tui.tools.path_index import PathIndex

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
    """Files of a workspace whose path is like a query, best first; with an empty query those nearest to its root.

    The first call lists the workspace; later ones are answered from that list at once, while a list that has become
    old is made anew beside them. A limit of 0 only has the list made.

    Args:
        folders: Folders that hold files are found too, with a slash at their end; ``src/`` gives what is in it.
    """
    return await asyncio.to_thread(_match, Path(workspace), query, tuple(ignore), limit, folders)


def best_matches(paths: Iterable[str], query: str, limit: int) -> list[str]:
    """The best paths for a query, as `PathIndex.best` orders them."""
    return PathIndex(paths).best(query, limit)


class _Files:
    """The files of one workspace."""

    def __init__(self, workspace: Path, ignore: tuple[str, ...]) -> None:
        self._workspace = workspace
        self._ignore = ignore
        self._making = threading.Lock()
        self._index: PathIndex | None = None
        self.folders = PathIndex(())
        self._old_at = 0.0

    def index(self) -> PathIndex:
        """The list as it is known; made now when there is none yet."""
        index = self._index
        if index is None:
            # Keys that come while the first list is made wait for it instead of making their own.
            with self._making:
                return self._index or self._make()
        if time.monotonic() > self._old_at and self._making.acquire(blocking=False):
            threading.Thread(target=self._renew, name="file list", daemon=True).start()
        return index

    def _renew(self) -> None:
        try:
            self._make()
        except Exception:
            log.exception("files of %s not listed", self._workspace)
        finally:
            self._making.release()

    def _make(self) -> PathIndex:
        began = time.monotonic()
        paths = list_files(self._workspace, self._ignore)
        self.folders = PathIndex(_folders_of(paths))
        self._index = index = PathIndex(paths)
        # Where listing is slow it is done more rarely, so that it never takes more than a small share of the time.
        now = time.monotonic()
        self._old_at = now + max(_FRESH_SECONDS, _SHARE * (now - began))
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
    # Some more than wanted: some may have been deleted since they were listed.
    most = limit + 20
    found = _with_folders(index, files.folders, query, most) if folders else index.best(query, most)
    return [path for path in found if os.path.lexists(workspace / path)][:limit]


def _folders_of(paths: Iterable[str]) -> set[str]:
    """Every folder that holds one of these, however far below."""
    found: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


def _with_folders(files: PathIndex, folders: PathIndex, query: str, most: int) -> list[str]:
    """Files and folders for a query. A folder comes before files only when it is named, or stood in."""
    found = files.best(query, most)
    head, slash, rest = query.rpartition("/")
    if slash and head in folders:
        inner = [f"{path}/" for path in folders.within(f"{head}/", rest, _FOLDERS_SHOWN)]
        itself = [f"{head}/"] if not rest else []
        beside = [*files.within(f"{head}/", rest, most), *inner]
        # What is typed is mostly the beginning of a name: a folder that begins so is meant before a file with that
        # letter somewhere.
        beside.sort(key=lambda path: not path[len(head) + 1 :].lower().startswith(rest.lower()))
        found = [*itself, *beside, *found]
    else:
        near = folders.best(query, 2 * _FOLDERS_SHOWN)
        named = [path for path in near if path.rpartition("/")[2].lower() == query.lower()][:_FOLDERS_NAMED]
        others = [path for path in near if path not in named][:_FOLDERS_SHOWN]
        found = [
            *(f"{path}/" for path in named),
            *found[:_FILES_FIRST],
            *(f"{path}/" for path in others),
            *found[_FILES_FIRST:],
        ]
    return list(dict.fromkeys(found))[:most]


def list_files(workspace: Path, ignore: Sequence[str]) -> list[str]:
    """All files below a folder that are not left out; names that are no valid text are left out too."""
    rules = IgnoreRules(workspace, ignore)
    listed = git.list_files(workspace, most=_MOST_FILES, timeout=_GIT_TIMEOUT)
    if listed is None:
        walked = rules.walk(most=_MOST_FILES)
        listed = [entry.path for entry in walked if not entry.is_folder]
    elif ignore:
        listed = [path for path in listed if not rules.ignored_by_person(path, is_folder=False)]
    return [path for path in listed if path.isprintable()]
