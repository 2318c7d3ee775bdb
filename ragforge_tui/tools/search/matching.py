"""Fuzzy matching of file names, for search_files and for completing @names while the user types.

Fast on a hundred thousand files: the list of a workspace comes from git if there is a repository, is cached and is
refreshed in the background; matching runs in a thread. All paths are stored in one string, shortest first, and so are
their names. Finding a substring is then a search in C that stops at the first few hits, which are the best ones. Only a
query without substring matches is matched letter by letter.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import threading
import time
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ragforge_tui.shared import git
from ragforge_tui.tools.search.ignore import IgnoreRules

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
        listed = [path for path in listed if not rules.ignored_by_user(path, is_folder=False)]
    return [path for path in listed if path.isprintable()]


_BOUNDARY = "/_-. \n"
_SHORTEST = 500
_LINE_END = 10
_LINES_AT_ONCE = 50_000
_MOST_WITHIN = 20_000
_MOST_SPREAD = 1_000
"""Number of paths matching letter by letter that are ranked."""


class PathIndex:
    """Immutable index of paths; safe to search from any thread."""

    def __init__(self, paths: Iterable[str]) -> None:
        ordered = sorted(paths, key=lambda path: (len(path), path))
        lowered = [path.lower().replace("\n", " ") for path in ordered]
        names = [path.rpartition("/")[2] for path in lowered]
        self._count = len(ordered)
        self._paths, self._path_starts = _joined(ordered)
        self._lower, self._lower_starts = _joined(lowered)
        self._names, self._name_starts = _joined(names)
        self._bits = _letter_bits("\n".join(lowered)) if lowered else np.zeros(0, np.uint64)
        self._shallow = sorted(ordered, key=lambda path: (path.count("/"), path))[:_SHORTEST]

    def __len__(self) -> int:
        return self._count

    def best(self, query: str, limit: int) -> list[str]:
        """Return the best paths for a query, whose letters must all occur in order.

        Substring matches and matches in file names rank highest, and shorter paths first. An empty query returns the
        paths nearest to the root.
        """
        needle = "".join(query.lower().split())
        if not needle:
            return self._shallow[:limit]
        matches: dict[int, None] = {}
        for rank in self._ranks(needle, limit):
            for number in rank:
                if len(matches) >= limit:
                    return [self._path(number) for number in matches]
                matches[number] = None
        return [self._path(number) for number in matches]

    def within(self, folder: str, rest: str, limit: int) -> list[str]:
        """Return the paths directly in a folder (``src/``) whose name contains `rest`, shortest first."""
        needle = rest.lower()
        below = (self._path(number) for number in _numbers(self._paths, self._path_starts)(f"\n{folder}"))
        # Every path below the folder is checked one by one, so a huge folder is only checked in part.
        direct = (path for path in islice(below, _MOST_WITHIN) if "/" not in path[len(folder) :])
        return list(islice((path for path in direct if needle in path[len(folder) :].lower()), limit))

    def __contains__(self, path: str) -> bool:
        return f"\n{path}\n" in self._paths

    def _ranks(self, needle: str, limit: int) -> Iterator[Iterable[int]]:
        """Yield the numbers of paths, best kind of match first. Later kinds are searched only on demand."""
        names = _numbers(self._names, self._name_starts)
        lower = _numbers(self._lower, self._lower_starts)
        yield from (names(f"\n{needle}\n"), lower(f"\n{needle}\n"), names(f"\n{needle}"))
        for text, numbers in ((self._names, names), (self._lower, lower)):
            inside = list(islice(numbers(needle), limit * 20))
            at_start = [number for number in inside if self._at_boundary(text, needle, number)]
            yield at_start
            yield inside
        yield self._spread_out(needle)

    def _spread_out(self, needle: str) -> list[int]:
        """Return the paths that contain the letters in order; those with all of them in the name come first."""
        # Each group stops at the letter it searches for, so the expression never backtracks.
        in_order = re.compile("".join(f"[^{re.escape(letter)}]*{re.escape(letter)}" for letter in needle)).match
        lines = ((number, _line(self._lower, self._lower_starts, number)) for number in self._with_letters(needle))
        hits = islice(((number, line) for number, line in lines if in_order(line)), _MOST_SPREAD)
        ranked: list[tuple[bool, int, int]] = []
        for number, line in hits:
            name = line.rpartition("/")[2]
            in_name = in_order(name) is not None
            ranked.append((not in_name, _spread(name if in_name else line, needle), number))
        return [number for _, _, number in sorted(ranked)]

    def _with_letters(self, needle: str) -> list[int]:
        """Return the paths that contain all the letters, in any order."""
        bits = _letter_bits(needle)[0]
        numbers: list[int] = ((self._bits & bits) == bits).nonzero()[0].tolist()
        return numbers

    def _at_boundary(self, text: str, needle: str, number: int) -> bool:
        starts = self._name_starts if text is self._names else self._lower_starts
        at = text.find(needle, starts[number])
        return text[at - 1] in _BOUNDARY

    def _path(self, number: int) -> str:
        return _line(self._paths, self._path_starts, number)


def _joined(lines: list[str]) -> tuple[str, array[int]]:
    """Return all lines in one string, each between line ends, and the start offset of each."""
    return "\n" + "\n".join(lines) + "\n", array("Q", accumulate((len(line) + 1 for line in lines), initial=1))


def _letter_bits(text: str) -> npt.NDArray[np.uint64]:
    """Return a bit set of the letters of each line; some letters share a bit, so the caller must verify a match."""
    letters = np.frombuffer(text.encode("utf-8", "replace"), np.uint8)
    starts = np.concatenate(([0], np.flatnonzero(letters == _LINE_END) + 1))
    bits = np.empty(len(starts), np.uint64)
    for first in range(0, len(starts), _LINES_AT_ONCE):
        some = starts[first : first + _LINES_AT_ONCE]
        end = starts[first + _LINES_AT_ONCE] if first + _LINES_AT_ONCE < len(starts) else len(letters)
        each = np.left_shift(np.uint64(1), (letters[some[0] : end] & 63).astype(np.uint64))
        each[letters[some[0] : end] == _LINE_END] = 0
        bits[first : first + len(some)] = np.bitwise_or.reduceat(each, some - some[0])
    return bits


def _line(text: str, starts: array[int], number: int) -> str:
    return text[starts[number] : starts[number + 1] - 1]


def _numbers(text: str, starts: array[int]) -> Callable[[str], Iterator[int]]:
    """Return a function that yields the number of each line that contains a substring, in order."""

    def numbers(needle: str) -> Iterator[int]:
        at = text.find(needle)
        while at >= 0:
            number = bisect_right(starts, at + 1 if needle[0] == "\n" else at) - 1
            yield number
            at = text.find(needle, starts[number + 1] - 1)

    return numbers


def _spread(text: str, needle: str) -> int:
    """Return the number of other letters between those of the needle."""
    first = position = -1
    for letter in needle:
        position = text.find(letter, position + 1)
        first = position if first < 0 else first
    return position - first + 1 - len(needle)
