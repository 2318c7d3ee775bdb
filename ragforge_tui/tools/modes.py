"""Tools as the mode lets them be used: while planning, nothing that writes or runs a command is offered or allowed.

Used by the conversation around its tools. The mode is asked for at every call, so that a change takes effect at the
next one, in the middle of a turn too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ragforge_tui.errors import ToolError
from ragforge_tui.requests.work import Mode
from ragforge_tui.tools.base import Access
from ragforge_tui.tools.narrowed import NarrowedTools
from ragforge_tui.tools.toolbox import PreparedCall

PLANNING = "planning"
"""The kind of the error that says so."""
CHANGING: frozenset[Access] = frozenset({"write", "command"})


class ModeTools:
    """A toolbox in a mode.

    Args:
        mode: The mode as it is now.
    """

    def __init__(self, tools: NarrowedTools, mode: Callable[[], Mode]) -> None:
        self._tools = tools
        self._mode = mode

    def schemas(self) -> list[dict[str, Any]]:
        """The tools as an OpenAI-compatible request carries them now."""
        return [schema for schema in self._tools.schemas() if self._allows(schema["function"]["name"])]

    def access(self, name: str) -> Access:
        """What kind of thing a tool does, whether the mode allows it or not."""
        return self._tools.access(name)

    async def prepare(self, name: str, arguments: str) -> PreparedCall:
        """Check a call, as `Toolbox.prepare`.

        Raises:
            ToolError: The mode does not allow it, or as the toolbox raises it.
        """
        self.check(name)
        prepared = await self._tools.prepare(name, arguments)
        self.check(name)  # the person may have switched meanwhile, and what is granted is not asked about again
        return prepared

    def check(self, name: str) -> None:
        """Refuse what the mode does not allow now.

        Raises:
            ToolError: It does not.
        """
        if not self._allows(name):
            raise ToolError(
                f"{name} is not allowed while planning; nothing was changed or run.",
                todo="Look with the tools that read, then answer with the plan; the person decides what comes of it.",
                kind=PLANNING,
            )

    def _allows(self, name: str) -> bool:
        return self._mode() != "plan" or self._tools.access(name) not in CHANGING
