"""What a tool is: its typed arguments, what it needs approved, what it gives back.

Used by every module of this room, by rooms that bring tools of their own (memory, code) and by the agent loop,
which sees `PreparedCall`, `ApprovalNeed` and `ToolOutcome` only. Cut here so that a tool is described without
knowing the toolbox that holds it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal, Protocol

import msgspec
from msgspec import Meta

from ragforge_tui.models import FileAccess

Access = Literal["read", "write", "command", "control"]
ApprovalKind = Literal["write", "command", "secret"]


class ToolOutcome(msgspec.Struct, kw_only=True):
    """What a call came to.

    Attributes:
        text: What the model is told; on failure it says what to do instead.
        error: The failure in one sentence, None on success.
        data: What programs use: ``diff``, ``exit_status``, ``before`` and ``after`` (digests of file contents, an
            empty one for a file that was not there), ``todos``, ``notice``, ``truncated``.
        full_size: Bytes of the whole result before any cut.
    """

    text: str
    success: bool = True
    error: str | None = None
    data: dict[str, Any] = {}
    files: list[FileAccess] = []
    full_size: int = 0


class CallStopped(asyncio.CancelledError):
    """A call was cancelled and has something to show for it, which is kept."""

    def __init__(self, outcome: ToolOutcome) -> None:
        super().__init__()
        self.outcome = outcome


class ApprovalNeed(msgspec.Struct, kw_only=True, frozen=True):
    """That a call waits for a person, and what the person is shown.

    Attributes:
        session_scope: What "this session" would cover, in words; empty when it is not offered.
        session_key: Key under which such a grant is remembered.
        command: The shell command it is about, as it would be run; empty when it is about none.
    """

    kind: ApprovalKind
    question: str
    detail: str
    session_scope: str = ""
    session_key: str = ""
    command: str = ""


class ToolArguments(msgspec.Struct, kw_only=True):
    """Base of every tool's arguments."""

    reason: Annotated[str, Meta(description="Optional: why you make this call, in one sentence.")] = ""


class Plan(msgspec.Struct, kw_only=True):
    """A checked call that is ready to run, and the approval it needs before."""

    run: Callable[[], Awaitable[ToolOutcome]]
    approval: ApprovalNeed | None = None


class Tool(Protocol):
    """One thing the agent can do. `prepare` changes nothing; only the plan's `run` does.

    Attributes:
        arguments: The `ToolArguments` subclass that `prepare` is called with an instance of.
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
        """Check a call.

        Raises:
            ToolError: With text the model can act on.
        """
        ...


class FunctionTool(msgspec.Struct, kw_only=True, frozen=True):
    """A tool made of a coroutine function that takes the arguments; it never needs approval."""

    name: str
    description: str
    arguments: type[ToolArguments]
    function: Callable[[Any], Awaitable[ToolOutcome]]
    access: Access = "read"

    async def prepare(self, arguments: Any) -> Plan:
        """A plan that calls the function."""

        async def run() -> ToolOutcome:
            return await self.function(arguments)

        return Plan(run=run)


def failed(text: str, **data: Any) -> ToolOutcome:
    """An outcome that says what went wrong; its first line is the error."""
    return ToolOutcome(text=text, success=False, error=text.split("\n", 1)[0], data=data)
