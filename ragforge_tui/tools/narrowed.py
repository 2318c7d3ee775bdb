"""Toolbox that offers only some tools: a persona may restrict the agent's tools, never extend them.

Used by the conversation in place of the toolbox itself. A call of a tool that is not offered is rejected. The plan and
notices to the user change nothing and are always offered, so every request carries tools.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ragforge_tui.shared.errors import ToolError
from ragforge_tui.tools.base import Access
from ragforge_tui.tools.registry import PreparedCall, Toolbox

READING = "read"
"""Name that allows all tools that only read."""


class NarrowedTools:
    """Subset of the tools of a toolbox.

    Args:
        allowed: Names of the tools, or `READING`; None: all.
        whose: Origin of the restriction, for the error message.
    """

    def __init__(self, toolbox: Toolbox, allowed: Collection[str] | None, whose: str) -> None:
        self._toolbox = toolbox
        self._allowed = None if allowed is None else frozenset(allowed)
        self._whose = whose

    def schemas(self) -> list[dict[str, Any]]:
        """Return the offered tools in the form of an OpenAI-compatible request."""
        return [schema for schema in self._toolbox.schemas() if self._offers(schema["function"]["name"])]

    def access(self, name: str) -> Access:
        """Return the kind of access of a tool; "control" for one that is not offered."""
        return self._toolbox.access(name) if self._offers(name) else "control"

    async def prepare(self, name: str, arguments: str) -> PreparedCall:
        """Check a call, as `Toolbox.prepare` does.

        Raises:
            ToolError: The tool is not offered, or the toolbox rejects the call.
        """
        if not self._offers(name):
            offered = ", ".join(schema["function"]["name"] for schema in self.schemas())
            raise ToolError(
                f"{self._whose} may not use {name}.", todo=f"The tools are: {offered}.", kind="unknown_tool"
            )
        return await self._toolbox.prepare(name, arguments)

    def _offers(self, name: str) -> bool:
        if self._allowed is None or name in self._allowed:
            return True
        access = self._toolbox.access(name)
        return access == "control" or (access == "read" and READING in self._allowed)
