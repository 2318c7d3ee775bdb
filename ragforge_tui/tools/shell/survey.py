"""Survey of the workspace and the home for the sandbox: files with secrets, git folders, and files that run later.

All of it counts, at any depth. A folder of the workspace is read again only when its time of modification has changed,
so that a command waits some milliseconds; the home, which is larger and does not change with each command, is read
every few minutes. A survey that meets its limit is incomplete, and whoever asked for it must not rely on it.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ragforge_tui.shared.files import read_regular
from ragforge_tui.tools.sensitive import is_ordinary, is_secret, runs_later

_MOST_ENTRIES = 1_000_000
"""Entries that are looked at: some seconds at the first time."""
_SETTLED = 100_000_000
"""Nanoseconds after which a change of a folder shows in its time of modification."""
_HOME_SECONDS = 300.0
_MOST_PEM = 1024 * 1024
_REPOSITORY = frozenset({"HEAD", "objects", "refs"})
_PROGRAMS = re.compile(r"(?:^|/)(?:\.?venv/bin|node_modules/\.bin)$")

Mark = tuple[int, int]
"""Inode of a file and the time of its last change, which no program can set."""


class Found(NamedTuple):
    """Findings below a workspace, as paths relative to it.

    Attributes:
        hidden: Files with secrets, and sockets.
        repositories: Git folders of any name, and files that stand for one.
        programs: Folders of programs of environments.
        running: Files that programs outside run or obey.
    """

    hidden: list[str]
    repositories: list[str]
    programs: list[str]
    running: dict[str, Mark]
    complete: bool


class _Folder(NamedTuple):
    modified: int
    size: int
    folders: list[str]
    hidden: list[str]
    repositories: list[str]
    running: list[str]


class Survey:
    """Survey of one workspace, which remembers the folders that it has read."""

    def __init__(self, root: Path, most: int = _MOST_ENTRIES) -> None:
        self._root = str(root)
        self._most = most
        self._folders: dict[str, _Folder] = {}
        self._programs: list[str] = []
        self._complete = False

    def look(self) -> Found:
        """Return the current content of the workspace; blocks."""
        if not self._folders or any(_modified(path) != known.modified for path, known in self._folders.items()):
            self._walk()
        known = self._folders.values()
        start = len(self._root) + 1
        hidden = [path[start:] for folder in known for path in folder.hidden if not _is_public(path)]
        repositories = [path[start:] for folder in known for path in folder.repositories]
        programs = [path[start:] for path in self._programs]
        marks = ((path[start:], _mark(path)) for folder in known for path in folder.running)
        running = {name: mark for name, mark in marks if mark is not None}
        return Found(hidden, repositories, programs, running, self._complete)

    def _walk(self) -> None:
        known, self._folders = self._folders, {}
        pending, left = deque([self._root]), self._most
        while pending and left >= 0:
            path = pending.popleft()
            modified = _modified(path)
            folder = known.get(path)
            if folder is None or folder.modified != modified:
                folder = _read(path, len(self._root) + 1, modified)
            left -= folder.size
            pending.extend(folder.folders)
            self._folders[path] = folder
        self._programs = [path for path in self._folders if _PROGRAMS.search(path)]
        self._complete = left >= 0


def _modified(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - called for every folder
    except OSError:
        return 0


def _mark(path: str) -> Mark | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_ino, found.st_ctime_ns


def _read(path: str, start: int, modified: int) -> _Folder:
    # One that was modified just now may change again within the same tick, so it is read again.
    folder = _Folder(modified if time.time_ns() - modified > _SETTLED else -1, 0, [], [], [], [])
    names = set()
    below = path[start:]
    is_special = below != "" and (is_secret(below) or runs_later(f"{below}/x"))
    for entry in entries(path):
        names.add(entry.name)
        if entry.is_dir(follow_symlinks=False):
            folder.folders.append(entry.path)
        elif entry.name == ".git":
            folder.repositories.append(entry.path)
        elif is_special or not is_ordinary(entry.name):
            if is_secret(entry.path[start:]):
                folder.hidden.append(entry.path)
            if runs_later(entry.path[start:]):
                folder.running.append(entry.path)
        elif _is_socket(entry):
            folder.hidden.append(entry.path)
    if names >= _REPOSITORY:
        return folder._replace(size=len(names), folders=[], hidden=[], repositories=[path], running=[])
    return folder._replace(size=len(names))


_homes: dict[tuple[Path, Path], tuple[float, list[Path], bool]] = {}


def secrets_of_home(home: Path, workspace: Path, most: int = _MOST_ENTRIES) -> tuple[list[Path], bool]:
    """Return files and folders of the home with secrets, sockets, and whether all of it was searched. Blocks."""
    now = time.monotonic()
    known = _homes.get((home, workspace))
    if known is None or now - known[0] > _HOME_SECONDS:
        found, complete = _searched(home, workspace, most)
        known = _homes[home, workspace] = now, found, complete
    return known[1], known[2]


def _searched(home: Path, workspace: Path, most: int) -> tuple[list[Path], bool]:
    found: list[Path] = []
    pending, left = deque([str(home)]), most
    own, prefix = str(workspace), len(str(home).rstrip("/")) + 1
    while pending and left >= 0:
        for entry in entries(pending.popleft()):
            left -= 1
            path, is_folder = entry.path, entry.is_dir(follow_symlinks=False)
            if path == own:
                continue
            above = own.startswith(f"{path}/")
            secret = not is_ordinary(entry.name) and is_secret(path[prefix:])
            if not above and (secret or (not is_folder and _is_socket(entry))):
                # Behind a link is what has to be hidden; a link to nothing hides nothing.
                real = Path(os.path.realpath(path))
                if real.exists() and not workspace.is_relative_to(real) and (is_folder or not _is_public(path)):
                    found.append(real)
            elif is_folder:
                pending.append(path)
    return found, left >= 0


def other_parts(folder: Path, kept: Sequence[Path]) -> Iterator[Path]:
    """Yield all of a folder except some paths: itself, or their neighbours. Blocks."""
    within = [path for path in kept if path.is_relative_to(folder)]
    if not within:
        yield folder
    elif folder not in within:
        for entry in entries(str(folder)):
            if not entry.is_symlink():
                yield from other_parts(Path(entry.path), within)


def bound_sockets() -> Iterator[Path]:
    """Yield the sockets that programs listen on, wherever they are, by the kernel's own list. Blocks."""
    try:
        lines = Path("/proc/net/unix").read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return
    for line in lines:
        fields = line.split(" ", 7)
        if fields[-1].startswith("/") and os.path.lexists(fields[-1]):
            yield Path(fields[-1])


def entries(folder: str) -> list[os.DirEntry[str]]:
    """Return the entries of a folder; none of one that cannot be read."""
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []


def _is_socket(entry: os.DirEntry[str]) -> bool:
    if entry.is_file(follow_symlinks=False) or entry.is_symlink():
        return False
    try:
        return stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode)
    except OSError:
        return False


def _is_public(path: str) -> bool:
    """Return whether a file named like a key is public: certificate, public key, signature."""
    if not path.lower().endswith((".pem", ".asc")):
        return False
    try:
        content = read_regular(Path(path), _MOST_PEM)
    except OSError:
        return False
    return b"-----BEGIN" in content and b"PRIVATE" not in content
