"""Fuzzy matching of file names, and the files of a workspace for completing @names while the person types.

Used by search_files and by the engine. Quick on a hundred thousand files: the list comes from git where there is a
repository and is kept and renewed beside the keys; matching runs in a thread.
"""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from ragforge_tui.tools.ignore import IgnoreRules
from ragforge_tui.tools.path_index import PathIndex

log = logging.getLogger(__name__)

_FRESH_SECONDS = 3.0
_SHARE = 20
_MOST_FILES = 500_000
_GIT_TIMEOUT = 20.0


async def match_files(workspace: Path | str, query: str, ignore: Sequence[str], limit: int) -> list[str]:
    """Files of a workspace whose path is like a query, best first; with an empty query those nearest to its root.

    The first call lists the workspace; later ones are answered from that list at once, while a list that has become
    old is made anew beside them. A limit of 0 only has the list made.
    """
    return await asyncio.to_thread(_match, Path(workspace), query, tuple(ignore), limit)


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
        self._index = index = PathIndex(list_files(self._workspace, self._ignore))
        # Where listing is slow it is done more rarely, so that it never takes more than a small share of the time.
        now = time.monotonic()
        self._old_at = now + max(_FRESH_SECONDS, _SHARE * (now - began))
        return index


_lists: dict[tuple[str, tuple[str, ...]], _Files] = {}
_lists_lock = threading.Lock()


def _match(workspace: Path, query: str, ignore: tuple[str, ...], limit: int) -> list[str]:
    with _lists_lock:
        key = (str(workspace), ignore)
        if key not in _lists and len(_lists) >= 8:
            _lists.clear()
        files = _lists.setdefault(key, _Files(workspace, ignore))
    index = files.index()
    if not limit:
        return []
    # Some more than wanted: some may have been deleted since they were listed.
    found = index.best(query, limit + 20)
    return [path for path in found if os.path.lexists(workspace / path)][:limit]


def list_files(workspace: Path, ignore: Sequence[str]) -> list[str]:
    """All files below a folder that are not left out; names that are no valid text are left out too."""
    rules = IgnoreRules(workspace, ignore)
    listed = _from_git(workspace)
    if listed is None:
        walked = rules.walk(most=_MOST_FILES)
        listed = [entry.path for entry in walked if not entry.is_folder]
    elif ignore:
        listed = [path for path in listed if not rules.ignored_by_person(path, is_folder=False)]
    return [path for path in listed if path.isprintable()]


def _from_git(workspace: Path) -> list[str] | None:
    """What git lists, None when this is no repository or git fails.

    A repository's own settings may name programs for git to run; the one this command would run is switched off.
    """
    command = ["git", "-c", "core.fsmonitor=false", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command,
            cwd=workspace,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    names = done.stdout.decode("utf-8", "replace").split("\0")
    return list(dict.fromkeys(name for name in names if name and not name.endswith("/")))[:_MOST_FILES]
