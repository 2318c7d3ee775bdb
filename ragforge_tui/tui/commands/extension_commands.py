"""Commands about what the user adds to the agent: MCP servers.

Screens are imported when first used.
"""

from __future__ import annotations

from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.requests.extensions import (
    ListMcpServers,
    McpServerState,
    RestartMcpServer,
    StopMcpServer,
)
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.tui.command_registry import Commands
from ragforge_tui.tui.host import Host
from ragforge_tui.tui.widgets.choice_list import Choice

COMMANDS = Commands("What you add")

NO_SERVERS = "No MCP server is configured: mcp.servers in /settings names them."
_SIGNS = {"ready": "●", "starting": "◌", "failed": "✗", "off": "○"}


@COMMANDS.add("mcp", "MCP servers: their state and tools; start again, switch off", arguments="[SERVER]")
async def show_servers(host: Host, name: str) -> None:
    """List the MCP servers, or show one of them."""
    from ragforge_tui.tui.widgets.list_screen import Picker

    if name:
        await _show_server(host, name)
        return

    async def rows() -> list[Choice]:
        return [server_row(one) for one in await host.session.ask(ListMcpServers())]

    def picked(server: str) -> None:
        host.session.spawn(_show_server(host, server), group="mcp", exclusive=True)

    host.open_screen(Picker("MCP servers", rows, empty=NO_SERVERS, verb="tools and actions"), picked)


def server_row(one: McpServerState) -> Choice:
    """Return a server's row: its state, and its tools or what is wrong."""
    tools = f"{len(one.tools)} tool{'s' * (len(one.tools) != 1)}"
    if one.left_out:
        tools += f", {len(one.left_out)} left out"
    detail = plain_text(one.error) if one.state == "failed" else tools if one.tools else plain_text(one.where)
    badge = f"{one.state} · project" if one.origin == "project" else one.state
    return Choice(one.name, plain_text(one.name), detail, lead=_SIGNS[one.state], badge=badge)


async def _show_server(host: Host, name: str) -> None:
    from ragforge_tui.tui.widgets.list_screen import Picker

    servers = {one.name: one for one in await host.session.ask(ListMcpServers())}
    server = servers.get(name)
    if server is None:
        raise NotFoundError(f"There is no MCP server {name!r}.", todo="/mcp lists them.")
    runs = server.state in ("ready", "starting")
    actions = [Choice("restart", "start again" if runs else "start", heading="actions")]
    if server.state != "off":
        actions.append(Choice("off", "switch off for this session", heading="actions"))
    about = [Choice("", plain_text(server.where), "where it runs", heading="server")]
    if server.error:
        about.append(Choice("", plain_text(server.error), "what went wrong", heading="server"))
    left = set(server.left_out)
    tools = [
        Choice("", plain_text(tool), "left out: too many or too long" if tool in left else "", heading="tools")
        for tool in server.tools
    ]

    async def rows() -> list[Choice]:
        return [*actions, *about, *tools]

    def picked(action: str) -> None:
        if action:
            host.session.spawn(_act(host, name, action), group="mcp", exclusive=True)

    host.open_screen(Picker(f"MCP server {plain_text(name)}", rows, empty="nothing is known", verb="do it"), picked)


async def _act(host: Host, name: str, action: str) -> None:
    if action == "off":
        await host.session.ask(StopMcpServer(name=name))
        host.session.notice(f"The MCP server {plain_text(name)} is off; its tools are offered no more.")
        return
    host.hint(f"{plain_text(name)} starts …")
    await host.session.ask(RestartMcpServer(name=name))
    now = next((one for one in await host.session.ask(ListMcpServers()) if one.name == name), None)
    if now is not None and now.state == "ready":
        host.session.notice(f"The MCP server {plain_text(name)} runs, with {len(now.tools)} tools.")
