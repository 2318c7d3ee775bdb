"""Interface of a tool: its typed arguments, the approval it needs and its outcome.

Used by every module of this package, by packages with tools of their own (memory, code) and by the agent loop, which
sees only `PreparedCall`, `ApprovalNeed` and `ToolOutcome`. Separate from the toolbox, so that a tool does not depend on
it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal, Protocol

import msgspec
from msgspec import Meta

from ragforge_tui.shared.records import FileAccess

Access = Literal["read", "write", "command", "control"]
ApprovalKind = Literal["write", "command", "secret"]


class ToolOutcome(msgspec.Struct, kw_only=True):
    """Outcome of a call.

    Attributes:
        text: Text for the model; on failure it states what to do instead.
        error: The failure in one sentence, None on success.
        data: Values for programs: ``diff``, ``exit_status``, ``before`` and ``after`` (digests of file contents,
            empty for a missing file), ``todos``, ``notice``, ``truncated``.
        full_size: Bytes of the whole result before any cut.
    """

    text: str
    success: bool = True
    error: str | None = None
    data: dict[str, Any] = {}
    files: list[FileAccess] = []
    full_size: int = 0


class CallStopped(asyncio.CancelledError):
    """Cancellation of a call that has a partial outcome to store."""

    def __init__(self, outcome: ToolOutcome) -> None:
        super().__init__()
        self.outcome = outcome


class ApprovalNeed(msgspec.Struct, kw_only=True, frozen=True):
    """Approval that a call needs from the user, with the texts to display.

    Attributes:
        session_scope: Description of what "this session" would allow; empty if it is not offered.
        session_key: Key under which such a grant is stored.
        command: The shell command exactly as it would run; empty for other calls.
    """

    kind: ApprovalKind
    question: str
    detail: str
    session_scope: str = ""
    session_key: str = ""
    command: str = ""


class ToolArguments(msgspec.Struct, kw_only=True):
    """Base class of every tool's arguments."""

    reason: Annotated[str, Meta(description="Optional: why you make this call, in one sentence.")] = ""


class Plan(msgspec.Struct, kw_only=True):
    """Checked call that is ready to run, with the approval it needs first."""

    run: Callable[[], Awaitable[ToolOutcome]]
    approval: ApprovalNeed | None = None


class Tool(Protocol):
    """Tool of the agent. `prepare` changes nothing; only the plan's `run` does.

    Attributes:
        arguments: The subclass of `ToolArguments` whose instances `prepare` accepts.
    """

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def access(self) -> Access: ...

    @property
    def arguments(self) -> type[ToolArguments]: ...

    async def prepare(self, arguments: Any) -> Plan:
        """Check a call and return the plan to run it.

        Raises:
            ToolError: The call is not possible; the message tells the model what to do.
        """
        ...


class FunctionTool(msgspec.Struct, kw_only=True, frozen=True):
    """Tool that wraps a coroutine function taking the arguments; it never needs approval."""

    name: str
    description: str
    arguments: type[ToolArguments]
    function: Callable[[Any], Awaitable[ToolOutcome]]
    access: Access = "read"

    async def prepare(self, arguments: Any) -> Plan:
        """Return a plan that calls the function, without an approval."""

        async def run() -> ToolOutcome:
            return await self.function(arguments)

        return Plan(run=run)


def failed(text: str, **data: Any) -> ToolOutcome:
    """Return the outcome of a failed call; the first line of the text becomes the error."""
    return ToolOutcome(text=text, success=False, error=text.split("\n", 1)[0], data=data)
