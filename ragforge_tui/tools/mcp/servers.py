"""All MCP servers of a session: the user's own, and the project's once the user has allowed its file."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from ragforge_tui.settings.schema import McpServer, McpSettings
from ragforge_tui.shared.errors import ConfigError, NotFoundError
from ragforge_tui.shared.events import Event, Notice
from ragforge_tui.shared.requests.extensions import McpServerState
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.tools.mcp.config import PROJECT_FILE, project_servers, project_text
from ragforge_tui.tools.mcp.connection import Connection
from ragforge_tui.tools.mcp.tool import tools_of
from ragforge_tui.tools.registry import Toolbox

log = logging.getLogger(__name__)

_MOST_NAMED = 10
FIRST_WAIT = 20.0
"""Seconds the first turn waits for servers, so that the tools are the same from it on."""


class McpServers:
    """The servers of a session.

    Args:
        ask: Returns whether the user allows a project's text: called with the name of the file, and the text.
    """

    def __init__(
        self,
        settings: McpSettings,
        workspace: Path,
        toolbox: Toolbox,
        emit: Callable[[Event], None],
        ask: Callable[[str, str], Awaitable[bool]],
    ) -> None:
        self._settings = settings
        self._workspace = workspace
        self._toolbox = toolbox
        self._emit = emit
        self._ask = ask
        self._connections: dict[str, Connection] = {}
        self._left_out: list[str] = []
        self._told: set[str] = set()
        self._starting: asyncio.Task[None] | None = None
        self._waited = False

    def start(self) -> None:
        """Start the servers in the background; without any, do nothing."""
        if self._starting is None:
            self._starting = asyncio.create_task(self._start(), name="mcp")

    async def ready(self) -> None:
        """Wait, before the first turn, for consent and for the servers."""
        if self._waited or self._starting is None:
            return
        self._waited = True
        await asyncio.shield(self._starting)
        running = [asyncio.create_task(one.settled()) for one in self._connections.values()]
        if running:
            _, late = await asyncio.wait(running, timeout=FIRST_WAIT)
            for task in late:
                task.cancel()

    async def _start(self) -> None:
        self._add(self._settings.servers, "own")
        text = await asyncio.to_thread(project_text, self._workspace) if self._settings.project_file else ""
        if text.strip():
            try:
                servers = project_servers(text)
            except ConfigError as error:
                self._emit(Notice(text=error.info.sentence(), level="warning"))
                return
            if servers and await self._ask(PROJECT_FILE, text):
                self._add({name: one for name, one in servers.items() if name not in self._connections}, "project")

    def _add(self, servers: dict[str, McpServer], origin: str) -> None:
        for name, settings in servers.items():
            connection = Connection(
                name,
                settings,
                origin,
                self._workspace,
                timeout=self._settings.timeout,
                changed=self._offer,
            )
            self._connections[name] = connection
            if settings.enabled:
                connection.start()

    def _offer(self) -> None:
        """Offer the tools of the servers as they are now, and report a server that failed."""
        used = [one for one in self._connections.values() if one.state != "off"]
        kinds, self._left_out = tools_of(used)
        self._toolbox.set_external("mcp", kinds)
        for one in used:
            sentence = f"The MCP server {plain_text(one.name)} does not run: {one.error}. See /mcp."
            if one.state == "failed":
                self._tell(sentence)
            elif names := self._left_out_of(one):
                listed = f"{', '.join(names[:_MOST_NAMED])}{' …' if len(names) > _MOST_NAMED else ''}"
                self._tell(
                    f"Tools of the MCP server {plain_text(one.name)} are left out: {plain_text(listed)}. See /mcp."
                )

    def _tell(self, sentence: str) -> None:
        if sentence not in self._told:
            self._told.add(sentence)
            self._emit(Notice(text=sentence, level="warning"))

    def _left_out_of(self, connection: Connection) -> list[str]:
        return [name.partition(": ")[2] for name in self._left_out if name.startswith(f"{connection.name}: ")]

    def states(self) -> list[McpServerState]:
        """Return the servers as /mcp lists them."""
        return [
            McpServerState(
                name=one.name,
                origin="project" if one.origin == "project" else "own",
                where=one.where,
                state=one.state,
                error=one.error,
                tools=[tool.name for tool in one.tools],
                left_out=self._left_out_of(one),
            )
            for one in self._connections.values()
        ]

    async def restart(self, name: str) -> None:
        """Start a server again, or for the first time.

        Raises:
            NotFoundError: There is no such server.
        """
        await self._named(name).restart()

    async def switch_off(self, name: str) -> None:
        """End a server and offer its tools no more in this session.

        Raises:
            NotFoundError: There is no such server.
        """
        await self._named(name).stop()

    def _named(self, name: str) -> Connection:
        if name not in self._connections:
            raise NotFoundError(f"There is no MCP server {name!r}.", todo="/mcp lists them.")
        return self._connections[name]

    async def close(self) -> None:
        """End all servers."""
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
        await asyncio.gather(*(one.stop() for one in self._connections.values()))
