"""The two questions put to git: which files a folder has, and what the user is called.

A folder that came from elsewhere may bring its own ``.git``, and its configuration can name programs: a remote to
fetch missing objects from, a file monitor, hooks, filters. The chat asks git at its start, before anything of the
folder is trusted, so every call goes through this module, which lets none of them run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

_INHERITED = (
    "PATH",
    "HOME",
    "XDG_CONFIG_HOME",
    "USER",
    "TMPDIR",
    # Where the user's own settings are and where the search for a repository ends; set by the user, not by a folder.
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CEILING_DIRECTORIES",
)
_ENVIRONMENT = {
    # A missing object is fetched from the remote the repository names, and a remote may be any command. This list
    # of protocols wins over protocol.*.allow of the repository; no protocol is called "none".
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
    # A folder laid out like the inside of .git is no repository unless it is named as one.
    "-c",
    "safe.bareRepository=explicit",
)


def list_files(folder: Path, *, most: int, timeout: float) -> list[str] | None:
    """Return the tracked and untracked files below a folder, without ignored ones; relative to it, in git's order.

    Args:
        folder: A folder inside a work tree.
        most: Number of files after which the list is cut.
        timeout: Seconds git may take.

    Returns:
        None when git is missing, fails, takes longer, or the folder is in no repository.
    """
    output = _run("ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=folder, timeout=timeout)
    if output is None:
        return None
    names = output.decode("utf-8", "replace").split("\0")
    # A name that ends with a slash is a repository inside this one.
    return list(dict.fromkeys(name for name in names if name and not name.endswith("/")))[:most]


def global_user_name(*, timeout: float = 2.0) -> str:
    """Return ``user.name`` of the user's own git settings, empty when there is none; a repository's never counts."""
    # Without a repository in sight, an includeIf of the user's settings cannot match one either.
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


def _run(*arguments: str, cwd: Path, timeout: float, environment: dict[str, str] | None = None) -> bytes | None:
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    # An empty or relative entry of PATH would look for programs in the folder itself.
    entries = inherited.get("PATH", "").split(os.pathsep)
    inherited["PATH"] = os.pathsep.join(entry for entry in entries if Path(entry).is_absolute())
    program = shutil.which("git", path=inherited["PATH"])
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, *_OPTIONS, *arguments],
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
