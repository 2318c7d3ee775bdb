"""Command about the code of the workspace."""

from __future__ import annotations

from ragforge_tui.tui.code.opening import open_code
from ragforge_tui.tui.command_registry import Commands
from ragforge_tui.tui.host import Host

COMMANDS = Commands("Memory, tools and files")


@COMMANDS.add("code", "Search code by name or meaning; see callers and the turns about it", arguments="[QUERY]")
async def show_code(host: Host, query: str) -> None:
    """Search the code of the workspace; without words, list what this conversation touched."""
    open_code(host, query)
