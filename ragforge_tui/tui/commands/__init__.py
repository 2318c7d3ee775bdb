"""All commands: the slash menu, key bindings, palette, footer and /help are made from them.

One file per heading of /help.
"""

from __future__ import annotations

from ragforge_tui.tui.command_registry import Command
from ragforge_tui.tui.commands import (
    chat_commands,
    code_commands,
    conversation_commands,
    extension_commands,
    memory_commands,
    model_commands,
    persona_commands,
    screen_commands,
    work_commands,
)
from ragforge_tui.tui.host import Host
from ragforge_tui.tui.sidebar.pane import PANES, PaneEntry

SUBJECTS = (
    chat_commands,
    model_commands,
    persona_commands,
    memory_commands,
    code_commands,
    conversation_commands,
    work_commands,
    extension_commands,
    screen_commands,
)
"""Modules with `COMMANDS`, in the order of the menu."""
PANE_GROUP = "Memory, tools and files"


async def toggle_sidebar(host: Host, _: str) -> None:
    host.sidebar.toggle()


def _pane_command(entry: PaneEntry) -> Command:
    async def show(host: Host, _: str) -> None:
        host.sidebar.toggle(entry.name)

    name = entry.command or entry.name
    return Command(name, entry.help, show, key=entry.key, opens=True, keys=entry.keys, group=PANE_GROUP)


def all_commands() -> tuple[Command, ...]:
    """Return all commands, those of the registered panes among them."""
    panes = [_pane_command(entry) for entry in sorted(PANES, key=lambda entry: entry.key)]
    panes.append(Command("sidebar", "Show or hide the sidebar", toggle_sidebar, key="f8", group=PANE_GROUP))
    commands = [command for subject in SUBJECTS for command in subject.COMMANDS]
    # The panes follow the first command of their group, which shows what a model was sent.
    first = next(n for n, command in enumerate(commands) if command.group == PANE_GROUP) + 1
    return (*commands[:first], *panes, *commands[first:])
