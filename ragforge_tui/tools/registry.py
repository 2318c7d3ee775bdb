"""The list of all tools, the toolbox of a session, and its restriction by persona and mode."""

from __future__ import annotations

import asyncio
import copy
import difflib
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from ragforge_tui.settings.schema import Remembering, ToolSettings
from ragforge_tui.shared.errors import ToolError
from ragforge_tui.shared.redaction import MASK
from ragforge_tui.shared.requests.work import Mode
from ragforge_tui.shared.sanitize import storable, visible
from ragforge_tui.shared.tool_calls import CHANGING, USUAL_ARGUMENTS, ToolAccess, describe_tools, tool_label
from ragforge_tui.shared.truncation import cut_middle, cut_to, fold_runs
from ragforge_tui.tools.after_edit import AfterEdit
from ragforge_tui.tools.arguments import parse, pass_on, schema_of
from ragforge_tui.tools.asking import AskUser
from ragforge_tui.tools.base import (
    MOST_KEPT,
    ApprovalNeed,
    CallSubject,
    CodeSource,
    MemorySource,
    Plan,
    Ruling,
    SandboxRefusal,
    Tool,
    ToolArguments,
    ToolContext,
    ToolOutcome,
    failed,
    output_room,
)
from ragforge_tui.tools.code import (
    BrainSearch,
    GetDependencies,
    GetDependents,
    GetFunctionCode,
    GetFunctionDetails,
    SearchFunctions,
)
from ragforge_tui.tools.delegate import Delegate
from ragforge_tui.tools.files.read import ReadFile
from ragforge_tui.tools.files.write import ApplyPatch, CreateFile, EditFile, WriteFile
from ragforge_tui.tools.memory import OpenCall, OpenTurn, SearchHistory
from ragforge_tui.tools.planning import NotifyUser, UpdateTodos
from ragforge_tui.tools.remember import Remember
from ragforge_tui.tools.search.grep import GrepFiles
from ragforge_tui.tools.search.listing import GlobFiles, ListDirectory, SearchFiles
from ragforge_tui.tools.shell.background import Processes
from ragforge_tui.tools.shell.process import end_leftovers
from ragforge_tui.tools.shell.run_command import RunCommand, UsersCommand
from ragforge_tui.tools.snapshots import UndoStore
from ragforge_tui.tools.undo.restore import KeptFiles, RestoreFiles
from ragforge_tui.tools.web.fetch_web_page import FetchWebPage
from ragforge_tui.tools.workspace import Workspace

_log = logging.getLogger(__name__)

FROZEN = "The user's screen has closed, so no write and no command can start. Finish with what you know."
FOLDED_FROM = 2_000
"""Characters of a command's output from which lines that say the same are folded."""
READING = "read"
"""Name that allows all tools that only read."""
PLANNING = "planning"
"""Kind of the error for a call that is not allowed while planning."""
DENIED = "denied"
"""Kind of the error for a call that a rule of the user's refuses."""

TOOLS: list[type[Tool]] = [
    ReadFile,
    WriteFile,
    EditFile,
    CreateFile,
    ApplyPatch,
    ListDirectory,
    GlobFiles,
    GrepFiles,
    SearchFiles,
    RunCommand,
    UpdateTodos,
    AskUser,
    Delegate,
    NotifyUser,
    SearchHistory,
    OpenTurn,
    OpenCall,
    Remember,
    SearchFunctions,
    GetFunctionCode,
    GetFunctionDetails,
    GetDependents,
    GetDependencies,
    BrainSearch,
    FetchWebPage,
]
"""All tools that models may call: those that say what they are `joined` to are offered only where a list names them.

A new one needs a line here, nothing else.
"""
USER_TOOLS: tuple[type[Tool], ...] = (UsersCommand, RestoreFiles)
"""Tools whose calls the user makes: ``!command`` and /undo."""

describe_tools(kind.info for kind in (*TOOLS, *USER_TOOLS))


class _Gate(Protocol):
    writes_frozen: bool


class PreparedCall:
    """Checked call that may run once it is approved.

    Attributes:
        arguments: The arguments as parsed, without `reason`.
        approval: The approval that the user must give first, None if none is needed.
        reading: The approval of a command that only reads, which it needs if it turns out to want more; else None.
        contents: Contents of files after it, by absolute path, as far as they are known.
        subject: What the user's rules see of it.
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
        self.access: ToolAccess = tool.access
        self.arguments = arguments
        self.reason = reason
        self.contents = plan.contents
        self.subject = _subject(tool, plan, arguments)
        self.approval: ApprovalNeed | None = plan.approval
        if plan.approval is not None:
            self.approval = msgspec.structs.replace(plan.approval, subject=self.subject)
        self.reading: ApprovalNeed | None = None
        self.harmless = plan.harmless
        self._plan = plan
        self._unknown = unknown
        self._gate = gate
        self._limit = limit

    async def run(self) -> ToolOutcome:
        """Run the call. Every failure except a cancellation becomes an outcome that the model can read.

        Raises:
            SandboxRefusal: The sandbox does not let a command do its work.
        """
        if self._gate.writes_frozen and self.access in CHANGING:
            return failed(FROZEN)
        try:
            outcome = await self._plan.run()
        except SandboxRefusal:
            raise
        except ToolError as error:
            return failed(str(error), kind=error.info.kind)
        except Exception as error:
            _log.exception("Tool %s failed", self.name)
            return failed(f"{self.name} failed unexpectedly: {type(error).__name__}: {storable(str(error))}")
        return self._finished(outcome)

    def _finished(self, outcome: ToolOutcome) -> ToolOutcome:
        whole = outcome.text
        outcome.full_size = outcome.full_size or len(whole.encode("utf-8", "replace"))
        if self.access == "command" and len(whole) > FOLDED_FROM:
            outcome.text = fold_runs(whole)
        # The allowance keeps a text of the allowed length from being cut for its line numbers or exit status.
        limit = min(self._limit, output_room.get() or self._limit)
        if len(outcome.text) > limit + 1_000:
            outcome.data = {**outcome.data, "truncated": outcome.full_size}
            outcome.text = cut_to(outcome.text, limit)
        if outcome.text != whole:
            outcome.data = {**outcome.data, "whole": storable(cut_middle(whole, MOST_KEPT))}
        outcome.text = storable(outcome.text)
        if self._unknown:
            outcome.text += f"\n[Ignored unknown arguments: {', '.join(self._unknown)}.]"
        return outcome


class Toolbox:
    """Tools of one session in one workspace.

    Args:
        added: Tools of the program that holds the session; they are offered whatever `settings.enabled` names, and may
            have the names of built-in tools that it leaves out.
        folders, settings_file, remembers: See `ToolContext`; `undo_dir` and `state_dir` are always among the folders.

    Attributes:
        writes_frozen: If True, no write and no command starts, approved or not.
        kept: Earlier contents of files, stored for undo.
        after_edit: Commands that run after an edit.
    """

    def __init__(
        self,
        workspace: Path,
        settings: ToolSettings,
        *,
        undo_dir: Path,
        state_dir: Path,
        memory: MemorySource | None = None,
        code: CodeSource | None = None,
        added: Sequence[type[Tool]] = (),
        program_files: Iterable[str] = (),
        folders: Sequence[Path] = (),
        settings_file: Path | None = None,
        remembers: Remembering = "never",
    ) -> None:
        self.writes_frozen = False
        self._gate: _Gate = self
        self.workspace = Workspace(workspace, program_files)
        self.undo = UndoStore(undo_dir)
        self._settings = settings
        self._state_dir = state_dir
        self.kept = KeptFiles(self.workspace, self.undo)
        self._context = context = ToolContext(
            self.workspace,
            settings,
            self.undo,
            state_dir,
            memory,
            code,
            [*folders, state_dir, undo_dir],
            settings_file,
            remembers,
        )
        self.after_edit = AfterEdit(context, self.kept, lambda: self.writes_frozen)
        own = {kind.info.name: kind(context) for kind in TOOLS if kind.is_available(context)}
        self._tools = {
            name: tool for name, tool in own.items() if settings.enabled is None or _named(tool, settings.enabled)
        }
        self._add(added)
        self._schemas = {name: _schema(tool) for name, tool in self._tools.items()}
        self._external: dict[str, list[str]] = {}
        """Names of the tools that the user's configuration adds, by their source."""
        self.changes = 0
        """Count of their replacements."""
        self._user_tools = {kind.info.name: kind(context) for kind in USER_TOOLS}

    def _add(self, kinds: Sequence[type[Tool]]) -> None:
        taken = set(self._tools)
        for kind in kinds:
            name = kind.info.name
            if name in taken:
                raise ValueError(
                    f"There is already a tool {name}: give yours another name, or leave it out of tools.enabled."
                )
            taken.add(name)
            self._tools[name] = kind(self._context)
        describe_tools(kind.info for kind in kinds)

    @property
    def processes(self) -> Processes:
        """The commands that run in the background."""
        name = RunCommand.info.name
        offered = self._tools.get(name)
        tool = offered if isinstance(offered, RunCommand) else self._user_tools[name]
        assert isinstance(tool, RunCommand)
        return tool.processes

    def only(self, names: Collection[str]) -> Toolbox:
        """Return a toolbox of the same session with these of its tools."""
        fewer = copy.copy(self)
        fewer._tools = {name: tool for name, tool in self._tools.items() if name in names}
        return fewer

    def set_external(self, source: str, kinds: Sequence[type[Tool]]) -> None:
        """Replace the tools that the user's configuration adds; calls that already run are not affected.

        Args:
            source: Where they come from, such as ``mcp``.
        """
        self.changes += 1
        for name in self._external.pop(source, ()):
            del self._tools[name], self._schemas[name]
        tools = {kind.info.name: kind(self._context) for kind in kinds if kind.info.name not in self._tools}
        self._external[source] = list(tools)
        self._tools.update(tools)
        self._schemas.update({name: _schema(tool) for name, tool in tools.items()})
        describe_tools(tool.info for tool in tools.values())

    def schemas(self, named: Collection[str] = ()) -> list[dict[str, Any]]:
        """Return the tools that are offered now, in the form of an OpenAI-compatible request.

        Args:
            named: Tools to offer by their own name although they are joined to another.
        """
        named = {*named, *(self._settings.enabled or ())}
        return [
            self._schemas[name]
            for name, tool in self._tools.items()
            if tool.offered and (not tool.info.joined or name in named)
        ]

    def names(self) -> list[str]:
        """Return the names of all tools, also of those that are not offered."""
        return list(self._tools)

    def joined(self, name: str) -> str:
        """Return the tool that does the work of another too; empty if none does."""
        tool = self._tools.get(name)
        return tool.info.joined if tool is not None else ""

    def access(self, name: str) -> ToolAccess:
        """Return the kind of access of a tool; "control" for one that does not exist."""
        tool = self._tools.get(name)
        return tool.access if tool is not None else "control"

    def knows(self, path: str) -> bool:
        """Return whether the model has read or written the current content of a file; blocks."""
        seen = self._context.seen.get(path)
        return seen is not None and seen == self.kept.digest(path)

    async def prepare(self, name: str, arguments: str) -> PreparedCall:
        """Check a call without changing anything.

        Raises:
            ToolError: The tool is unknown, its arguments are invalid, a path is outside the workspace, and so on. The
                message tells the model what to do.
        """
        tool = self._tools.get(name)
        if tool is None:
            raise ToolError(f"There is no tool {storable(name)!r}.", todo=self._suggestion(name), kind="unknown_tool")
        prepared = await self._prepared(tool, arguments)
        if tool.access == "command" and MASK in str(prepared.arguments):
            raise ToolError(
                f"The command contains {MASK!r}, which replaces a secret that is hidden from you.",
                todo="Let the program read the secret from where it is stored, or ask the user.",
                kind="masked",
            )
        return prepared

    async def prepare_for_user(self, name: str, arguments: str) -> PreparedCall:
        """Check a call that the user makes and that needs no approval: a command or an undo.

        Raises:
            ToolError: As for `prepare`.
        """
        prepared = await self._prepared(self._user_tools[name], arguments)
        prepared.approval = None
        return prepared

    async def _prepared(self, tool: Tool, arguments: str) -> PreparedCall:
        name = tool.name
        typed: ToolArguments
        unknown: list[str] = []
        if tool.passed_schema is not None:
            typed = pass_on(name, arguments, tool.passed_schema)
        else:
            typed, unknown = parse(name, tool.arguments, arguments, repair=tool.access not in CHANGING)
        try:
            plan = await tool.prepare(typed)
        except (OSError, ValueError) as error:
            raise ToolError(f"{name} failed: {storable(str(error))}.") from error
        builtins = msgspec.to_builtins(typed)
        reason = builtins.pop("reason")
        return PreparedCall(tool, plan, builtins, reason, unknown, self._gate, self._settings.max_output_chars)

    async def end_leftovers(self) -> int:
        """End processes of commands that an earlier, killed engine left behind; called once at the start.

        Also prunes the contents stored for undo, because nothing waits for this method.
        """
        ended = await asyncio.to_thread(end_leftovers, self._state_dir)
        try:
            await asyncio.to_thread(self.undo.prune)
        except OSError as error:
            _log.warning("stored contents not pruned: %s", error)
        return ended

    async def close(self) -> None:
        for tool in (*self._tools.values(), *self._user_tools.values()):
            await tool.close()
        await self.after_edit.close()

    def _suggestion(self, name: str) -> str:
        similar = difflib.get_close_matches(name, self._tools, n=1)
        hint = f"Did you mean {similar[0]}? " if similar else ""
        return f"{hint}The tools are: {', '.join(schema['function']['name'] for schema in self.schemas())}."


class RestrictedTools:
    """Tools of a toolbox that a persona and the mode allow; neither ever adds one.

    While planning, a call that writes is refused, and a command that does more than read. The mode is read at every
    call, so that a change takes effect from the next call on, even within a turn. The mode does not change the tools
    that are offered, because a request with other tools misses the provider's prompt cache. The plan and questions to
    the user change nothing and are always offered, so every request carries tools.

    Args:
        allowed: Names of the tools, or `READING`; None: all.
        allowed_by: Origin of that restriction, for the error message.
        mode: Function that returns the current mode.
        judge: Returns what the user's rules say about a call.
    """

    def __init__(
        self,
        toolbox: Toolbox,
        allowed: Collection[str] | None,
        allowed_by: str,
        mode: Callable[[], Mode],
        judge: Callable[[PreparedCall], Awaitable[Ruling]],
    ) -> None:
        self._toolbox = toolbox
        self._allowed = None if allowed is None else frozenset(allowed)
        self._allowed_by = allowed_by
        self._mode = mode
        self._judge = judge
        self._taken = -1
        self._schemas: list[dict[str, Any]] = []

    def names(self) -> list[str]:
        """Return the names of the tools that are offered."""
        return [schema["function"]["name"] for schema in self.schemas()]

    def schemas(self) -> list[dict[str, Any]]:
        """Return the tools of the persona, whatever the mode, in the form of an OpenAI-compatible request.

        The requests of a turn offer the same tools, unless a server changes its own.
        """
        if self._taken != self._toolbox.changes:
            self._taken = self._toolbox.changes
            all_of_them = self._toolbox.schemas(self._allowed or ())
            self._schemas = [each for each in all_of_them if self._offers(each["function"]["name"])]
        return self._schemas

    def access(self, name: str) -> ToolAccess:
        """Return the kind of access of a tool, whatever the mode; "control" for one that is not offered."""
        return self._toolbox.access(name) if self._offers(name) else "control"

    async def prepare(self, name: str, arguments: str) -> PreparedCall:
        """Check a call, as `Toolbox.prepare` does.

        Raises:
            ToolError: The persona, the mode or a rule does not allow the call, or the toolbox rejects it.
        """
        if self._toolbox.access(name) != "command":
            self.check(name)
        if not self._offers(name):
            raise ToolError(
                f"{self._allowed_by} may not use {name}.",
                todo=f"The tools are: {', '.join(self.names())}.",
                kind="unknown_tool",
            )
        prepared = await self._toolbox.prepare(name, arguments)
        command = prepared.approval.command if prepared.approval is not None else ""
        ruling = await self._judge(prepared)
        if ruling.effect == "deny":
            raise ToolError(
                f"A rule of the user's forbids this call: {ruling.why}.",
                todo="Do not try the same in another way: choose another approach, or ask the user.",
                kind=DENIED,
            )
        if ruling.effect == "ask":
            prepared.approval = prepared.approval or _asked_by_rule(prepared)
        elif ruling.reads:
            prepared.reading, prepared.approval = prepared.approval, None
        # The user may have switched modes meanwhile, and a granted call is not asked about again.
        if prepared.approval is not None or not (command or prepared.harmless):
            self.check(name)
        return prepared

    def check(self, name: str) -> None:
        """Reject a tool that the mode does not allow now.

        Raises:
            ToolError: The mode does not allow the tool.
        """
        if not self._fits_mode(name):
            raise ToolError(
                f"{name} is not allowed while planning; nothing was changed or run.",
                todo="Use tools and commands that only read, then answer with the plan; the user decides on it.",
                kind=PLANNING,
            )

    def _offers(self, name: str) -> bool:
        if self._allowed is None or name in self._allowed or self._toolbox.joined(name) in self._allowed:
            return True
        access = self._toolbox.access(name)
        return access == "control" or (access == "read" and READING in self._allowed)

    def _fits_mode(self, name: str) -> bool:
        return self._mode() != "plan" or self.access(name) not in CHANGING


def _subject(tool: Tool, plan: Plan, arguments: dict[str, Any]) -> CallSubject:
    names = (tool.info.main_argument, *USUAL_ARGUMENTS)
    main = next((value for name in names if isinstance(value := arguments.get(name), str) and value), "")
    command = plan.approval.command if plan.approval is not None else main if tool.access == "command" else ""
    paths = [*map(str, plan.contents), main] if tool.access == "write" else [main]
    return CallSubject(
        tool=tool.name,
        access=tool.access,
        joined=tool.info.joined,
        subjects=tuple(filter(None, paths)),
        command=command,
    )


def _asked_by_rule(prepared: PreparedCall) -> ApprovalNeed:
    """Return the approval for a call that needs none by itself."""
    subject = prepared.subject
    label = tool_label(subject.tool)
    return ApprovalNeed(
        kind="secret", question=f"{label} this?", detail=visible("\n".join(subject.subjects)), subject=subject
    )


def _named(tool: Tool, names: Collection[str]) -> bool:
    """Return whether a list of names covers a tool, by its own name or that of the tool it is joined to."""
    return tool.name in names or (tool.info.joined in names)


def _schema(tool: Tool) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": schema_of(tool.arguments) if tool.passed_schema is None else tool.passed_schema,
        },
    }
