"""Interface of a tool: its description, its typed arguments, the approval it needs and its outcome.

Used by every tool and by the agent loop, which sees only `PreparedCall`, `ApprovalNeed` and `ToolOutcome`. Separate
from the registry, so that a tool does not depend on it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Protocol

import msgspec
from msgspec import Meta

from ragforge_tui.settings.schema import Remembering, ToolSettings
from ragforge_tui.shared.code_records import BrainHit, Scope, UnresolvedName
from ragforge_tui.shared.code_views import ScopeCode, ScopeLink, ScopeView
from ragforge_tui.shared.finding_records import KeptKind
from ragforge_tui.shared.records import FileAccess, LineChange
from ragforge_tui.shared.tool_calls import ToolAccess, ToolInfo
from ragforge_tui.tools.snapshots import UndoStore
from ragforge_tui.tools.workspace import Workspace

_log = logging.getLogger(__name__)

report_output: ContextVar[Callable[[list[str]], None]] = ContextVar("report_output", default=lambda lines: None)
"""Function of the running call that shows the user the last lines of its output so far. A tool may call it often."""

Walls = Literal["", "workspace", "reading"]
"""Writable place of a command in the sandbox: workspace or none; empty outside of it."""

sandboxed: ContextVar[Walls] = ContextVar("sandboxed", default="")
"""The sandbox in which the commands of the running call start."""

running_call: ContextVar[str] = ContextVar("running_call", default="")
"""Id of the running call."""

calling_conversation: ContextVar[str] = ContextVar("calling_conversation", default="")
"""Id of the conversation whose call runs."""

output_room: ContextVar[int] = ContextVar("output_room", default=0)
"""Characters that the result of the running call may take in the model's window; 0 for no limit but the settings'."""
MOST_KEPT = 200_000
"""Characters of a result that are kept whole, where the model gets less of it."""

ApprovalKind = Literal["write", "command", "secret", "web"]


class ToolOutcome(msgspec.Struct, kw_only=True):
    """Outcome of a call.

    Attributes:
        text: Text for the model; on failure it states what to do instead.
        error: The failure in one sentence, None on success.
        data: Values for programs: ``diff``, ``exit_status``, ``before`` and ``after`` (digests of file contents,
            empty for a missing file), ``todos``, ``notice``, ``truncated``, ``whole`` (a result of which the model gets
            less), ``arguments_used`` (arguments that the user changed).
        changes: Lines of files that it changed.
        full_size: Bytes of the whole result before any cut.
    """

    text: str
    success: bool = True
    error: str | None = None
    data: dict[str, Any] = {}
    files: list[FileAccess] = []
    changes: list[LineChange] = []
    full_size: int = 0


class CallStopped(asyncio.CancelledError):
    """Cancellation of a call that has a partial outcome to store."""

    def __init__(self, outcome: ToolOutcome) -> None:
        super().__init__()
        self.outcome = outcome


class SandboxRefusal(Exception):
    """Refusal of the sandbox to let a command do its work, which makes its call one to be asked about.

    Args:
        why: What it wanted, as a sentence without a full stop.
    """

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class CallSubject(msgspec.Struct, kw_only=True, frozen=True):
    """What the user's rules see of a call.

    Attributes:
        joined: The offered tool that does its work too; empty for none.
        subjects: Paths that it reads or changes, else its main argument.
        command: The shell command, empty for other calls.
    """

    tool: str
    access: ToolAccess
    joined: str = ""
    subjects: tuple[str, ...] = ()
    command: str = ""


class Ruling(NamedTuple):
    """What the user's rules say about a call.

    Attributes:
        effect: Empty if no rule decides.
        why: The rule that asks or refuses; without an effect, what no rule covers, if one is meant for the command.
        reads: Whether it is a command that only reads the workspace.
        by_kind: Whether a rule about a kind of program allows it: such a program runs the code of the workspace.
    """

    effect: Literal["", "allow", "ask", "deny"] = ""
    why: str = ""
    reads: bool = False
    by_kind: bool = False


class ApprovalNeed(msgspec.Struct, kw_only=True, frozen=True):
    """Approval that a call needs from the user, with the texts to display.

    Attributes:
        why: What no permission for calls in general covers, as a clause without a full stop; empty for most calls.
        session_scope: Description of what "this session" would allow; empty if it is not offered.
        session_key: Key under which such a grant is stored.
        command: The shell command exactly as it would run; empty for other calls.
        in_every_mode: No mode and no earlier permission covers the call.
        beyond: Empty if the call can run in the sandbox of the mode auto; else what it needs more, as a sentence
            without a full stop; None if the sandbox is not for such calls.
        planted: What commands in the sandbox have changed that this one may run outside, as a sentence without a full
            stop; empty for nothing.
        subject: What rules see of the call; the toolbox adds it.
    """

    kind: ApprovalKind
    question: str
    detail: str
    why: str = ""
    session_scope: str = ""
    session_key: str = ""
    command: str = ""
    in_every_mode: bool = False
    beyond: str | None = None
    planted: str = ""
    subject: CallSubject | None = None


class ToolArguments(msgspec.Struct, kw_only=True):
    """Base class of every tool's arguments."""

    reason: str = ""
    """Why the model makes the call. The instructions ask for it once, rather than each schema."""


REASON_SCHEMA = {"reason": {"type": "string"}}
"""First property of every tool's schema: models write arguments in its order, and a reason given last is an
afterthought."""


class PassedArguments(ToolArguments):
    """Arguments that are passed on as given, to a tool with a schema of its own."""

    values: dict[str, Any] = {}


class Plan(msgspec.Struct, kw_only=True):
    """Checked call that is ready to run, with the approval it needs first.

    Attributes:
        contents: Contents of files after it, by absolute path, None for a missing one: later calls of the reply are
            prepared against them.
        harmless: The call of a tool that may change something changes nothing, so it is allowed while planning.
    """

    run: Callable[[], Awaitable[ToolOutcome]]
    approval: ApprovalNeed | None = None
    contents: dict[Path, bytes | None] = {}
    harmless: bool = False


OtherWordings = Annotated[list[str], Meta(description="3 other wordings at most: synonyms, likely names.")]
"""Further wordings of a query, all searched as one ranking."""


class MemorySource(Protocol):
    """Source that the memory tools search. Texts are plain; an empty one means that there was no match."""

    async def search(self, query: str, *, also: Sequence[str] = (), topic: str, limit: int) -> str:
        """Return the matching findings and turns, best first, each with its source: conversation, date, ``[t12]``.

        What the request already holds is left out.

        Args:
            also: Other wordings of the query.

        Raises:
            RagforgeError: The search failed; the message tells the model what to do.
        """
        ...

    async def remember(
        self, text: str, *, kind: KeptKind, scope: Literal["user", "folder"], replaces: str, made_by: str
    ) -> str:
        """Store a statement of the calling turn, and return what was done, as a sentence for the model.

        Args:
            replaces: Text of an earlier statement that it corrects; empty for none.
            made_by: ``tool``, or ``user`` if the user has edited the text.

        Raises:
            RagforgeError: It could not be stored.
        """
        ...

    async def open_turn(self, conversation: str, turn: int) -> str:
        """Return a whole turn. `conversation` is an id or unique prefix, empty for the current conversation.

        Raises:
            RagforgeError: The turn does not exist, or is not visible from here; the message tells the model what to do.
        """
        ...

    async def open_call(self, conversation: str, turn: int, call: int) -> str:
        """Return a tool call with its whole result; `call` counts from 1 in its turn.

        Raises:
            RagforgeError: There is no such call that is visible from here; the message tells the model what to do.
        """
        ...


class CodeSource(Protocol):
    """Source that the code tools search: the index of the workspace, and past conversations about it."""

    @property
    def ready(self) -> bool:
        """Whether the workspace has an index with something in it."""
        ...

    @property
    def coming(self) -> bool:
        """Whether the first index of the workspace is being made."""
        ...

    async def pending(self) -> str:
        """Wait a while for an index that is being made; return how far it is if that was not enough, else nothing."""
        ...

    async def search(
        self, query: str, *, also: Sequence[str] = (), path: str = "", kind: str = "", limit: int = 10
    ) -> list[Scope]:
        """Return scopes by name and meaning, best first.

        Args:
            also: Other wordings of the query.

        Raises:
            RagforgeError: The search failed; the message tells the model what to do.
        """
        ...

    async def named(self, name: str) -> list[Scope]:
        """Return the scopes of a name, a qualified name, ``file:name`` or ``file:line``; none if there are none."""
        ...

    async def code(self, scope: Scope) -> ScopeCode:
        """Return the text of a scope as it is in the file now."""
        ...

    async def view(self, scope: Scope) -> ScopeView: ...

    async def dependents(self, scope: Scope, *, depth: int = 1) -> list[ScopeLink]:
        """Return the scopes that refer to a scope, through others up to a depth."""
        ...

    async def dependencies(self, scope: Scope, *, depth: int = 1) -> tuple[list[ScopeLink], list[UnresolvedName]]:
        """Return the scopes that a scope refers to, through others up to a depth, and names it could not resolve."""
        ...

    async def brain_search(self, query: str, *, also: Sequence[str] = (), limit: int = 10) -> list[BrainHit]:
        """Return hits in code, files, turns, summaries and topics, best first.

        Raises:
            RagforgeError: The search failed; the message tells the model what to do.
        """
        ...


class ToolContext:
    """Shared state of a session's tools.

    Attributes:
        memory: None if the memory is switched off.
        code: None if code is not indexed.
        folders: The program's own folders, which no command of the agent reaches.
        settings_file: The user's settings file, which may be elsewhere and is not reached either.
        remembers: What the agent may remember with its tool; see `agent.memory.remember`.
        seen: Digest of the content that the model last read or wrote, by path.
    """

    def __init__(
        self,
        workspace: Workspace,
        settings: ToolSettings,
        undo: UndoStore,
        state_dir: Path,
        memory: MemorySource | None = None,
        code: CodeSource | None = None,
        folders: Sequence[Path] = (),
        settings_file: Path | None = None,
        remembers: Remembering = "never",
    ) -> None:
        self.remembers = remembers
        self.workspace = workspace
        self.settings = settings
        self.undo = undo
        self.state_dir = state_dir
        self.folders = folders
        self.settings_file = settings_file
        self.memory = memory
        self.code = code
        self.seen: dict[str, str] = {}

    @property
    def most_output(self) -> int:
        """The characters of a result that the model gets at most."""
        return min(self.settings.max_output_chars, output_room.get() or self.settings.max_output_chars)


class Tool:
    """Tool of the agent, complete in one class; listed in `registry.TOOLS`, it is known everywhere.

    A subclass gives the attributes and `run`; a tool that needs an approval, or checks before it, gives `prepare`.

    Attributes:
        info: Its name, and all that is shown, summarised and exported of its calls.
        description: Its description for the model.
        arguments: The arguments that `prepare` and `run` accept.
        passed_schema: JSON schema of arguments that are `PassedArguments`; None for others.
    """

    info: ClassVar[ToolInfo]
    description: ClassVar[str]
    arguments: ClassVar[type[ToolArguments]]
    passed_schema: ClassVar[dict[str, Any] | None] = None

    def __init__(self, context: ToolContext) -> None:
        self.context = context

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def access(self) -> ToolAccess:
        return self.info.access

    @classmethod
    def is_available(cls, context: ToolContext) -> bool:
        """Return whether the session can have this tool."""
        return True

    @property
    def offered(self) -> bool:
        """Whether models are offered the tool now; one that they are not can still be called."""
        return True

    async def prepare(self, arguments: Any) -> Plan:
        """Check a call and return the plan to run it; changes nothing.

        Raises:
            ToolError: The call is not possible; the message tells the model what to do.
        """
        return Plan(run=lambda: self.run(arguments))

    async def run(self, arguments: Any) -> ToolOutcome:
        raise NotImplementedError

    async def close(self) -> None:
        """End whatever still runs."""


def failed(text: str, **data: Any) -> ToolOutcome:
    """Return the outcome of a failed call; the first line of the text becomes the error."""
    return ToolOutcome(text=text, success=False, error=text.split("\n", 1)[0], data=data)


async def finished_in_thread(work: Callable[[], ToolOutcome]) -> ToolOutcome:
    """Run a write in a thread to its end, even if cancelled, so that its record matches the file.

    Raises:
        CallStopped: The call was cancelled, but the write was completed.
    """
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError as cancelled:
        await asyncio.wait([task])
        if task.cancelled():
            raise
        if task.exception() is not None:
            _log.warning("A write failed while its call was cancelled: %s", task.exception())
            raise
        raise CallStopped(task.result()) from cancelled
