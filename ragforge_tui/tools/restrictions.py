"""Toolbox restricted by persona and mode: neither ever adds a tool.

A persona may restrict the agent to some tools. While planning, a call that writes or runs a command is refused; the
mode is read at every call, so that a change takes effect from the next call on, even within a turn. The mode does not
change the tools that are offered, because a request with other tools misses the provider's prompt cache. The plan and
notices to the user change nothing and are always offered, so every request carries tools.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from ragforge_tui.shared.errors import ToolError
from ragforge_tui.shared.requests.work import Mode
from ragforge_tui.shared.tool_calls import CHANGING, ToolAccess
from ragforge_tui.tools.registry import PreparedCall, Toolbox

READING = "read"
"""Name that allows all tools that only read."""
PLANNING = "planning"
"""Kind of the error for a call that is not allowed while planning."""


class RestrictedTools:
    """Tools of a toolbox that a persona and the mode allow.

    Args:
        allowed: Names of the tools, or `READING`; None: all.
        allowed_by: Origin of that restriction, for the error message.
        mode: Function that returns the current mode.
    """

    def __init__(
        self, toolbox: Toolbox, allowed: Collection[str] | None, allowed_by: str, mode: Callable[[], Mode]
    ) -> None:
        self._toolbox = toolbox
        self._allowed = None if allowed is None else frozenset(allowed)
        self._allowed_by = allowed_by
        self._mode = mode

    def schemas(self) -> list[dict[str, Any]]:
        """Return the tools of the persona, whatever the mode, in the form of an OpenAI-compatible request."""
        return [each for each in self._toolbox.schemas() if self._offers(each["function"]["name"])]

    def access(self, name: str) -> ToolAccess:
        """Return the kind of access of a tool, whatever the mode; "control" for one that is not offered."""
        return self._toolbox.access(name) if self._offers(name) else "control"

    async def prepare(self, name: str, arguments: str) -> PreparedCall:
        """Check a call, as `Toolbox.prepare` does.

        Raises:
            ToolError: The persona or the mode does not allow the tool, or the toolbox rejects the call.
        """
        self.check(name)
        if not self._offers(name):
            offered = [schema["function"]["name"] for schema in self._toolbox.schemas()]
            raise ToolError(
                f"{self._allowed_by} may not use {name}.",
                todo=f"The tools are: {', '.join(filter(self._offers, offered))}.",
                kind="unknown_tool",
            )
        prepared = await self._toolbox.prepare(name, arguments)
        self.check(name)  # the user may have switched modes meanwhile, and a granted call is not asked about again
        return prepared

    def check(self, name: str) -> None:
        """Reject a tool that the mode does not allow now.

        Raises:
            ToolError: The mode does not allow the tool.
        """
        if not self._fits_mode(name):
            raise ToolError(
                f"{name} is not allowed while planning; nothing was changed or run.",
                todo="Use the tools that only read, then answer with the plan; the user decides on it.",
                kind=PLANNING,
            )

    def _offers(self, name: str) -> bool:
        if self._allowed is None or name in self._allowed:
            return True
        access = self._toolbox.access(name)
        return access == "control" or (access == "read" and READING in self._allowed)

    def _fits_mode(self, name: str) -> bool:
        return self._mode() != "plan" or self.access(name) not in CHANGING
