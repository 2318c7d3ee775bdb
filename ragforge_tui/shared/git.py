"""The git queries of the program: files, state and commits of a repository, who wrote a line, and the user's name.

A folder from another source may bring its own ``.git``, and its configuration can name programs: a remote to
fetch missing objects from, a file monitor, hooks, filters. The chat calls git at its start, before anything in the
folder is trusted, so every call goes through this module, which keeps those programs from running.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from pathlib import Path

import msgspec

from ragforge_tui.shared.files import read_regular
from ragforge_tui.shared.records import Commit

_INHERITED = (
    "PATH",
    "HOME",
    "XDG_CONFIG_HOME",
    "USER",
    "TMPDIR",
    # Locations of the user's own settings and limits of the search for a repository; set by the user, not by a folder.
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CEILING_DIRECTORIES",
)
_ENVIRONMENT = {
    # A missing object is fetched from the remote that the repository names, and a remote may be any command. This list
    # of protocols overrides protocol.*.allow of the repository; no protocol is called "none".
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_SSH_COMMAND": "false",
    "GIT_PROXY_COMMAND": "false",
    "GIT_ASKPASS": "false",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
}
_OPTIONS = (
    "--no-pager",
    "-c",
    "core.fsmonitor=false",
    "-c",
    f"core.hooksPath={os.devnull}",
    # A folder with the layout of .git is not a repository unless it is named explicitly.
    "-c",
    "safe.bareRepository=explicit",
)
_COMMITS = 4
_POINTER_BYTES = 4_096
"""Most characters read of a file that names a branch or a folder."""
TRAILER = "Ragforge-Conversation"
"""Trailer of a commit message that names the conversation and turn of the commit: ``<id> t<turn>``."""
_COMMIT_FORMAT = f"%H%x1f%an%x1f%cI%x1f%s%x1f%(trailers:key={TRAILER},valueonly,separator=%x2c)%x1e"


class RepositoryState(msgspec.Struct, frozen=True):
    """State of a work tree. All texts are foreign.

    Attributes:
        branch: The branch with its upstream and distance, as ``git status`` prints it: ``main...origin/main``.
        commits: Short id and subject of the last commits, newest first.
        changes: Uncommitted changes of the folder as ``M path``, relative to it.
    """

    branch: str
    commits: list[str] = []
    changes: list[str] = []


def list_files(folder: Path, *, most: int, timeout: float) -> list[str] | None:
    """Return the tracked and untracked files below a folder, without ignored ones; relative to it, in git's order.

    Args:
        folder: A folder inside a work tree.
        most: Number of files after which the list is cut.
        timeout: Seconds git may take.

    Returns:
        None if git is missing, fails or takes longer, or if the folder is not in a repository.
    """
    output = _run("ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=folder, timeout=timeout)
    if output is None:
        return None
    names = output.decode("utf-8", "replace").split("\0")
    # A name that ends with a slash is a repository inside this one.
    return list(dict.fromkeys(name for name in names if name and not name.endswith("/")))[:most]


def repository_state(folder: Path, *, timeout: float) -> RepositoryState | None:
    """Return the state of a folder's repository; None if it is in none, or if git fails or takes longer.

    Args:
        folder: An absolute path without links.
        timeout: Seconds each of the queries may take.
    """
    root = next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), None)
    filters = _filters_disabled(folder, timeout) if root is not None else None
    if root is None or filters is None:
        return None
    status = _run(
        # Submodules have a configuration of their own, which the options for this one do not reach.
        *("status", "--porcelain=v1", "--branch", "-z", "--ignore-submodules=all", "--", "."),
        cwd=folder,
        timeout=timeout,
        options=filters,
    )
    if status is None:
        return None
    first, *entries = status.decode("utf-8", "replace").split("\0")
    # Plumbing, because `git log` may be configured to verify signatures, which runs a program.
    log = _run("rev-list", f"--max-count={_COMMITS}", "--format=%h %s", "HEAD", "--", cwd=folder, timeout=timeout)
    commits = (log or b"").decode("utf-8", "replace").split("\n")[1::2]
    prefix = "" if folder == root else f"{folder.relative_to(root).as_posix()}/"
    return RepositoryState(first.removeprefix("## "), commits, _changes(entries, prefix))


def _changes(entries: list[str], prefix: str) -> list[str]:
    changes: list[str] = []
    renamed = False
    for entry in entries:
        if entry and not renamed:
            changes.append(f"{entry[:2].strip()} {entry[3:].removeprefix(prefix)}")
        # The entry after a rename or a copy is the earlier path alone.
        renamed = not renamed and entry[:2].strip()[:1] in ("R", "C")
    return changes


def _filters_disabled(folder: Path, timeout: float) -> list[str] | None:
    """Return options that disable the filters of file contents, which are programs; None if that is impossible."""
    output = _run("config", "--list", "--name-only", "-z", cwd=folder, timeout=timeout)
    if output is None:
        return None
    options: list[str] = []
    for name in output.decode("utf-8", "surrogateescape").split("\0"):
        setting = name.rpartition(".")[2]
        if name.startswith("filter.") and setting in ("clean", "smudge", "process", "required"):
            if "=" in name:
                return None
            options += ["-c", f"{name}={'false' if setting == 'required' else ''}"]
    return options


def git_is_installed() -> bool:
    return _program() is not None


def in_repository(folder: Path) -> bool:
    """Return whether a folder is inside a work tree."""
    return any((parent / ".git").exists() for parent in (folder, *folder.parents))


def current_branch(folder: Path) -> str:
    """Return the branch of the repository that a folder is in, the short hash of a detached head, or nothing.

    Reads two small files instead of running git, so that the screen can ask as often as it likes.
    """
    try:
        root = next(path for path in (folder, *folder.parents) if (path / ".git").exists())
        git = root / ".git"
        if git.is_file():
            git = root / _pointer(git).removeprefix("gitdir:").strip()
        head = _pointer(git / "HEAD")
    except (OSError, ValueError, StopIteration):
        return ""
    name = head.removeprefix("ref:").strip().removeprefix("refs/heads/")
    return name if head.startswith("ref:") else name[:8]


def _pointer(file: Path) -> str:
    return read_regular(file, _POINTER_BYTES, cut=True).decode("utf-8", "replace").strip()


def branch_tips(folder: Path, *, timeout: float) -> frozenset[str] | None:
    """Return the ids of the commits that HEAD and the branches point at; None without a repository or on a failure."""
    if not in_repository(folder):
        return None
    output = _run("for-each-ref", "--format=%(objectname)", "refs/heads", cwd=folder, timeout=timeout)
    if output is None:
        return None
    head = _run("rev-parse", "--verify", "--quiet", "HEAD", cwd=folder, timeout=timeout)
    return frozenset([*output.decode().split(), *(head or b"").decode().split()])


def commits_since(folder: Path, tips: frozenset[str], *, most: int, timeout: float) -> list[Commit]:
    """Return the commits of HEAD and the branches that are not below these tips or those of a remote, oldest first.

    An amended or rebased commit is a new one; commits that were fetched or pulled are not.
    """
    now = branch_tips(folder, timeout=timeout)
    if not now or now == tips:
        return []
    return _commits(folder, *sorted(now), "--not", "--remotes", *sorted(tips), most=most, timeout=timeout)[::-1]


def commits_of_file(folder: Path, path: str, *, most: int, timeout: float) -> list[Commit] | None:
    """Return the commits that changed a file, newest first; None if git fails."""
    if _run("rev-parse", "--verify", "--quiet", "HEAD", cwd=folder, timeout=timeout) is None:
        return []
    return _commits(folder, "HEAD", "--", path, most=most, timeout=timeout)


def commit_of_line(folder: Path, path: str, line: int, *, timeout: float) -> tuple[Commit | None, str] | None:
    """Return the commit that last changed a line, None if it is not committed, and the text of the line.

    Returns:
        None if git does not know the file, or if it has no such line.
    """
    options = _filters_disabled(folder, timeout)
    if options is None:
        return None
    arguments = ("blame", "--porcelain", "--no-textconv", "-L", f"{line},{line}", "--", path)
    output = _run(*arguments, cwd=folder, timeout=timeout, options=[*options, "-c", "blame.ignoreRevsFile="])
    if not output:
        return None
    rows = output.decode("utf-8", "replace").split("\n")
    text = next((row[1:] for row in rows if row.startswith("\t")), "")
    commit = rows[0].partition(" ")[0]
    if not commit.strip("0"):
        return None, text
    found = _commits(folder, commit, most=1, timeout=timeout)
    return (found[0], text) if found else None


def files_of_commit(folder: Path, commit: str, *, timeout: float) -> list[str]:
    """Return the files of a folder that a commit changed, relative to it."""
    arguments = ("diff-tree", "--no-commit-id", "--name-only", "-r", "-z", "--root", "--relative", "--no-ext-diff")
    output = _run(*arguments, commit, cwd=folder, timeout=timeout)
    return [name for name in (output or b"").decode("utf-8", "replace").split("\0") if name]


def _commits(folder: Path, *arguments: str, most: int, timeout: float) -> list[Commit]:
    output = _run(
        "rev-list", f"--max-count={most}", f"--format={_COMMIT_FORMAT}", *arguments, cwd=folder, timeout=timeout
    )
    found: list[Commit] = []
    for record in (output or b"").decode("utf-8", "replace").split("\x1e"):
        # Each record follows a line that says "commit" and its id.
        fields = record.strip("\n").partition("\n")[2].split("\x1f")
        if len(fields) == 5:
            commit, author, moment, subject, trailer = fields
            found.append(
                Commit(
                    hash=commit,
                    author=author,
                    committed_at=datetime.fromisoformat(moment),
                    subject=subject,
                    trailer=trailer.split(",")[0].strip(),
                )
            )
    return found


def global_user_name(*, timeout: float = 2.0) -> str:
    """Return ``user.name`` of the user's own git settings, empty without one; a repository's is never used."""
    # Without a repository, no includeIf of the user's settings can match one either.
    output = _run(
        "config",
        "--global",
        "--includes",
        "--get",
        "user.name",
        cwd=Path("/"),
        timeout=timeout,
        environment={"GIT_DIR": os.devnull},
    )
    return (output or b"").decode("utf-8", "replace").strip()


def _run(
    *arguments: str,
    cwd: Path,
    timeout: float,
    environment: dict[str, str] | None = None,
    options: Iterable[str] = (),
) -> bytes | None:
    program = _program()
    if program is None:
        return None
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ} | {"PATH": _search_path()}
    try:
        done = subprocess.run(
            [program, *_OPTIONS, *options, *arguments],
            cwd=cwd,
            env=inherited | _ENVIRONMENT | (environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    except OSError:
        _found_in.cache_clear()
        return None
    return done.stdout if done.returncode == 0 else None


def _program() -> str | None:
    program = _found_in(_search_path())
    if program is None:
        _found_in.cache_clear()  # It may be installed meanwhile.
    return program


@lru_cache(maxsize=1)
def _found_in(path: str) -> str | None:
    return shutil.which("git", path=path)


def _search_path() -> str:
    """Return PATH without empty and relative entries, which would look for programs in the folder itself."""
    return _absolute_entries(os.environ.get("PATH", ""))


@lru_cache(maxsize=1)
def _absolute_entries(path: str) -> str:
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if Path(entry).is_absolute())
