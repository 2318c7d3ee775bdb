"""Commands that run in the background, on behalf of the agent, until they end, are stopped, or the engine ends.

Their output is kept in memory only, its middle dropped when it grows long, and given out once. `process.py` starts and
ends them as it does other commands, so they are confined alike and none outlives the engine.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from ragforge_tui.shared.errors import ToolError
from ragforge_tui.shared.process_records import ProcessEntry
from ragforge_tui.shared.redaction import mask_secrets
from ragforge_tui.shared.sanitize import storable, visible
from ragforge_tui.tools.shell.endings import ending
from ragforge_tui.tools.shell.output import Output, collect
from ragforge_tui.tools.shell.process import Commands, RunningCommand

_log = logging.getLogger(__name__)

MOST_RUNNING = 8
_MOST_ENDED = 8
"""Ended processes whose last output is kept."""
_INPUT_SECONDS = 5.0
_SETTLE_SECONDS = 0.2
"""Time that output gets to become complete once its first piece is there."""
_RECENT_CHARS = 2_000
_COMMAND_CHARS = 80


class Process:
    """One background process.

    Args:
        limit: Characters of output kept between two looks.

    Attributes:
        conversation: The conversation whose agent started it.
        ending: How it ended; empty while it runs.
        known: Whether the model knows that it ended.
    """

    def __init__(
        self, number: int, command: str, conversation: str, running: RunningCommand, commands: Commands, limit: int
    ) -> None:
        self.number = number
        self.command = command
        self.conversation = conversation
        self.started = datetime.now(UTC)
        self.ending = ""
        self.success = False
        self.known = False
        self._running = running
        self._commands = commands
        self._limit = limit
        self._fresh = Output(limit)
        self._recent = Output(_RECENT_CHARS)
        self._news = asyncio.Event()
        self._stopping = asyncio.Event()
        self._stopped_by = ""

    @property
    def name(self) -> str:
        """Number and command in a few words, for a sentence."""
        line = " ".join(visible(mask_secrets(self.command)).split())
        return f"Process {self.number} ({line if len(line) <= _COMMAND_CHARS else line[: _COMMAND_CHARS - 1] + '…'})"

    @property
    def stopped(self) -> bool:
        """Whether the agent or the user stopped it."""
        return bool(self._stopped_by)

    def entry(self) -> ProcessEntry:
        """Return it as the screen shows it."""
        lines = storable(mask_secrets("\n".join(self._recent.last_lines())))
        return ProcessEntry(
            number=self.number,
            command=storable(mask_secrets(self.command)),
            started=self.started,
            ending=self.ending,
            lines=lines.split("\n") if lines else [],
        )

    async def watch(self, timeout: float | None) -> None:
        """Read its output until it ends, is stopped or has used up its time, then end what is left of it."""
        reader = asyncio.create_task(collect(self._running.output, self._add))
        waits = [
            asyncio.create_task(self._running.process.wait()),
            asyncio.create_task(self._stopping.wait()),
        ]
        timed_out = any_left = False
        try:
            done, _ = await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            timed_out = not done
        finally:
            for waiting in waits:
                waiting.cancel()
            any_left = await self._commands.end(self._running.mark, last_output=reader)
            reader.cancel()
        status = self._running.process.returncode
        self.success = status == 0 and not timed_out
        self.ending = self._stopped_by or ending(status, timeout if timed_out else None, any_left=any_left)
        self._news.set()

    def _add(self, chunk: bytes) -> None:
        self._fresh.add(chunk)
        self._recent.add(chunk)
        self._news.set()

    async def new_output(self, seconds: float) -> tuple[str, int]:
        """Return what it printed since the last look, and its bytes; wait for some for so many seconds."""
        if not self._fresh.size and not self.ending:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), seconds)
                await asyncio.sleep(_SETTLE_SECONDS)
        taken, self._fresh = self._fresh, Output(self._limit)
        self._news.clear()
        if self.ending:
            self.known = True
        return taken.text()[0], taken.size

    async def send(self, text: str) -> None:
        """Write a line to its input.

        Raises:
            ToolError: It has ended, or does not read.
        """
        pipe = self._running.process.stdin
        assert pipe is not None
        self._news.clear()
        try:
            pipe.write((text if text.endswith("\n") else f"{text}\n").encode("utf-8", "replace"))
            await asyncio.wait_for(pipe.drain(), _INPUT_SECONDS)
        except (OSError, TimeoutError) as error:
            raise ToolError(
                f"{self.name} does not read its input.", todo="Look at its output, or stop it.", kind="os_error"
            ) from error

    def stop(self, by: str) -> None:
        """Let `watch` end it; `by` says on whose behalf."""
        self._stopped_by = self._stopped_by or f"Stopped by {by}."
        self._stopping.set()


class Processes:
    """Background processes of one toolbox.

    Attributes:
        changed: Called when one has started or ended, with that process.
    """

    def __init__(self) -> None:
        self.changed: Callable[[Process], None] = lambda process: None
        self._processes: dict[int, Process] = {}
        self._watching: dict[int, asyncio.Task[None]] = {}
        self._starting = 0
        self._last = 0

    @property
    def running(self) -> int:
        """Number of processes that run."""
        return sum(not process.ending for process in self._processes.values())

    def entries(self, conversation: str | None = None) -> list[ProcessEntry]:
        """Return those that run and the last ones that ended, of one conversation or of all."""
        chosen = (one for one in self._processes.values() if conversation in (None, one.conversation))
        return [process.entry() for process in chosen]

    async def start(
        self, commands: Commands, command: str, folder: Path, conversation: str, *, timeout: float | None, limit: int
    ) -> Process:
        """Start a command in the background.

        Args:
            timeout: Seconds after which it is ended; None: never.
            limit: Characters of output kept between two looks.

        Raises:
            ToolError: Too many run.
        """
        if self.running + self._starting >= MOST_RUNNING:
            raise ToolError(
                f"{MOST_RUNNING} processes run in the background already; the command was not started.",
                todo="Stop one that is no longer needed.",
            )
        self._starting += 1
        try:
            running = await commands.start(command, folder, with_input=True)
        finally:
            self._starting -= 1
        self._last += 1
        process = Process(self._last, command, conversation, running, commands, limit)
        self._processes[process.number] = process
        self._watching[process.number] = asyncio.create_task(
            self._watch(process, timeout), name=f"process {process.number}"
        )
        self.changed(process)
        return process

    async def _watch(self, process: Process, timeout: float | None) -> None:
        try:
            await process.watch(timeout)
        except Exception as error:
            _log.exception("process %d is no longer watched", process.number)
            process.ending = f"Lost: {type(error).__name__}."
        ended = [known for known in self._processes.values() if known.ending]
        for old in ended[:-_MOST_ENDED]:
            del self._processes[old.number]
        self._watching.pop(process.number, None)
        self.changed(process)

    def get(self, number: int) -> Process:
        """Return a process.

        Raises:
            ToolError: There is none of that number.
        """
        process = self._processes.get(number)
        if process is None:
            known = ", ".join(str(each) for each in self._processes) or "none"
            raise ToolError(f"There is no process {number}.", todo=f"Known processes: {known}.", kind="not_found")
        return process

    async def stop(self, number: int, by: str) -> Process:
        """End a process and wait for it.

        Args:
            by: On whose behalf, for the text on its end.

        Raises:
            ToolError: There is none of that number.
        """
        process = self.get(number)
        if task := self._watching.get(number):
            process.stop(by)
            await asyncio.wait([task])
        return process

    def take_ended(self, conversation: str) -> list[str]:
        """Return, once, sentences on processes of a conversation that ended without its model's knowledge."""
        ended = [
            process
            for process in self._processes.values()
            if process.ending and not process.known and process.conversation == conversation
        ]
        for process in ended:
            process.known = True
        return [
            f"[{process.name} has ended. {process.ending} run_command with process: {process.number} returns its last "
            "output.]"
            for process in ended
        ]

    async def close(self) -> None:
        """End all processes; nobody is told."""
        self.changed = lambda process: None
        for number in list(self._watching):
            self._processes[number].stop("the end of the session")
        if self._watching:
            await asyncio.wait(list(self._watching.values()))
