"""Tools for the agent's plan and its notices to the user, which affect only the screen.

The agent loop turns ``data["todos"]`` and ``data["notice"]`` into events.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from ragforge_tui.shared.errors import ToolError
from ragforge_tui.shared.records import Todo, TodoStatus
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.shared.tool_calls import ToolInfo
from ragforge_tui.tools.base import Tool, ToolArguments, ToolOutcome

_STATUS_WORDS: dict[str, TodoStatus] = {
    "completed": "completed",
    "in_progress": "in_progress",
    "done": "completed",
    "complete": "completed",
    "finished": "completed",
    "in-progress": "in_progress",
    "in progress": "in_progress",
    "doing": "in_progress",
    "active": "in_progress",
}
_MOST_TODOS = 100


class TodoEntry(msgspec.Struct, kw_only=True):
    content: str
    status: str = "pending"


class UpdateTodosArguments(ToolArguments):
    todos: Annotated[
        # Parsed leniently: plain strings and other words for a status are common slips.
        list[Any],
        Meta(
            description="The whole plan, in order; it replaces the earlier one.",
            extra_json_schema={
                "items": {
                    "type": "object",
                    "properties": {
                        "content": {"type": "string"},
                        "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
                    },
                    "required": ["content", "status"],
                }
            },
        ),
    ]


class NotifyUserArguments(ToolArguments):
    message: Annotated[str, Meta(description="One or two sentences for the user.")]
    level: Literal["info", "warning", "error"] = "info"


class UpdateTodos(Tool):
    """Tool that shows the user the agent's plan."""

    info = ToolInfo(
        name="update_todos",
        label="Plan",
        help="show its plan for a task of several steps",
        access="control",
        shown=(),
        result="plan",
        verb="updated the plan",
        outcome="none",
    )
    description = "Show the user your plan for a task of several steps; send the whole list each time."
    arguments = UpdateTodosArguments

    async def run(self, arguments: UpdateTodosArguments) -> ToolOutcome:
        todos = [_todo(entry) for entry in arguments.todos[:_MOST_TODOS]]
        done = sum(todo.status == "completed" for todo in todos)
        return ToolOutcome(
            text=f"The plan has {len(todos)} entries, {done} completed.",
            data={"todos": [msgspec.to_builtins(todo) for todo in todos]},
        )


class NotifyUser(Tool):
    """Tool that shows the user a notice. It is understood, but no longer offered: a reply's text does the same."""

    info = ToolInfo(
        name="notify_user",
        label="Note",
        access="control",
        main_argument="message",
        verb="notified the user",
        outcome="none",
    )
    description = "Notify the user of something important while you continue working."
    arguments = NotifyUserArguments
    offered = False

    async def run(self, arguments: NotifyUserArguments) -> ToolOutcome:
        message = plain_text(arguments.message).strip()
        if not message:
            raise ToolError("The message is empty.", todo="Write what the user should know.")
        return ToolOutcome(text="The user was notified.", data={"notice": message, "level": arguments.level})


def _todo(given: Any) -> Todo:
    try:
        entry = TodoEntry(content=given) if isinstance(given, str) else msgspec.convert(given, TodoEntry)
    except msgspec.ValidationError as error:
        raise ToolError(
            f"An entry of todos is invalid: {error}.", todo="Each entry is an object with content and status."
        ) from error
    return Todo(content=plain_text(entry.content).strip(), status=_STATUS_WORDS.get(entry.status.lower(), "pending"))
