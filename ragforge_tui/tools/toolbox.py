"""All tools of a session behind one door: what the model is offered, and a checked call for what it asks.

Used by the agent loop. Tools of other rooms come in through `extra` and are treated alike.
"""

from __future__ import annotations

import asyncio
import difflib
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from ragforge_tui.config import ToolSettings
from ragforge_tui.errors import ToolError
from ragforge_tui.redaction import MASK
from ragforge_tui.text import cut_middle, storable
from ragforge_tui.tools.arguments import parse, schema_of
from ragforge_tui.tools.base import Access, ApprovalNeed, Plan, Tool, ToolOutcome, failed
from ragforge_tui.tools.files import CreateFile, EditFile, FileDesk, ReadFile, WriteFile
from ragforge_tui.tools.grep import GrepFiles
from ragforge_tui.tools.listing import GlobFiles, ListDirectory, SearchFiles
from ragforge_tui.tools.planning import planning_tools
from ragforge_tui.tools.process import Commands, end_leftovers
from ragforge_tui.tools.restoring import KeptFiles, RestoreFiles
from ragforge_tui.tools.shell import RunCommand
from ragforge_tui.tools.undo import UndoStore
from ragforge_tui.tools.workspace import Workspace

_log = logging.getLogger(__name__)

FROZEN = "The screen is gone, so no write and no command is started any more. Finish with what you know."


class _Gate(Protocol):
    writes_frozen: bool


class PreparedCall:
    """A call that was checked and may run once it is approved.

    Attributes:
        arguments: As they were understood, without `reason`.
        approval: What a person has to agree to first, None when nothing.
    """

    def __init__(
        self,
        tool: Tool,
        plan: Plan,
        arguments: dict[str, Any],
        reason: str,
        unknown: list[str],
        gate: _Gate,
        limit: int,
    ) -> None:
        self.name = tool.name
        self.access: Access = tool.access
        self.arguments = arguments
        self.reason = reason
        self.approval: ApprovalNeed | None = plan.approval
        self._plan = plan
        self._unknown = unknown
        self._gate = gate
        self._limit = limit

    async def run(self) -> ToolOutcome:
        """Do it. Every failure but a cancellation is an outcome the model can read."""
        if self._gate.writes_frozen and self.access in ("write", "command"):
            return failed(FROZEN)
        try:
            outcome = await self._plan.run()
        except ToolError as error:
            return failed(str(error), kind=error.info.kind)
        except Exception as error:
            _log.exception("Tool %s failed", self.name)
            return failed(f"{self.name} failed unexpectedly: {type(error).__name__}: {storable(str(error))}")
        return self._finished(outcome)

    def _finished(self, outcome: ToolOutcome) -> ToolOutcome:
        outcome.full_size = outcome.full_size or len(outcome.text.encode("utf-8", "replace"))
        # A file or command of the allowed length, plus its line numbers or exit status, is not cut again.
        if len(outcome.text) > self._limit + 1_000:
            outcome.data = {**outcome.data, "truncated": outcome.full_size}
            outcome.text = cut_middle(outcome.text, self._limit)
        outcome.text = storable(outcome.text)
        if self._unknown:
            outcome.text += f"\n[Ignored unknown arguments: {', '.join(self._unknown)}.]"
        return outcome


class Toolbox:
    """The tools of one session over one workspace.

    Attributes:
        writes_frozen: When True no write and no command starts, approved or not.
        kept: What is kept of earlier contents of files.
    """

    def __init__(
        self,
        workspace: Path,
        settings: ToolSettings,
        *,
        undo_dir: Path,
        state_dir: Path,
        extra: Sequence[Tool] = (),
    ) -> None:
        self.writes_frozen = False
        self.workspace = Workspace(workspace)
        self.undo = UndoStore(undo_dir)
        self._settings = settings
        self._state_dir = state_dir
        self._commands = Commands(state_dir)
        self.kept = KeptFiles(self.workspace, self.undo)
        desk = FileDesk(self.workspace, settings, self.undo)
        command = RunCommand(self.workspace, settings, self._commands)
        tools: list[Tool] = [
            ReadFile(desk),
            WriteFile(desk),
            EditFile(desk),
            CreateFile(desk),
            ListDirectory(self.workspace, settings),
            GlobFiles(self.workspace, settings),
            GrepFiles(self.workspace, settings),
            SearchFiles(self.workspace, settings),
            command,
            *planning_tools(),
            *extra,
        ]
        self._tools = {tool.name: tool for tool in tools if settings.enabled is None or tool.name in settings.enabled}
        self._schemas = [_offered(tool) for tool in self._tools.values()]
        persons: list[Tool] = [command, RestoreFiles(self.workspace, self.undo)]
        self._persons = {tool.name: tool for tool in persons}

    def schemas(self) -> list[dict[str, Any]]:
        """The tools as an OpenAI-compatible request carries them."""
        return self._schemas

    def access(self, name: str) -> Access:
        """What kind of thing a tool does; "control" for one that does not exist."""
        tool = self._tools.get(name)
        return tool.access if tool is not None else "control"

    async def prepare(self, name: str, arguments: str) -> PreparedCall:
        """Check a call; nothing is changed yet.

        Raises:
            ToolError: Unknown tool, arguments that do not fit, a path outside the workspace and the like, with text
                the model can act on.
        """
        tool = self._tools.get(name)
        if tool is None:
            raise ToolError(f"There is no tool {storable(name)!r}.", todo=self._suggestion(name), kind="unknown_tool")
        prepared = await self._prepared(tool, arguments)
        if tool.access == "command" and MASK in str(prepared.arguments):
            raise ToolError(
                f"The command holds {MASK!r}, which stands for a secret that is hidden from you.",
                todo="Let the program read the secret where it is kept, or ask the user.",
                kind="masked",
            )
        return prepared

    async def prepare_for_person(self, name: str, arguments: str) -> PreparedCall:
        """A call the person makes, who need not be asked: a command of theirs, an undo.

        Raises:
            ToolError: As `prepare`.
        """
        prepared = await self._prepared(self._persons[name], arguments)
        prepared.approval = None
        return prepared

    async def _prepared(self, tool: Tool, arguments: str) -> PreparedCall:
        name = tool.name
        typed, unknown = parse(name, tool.arguments, arguments)
        try:
            plan = await tool.prepare(typed)
        except (OSError, ValueError) as error:
            raise ToolError(f"{name} failed: {storable(str(error))}.") from error
        builtins = msgspec.to_builtins(typed)
        reason = builtins.pop("reason")
        return PreparedCall(tool, plan, builtins, reason, unknown, self, self._settings.max_output_chars)

    async def end_leftovers(self) -> int:
        """End processes of commands an earlier, killed engine left behind; called once at start.

        Contents kept for undo are pruned on the way: here nobody waits for it.
        """
        ended = await asyncio.to_thread(end_leftovers, self._state_dir)
        try:
            await asyncio.to_thread(self.undo.prune)
        except OSError as error:
            _log.warning("kept contents not pruned: %s", error)
        return ended

    async def close(self) -> None:
        """End all running commands."""
        await self._commands.close()

    def _suggestion(self, name: str) -> str:
        near = difflib.get_close_matches(name, self._tools, n=1)
        hint = f"Did you mean {near[0]}? " if near else ""
        return f"{hint}The tools are: {', '.join(self._tools)}."


def _offered(tool: Tool) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": schema_of(tool.arguments),
        },
    }
