"""Tool that lets a helper with a context of its own search, review or plan.

The conversation gives the running turn a function that runs a helper; in background work there is none.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Annotated, Literal

from msgspec import Meta

from ragforge_tui.shared.errors import ToolError
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.shared.tool_calls import ShownArgument, ToolInfo
from ragforge_tui.tools.base import Tool, ToolArguments, ToolOutcome

DELEGATE = "delegate"
HelperKind = Literal["search", "review", "plan"]

run_helper: ContextVar[Callable[[HelperKind, str], Awaitable[ToolOutcome]] | None] = ContextVar(
    "run_helper", default=None
)
"""Function of the running turn that runs a helper and returns its answer; None where nothing can be delegated."""


class DelegateArguments(ToolArguments):
    kind: HelperKind
    task: Annotated[
        str, Meta(description="The whole task: what to find out, where to look, what the answer should hold.")
    ]


class Delegate(Tool):
    """Tool that runs a helper. It only reads, so several calls of a reply run at once."""

    info = ToolInfo(
        name=DELEGATE,
        label="Helper",
        help="let a helper search, review or plan in a context of its own",
        main_argument="task",
        shown=(ShownArgument(names=("kind",), muted=True), ShownArgument(names=("task",), before=" ")),
        result="prose",
        verb="let a helper work on {}",
        longest_argument=120,
    )
    description = (
        "Let a helper search, review or plan in a context of its own: for work that reads much and answers little. It "
        "sees the workspace but not this conversation, changes nothing, and returns a short answer. Several calls in "
        "one reply run at once."
    )
    arguments = DelegateArguments

    async def run(self, arguments: DelegateArguments) -> ToolOutcome:
        task = plain_text(arguments.task).strip()
        if not task:
            raise ToolError("The task is empty.", todo="Describe what the helper should find out.")
        run = run_helper.get()
        if run is None:
            raise ToolError("Nothing can be delegated here.", todo="Do it yourself.")
        return await run(arguments.kind, task)
