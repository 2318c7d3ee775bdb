"""Commands about what the user adds to the agent: MCP servers, skills and own commands.

Screens are imported when first used.
"""

from __future__ import annotations

from collections.abc import Iterable

from ragforge_tui.shared.errors import NotFoundError, RagforgeError
from ragforge_tui.shared.formatting import counted
from ragforge_tui.shared.prompts import OwnPrompt, message_of
from ragforge_tui.shared.requests.extensions import (
    ListMcpServers,
    McpServerState,
    RestartMcpServer,
    StopMcpServer,
)
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.tui.command_registry import Command, Commands
from ragforge_tui.tui.host import Host
from ragforge_tui.tui.widgets.choice_list import Choice

COMMANDS = Commands("What you add")

NO_SERVERS = "No MCP server is configured: mcp.servers in /settings names them."
NO_SKILLS = "There are no skills: folders with a SKILL.md in ~/.agents/skills or .agents/skills."
OWN_GROUP = "Your commands and skills"
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
    tools = counted(len(one.tools), "tool")
    if one.left_out:
        tools += f", {len(one.left_out)} left out"
    detail = plain_text(one.error) if one.state == "failed" else tools if one.tools else plain_text(one.where)
    badge = f"{one.state} · project" if one.origin == "project" else one.state
    return Choice(one.name, plain_text(one.name), detail, lead=f"{_SIGNS[one.state]} ", badge=badge)


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
    about = [Choice("about", plain_text(server.where), "where it runs", heading="server")]
    if server.error:
        about.append(Choice("about:error", plain_text(server.error), "what went wrong", heading="server"))
    why = dict.fromkeys(server.left_out, "left out: too many or too long")
    tools = [Choice(f"tool:{tool}", plain_text(tool), why.get(tool, ""), heading="tools") for tool in server.tools]

    async def rows() -> list[Choice]:
        return [*actions, *about, *tools]

    def picked(action: str) -> None:
        if action in ("restart", "off"):
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


@COMMANDS.add("skills", "List the skills and your own commands")
async def show_skills(host: Host, _: str) -> None:
    """List skills and own commands; picking one puts it into the prompt."""
    from ragforge_tui.tui.prompt.history import Entry
    from ragforge_tui.tui.widgets.list_screen import Picker

    async def rows() -> list[Choice]:
        return [
            Choice(
                f"/{one.name} " if one.kind == "command" else f"/skill {one.name} ",
                one.name,
                plain_text(one.description),
                heading=f"{one.kind}s",
                badge="project" if one.origin == "project" else "",
            )
            for one in host.session.state.own_prompts
        ]

    def picked(line: str) -> None:
        host.prompt.put(Entry(line))

    host.open_screen(Picker("Skills and commands", rows, empty=NO_SKILLS, verb="write it"), picked)


@COMMANDS.add("skill", "Have the agent use a skill", arguments="NAME [WORDS]", completes="skills")
async def use_skill(host: Host, line: str) -> None:
    """Send a message that names a skill."""
    name, _, words = line.partition(" ")
    skills = {one.name: one for one in host.session.state.own_prompts if one.kind == "skill"}
    if not name:
        raise RagforgeError("Which skill? /skill NAME uses one.", todo="/skills lists them.")
    if name not in skills:
        raise NotFoundError(f"There is no skill {name!r}.", todo="/skills lists them.")
    host.session.send(message_of(skills[name], words.strip()))


def own_commands(prompts: Iterable[OwnPrompt]) -> list[Command]:
    """Return the commands that send own commands and skills; where both have a name, the command has it."""
    made: dict[str, Command] = {}
    for prompt in prompts:
        made.setdefault(prompt.name.lower(), _own_command(prompt))
    return list(made.values())


def _own_command(prompt: OwnPrompt) -> Command:
    async def send(host: Host, arguments: str) -> None:
        text = message_of(prompt, arguments)
        host.session.send(text, [text])

    return Command(
        prompt.name, plain_text(prompt.description), send, arguments=prompt.arguments or "[WORDS]", group=OWN_GROUP
    )
