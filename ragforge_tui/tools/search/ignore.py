"""Ignore rules of searches and listings, and the walk over the files that they leave.

Used by the search tools and the completion of file names. The rules are those of .gitignore at every level of the
repository that contains the workspace, and the user's own patterns, which take precedence.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ragforge_tui.shared.files import read_regular
from ragforge_tui.tools.search.gitignore import Patterns

WALK_SECONDS = 60.0
"""Longest walk in seconds. Matching is linear, but a hostile ignore file can contain thousands of slow patterns."""
_MAX_IGNORE_FILE = 1024 * 1024


class Entry(NamedTuple):
    """File or folder found by a walk; `path` is relative to the walk's root, with forward slashes."""

    path: str
    is_folder: bool
    is_link: bool
    is_regular: bool


class IgnoreRules:
    """Ignore rules for paths relative to a root. Each ignore file is read once, on first use.

    Attributes:
        walk_expired: Whether a walk ended because it timed out.
    """

    def __init__(self, root: Path, patterns: Sequence[str]) -> None:
        self._root = root
        self._own = Patterns(patterns)
        self._chains: dict[str, list[tuple[Patterns, int]]] = {}
        self._outer = self._outer_specs()
        self.walk_expired = False

    def ignored(self, path: str, *, is_folder: bool) -> bool:
        """Return whether a path itself is ignored, without regard to the folders above it."""
        name = path.rsplit("/", 1)[-1]
        if name == ".git":
            return True
        if self.ignored_by_user(path, is_folder=is_folder):
            return True
        # The nearest ignore file with a matching pattern decides.
        for spec, length in self._chain(path.rpartition("/")[0]):
            if (verdict := spec.verdict(path[length:], is_folder=is_folder)) is not None:
                return verdict
        for spec, prefix in self._outer:
            if (verdict := spec.verdict(prefix + path, is_folder=is_folder)) is not None:
                return verdict
        return False

    def ignored_by_user(self, path: str, *, is_folder: bool) -> bool:
        """Return whether the user's own patterns exclude a path or a folder above it."""
        return self._own.covers(path, is_folder=is_folder)

    def ignored_anywhere(self, path: str, *, is_folder: bool = False, below: str = "") -> bool:
        """Return whether a path, or any folder between it and the folder `below`, is ignored."""
        verdict = self.judge(below)
        parts = path.split("/")
        first = len(below.split("/")) + 1 if below else 1
        above = ("/".join(parts[:depth]) for depth in range(first, len(parts)))
        return any(verdict(folder, True) for folder in above) or verdict(path, is_folder)

    def judge(self, start: str) -> Callable[[str, bool], bool]:
        """Return the decision function for paths below a folder.

        A request for an ignored folder by name applies to its contents, so only the user's own patterns count there.
        """
        if start and self.ignored_anywhere(start, is_folder=True):
            return lambda path, is_folder: self.ignored_by_user(path, is_folder=is_folder)
        return lambda path, is_folder: self.ignored(path, is_folder=is_folder)

    def walk(self, start: str = "", *, most: int | None = None) -> Iterator[Entry]:
        """Yield all entries below a folder that are not ignored, by folder in order of names; links are not followed.

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
        """Return all entries of one folder by name, ignored or not; empty if it cannot be read."""
        try:
            with os.scandir(self._root / folder) as items:
                return sorted(_entry(folder, item) for item in items)
        except OSError:
            return []

    def _chain(self, folder: str) -> list[tuple[Patterns, int]]:
        """Return the rules that apply in a folder, nearest first.

        Each comes with the length of the prefix to remove from a path before its patterns are matched.
        """
        chain = self._chains.get(folder)
        if chain is None:
            chain = list(self._chain(folder.rpartition("/")[0])) if folder else []
            spec = _read_spec(self._root / folder / ".gitignore")
            if spec is not None:
                chain.insert(0, (spec, len(folder) + 1 if folder else 0))
            self._chains[folder] = chain
        return chain

    def _outer_specs(self) -> list[tuple[Patterns, str]]:
        """Return the rules of the repository above the root, nearest first, each with the root's path below it."""
        specs: list[tuple[Patterns, str]] = []
        for folder in (self._root, *self._root.parents):
            prefix = self._root.relative_to(folder).as_posix()
            prefix = "" if prefix == "." else prefix + "/"
            if folder != self._root and (spec := _read_spec(folder / ".gitignore")) is not None:
                specs.append((spec, prefix))
            if (folder / ".git").exists():
                if (spec := _read_spec(folder / ".git" / "info" / "exclude")) is not None:
                    specs.append((spec, prefix))
                return specs
        # Without a repository, ignore files above the root do not apply.
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
        text = read_regular(path, _MAX_IGNORE_FILE, cut=True).decode("utf-8", "surrogateescape")
    except OSError:
        return None
    return Patterns(text.removeprefix("\ufeff").split("\n")) or None
