"""Restriction of tools by mode: while planning, no tool that writes or runs a command is offered or allowed.

Used by the conversation around its tools. The mode is read at every call, so that a change takes effect from the next
call on, even within a turn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ragforge_tui.shared.errors import ToolError
from ragforge_tui.shared.requests.work import Mode
from ragforge_tui.tools.base import Access
from ragforge_tui.tools.narrowed import NarrowedTools
from ragforge_tui.tools.registry import PreparedCall

PLANNING = "planning"
"""Kind of the error for a call that is not allowed while planning."""
CHANGING: frozenset[Access] = frozenset({"write", "command"})


class ModeTools:
    """Toolbox restricted by the current mode.

    Args:
        mode: Function that returns the current mode.
    """

    def __init__(self, tools: NarrowedTools, mode: Callable[[], Mode]) -> None:
        self._tools = tools
        self._mode = mode

    def schemas(self) -> list[dict[str, Any]]:
        """Return the tools that the mode allows now, in the form of an OpenAI-compatible request."""
        return [schema for schema in self._tools.schemas() if self._allows(schema["function"]["name"])]

    def access(self, name: str) -> Access:
        """Return the kind of access of a tool, whether the mode allows it or not."""
        return self._tools.access(name)

    async def prepare(self, name: str, arguments: str) -> PreparedCall:
        """Check a call, as `Toolbox.prepare` does.

        Raises:
            ToolError: The mode does not allow it, or the toolbox rejects it.
        """
        self.check(name)
        prepared = await self._tools.prepare(name, arguments)
        self.check(name)  # the user may have switched modes meanwhile, and a granted call is not asked about again
        return prepared

    def check(self, name: str) -> None:
        """Reject a tool that the mode does not allow now.

        Raises:
            ToolError: The mode does not allow the tool.
        """
        if not self._allows(name):
            raise ToolError(
                f"{name} is not allowed while planning; nothing was changed or run.",
                todo="Use the tools that only read, then answer with the plan; the user decides on it.",
                kind=PLANNING,
            )

    def _allows(self, name: str) -> bool:
        return self._mode() != "plan" or self._tools.access(name) not in CHANGING
