"""Processes of commands, started so that they can always be ended, even by the next engine after a crash.

In namespaces (see `confinement.py`) the end of a command's init process ends all others, and it ends when its engine
does. Elsewhere there are three safety nets, since each has holes: the shell dies with the engine (parent-death
signal, Linux), all of a command's processes form one process group, and each carries a mark in its environment that is
recorded in a file until the command has ended. Processes that a killed engine leaves behind are found by that mark,
never by a process id alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import secrets
import shutil
import signal
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec
import psutil

from ragforge_tui.shared.files import STATE_BYTES, atomic_write, read_regular
from ragforge_tui.shared.json_text import decode_json
from ragforge_tui.shared.redaction import mask_secrets
from ragforge_tui.tools.shell.confinement import Confinement, is_of_session, launcher_arguments
from ragforge_tui.tools.shell.sandbox import Room
from ragforge_tui.tools.shell.search_path import environment_of, program_folders, search_path

_log = logging.getLogger(__name__)

MARK = "RAGFORGE_COMMAND"
"""Environment variable that marks every process of a command."""

_SECRET_NAMES = re.compile(
    # Anywhere in a name; then words that must be whole or final, to tell PAT from PATH and PASS from PASSENGER.
    r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|WEBHOOK|CONNECTION_?STRING|CONN_STR"
    r"|(?:PASS|PWD|PW)$|(?:^|_)(?:PASS|PWD|PAT|AUTH|DSN|COOKIE|JWT)(?:_|$)"
)
_NO_SECRETS = frozenset({"PWD", "OLDPWD", "SSH_AUTH_SOCK", "GIT_ASKPASS", "SSH_ASKPASS", "SUDO_ASKPASS"})
"""Variables named like a secret that hold a folder, a socket or a program."""
_NAMED_SECRET = re.compile(r"(?i)(?:^|[;?&\s])(?:password|passwd|pwd|secret|token|accountkey|sharedaccesskey)=[^;&\s]")
_LAST_OUTPUT = 1.0
_GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL."""


class CommandRecord(msgspec.Struct, kw_only=True):
    """Record of a running command, without the command itself, which may contain secrets.

    Attributes:
        owner, owner_started: Process that started the command; while it lives, other processes ignore the record.
        group, group_started: Process group of the command and start time of its first process, once known.
    """

    mark: str
    owner: int
    owner_started: float
    group: int = 0
    group_started: float = 0.0


def scrubbed_environment(
    environment: Mapping[str, str], mark: str, *, kept: Collection[str] = (), session: bool = True
) -> dict[str, str]:
    """Return an environment without variables that have the name or the value of a secret.

    Args:
        kept: Names that stay in any case.
        session: Whether the addresses of the user's terminal, desktop and agents stay.
    """
    scrubbed = {
        name: value
        for name, value in environment.items()
        if name in kept or not (_is_secret(name, value) or (not session and is_of_session(name)))
    }
    # There is no user to answer a prompt or to operate a pager.
    scrubbed.update(TERM="dumb", PAGER="cat", GIT_PAGER="cat", GIT_TERMINAL_PROMPT="0")
    scrubbed[MARK] = mark
    return scrubbed


def _is_secret(name: str, value: str) -> bool:
    if name in _NO_SECRETS:
        return False
    named = _SECRET_NAMES.search(name.upper()) or _NAMED_SECRET.search(value)
    return bool(named) or _carries_password(value) or mask_secrets(value) != value


def _carries_password(value: str) -> bool:
    if "://" not in value or "@" not in value:
        return False
    try:
        return bool(urlsplit(value).password)
    except ValueError:
        return False


def _workspace_variables(workspace: Path, path: str) -> dict[str, str]:
    """Return the variables by which a command finds the programs of the workspace's own environment first; blocks."""
    variables = {"PATH": search_path(workspace, path)}
    environment = environment_of(workspace)
    if environment is not None and environment / "bin" in program_folders(workspace):
        variables["VIRTUAL_ENV"] = str(environment)
    return variables


def shell_arguments(command: str) -> list[str]:
    """Return the arguments of the shell that runs a command."""
    return [shutil.which("bash") or "/bin/sh", "-c", command]


class RunningCommand(NamedTuple):
    """Command that was started.

    Attributes:
        lifeline: Pipe whose end tells the init process of a namespace to end the command.
        output: Output of the command and its children, from a pipe of our own: with asyncio's pipe, waiting for the
            process would wait for every process that inherited the pipe, background processes included.
    """

    mark: str
    process: asyncio.subprocess.Process
    lifeline: int
    output: asyncio.StreamReader
    pipe: asyncio.ReadTransport


class Commands:
    """Running commands of one toolbox.

    Args:
        kept_variables: Names of variables that commands get in any case.
        confinement: Where they run; None: where the program itself does, for the user's own commands.
    """

    def __init__(
        self, state_dir: Path, *, kept_variables: Collection[str] = (), confinement: Confinement | None = None
    ) -> None:
        self._kept_variables = kept_variables
        self._confinement = confinement
        self._folder = state_dir / "commands"
        self._running: dict[str, RunningCommand] = {}
        self._starting: set[asyncio.Task[RunningCommand]] = set()

    async def start(
        self, command: str, folder: Path, *, with_input: bool = False, room: Room | None = None
    ) -> RunningCommand:
        """Start a command in its own session, with output and errors in one pipe; `end` must be called afterwards.

        Args:
            with_input: Whether its input is a pipe, rather than empty.
            room: Its sandbox.
        """
        mark = secrets.token_hex(16)
        task = asyncio.create_task(self._spawn(mark, command, folder, room, with_input=with_input))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            # Cancelled during the start: wait for the start to complete, so that the process can be ended.
            await asyncio.wait([task])
            if task.exception() is None:
                await self.end(mark)
            raise

    async def _spawn(
        self, mark: str, command: str, folder: Path, room: Room | None, *, with_input: bool
    ) -> RunningCommand:
        record = CommandRecord(mark=mark, owner=os.getpid(), owner_started=_started(os.getpid()))
        # Recorded before the start: a crash in between leaves a mark without a process, not an untracked process.
        await asyncio.to_thread(self._save, record)
        try:
            how = room.arguments if room is not None else ["plain", ""]
            if self._confinement is not None and room is None:
                how = await asyncio.to_thread(self._confinement.arguments)
            environment = scrubbed_environment(
                os.environ, mark, kept=self._kept_variables, session=self._confinement is None
            )
            if self._confinement is not None:
                # The user's own commands run as they would in their shell.
                environment |= await asyncio.to_thread(_workspace_variables, folder, environment.get("PATH", ""))
            if room is not None:
                environment = await asyncio.to_thread(room.environment, environment) | {MARK: mark}
            running = await _piped(mark, how, shell_arguments(command), folder, environment, with_input=with_input)
        except BaseException:
            self._forget(mark)
            raise
        self._running[mark] = running
        record.group, record.group_started = running.process.pid, _started(running.process.pid)
        await asyncio.to_thread(self._save, record)
        return running

    async def end(self, mark: str, *, last_output: asyncio.Task[None] | None = None) -> bool:
        """End the remaining processes of a command.

        Args:
            last_output: Task that reads the pipe; once all processes have ended, it gets `_LAST_OUTPUT` seconds to
                read the rest.

        Returns:
            Whether any process was still running.
        """
        running = self._running.get(mark)
        if running is None:
            return False
        process = running.process
        others = await asyncio.to_thread(_processes_of, mark, process.pid)
        any_running = process.returncode is None or bool(others)
        if any_running:
            await _end_processes(mark, process, others)
        if last_output is not None:
            await asyncio.wait([last_output], timeout=_LAST_OUTPUT)
        running.pipe.close()
        if self._running.pop(mark, None) is not None:
            os.close(running.lifeline)
        await asyncio.to_thread(self._forget, mark)
        return any_running

    async def close(self) -> None:
        if self._starting:
            await asyncio.wait(self._starting)  # A command that just starts runs already, but is not listed yet.
        await asyncio.gather(*(self.end(mark) for mark in list(self._running)))

    def _save(self, record: CommandRecord) -> None:
        atomic_write(self._folder / f"{record.mark}.json", msgspec.json.encode(record), sync=False)

    def _forget(self, mark: str) -> None:
        (self._folder / f"{mark}.json").unlink(missing_ok=True)


async def _piped(
    mark: str,
    how: Sequence[str],
    arguments: list[str],
    folder: Path,
    environment: Mapping[str, str],
    *,
    with_input: bool,
) -> RunningCommand:
    """Start a program with its output in a pipe, and its input empty or in another one."""
    read_end, write_end = os.pipe()
    lifeline, held = os.pipe()
    reader = asyncio.StreamReader()
    if sys.platform.startswith("linux"):
        arguments = [*launcher_arguments(lifeline, how), *arguments]
    try:
        process = await asyncio.create_subprocess_exec(
            *arguments,
            cwd=folder,
            env=environment,
            stdin=asyncio.subprocess.PIPE if with_input else asyncio.subprocess.DEVNULL,
            stdout=write_end,
            stderr=write_end,
            start_new_session=True,
            pass_fds=(lifeline,),
        )
    except BaseException:
        os.close(read_end)
        os.close(held)
        raise
    finally:
        os.close(write_end)
        os.close(lifeline)
    pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read_end, "rb", buffering=0)
    )
    return RunningCommand(mark, process, held, reader, pipe)


async def _end_processes(mark: str, process: asyncio.subprocess.Process, others: list[psutil.Process]) -> None:
    """Send SIGTERM to all processes of a command, wait up to `_GRACE` seconds, then send SIGKILL."""
    _signal_all(process, others, signal.SIGTERM)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), _GRACE)
    await asyncio.to_thread(_wait_ended, others)
    # Search again: a child may have been started while its siblings were being ended.
    others = await asyncio.to_thread(_processes_of, mark, process.pid)
    _signal_all(process, others, signal.SIGKILL)
    await process.wait()


def end_leftovers(state_dir: Path) -> int:
    """End the processes of commands whose engine no longer runs, and return their number; blocks."""
    ended = 0
    for path in sorted((state_dir / "commands").glob("*.json")):
        try:
            record = decode_json(read_regular(path, STATE_BYTES), CommandRecord)
        except FileNotFoundError:
            continue
        except (OSError, msgspec.MsgspecError) as error:
            _log.warning("Unreadable record of a command %s: %s", path.name, error)
            path.unlink(missing_ok=True)
            continue
        if _started(record.owner) == record.owner_started:
            continue
        ended += _end_leftover(record)
        path.unlink(missing_ok=True)
    return ended


def _end_leftover(record: CommandRecord) -> int:
    leftovers = _processes_of(record.mark)
    if record.group and _started(record.group) == record.group_started:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(record.group, signal.SIGKILL)
    _signal_each(leftovers, signal.SIGKILL)
    if leftovers:
        _log.info("Ended %d processes that a command left behind", len(leftovers))
    return len(leftovers)


def _started(pid: int) -> float:
    """Return the start time of a process, 0 if it does not exist."""
    try:
        return psutil.Process(pid).create_time()
    except psutil.Error:
        return 0.0


def _wait_ended(processes: list[psutil.Process]) -> None:
    """Wait up to `_GRACE` seconds for processes that are not our children; a zombie counts as ended."""
    deadline = time.monotonic() + _GRACE
    while processes and time.monotonic() < deadline:
        processes = [process for process in processes if _runs(process)]
        time.sleep(0.02 if processes else 0)


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _processes_of(mark: str, group: int = 0) -> list[psutil.Process]:
    """Return all processes that carry a mark, even outside their group, and those of a group we still hold."""
    matching = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            ours = process.environ().get(MARK) == mark or (group > 0 and _group_of(process) == group)
            if ours and process.status() != psutil.STATUS_ZOMBIE:
                matching.append(process)
    return matching


def _signal_all(process: asyncio.subprocess.Process, others: list[psutil.Process], number: signal.Signals) -> None:
    # The group id stays ours until its first process is reaped and all its processes have ended.
    if process.returncode is None or any(_group_of(other) == process.pid for other in others):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
    _signal_each(others, number)


def _group_of(process: psutil.Process) -> int:
    try:
        return os.getpgid(process.pid)
    except ProcessLookupError:
        return 0


def _signal_each(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        # psutil checks the start time, so a reused process id is never signalled.
        with contextlib.suppress(psutil.Error):
            process.send_signal(number)
