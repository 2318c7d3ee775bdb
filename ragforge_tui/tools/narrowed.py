"""A toolbox of which only some tools are offered: a persona may narrow what the agent can do, never widen it.

Used by the conversation in place of the toolbox itself. A call of a tool that is not offered is refused, whoever
invented it. The plan and notices to the person touch nothing and are always offered, so a request always has tools.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ragforge_tui.errors import ToolError
from ragforge_tui.tools.base import Access
from ragforge_tui.tools.toolbox import PreparedCall, Toolbox

READING = "read"
"""Stands for all tools that only read."""


class NarrowedTools:
    """Some tools of a toolbox.

    Args:
        allowed: Their names, or `READING`; None: all.
        whose: Who narrowed them, for the refusal.
    """

    def __init__(self, toolbox: Toolbox, allowed: Collection[str] | None, whose: str) -> None:
        self._toolbox = toolbox
        self._allowed = None if allowed is None else frozenset(allowed)
        self._whose = whose

    def schemas(self) -> list[dict[str, Any]]:
        """The tools as an OpenAI-compatible request carries them."""
        return [schema for schema in self._toolbox.schemas() if self._offers(schema["function"]["name"])]

    def access(self, name: str) -> Access:
        """What kind of thing a tool does; "control" for one that is not offered."""
        return self._toolbox.access(name) if self._offers(name) else "control"

    async def prepare(self, name: str, arguments: str) -> PreparedCall:
        """Check a call, as `Toolbox.prepare`.

        Raises:
            ToolError: It is not offered, or as the toolbox raises it.
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
