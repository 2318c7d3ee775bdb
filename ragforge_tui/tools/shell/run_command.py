"""Tool run_command: run a shell command in the workspace, with a timeout and an output limit.

The user is protected by seeing the exact command, and by what it cannot reach (`confinement.py`), which the question
states. `process.py` manages the processes.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Coroutine
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from ragforge_tui.shared.errors import ToolError
from ragforge_tui.shared.records import STOPPED
from ragforge_tui.shared.sanitize import plain_text, storable, visible
from ragforge_tui.shared.tool_calls import ToolInfo
from ragforge_tui.tools.base import (
    ApprovalNeed,
    CallStopped,
    Plan,
    Tool,
    ToolArguments,
    ToolContext,
    ToolOutcome,
    report_output,
    sandboxed,
)
from ragforge_tui.tools.shell.confinement import Confinement
from ragforge_tui.tools.shell.process import Commands
from ragforge_tui.tools.shell.sandbox import Sandbox

_log = logging.getLogger(__name__)

_CHUNK = 65_536
_TAIL_BYTES = 4_000
_SHOWN_LINES = 3
_REPORT_SECONDS = 0.25
OUTSIDE = "It asks to run outside the sandbox"
SANDBOX_HELP = (
    "It ran in a sandbox: no network, and only the workspace and temporary folders can be written. If that is why it "
    "failed, call it again with outside_sandbox true and the reason; the user is asked."
)
STOPPED_TEXT = "Stopped by the user before it finished."


class RunCommandArguments(ToolArguments):
    command: Annotated[str, Meta(description="The command, as passed to bash -c in the workspace.")]
    timeout_seconds: Annotated[
        float | None, Meta(description="Seconds it may run, if fewer than the configured limit.")
    ] = None
    outside_sandbox: Annotated[
        bool,
        Meta(description="Run without the sandbox of the mode auto, after it stopped the command; the user is asked."),
    ] = False


class Output:
    """Head and tail of a command's output; the middle is counted and dropped as it arrives."""

    def __init__(self, limit: int) -> None:
        # A character in UTF-8 has at most four bytes.
        self._head_limit = limit * 4 * 2 // 3
        self._tail_limit = limit * 4 - self._head_limit
        self._head = bytearray()
        self._tail = bytearray()
        self._limit = limit
        self.size = 0

    def add(self, chunk: bytes) -> None:
        """Add a piece of the output."""
        self.size += len(chunk)
        free = self._head_limit - len(self._head)
        self._head += chunk[:free] if free > 0 else b""
        self._tail += chunk[max(free, 0) :]
        if len(self._tail) > 2 * self._tail_limit:
            del self._tail[: -self._tail_limit]

    def last_lines(self) -> list[str]:
        """Return the last lines that are not empty, also one that is not complete."""
        end = (self._head[-_TAIL_BYTES:] + self._tail[-_TAIL_BYTES:])[-_TAIL_BYTES:]
        # A line that is cut at its beginning is left out: it may begin within a secret, which is not known there.
        lines = _plain(bytes(end)).split("\n")[self.size > len(end) :]
        return [line for line in lines if line.strip()][-_SHOWN_LINES:]

    def text(self) -> tuple[str, bool]:
        """Return the output as plain text, and whether it was cut."""
        tail = bytes(self._tail[-self._tail_limit :])
        if len(self._head) + len(tail) == self.size:
            whole = _plain(bytes(self._head) + tail)
            if len(whole) <= self._limit:
                return whole, False
            head_text, tail_text = whole, whole
        else:
            head_text, tail_text = _plain(bytes(self._head)), _plain(tail)
        head_chars = self._limit * 2 // 3
        tail_chars = self._limit - head_chars
        note = f"\n[… output cut: {self.size} bytes in total, the middle is left out …]\n"
        return head_text[:head_chars] + note + tail_text[-tail_chars:], True


def _plain(content: bytes) -> str:
    text = content.decode("utf-8", "replace").replace("\0", "")
    # A progress bar rewrites its line with carriage returns: keep the text that a terminal would finally show.
    lines = (line.rstrip("\r").rsplit("\r", 1)[-1] for line in text.split("\n"))
    return storable(plain_text("\n".join(lines)))


class RunCommand(Tool):
    """Tool that runs a shell command.

    Attributes:
        confined: Whether the program is out of its reach.
    """

    confined: ClassVar[bool] = True

    info = ToolInfo(
        name="run_command",
        label="Run",
        help="run a shell command",
        access="command",
        main_argument="command",
        verb="ran {}",
        outcome="exit_status",
        weight=3,
    )
    description = (
        "Run a shell command in the workspace folder and get its output (stdout and stderr together) and exit status. "
        "It cannot read input; background processes are ended with the command. The user is asked first, unless it "
        "only reads the workspace, as ls, cat, head, tail, wc, grep -rn, find, sed -n 1,40p, git log, diff, status do."
    )
    arguments = RunCommandArguments

    def __init__(self, context: ToolContext) -> None:
        super().__init__(context)
        settings = context.settings
        self._confinement = Confinement(
            context.workspace.root,
            context.folders,
            file=context.settings_file,
            enabled=settings.confine_commands and self.confined,
            kept_variables=settings.keep_variables,
        )
        self.sandbox = Sandbox(
            self._confinement, context.workspace.root, context.workspace.guard, enabled=settings.confine_commands
        )
        self._commands = Commands(
            context.state_dir,
            kept_variables=settings.keep_variables,
            confinement=self.sandbox if self.confined else None,
        )

    async def prepare(self, arguments: RunCommandArguments) -> Plan:
        command = arguments.command
        if not command.strip():
            raise ToolError("The command is empty.", todo="Give a shell command.")
        if "\0" in command:
            raise ToolError("The command contains a NUL character.", todo="Remove it.")
        limit = self.context.settings.command_timeout
        requested = arguments.timeout_seconds
        timeout = min(requested, limit) if requested is not None and requested > 0 else limit

        support = await asyncio.to_thread(self._confinement.support)
        beyond = OUTSIDE if arguments.outside_sandbox else await asyncio.to_thread(self.sandbox.beyond, command)

        async def run() -> ToolOutcome:
            return await self._run(command, timeout)

        return Plan(
            run=run,
            approval=ApprovalNeed(
                kind="command",
                question=f"Run this command? {support.question}",
                # Line by line, so that a literal U+240A, the symbol for a line feed, is not shown as one.
                detail="\n".join(visible(line) for line in command.split("\n")),
                session_scope="exactly this command",
                session_key=f"run_command:{self.context.workspace.root}:{command}",
                command=command,
                beyond=beyond,
            ),
        )

    async def close(self) -> None:
        await self._commands.close()

    async def _run(self, command: str, timeout: float) -> ToolOutcome:
        try:
            running = await self._commands.start(command, self.context.workspace.root)
        except OSError as error:
            raise ToolError(f"The command could not be started: {error}.", kind="os_error") from error
        output = Output(self.context.settings.max_output_chars)
        reader = asyncio.create_task(_collect(running.output, output))
        reporter = asyncio.create_task(_report(output))
        timed_out = stopped = False
        try:
            await asyncio.wait_for(running.process.wait(), timeout)
        except TimeoutError:
            timed_out = True
        except asyncio.CancelledError:
            stopped = True
        finally:
            any_left = await _finished(self._commands.end(running.mark, last_output=reader))
            reader.cancel()
            reporter.cancel()
        if stopped:
            raise CallStopped(_stopped(output))
        outcome = _outcome(running.process.returncode, output, timeout if timed_out else None, any_left)
        return _in_sandbox(outcome) if sandboxed.get() else outcome


class UsersCommand(RunCommand):
    """Command of the user, which runs as it would in their shell: with sudo, their desktop and their agents."""

    confined = False


def _in_sandbox(outcome: ToolOutcome) -> ToolOutcome:
    """Note on an outcome that the command ran in the sandbox, and what to do if that made it fail."""
    outcome.data = {**outcome.data, "sandboxed": True}
    if not outcome.success:
        outcome.text += f"\n[{SANDBOX_HELP}]"
    return outcome


async def _collect(pipe: asyncio.StreamReader, output: Output) -> None:
    while chunk := await pipe.read(_CHUNK):
        output.add(chunk)


async def _report(output: Output) -> None:
    """Show the last lines whenever there are new ones, as often as the eye can follow."""
    shown = 0
    while True:
        await asyncio.sleep(_REPORT_SECONDS)
        if output.size != shown:
            shown = output.size
            report_output.get()(output.last_lines())


async def _finished(work: Coroutine[Any, Any, bool]) -> bool:
    """Await to the end even if cancelled meanwhile, so that no process outlives a cancelled call."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled() and task.exception() is not None:
            _log.warning("Ending a cancelled command failed: %s", task.exception())
        raise


def _stopped(output: Output) -> ToolOutcome:
    text, _ = output.text()
    body = text if not text or text.endswith("\n") else text + "\n"
    return ToolOutcome(
        text=f"{body}[{STOPPED_TEXT}]", success=False, error=STOPPED, data={"exit_status": None}, full_size=output.size
    )


def _outcome(status: int | None, output: Output, timed_out: float | None, any_left: bool) -> ToolOutcome:
    text, cut = output.text()
    if timed_out is not None:
        ending = f"Timed out after {timed_out:g} s; the command and its children were ended."
    elif status is not None and status < 0:
        ending = f"Ended by signal {_signal_name(-status)}."
    else:
        ending = f"Exit status {status}."
    if any_left and timed_out is None:
        ending += " Its background processes were ended."
    success = status == 0 and timed_out is None
    body = text if not text or text.endswith("\n") else text + "\n"
    data: dict[str, object] = {"exit_status": status, "timed_out": timed_out is not None}
    if cut:
        data["truncated"] = output.size
    return ToolOutcome(
        text=f"{body}[{ending}]",
        success=success,
        error=None if success else ending,
        data=data,
        full_size=output.size,
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
