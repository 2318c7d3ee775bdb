"""The git queries of the program: the files of a folder, the state of its repository, and the user's name.

A folder from another source may bring its own ``.git``, and its configuration can name programs: a remote to
fetch missing objects from, a file monitor, hooks, filters. The chat calls git at its start, before anything in the
folder is trusted, so every call goes through this module, which keeps those programs from running.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import msgspec

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
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    # An empty or relative entry of PATH would look for programs in the folder itself.
    entries = inherited.get("PATH", "").split(os.pathsep)
    inherited["PATH"] = os.pathsep.join(entry for entry in entries if Path(entry).is_absolute())
    program = shutil.which("git", path=inherited["PATH"])
    if program is None:
        return None
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
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
