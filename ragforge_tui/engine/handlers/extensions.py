"""Handlers of requests about what the user adds to the agent."""

from __future__ import annotations

from ragforge_tui.engine.registry import EngineContext, handles
from ragforge_tui.shared.requests import extensions as requests
from ragforge_tui.shared.wire import Empty


@handles(requests.ListMcpServers)
async def list_mcp_servers(engine: EngineContext, _: requests.ListMcpServers) -> list[requests.McpServerState]:
    return engine.agent.services.mcp.states()


@handles(requests.RestartMcpServer)
async def restart_mcp_server(engine: EngineContext, request: requests.RestartMcpServer) -> Empty:
    await engine.agent.services.mcp.restart(request.name)
    return Empty()


@handles(requests.StopMcpServer)
async def stop_mcp_server(engine: EngineContext, request: requests.StopMcpServer) -> Empty:
    await engine.agent.services.mcp.switch_off(request.name)
    return Empty()
