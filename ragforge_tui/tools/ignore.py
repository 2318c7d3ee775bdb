"""Which files searches and listings leave out, and walking the ones that are left.

Used by the search tools and the completion of file names. Rules are those of .gitignore at every level of the
repository the workspace lies in, and the person's own patterns, which always win.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ragforge_tui.tools.gitignore import Patterns

WALK_SECONDS = 60.0
"""A walk ends after this long. Matching is linear, but a hostile file of rules can hold thousands of slow ones."""
_MAX_IGNORE_FILE = 1024 * 1024


class Entry(NamedTuple):
    """A file or folder found by a walk; `path` is relative to the walk's root, with forward slashes."""

    path: str
    is_folder: bool
    is_link: bool
    is_regular: bool


class IgnoreRules:
    """Decides on paths relative to a root. Files of rules are read once, when first needed.

    Attributes:
        walk_expired: Whether a walk ended because its time was over.
    """

    def __init__(self, root: Path, patterns: Sequence[str]) -> None:
        self._root = root
        self._own = Patterns(patterns)
        self._chains: dict[str, list[tuple[Patterns, int]]] = {}
        self._above = self._outer_specs()
        self.walk_expired = False

    def ignored(self, path: str, *, is_folder: bool) -> bool:
        """Whether a path is left out by itself (a folder above it may be left out as well)."""
        name = path.rsplit("/", 1)[-1]
        if name == ".git":
            return True
        if self.ignored_by_person(path, is_folder=is_folder):
            return True
        # The nearest file of rules that says anything decides.
        for spec, length in self._chain(path.rpartition("/")[0]):
            if (verdict := spec.verdict(path[length:], is_folder=is_folder)) is not None:
                return verdict
        for spec, prefix in self._above:
            if (verdict := spec.verdict(prefix + path, is_folder=is_folder)) is not None:
                return verdict
        return False

    def ignored_by_person(self, path: str, *, is_folder: bool) -> bool:
        """Whether the user's own patterns exclude a path or a folder above it."""
        return self._own.covers(path, is_folder=is_folder)

    def ignored_anywhere(self, path: str, *, is_folder: bool = False, below: str = "") -> bool:
        """Whether a path, or any folder above it up to the folder `below`, is left out."""
        verdict = self.judge(below)
        parts = path.split("/")
        first = len(below.split("/")) + 1 if below else 1
        above = ("/".join(parts[:depth]) for depth in range(first, len(parts)))
        return any(verdict(folder, True) for folder in above) or verdict(path, is_folder)

    def judge(self, start: str) -> Callable[[str, bool], bool]:
        """The decision for what lies below a folder: who asks for an ignored folder by name means its contents."""
        if start and self.ignored_anywhere(start, is_folder=True):
            return lambda path, is_folder: self.ignored_by_person(path, is_folder=is_folder)
        return lambda path, is_folder: self.ignored(path, is_folder=is_folder)

    def walk(self, start: str = "", *, most: int | None = None) -> Iterator[Entry]:
        """Yield everything below a folder that is not excluded, by folder in order of names; links are not followed.

        Ends early after `most` entries or `WALK_SECONDS`.
        """
        deadline = time.monotonic() + WALK_SECONDS
        verdict = self.judge(start)
        pending = [start]
        count = 0
        while pending:
            folder = pending.pop()
            below: list[str] = []
            for entry in self.entries(folder):
                if time.monotonic() > deadline:
                    self.walk_expired = True
                    return
                if verdict(entry.path, entry.is_folder):
                    continue
                yield entry
                count += 1
                if most is not None and count >= most:
                    return
                if entry.is_folder:
                    below.append(entry.path)
            pending.extend(reversed(below))

    def entries(self, folder: str) -> list[Entry]:
        """Everything in one folder by name, ignored or not; empty when it cannot be read."""
        try:
            with os.scandir(self._root / folder) as found:
                return sorted(_entry(folder, item) for item in found)
        except OSError:
            return []

    def _chain(self, folder: str) -> list[tuple[Patterns, int]]:
        """Rules that hold in a folder, nearest first, each with the length of the path its own patterns start after."""
        chain = self._chains.get(folder)
        if chain is None:
            chain = list(self._chain(folder.rpartition("/")[0])) if folder else []
            spec = _read_spec(self._root / folder / ".gitignore")
            if spec is not None:
                chain.insert(0, (spec, len(folder) + 1 if folder else 0))
            self._chains[folder] = chain
        return chain

    def _outer_specs(self) -> list[tuple[Patterns, str]]:
        """Rules of the repository above the root, nearest first, with the root's path below each."""
        found: list[tuple[Patterns, str]] = []
        for folder in (self._root, *self._root.parents):
            prefix = self._root.relative_to(folder).as_posix()
            prefix = "" if prefix == "." else prefix + "/"
            if folder != self._root and (spec := _read_spec(folder / ".gitignore")) is not None:
                found.append((spec, prefix))
            if (folder / ".git").exists():
                if (spec := _read_spec(folder / ".git" / "info" / "exclude")) is not None:
                    found.append((spec, prefix))
                return found
        # No repository: what lies above is nobody's rule for this folder.
        return []


def _entry(folder: str, item: os.DirEntry[str]) -> Entry:
    path = f"{folder}/{item.name}" if folder else item.name
    try:
        is_link = item.is_symlink()
        is_folder = item.is_dir(follow_symlinks=False)
        is_regular = item.is_file(follow_symlinks=False)
    except OSError:
        return Entry(path, False, False, False)
    return Entry(path, is_folder, is_link, is_regular)


def _read_spec(path: Path) -> Patterns | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return None
        text = file.read(_MAX_IGNORE_FILE).decode("utf-8", "surrogateescape")
    return Patterns(text.removeprefix("\ufeff").split("\n")) or None
