"""Fuzzy matching of file names, and the files of a workspace for completing @names while the person types.

Used by search_files and by the engine. Quick on a hundred thousand files: the list comes from git where there is a
repository and is kept for a few seconds; matching runs in a thread.
"""

from __future__ import annotations

import asyncio
import heapq
import os
import re
import subprocess
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from ragforge_tui.tools.ignore import IgnoreRules

_KEPT_SECONDS = 5.0
_MOST_FILES = 500_000
_GIT_TIMEOUT = 20.0
_BOUNDARY = "/_-. "


async def match_files(workspace: Path | str, query: str, ignore: Sequence[str], limit: int) -> list[str]:
    """Files of a workspace whose path is like a query, best first; with an empty query the shortest paths."""
    return await asyncio.to_thread(_match, Path(workspace), query, tuple(ignore), limit)


def best_matches(paths: Iterable[str], query: str, limit: int) -> list[str]:
    """The best paths for a query: every letter must occur in order; whole pieces, and file names, count most."""
    wanted = "".join(query.lower().split())
    if not wanted:
        return heapq.nsmallest(limit, paths, key=lambda path: (path.count("/"), path))
    # Each piece stops at the first letter it waits for, so nothing is ever tried twice.
    letters = re.compile("".join(f"[^{re.escape(letter)}]*{re.escape(letter)}" for letter in wanted))
    scored = ((_score(path, wanted), path) for path in paths if letters.match(path.lower()))
    return [path for _, path in heapq.nsmallest(limit, scored)]


def _score(path: str, wanted: str) -> tuple[int, int, int]:
    """Lower is better: kind of match, spread of the letters, length."""
    lowered = path.lower()
    name = lowered.rsplit("/", 1)[-1]
    length = len(path)
    if name == wanted or lowered == wanted:
        return 0, 0, length
    at = name.find(wanted)
    if at == 0:
        return 1, 0, length
    if at > 0:
        return (2 if name[at - 1] in _BOUNDARY else 3), at, length
    at = lowered.find(wanted)
    if at >= 0:
        return (4 if at == 0 or lowered[at - 1] in _BOUNDARY else 5), 0, length
    in_name = _spread(name, wanted)
    if in_name is not None:
        return 6, in_name, length
    return 7, _spread(lowered, wanted) or 0, length


def _spread(text: str, wanted: str) -> int | None:
    """How many letters lie between the wanted ones, None when they are not all there in order."""
    first = position = -1
    for letter in wanted:
        position = text.find(letter, position + 1)
        if position < 0:
            return None
        first = position if first < 0 else first
    return position - first + 1 - len(wanted)


class _FileList:
    """The files of one workspace, listed again when older than a few seconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: list[str] = []
        self._listed_at = float("-inf")

    def files(self, workspace: Path, ignore: tuple[str, ...]) -> list[str]:
        # Key strokes that come while a list is made wait for it instead of making their own.
        with self._lock:
            if time.monotonic() - self._listed_at > _KEPT_SECONDS:
                self._files = list_files(workspace, ignore)
                self._listed_at = time.monotonic()
            return self._files


_lists: dict[tuple[str, tuple[str, ...]], _FileList] = {}
_lists_lock = threading.Lock()


def _match(workspace: Path, query: str, ignore: tuple[str, ...], limit: int) -> list[str]:
    with _lists_lock:
        key = (str(workspace), ignore)
        if key not in _lists and len(_lists) >= 8:
            _lists.clear()
        files = _lists.setdefault(key, _FileList())
    # Some more than wanted: git also lists files that were deleted a moment ago.
    found = best_matches(files.files(workspace, ignore), query, limit + 20)
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
