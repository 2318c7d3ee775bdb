"""Sandbox of commands: those of the mode auto write only in the workspace, and those that only read write nowhere.

It is the confinement of every command (`confinement.py`) with more closed: all other files are read-only, there is no
network, and files with secrets and the sockets of programs that would do something in the command's place are hidden.
What could later run outside, such as the hooks of git, stays read-only within the workspace too (`protected.py`). A
command that only reads sees nothing of the home either, and gets no setting that names a program.
"""

from __future__ import annotations

import errno
import functools
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ragforge_tui.shared.git import STAND_INS, as_variables, reading_variables, repository_folders
from ragforge_tui.tools.base import SandboxRefusal, Walls
from ragforge_tui.tools.sensitive import BECAUSE, Guard
from ragforge_tui.tools.shell.confinement import (
    LAUNCHER,
    OFF,
    PROBE_SECONDS,
    Confinement,
    Mechanism,
    Support,
    launcher_arguments,
)
from ragforge_tui.tools.shell.protected import Protected
from ragforge_tui.tools.shell.search_path import search_path, system_path
from ragforge_tui.tools.shell.survey import Survey, bound_sockets, other_parts, secrets_of_home

_MECHANISMS: tuple[Mechanism, ...] = ("namespaces", "bwrap")
_WORDS = re.compile(r"[\s;&|()<>'\"`=:,{}$]+")
_KEPT_VARIABLES = re.compile(r"HOME|USER|LOGNAME|LANG|LC_.*|TZ|TERM|XDG_CONFIG_HOME")
_LOOKUP = re.compile(r"(?:which|type) [\w.+ -]+")
_REFUSED = re.compile("|".join(map(os.strerror, (errno.EROFS, errno.ENETUNREACH))) + "|name resolution", re.IGNORECASE)
"""Words of the kernel and the C library for a refused write or connection."""
_SHOWN = 120
_TOO_MANY = "There are more files in {} than are searched for secrets"
_MOST_NAMED = 5


class Room:
    """Sandbox of one command.

    Attributes:
        arguments: The launcher's arguments.
    """

    def __init__(self, sandbox: Sandbox, walls: Walls, command: str) -> None:
        self.arguments: list[str] = []
        self.walls = walls
        self._sandbox = sandbox
        self._command = command
        self._held = -1

    def enter(self) -> None:
        """Collect the files to hide and to protect; blocks. `leave` must be called afterwards.

        Raises:
            SandboxRefusal: There are too many files to be sure of.
            ToolError: A folder of the program is no longer where it was.
        """
        here = self._sandbox
        how = here.confinement.arguments()
        mechanism = here.support().mechanism
        if mechanism is None:
            if self.walls == "workspace":
                raise SandboxRefusal("There is no sandbox here")
            self.arguments = how
            return
        self._before = here.survey.look()
        if not self._before.complete:
            raise SandboxRefusal(_TOO_MANY.format("the workspace"))
        hidden = [here.workspace / name for name in self._before.hidden]
        hidden = [path for path in map(Path.resolve, hidden) if path.is_relative_to(here.workspace)]
        if self.walls == "reading":
            signs = [f"r{here.workspace}"]
            hidden += here.home_parts(self._command)
        else:
            found, complete = secrets_of_home(here.home, here.workspace)
            if not complete:
                raise SandboxRefusal(_TOO_MANY.format("your home"))
            hidden += found
            self._held = here.protected.hold()
            repositories = [here.workspace / name for name in self._before.repositories]
            # A folder that is a mount cannot be renamed, and made again in its place.
            writable = [here.workspace, *_temporary(), *(path for path in repositories if path.is_dir())]
            signs = [f"*{path.resolve()}" for path in writable]
            signs += [f"r{path}" for path in here.protected.paths(self._before, self._command)]
        hidden += bound_sockets()
        self.arguments = [mechanism, str(here.workspace), *how[2:], *dict.fromkeys(signs)]
        self.arguments += [f"-{path}" for path in dict.fromkeys(hidden)]

    def environment(self, scrubbed: dict[str, str]) -> dict[str, str]:
        """Return the variables of the command, given those of any other one; blocks."""
        if self.walls == "workspace":
            return scrubbed | ({} if "GIT_CONFIG_COUNT" in scrubbed else as_variables(STAND_INS))
        path = scrubbed.get("PATH", os.defpath)
        looks_up = _LOOKUP.fullmatch(self._command) is not None
        kept = {name: value for name, value in scrubbed.items() if _KEPT_VARIABLES.fullmatch(name)}
        if "LC_ALL" in kept:
            kept["LANG"] = kept.pop("LC_ALL")
        kept |= {"LC_MESSAGES": "C", "PATH": path if looks_up else system_path(self._sandbox.workspace, path)}
        return kept | (reading_variables() if "git" in self._command else {})

    def check(self, output: str) -> None:
        """Check the output of a failed command.

        Raises:
            SandboxRefusal: It failed because it only may read.
        """
        if self.walls == "reading" and (refused := _REFUSED.search(output)):
            start = output.rfind("\n", 0, refused.start()) + 1
            line = output[start:].partition("\n")[0].strip()
            raise SandboxRefusal(f"It wanted more than to read, and was stopped: {line[:_SHOWN].rstrip('.')}")

    def leave(self) -> list[str]:
        """Return the command's changes to files that later run or instruct outside; blocks."""
        if self._held < 0:
            return []
        try:
            return self._sandbox.protected.note(self._before, self._sandbox.survey.look())
        finally:
            self._sandbox.protected.release(self._held)
            self._held = -1


class Sandbox:
    """Sandboxes of the commands of one workspace.

    Args:
        state: The folder for what is kept between commands.
        enabled: Whether commands are confined at all.
    """

    def __init__(self, confinement: Confinement, workspace: Path, guard: Guard, state: Path, *, enabled: bool) -> None:
        self.confinement = confinement
        self.workspace = workspace
        self.survey = Survey(workspace)
        self.protected = Protected(workspace, state / "sandbox")
        self._guard = guard
        self._enabled = enabled

    @property
    def home(self) -> Path:
        return Path(self._guard.home)

    def support(self) -> Support:
        """Return what makes the sandbox; blocks, at the first call, until it has been tried."""
        return sandbox_support(enabled=self._enabled)

    def room(self, walls: Walls, command: str) -> Room:
        """Return the sandbox of a command that starts now."""
        return Room(self, walls, command)

    def beyond(self, command: str) -> str:
        """Return why a command cannot do its work in the sandbox, as far as that is known; else nothing. Blocks."""
        support = self.support()
        if support.mechanism is None:
            return f"There is no sandbox here: {support.reason}"
        if self.home.is_relative_to(self.workspace):
            return "The workspace holds your home folder, whose files your shell and programs obey"
        for word in filter(None, _WORDS.split(command)):
            # The sandbox has the whole workspace, and what a command prints goes to the model.
            if (reason := self._guard.of_word(word, "ls", [self._guard.root])) in ("own", "secret"):
                return f"It names {word[:80]}, which {BECAUSE[reason]}"
        return ""

    def planted(self) -> str:
        """Return a sentence on sandboxed changes to files that run outside; blocks."""
        changed = self.protected.changed()
        return f"A command in the sandbox changed {named(changed)}, which may run now" if changed else ""

    def home_parts(self, command: str) -> list[Path]:
        """Return all of the home that a command that only reads has no need of; blocks."""
        if self.home == Path("/") or self.home.is_relative_to(self.workspace):
            return []
        programs = map(Path, search_path(self.workspace, os.environ.get("PATH", "")).split(os.pathsep))
        settings = Path(os.environ.get("XDG_CONFIG_HOME") or self.home / ".config", "git", "ignore")
        kept = [self.workspace, settings, LAUNCHER.parent, Path(sys.prefix), Path(sys.base_prefix), *programs]
        kept += repository_folders(self.workspace) if "git" in command else []
        return list(other_parts(self.home, kept))


def named(names: list[str]) -> str:
    """Return names in a few words."""
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _temporary() -> Iterator[Path]:
    for path in dict.fromkeys((tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm")):
        if Path(path).is_dir():
            yield Path(path)


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
