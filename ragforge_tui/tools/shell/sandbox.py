"""Sandbox of the mode auto: a command writes only in the workspace and in temporary folders, without network.

It is the confinement of every command (`confinement.py`) with more closed: all other files are read-only, those with
the home's secrets are hidden, and so are the sockets of programs that would do something in the command's place. What
could later run outside, such as the hooks of git, stays read-only within the workspace.
"""

from __future__ import annotations

import functools
import os
import re
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath

from ragforge_tui.shared.errors import ToolError
from ragforge_tui.tools.base import sandboxed
from ragforge_tui.tools.sensitive import BECAUSE, Guard, is_secret
from ragforge_tui.tools.shell.confinement import (
    OFF,
    PROBE_SECONDS,
    Confinement,
    Mechanism,
    Support,
    launcher_arguments,
)

_MECHANISMS: tuple[Mechanism, ...] = ("namespaces", "bwrap")
PROTECTED = (
    *(
        ".git/config",
        ".git/hooks",
        ".git/info",
        ".git/modules",
        ".git/worktrees",
        ".ragforge",
        ".claude",
        ".codex",
        ".cursor",
        ".gemini",
        ".opencode",
    ),
    *(".vscode", ".idea", ".devcontainer", ".envrc", ".mcp.json", ".husky", ".githooks", ".pre-commit-config.yaml"),
)
"""What a command in the sandbox must not change in the workspace: it runs, or is obeyed, outside of it."""
_WORDS = re.compile(r"[\s;&|()<>'\"`=:,{}$]+")
_SOCKET_FOLDERS = ("/run", "/tmp", "/var/run")
_DEPTH = 3
_HOME_DEPTH = 4
"""Secrets may be as deep as in .local/share/opencode/auth.json."""
_MOST = 5_000


class Sandbox:
    """Where the commands of one workspace run: confined, and in the sandbox if the running call says so.

    Args:
        enabled: Whether commands are confined at all.
    """

    def __init__(self, confinement: Confinement, workspace: Path, guard: Guard, *, enabled: bool) -> None:
        self._confinement = confinement
        self._workspace = workspace
        self._guard = guard
        self._enabled = enabled

    def support(self) -> Support:
        """Return what makes the sandbox; blocks, at the first call, until it has been tried."""
        return sandbox_support(enabled=self._enabled)

    def beyond(self, command: str) -> str:
        """Return why a command cannot do its work in the sandbox, as far as that is known; else nothing. Blocks."""
        support = self.support()
        if support.mechanism is None:
            return f"There is no sandbox here: {support.reason}"
        if Path(self._guard.home).is_relative_to(self._workspace):
            return "The workspace holds your home folder, whose files your shell and programs obey"
        for word in filter(None, _WORDS.split(command)):
            # The sandbox has the whole workspace, and what a command prints goes to the model.
            if (reason := self._guard.of_word(word, "ls", [self._guard.root])) in ("own", "secret"):
                return f"It names {word[:80]}, which {BECAUSE[reason]}"
        return ""

    def arguments(self) -> list[str]:
        """Return the launcher's arguments for a command that starts now. Blocks.

        Raises:
            ToolError: A folder of the program is no longer where it was, or there is no sandbox.
        """
        how = self._confinement.arguments()
        if not sandboxed.get():
            return how
        mechanism = self.support().mechanism
        if mechanism is None:
            raise ToolError("The command was not run, because there is no sandbox here.", kind="os_error")
        return [mechanism, str(self._workspace), *how[2:], *paths(self._workspace, Path(self._guard.home))]


def unplanted(workspace: Path, absent: Iterable[Path]) -> list[str]:
    """Move what a command has made in places that programs outside obey; return the names. Blocks.

    Args:
        absent: Such places that were free before the command, as `free_places` returns them.
    """
    moved = []
    for path in absent:
        if os.path.lexists(path):
            path.rename(path.with_name(f"{path.name}.from-sandbox"))
            moved.append(path.relative_to(workspace).as_posix())
    return moved


def free_places(workspace: Path) -> list[Path]:
    """Return the places that must stay as they are and in which nothing is yet. Blocks."""
    inside = (workspace / ".git").is_dir()
    names = (*(name for name in PROTECTED if inside or not name.startswith(".git/")), *([".git/commondir"] * inside))
    return [path for name in names if not os.path.lexists(path := workspace / name)]


def paths(workspace: Path, home: Path) -> list[str]:
    """Return the launcher's paths for the sandbox, each after its sign. Blocks."""
    writable = [workspace, *_temporary()]
    if (workspace / ".git").is_dir():
        writable.append(workspace / ".git")  # A folder that is a mount cannot be renamed, and made again in its place.
    protected = [path for name in PROTECTED if (path := workspace / name).exists()]
    if (workspace / ".git").is_file():
        protected.append(workspace / ".git")  # Of a work tree: it says where the repository is.
    hidden = [*_secrets(home, workspace), *_sockets()]
    return [
        *(f"*{path.resolve()}" for path in dict.fromkeys(writable)),
        *(f"r{path.resolve()}" for path in protected),
        *(f"-{path}" for path in dict.fromkeys(hidden)),
    ]


def _temporary() -> Iterator[Path]:
    for path in dict.fromkeys((tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm")):
        if Path(path).is_dir():
            yield Path(path)


def _secrets(home: Path, workspace: Path) -> Iterator[Path]:
    """Yield the files and folders of the home that are named like secrets; of folders, only those with a dot."""
    left = _MOST
    pending = [home]
    while pending and left > 0:
        folder = pending.pop(0)
        for entry in _entries(folder):
            left -= 1
            path = Path(entry.path)
            below = path.relative_to(home)
            if workspace.is_relative_to(path):
                continue
            if is_secret(str(below)):
                # Behind a link lies what has to be hidden; a link to nothing hides nothing.
                real = path.resolve()
                if real.exists() and not workspace.is_relative_to(real):
                    yield real
            elif _is_searched(below) and entry.is_dir(follow_symlinks=False):
                pending.append(path)


def _is_searched(below: PurePath) -> bool:
    parts = below.parts
    return parts[0].startswith(".") and parts[0] != ".cache" and len(parts) < _HOME_DEPTH


def _sockets() -> Iterator[Path]:
    """Yield the sockets of other programs, to which a read-only file system is no barrier."""
    left = _MOST
    for top in dict.fromkeys(os.path.realpath(folder) for folder in _SOCKET_FOLDERS):
        pending = [(Path(top), 0)]
        while pending and left > 0:
            folder, depth = pending.pop()
            for entry in _entries(folder):
                left -= 1
                try:
                    mode = entry.stat(follow_symlinks=False).st_mode
                except OSError:
                    continue
                if stat.S_ISSOCK(mode):
                    yield Path(entry.path)
                elif stat.S_ISDIR(mode) and depth < _DEPTH:
                    pending.append((Path(entry.path), depth + 1))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def sandbox_support(*, enabled: bool) -> Support:
    """Return what makes the sandbox; blocks, at the first call, until it has been tried.

    Args:
        enabled: Whether commands are confined at all.
    """
    return _tried() if enabled else Support(None, OFF)


@functools.cache
def _tried() -> Support:
    if not sys.platform.startswith("linux"):
        return Support(None, "there is no sandbox on this system")
    reasons = []
    for mechanism in _MECHANISMS:
        failure = _probe(mechanism)
        if not failure:
            return Support(mechanism)
        reasons.append(f"{mechanism}: {failure}")
    return Support(None, "; ".join(reasons))


def _probe(mechanism: Mechanism) -> str:
    """Return why a small command is not kept from the network and from writing elsewhere; empty if it is."""
    lifeline, held = os.pipe()
    with tempfile.TemporaryDirectory() as folder:
        inside = Path(folder).resolve() / "inside"
        inside.mkdir()
        script = 'touch "$0/x" && ! touch "$0/../y" 2>/dev/null && [ "$(grep -c : /proc/net/dev)" = 1 ] && echo closed'
        command = [*launcher_arguments(lifeline, [mechanism, str(inside), f"*{inside}"]), "/bin/sh", "-c", script]
        try:
            done = subprocess.run(
                [*command, str(inside)],
                capture_output=True,
                text=True,
                timeout=PROBE_SECONDS,
                check=False,
                pass_fds=(lifeline,),
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        finally:
            os.close(lifeline)
            os.close(held)
    return "" if done.stdout.strip() == "closed" else (done.stdout + done.stderr).strip() or "it is not closed"
