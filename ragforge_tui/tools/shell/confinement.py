"""Confinement of the agent's commands: they run where this program is not.

A command may do what the user may, except reach the program's own folders, sockets and processes, the terminal, and
what else could be told to type or run something in its place. `launcher.py` carries it out. Namespaces are the one
mechanism; bubblewrap sets up the same ones where only it may, and Landlock takes over where nobody may.
"""

from __future__ import annotations

import functools
import logging
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from ragforge_tui.shared.errors import ToolError

_log = logging.getLogger(__name__)

Mechanism = Literal["namespaces", "bwrap", "landlock"]
MECHANISMS: tuple[Mechanism, ...] = ("namespaces", "bwrap", "landlock")
"""From the best to the weakest."""
OFF = "not confined: tools.confine_commands is false"
LAUNCHER = Path(__file__).with_name("launcher.py")
PROBE_SECONDS = 20.0
_SESSION_VARIABLES = re.compile(
    # Terminals and multiplexers that type what they are told, editors that run it, displays, buses, agents for keys.
    r"TMUX.*|STY|ZELLIJ.*|KITTY_.*|WEZTERM_.*|ALACRITTY_.*|KONSOLE_.*|GNOME_TERMINAL_.*|TILIX_.*|WINDOWID|GPG_TTY|SSH_TTY"
    r"|NVIM.*|VSCODE_.*|(?:DISPLAY|XAUTHORITY|SESSION_MANAGER|WAYLAND_.*|SWAYSOCK|I3SOCK|HYPRLAND_.*)"
    r"|DBUS_.*|SSH_AUTH_SOCK|SSH_AGENT_PID|GPG_AGENT_INFO"
)


class Support(msgspec.Struct, frozen=True):
    """What confines commands on this machine.

    Attributes:
        mechanism: None if nothing does.
        reason: Why nothing does, or why nothing better.
    """

    mechanism: Mechanism | None
    reason: str = ""

    @property
    def question(self) -> str:
        """The sentence that follows the question whether to run a command."""
        if self.mechanism is None:
            return "Commands are not confined here: it can reach whatever you can, and this chat's memory and keys."
        return "It can do what you can, but cannot reach this chat's own files."

    @property
    def description(self) -> str:
        """The line of `doctor`."""
        if self.mechanism is None:
            return self.reason
        if self.mechanism == "landlock":
            return f"confined in part, by Landlock: this program's files, not the terminal ({self.reason})"
        by = "bubblewrap" if self.mechanism == "bwrap" else self.mechanism
        return f"confined by {by}: they cannot reach this program's files, sockets and processes"


def is_of_session(variable: str) -> bool:
    """Return whether a variable names the user's terminal, desktop or agents."""
    return _SESSION_VARIABLES.fullmatch(variable.upper()) is not None


class Confinement:
    """Confinement of the commands of one workspace.

    Args:
        folders: The folders of the program.
        file: The user's settings file, which may be elsewhere.
        kept_variables: Names of variables that commands get; the sockets they name stay too.
    """

    def __init__(
        self,
        workspace: Path,
        folders: Sequence[Path],
        *,
        file: Path | None = None,
        enabled: bool = True,
        kept_variables: Collection[str] = (),
    ) -> None:
        self._workspace = workspace
        self._folders = folders
        self._file = file
        self._kept_variables = kept_variables
        self._enabled = enabled
        self._known: dict[Path, tuple[int, int]] = {}

    def support(self) -> Support:
        """Return what confines the commands; blocks, at the first call, until it has been tried."""
        return supported() if self._enabled else Support(None, OFF)

    def arguments(self) -> list[str]:
        """Return the launcher's arguments for a command that starts now: how, the workspace, the paths to hide. Blocks.

        Raises:
            ToolError: A folder of the program is no longer where it was.
        """
        mechanism = self.support().mechanism
        if mechanism is None:
            return ["plain", ""]
        return [mechanism, str(self._workspace), *self._hidden()]

    def _hidden(self) -> list[str]:
        own = [self._located(folder) for folder in dict.fromkeys(self._folders)]
        if self._file is not None and (self._file.exists() or self._file in self._known):
            own.append(self._located(self._file))
        above = [path for path in own if self._workspace.is_relative_to(path)]
        # RAGFORGE_HOME may hold the workspace; what is within data or state stays hidden.
        kept = above[0] if len(above) == 1 and above[0] != self._workspace else None
        hidden = [
            f"{'=' if path == kept else '-'}{path}"
            for path in own
            if not any(other in path.parents for other in own)
            or (kept is not None and path.is_relative_to(self._workspace))
        ]
        for marked in _foreign(os.environ, self._kept_variables):
            if not any(Path(marked[1:]).is_relative_to(path) for path in own):
                hidden.append(marked)
        return list(dict.fromkeys(hidden))

    def _located(self, path: Path) -> Path:
        """Return the real path of something of the program's, which must be what it was at the first command."""
        known = self._known.get(path)
        if known is None and path != self._file:
            # Else a command could make the folder, and in it settings for the next start.
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            found = path.stat()
        except OSError:
            found = None
        # A file is replaced whenever the program writes it.
        if found is None or (known is not None and path != self._file and known != (found.st_dev, found.st_ino)):
            # A command may rename a folder above it, and the next command would find it there.
            raise ToolError(
                f"The command was not run, because {path} is no longer where it was.",
                todo="Tell the user to put it back, or to start the chat again.",
                kind="os_error",
            )
        self._known[path] = found.st_dev, found.st_ino
        return path.resolve()


def _foreign(environment: Mapping[str, str], kept: Collection[str]) -> Iterator[str]:
    """Yield what else commands must not reach, with the launcher's sign: ``-``, or ``+`` if they may have their own."""
    user = os.getuid()
    runtime = Path(environment.get("XDG_RUNTIME_DIR") or f"/run/user/{user}")
    name = environment.get("USER") or environment.get("LOGNAME") or ""
    own = [Path(environment.get("TMUX_TMPDIR") or "/tmp", f"tmux-{user}"), runtime / "zellij", Path("/tmp/.X11-unix")]
    own += [Path("/run/screen", f"S-{name}"), Path("/tmp", f"tmux-{user}")]
    yield from (f"+{path}" for path in dict.fromkeys(own) if path.is_dir())
    # Programs that start others: the user's bus and manager of services; as root, those of the system and all disks.
    others = [runtime / "bus", runtime / "systemd"]
    if user == 0:
        others += [Path("/run/systemd/private"), Path("/run/dbus/system_bus_socket"), *_disks(Path("/dev"))]
    else:
        # To ssh in a user namespace these files, which it includes, belong to a stranger, and it would refuse to start.
        others.append(Path("/etc/ssh/ssh_config.d"))
    yield from (f"-{path}" for path in others if path.exists())
    for variable, value in environment.items():
        if variable not in kept and is_of_session(variable):
            for part in re.split(r"[,;:=]", value):
                path = runtime / part if variable == "WAYLAND_DISPLAY" else Path(part)
                if path.is_absolute() and path.is_socket():
                    yield f"-{path.resolve()}"


def _disks(folder: Path) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False) and entry.name in ("mapper", "block"):
                yield from _disks(Path(entry.path))
            elif not entry.is_symlink() and stat.S_ISBLK(entry.stat().st_mode):
                yield Path(entry.path)


@functools.cache
def supported() -> Support:
    """Return the best mechanism that works here; blocks until it has been tried."""
    if not sys.platform.startswith("linux"):
        return Support(None, "not confined: there is no way to on this system")
    reasons: list[str] = []
    for mechanism in MECHANISMS:
        failure = probe(mechanism)
        if not failure:
            return Support(mechanism, "; ".join(reasons))
        reasons.append(f"{mechanism}: {failure}")
    reason = f"not confined: {'; '.join(reasons)}"
    _log.warning("commands are %s", reason)
    return Support(None, reason)


def probe(mechanism: Mechanism) -> str:
    """Run a small command that looks for a hidden file, and return why it is not hidden; empty if it is."""
    if mechanism == "bwrap" and shutil.which("bwrap") is None:
        return "bubblewrap is not installed"
    lifeline, held = os.pipe()
    with tempfile.TemporaryDirectory() as folder:
        hidden = Path(folder).resolve() / "hidden"
        hidden.mkdir()
        (hidden / "file").write_text("x", "ascii")
        command = launcher_arguments(lifeline, [mechanism, "/", f"-{hidden}"])
        command += ["/bin/sh", "-c", 'cat "$0" 2>/dev/null && echo It is not hidden.', str(hidden / "file")]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=PROBE_SECONDS, check=False, pass_fds=(lifeline,)
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        finally:
            os.close(lifeline)
            os.close(held)
    return (done.stdout + done.stderr).strip() if done.returncode != 1 or done.stdout else ""


def launcher_arguments(lifeline: int, how: Sequence[str]) -> list[str]:
    """Return the beginning of a command line that the program and its arguments follow."""
    return [sys.executable, "-I", "-S", str(LAUNCHER), str(os.getpid()), str(lifeline), *how, "--"]
