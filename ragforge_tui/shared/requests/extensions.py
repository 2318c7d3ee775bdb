"""Requests about what the user adds to the agent: MCP servers."""

from __future__ import annotations

from typing import Literal

import msgspec

from ragforge_tui.shared.wire import Empty, Request

McpState = Literal["off", "starting", "ready", "failed"]


class McpServerState(msgspec.Struct, frozen=True, kw_only=True):
    """An MCP server of this session.

    Attributes:
        origin: Whether the user's settings or the project's file configure it.
        where: The command or the address, as configured.
        tools: Names of its tools, as the server knows them.
        left_out: Those of them that are not offered, because they are too many or too long.
    """

    name: str
    origin: Literal["own", "project"]
    where: str
    state: McpState
    error: str = ""
    tools: list[str] = []
    left_out: list[str] = []


class ListMcpServers(Request[list[McpServerState]]):
    """List the MCP servers of this session."""


class RestartMcpServer(Request[Empty]):
    """Start an MCP server, again if it runs; answered once it runs or has failed."""

    name: str


class StopMcpServer(Request[Empty]):
    """End an MCP server for this session."""

    name: str
