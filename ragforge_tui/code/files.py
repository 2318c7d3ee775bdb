"""The files of a workspace that the index of code takes, and how many it leaves out for which reason.

Ignored files are not seen at all: the rules are those of the search tools, with folders of dependencies and build
results added. Links are never followed, so that nothing outside of the workspace is read. File names with secrets are
those the file tools ask about.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from ragforge_tui.shared.account import home_folder
from ragforge_tui.shared.sanitize import storable, visible
from ragforge_tui.tools.search.ignore import IgnoreRules
from ragforge_tui.tools.sensitive import is_secret
from ragforge_tui.tools.workspace import Place, folder_of

VENDORED = (
    "node_modules/",
    "bower_components/",
    "jspm_packages/",
    "vendor/",
    "site-packages/",
    ".venv/",
    "venv/",
    "virtualenv/",
    "__pycache__/",
    "dist/",
    ".tox/",
    ".nox/",
    ".eggs/",
    "*.egg-info/",
    ".mypy_cache/",
    ".ruff_cache/",
    ".pytest_cache/",
    ".hypothesis/",
    "htmlcov/",
    ".gradle/",
    ".next/",
    ".nuxt/",
    ".svelte-kit/",
    ".terraform/",
    ".hg/",
    ".svn/",
    ".idea/",
    ".cache/",
    "*.min.js",
    "*.min.css",
    "*.map",
)
"""Dependencies, build results and caches, also where no .gitignore names them; a user's own patterns go first."""
PROJECT_MARKS = (
    ".git",
    ".hg",
    ".ragforge",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "package.json",
    "go.mod",
    "Cargo.toml",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "CMakeLists.txt",
    "Makefile",
    "configure",
    "meson.build",
    "composer.json",
    "Gemfile",
)
MOST_WITHOUT_PROJECT = 2_000
"""Files taken of a folder that is no project: somebody's downloads should not be read by accident."""
MOST_ENTRIES = 1_000_000
LEAST_ENTRIES_WITHOUT_PROJECT = 50_000

TOO_LARGE, SECRET, BEYOND, UNNAMED = "too large", "may hold keys", "beyond the limit", "name not text"


class FoundFile(msgspec.Struct, frozen=True, array_like=True):
    """File to index, with the values that show whether it has changed."""

    path: str
    size: int
    mtime: int


class Found(msgspec.Struct, kw_only=True):
    """Files of a workspace.

    Attributes:
        gone: Of the paths that were asked for: those that are no file to index any more, or never were.
        folders: Folders to watch, relative to the workspace; "" is the workspace itself.
        left_out: Number of files left out, by reason.
        problem: What the user should know; empty if nothing.
        refused: The folder is not indexed at all, for the reason in `problem`.
        partial: Not the whole folder was looked through: files that are missing here may exist.
    """

    files: list[FoundFile] = []
    gone: list[str] = []
    folders: list[str] = []
    left_out: dict[str, int] = {}
    problem: str = ""
    refused: bool = False
    partial: bool = False


class FileLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a workspace's index.

    Attributes:
        ignore: The user's own patterns.
    """

    max_files: int
    max_file_bytes: int
    ignore: list[str] = []


def refusal(root: Path, home: Path) -> str:
    """Return why a folder is not indexed at all: it is a home folder, holds one, or is no folder; empty if it may be.

    A home folder that is itself a repository is indexed, with its limits.
    """
    if not root.is_dir():
        return f"{visible(str(root))} is not a folder."
    if root == Path(root.anchor) or (root in (home, *home.parents) and not (root / ".git").exists()):
        return f"{visible(str(root))} is not a project but a whole home or system folder; start the chat in a project."
    return ""


def is_project(root: Path) -> bool:
    """Return whether a folder belongs to a project: it, or one above it but below the home folder, has its marks."""
    home = home_folder()
    for folder in (root, *root.parents):
        if folder in (home, *home.parents):
            break
        if any((folder / mark).exists() for mark in PROJECT_MARKS):
            return True
    return any((root / mark).exists() for mark in PROJECT_MARKS)


def find_files(root: Path, limits: FileLimits, is_known: Callable[[str], bool]) -> Found:
    """Return the files to index, by folder in order of names, at most as many as the limits allow.

    Args:
        is_known: Whether a file of this path can be parsed.
    """
    found = Found(folders=[""])
    if problem := refusal(root, home_folder()):
        return Found(problem=problem, refused=True)
    project = is_project(root)
    most = limits.max_files if project else min(limits.max_files, MOST_WITHOUT_PROJECT)
    entries = MOST_ENTRIES if project else LEAST_ENTRIES_WITHOUT_PROJECT
    rules = rules_of(root, limits)
    seen = 0
    for entry in rules.walk(most=entries):
        seen += 1
        if entry.is_folder:
            found.folders.append(entry.path)
        elif entry.is_regular and is_known(entry.path):
            _take(root, entry.path, limits, found, most)
    found.partial = rules.walk_expired or seen >= entries
    if beyond := found.left_out.get(BEYOND):
        why = (
            "agent.code.max_files allows no more."
            if project
            else "This folder is not a project. Run `git init`, or start the chat in one."
        )
        found.problem = f"{beyond} of {beyond + len(found.files)} files are not indexed. {why}"
    elif found.partial:
        found.problem = "The folder is too large to look through: only a part of it is indexed."
    return found


def look_at(root: Path, paths: Iterable[str], limits: FileLimits, is_known: Callable[[str], bool]) -> Found:
    """Return what became of some paths, as `find_files` would see them."""
    found = Found()
    rules = rules_of(root, limits)
    real = Path(os.path.realpath(root))
    for path in dict.fromkeys(paths):
        before = len(found.files)
        folder = (root / path).parent
        # A folder that was replaced by a link leads elsewhere.
        if (
            is_known(path)
            and Path(os.path.realpath(folder)) == real.joinpath(*Path(path).parts[:-1])
            and not rules.ignored_anywhere(path)
        ):
            _take(root, path, limits, found, limits.max_files)
        if len(found.files) == before:
            found.gone.append(path)
    return found


def rules_of(root: Path, limits: FileLimits) -> IgnoreRules:
    """Return the ignore rules of the index; the user's own patterns can take back those for dependencies."""
    return IgnoreRules(root, [*VENDORED, *limits.ignore])


def _take(root: Path, path: str, limits: FileLimits, found: Found, most: int) -> None:
    try:
        status = (root / path).lstat()
    except OSError:
        return
    if not stat.S_ISREG(status.st_mode):
        return
    if is_secret(path):
        _count(found, SECRET)
    elif path != storable(path) or not path.isprintable():
        _count(found, UNNAMED)
    elif status.st_size > limits.max_file_bytes:
        _count(found, TOO_LARGE)
    elif len(found.files) >= most:
        _count(found, BEYOND)
    else:
        found.files.append(FoundFile(path, status.st_size, status.st_mtime_ns))


def _count(found: Found, reason: str) -> None:
    found.left_out[reason] = found.left_out.get(reason, 0) + 1


def read_file(root: Path, path: str, most: int) -> tuple[bytes, int, int]:
    """Return a file's content, size and time; neither the file nor a folder of its path may be a link.

    Raises:
        OSError: It is gone, no regular file, or larger than `most` bytes.
    """
    place = Place(root, path)
    with folder_of(place, create=False) as folder:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(place.parts[-1], flags, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as file:
        # Taken before the content: what is written in between is noticed by the next look.
        status = os.fstat(file.fileno())
        content = file.read(most + 1) if stat.S_ISREG(status.st_mode) else b""
    if not stat.S_ISREG(status.st_mode) or len(content) > most:
        raise PermissionError(path)
    return content, status.st_size, status.st_mtime_ns
