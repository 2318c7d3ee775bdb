"""Tool run_command: run a shell command in the workspace, with a timeout and an output limit, or in the background.

The user is protected by seeing the exact command, and by what it cannot reach (`confinement.py`), which the question
states. `process.py` manages the processes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Annotated, Any, ClassVar, TypeVar

from msgspec import Meta

from ragforge_tui.shared.errors import ToolError
from ragforge_tui.shared.records import STOPPED
from ragforge_tui.shared.sanitize import visible
from ragforge_tui.shared.suite_runs import last_program, suite_run
from ragforge_tui.shared.tool_calls import ToolInfo
from ragforge_tui.tools.base import (
    MOST_KEPT,
    ApprovalNeed,
    CallStopped,
    Plan,
    Tool,
    ToolArguments,
    ToolContext,
    ToolOutcome,
    calling_conversation,
    report_output,
    sandboxed,
)
from ragforge_tui.tools.shell.background import Process, Processes
from ragforge_tui.tools.shell.confinement import Confinement
from ragforge_tui.tools.shell.endings import ending
from ragforge_tui.tools.shell.interactive import interactive_program
from ragforge_tui.tools.shell.output import Output, collect
from ragforge_tui.tools.shell.process import Commands
from ragforge_tui.tools.shell.sandbox import Room, Sandbox, named

_log = logging.getLogger(__name__)
T = TypeVar("T")

_REPORT_SECONDS = 0.25
OUTSIDE = "It asks to run outside the sandbox"
SANDBOX_HELP = (
    "It ran in a sandbox: no network, only the workspace and temporary folders can be written, and files with secrets "
    "are hidden. If that is why it failed, call it again with outside_sandbox true and the reason; the user is asked."
)
_WAIT_SECONDS = 1.0
"""Time that a process gets to print something before a call about it returns."""
_MOST_INPUT = 16_000
LONGEST = 5
"""How many times the configured limit a call may ask for."""
STOPPED_TEXT = "Stopped by the user before it finished."


class RunCommandArguments(ToolArguments):
    command: Annotated[
        str, Meta(description="The command, as passed to bash -c in the workspace. Left out with process.")
    ] = ""
    timeout: Annotated[
        float | None,
        Meta(description="Seconds the command may run; with process: seconds to wait for new output."),
    ] = None
    outside_sandbox: Annotated[
        bool,
        Meta(description="Run without the sandbox of the mode auto, after it stopped the command; the user is asked."),
    ] = False
    background: Annotated[
        bool, Meta(description="Start it and go on, for servers and watchers. Its number is returned.")
    ] = False
    process: Annotated[
        int | None,
        Meta(description="Number of a background process: returns its new output. 0 lists the processes."),
    ] = None
    input: Annotated[str | None, Meta(description="With process: a line to write to its input.")] = None
    stop: Annotated[bool, Meta(description="With process: end it.")] = False


class RunCommand(Tool):
    """Tool that runs a shell command.

    Attributes:
        confined: Whether the program is out of its reach.
        processes: Its commands that run in the background.
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
        "It has no terminal and no input; what it leaves running is ended with it. For a server or a watcher use "
        "background: true, then process: N for new output, input or stop. The user is asked first, unless it "
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
            self._confinement,
            context.workspace.root,
            context.workspace.guard,
            context.state_dir,
            enabled=settings.confine_commands,
        )
        self.processes = Processes()
        self._commands = Commands(
            context.state_dir,
            kept_variables=settings.keep_variables,
            confinement=self._confinement if self.confined else None,
        )

    async def prepare(self, arguments: RunCommandArguments) -> Plan:
        if arguments.process is not None:
            return self._prepare_process(arguments, arguments.process)
        command = arguments.command
        if arguments.stop or arguments.input is not None:
            raise ToolError("input and stop need the number of a process.", todo="process: 0 lists them.")
        if not command.strip():
            raise ToolError("The command is empty.", todo="Give a shell command.")
        if "\0" in command:
            raise ToolError("The command contains a NUL character.", todo="Remove it.")
        program, instead = interactive_program(command) if self.confined else ("", "")
        if program:
            raise ToolError(f"{program} needs a terminal, and there is none; nothing was run.", todo=instead)
        background = arguments.background
        support = await asyncio.to_thread(self._confinement.support)
        beyond = OUTSIDE if arguments.outside_sandbox else await asyncio.to_thread(self.sandbox.beyond, command)
        if background and not beyond:
            beyond = "It goes on running, which the sandbox does not cover"
        planted = await asyncio.to_thread(self.sandbox.planted) if self.confined else ""

        async def run() -> ToolOutcome:
            if planted and not sandboxed.get():
                await asyncio.to_thread(self.sandbox.protected.accept)
            if background:
                return await self._start(command, arguments.timeout)
            return await self._run(command, self._seconds(arguments.timeout, self.context.settings.command_timeout))

        question = "Run this command in the background, until it is stopped?" if background else "Run this command?"
        return Plan(
            run=run,
            approval=ApprovalNeed(
                kind="command",
                question=f"{question} {support.question}",
                detail=_detail(command),
                session_scope="exactly this command",
                session_key=f"run_command:{self.context.workspace.root}:{command}",
                command=command,
                beyond=beyond,
                planted=planted,
            ),
        )

    def _prepare_process(self, arguments: RunCommandArguments, number: int) -> Plan:
        """Return the plan of a call about a background process; only what it is given to read needs an approval."""
        if arguments.command.strip():
            raise ToolError("A call has either a command or the number of a process.", todo="Leave one of them out.")
        processes = self.processes
        if number == 0:
            return Plan(run=self._list, harmless=True)
        process = processes.get(number)
        given = arguments.input
        if arguments.stop:

            async def stop() -> ToolOutcome:
                _check_own(process)
                await processes.stop(number, "the agent")
                return await self._look(process, 0.0)

            return Plan(run=stop, harmless=True)
        wait = self._seconds(arguments.timeout, _WAIT_SECONDS)
        if given is None:
            return Plan(run=lambda: self._look(process, wait), harmless=True)
        if process.ending:
            raise ToolError(f"{process.name} has ended. {process.ending}", todo="Start it again.")
        if len(given) > _MOST_INPUT:
            raise ToolError(f"The input has more than {_MOST_INPUT} characters.", todo="Give it a file to read.")
        line = given

        async def send() -> ToolOutcome:
            _check_own(process)
            await process.send(line)
            return await self._look(process, wait)

        # The input of an interpreter is a command as well.
        return Plan(
            run=send,
            approval=ApprovalNeed(
                kind="command",
                question=f"Send this input to {process.name[0].lower()}{process.name[1:]}?",
                detail=_detail(given),
                session_scope="any input to this process",
                session_key=f"run_command:input:{id(processes)}:{number}",
                beyond="It is input of a process that runs already",
            ),
        )

    def _seconds(self, asked: float | None, usual: float) -> float:
        """Return the seconds that a call may take: those it asks for, up to a multiple of the configured limit."""
        most = self.context.settings.command_timeout * LONGEST
        return min(asked, most) if asked is not None and asked > 0 else min(usual, most)

    async def _start(self, command: str, timeout: float | None) -> ToolOutcome:
        limit = self.context.settings.max_output_chars
        try:
            process = await self.processes.start(
                self._commands,
                command,
                self.context.workspace.root,
                calling_conversation.get(),
                timeout=timeout if timeout is not None and timeout > 0 else None,
                limit=limit,
            )
        except OSError as error:
            raise ToolError(f"The command could not be started: {error}.", kind="os_error") from error
        return await self._look(process, _WAIT_SECONDS)

    async def _look(self, process: Process, wait: float) -> ToolOutcome:
        _check_own(process)
        text, size = await process.new_output(wait)
        body = text if not text or text.endswith("\n") else text + "\n"
        data: dict[str, object] = {"process": process.number}
        if process.ending:
            return ToolOutcome(
                text=f"{body}[Process {process.number} has ended. {process.ending}]", data=data, full_size=size
            )
        nothing = "" if text else ", no new output"
        return ToolOutcome(text=f"{body}[Process {process.number} runs{nothing}.]", data=data, full_size=size)

    async def _list(self) -> ToolOutcome:
        lines = [
            f"{entry.number}  {entry.ending or 'Runs.'}  {' '.join(visible(entry.command).split())}"
            for entry in self.processes.entries(calling_conversation.get())
        ]
        return ToolOutcome(text="\n".join(lines) or "No process was started in the background.")

    async def close(self) -> None:
        await self.processes.close()
        await self._commands.close()

    async def _run(self, command: str, timeout: float) -> ToolOutcome:
        walls = sandboxed.get()
        if not walls:
            return await self._run_to_end(command, timeout, None)
        room = self.sandbox.room(walls, command)
        try:
            await _finished(asyncio.to_thread(room.enter))
            outcome = await self._run_to_end(command, timeout, room)
        finally:
            changed = await _finished(asyncio.to_thread(room.leave))
        if changed:
            told = f"The command changed {named(changed)}, which other programs run or obey."
            outcome.text += f"\n[{told} The next command outside the sandbox is asked about.]"
            outcome.data = {**outcome.data, "notice": f"{told} The next command outside the sandbox asks."}
        return outcome

    async def _run_to_end(self, command: str, timeout: float, room: Room | None) -> ToolOutcome:
        try:
            running = await self._commands.start(command, self.context.workspace.root, room=room)
        except OSError as error:
            raise ToolError(f"The command could not be started: {error}.", kind="os_error") from error
        output = Output(max(self.context.settings.max_output_chars, MOST_KEPT))
        reader = asyncio.create_task(collect(running.output, output.add))
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
        outcome = _outcome(command, running.process.returncode, output, timeout if timed_out else None, any_left)
        if room is None:
            return outcome
        if not outcome.success:
            room.check(outcome.text)
        return _in_sandbox(outcome) if room.walls == "workspace" else outcome


class UsersCommand(RunCommand):
    """Command of the user, which runs as it would in their shell: with sudo, their desktop and their agents."""

    confined = False


def _in_sandbox(outcome: ToolOutcome) -> ToolOutcome:
    """Note on an outcome that the command ran in the sandbox, and what to do if that made it fail."""
    outcome.data = {**outcome.data, "sandboxed": True}
    if not outcome.success:
        outcome.text += f"\n[{SANDBOX_HELP}]"
    return outcome


async def _report(output: Output) -> None:
    """Show the last lines whenever there are new ones, as often as the eye can follow."""
    shown = 0
    while True:
        await asyncio.sleep(_REPORT_SECONDS)
        if output.size != shown:
            shown = output.size
            report_output.get()(output.last_lines())


async def _finished(work: Coroutine[Any, Any, T]) -> T:
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


def _outcome(command: str, status: int | None, output: Output, timed_out: float | None, any_left: bool) -> ToolOutcome:
    text, cut = output.text()
    tests = suite_run(command, text)
    failed = tests.words if tests is not None and not tests.passed else ""
    end = ending(status, timed_out, any_left=any_left, program=last_program(command) if failed else "", failed=failed)
    success = status == 0 and timed_out is None and not failed
    body = text if not text or text.endswith("\n") else text + "\n"
    data: dict[str, object] = {"exit_status": status, "timed_out": timed_out is not None}
    if tests is not None:
        data |= {"tests": tests.words, "tests_failed": bool(failed)}
    if cut:
        data["truncated"] = output.size
    return ToolOutcome(
        text=f"{body}[{end}]",
        success=success,
        error=None if success else end,
        data=data,
        full_size=output.size,
    )


def _check_own(process: Process) -> None:
    if process.conversation != calling_conversation.get():
        raise ToolError(f"Process {process.number} belongs to another conversation.", todo="process: 0 lists yours.")


def _detail(text: str) -> str:
    """Return a text line by line, so that a literal U+240A, the symbol for a line feed, is not shown as one."""
    return "\n".join(visible(line) for line in text.split("\n"))
