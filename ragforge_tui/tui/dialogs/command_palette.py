"""The palette: every command on one line, narrowed by typing. Loaded when first used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ragforge_tui.tui.command_registry import Command, Registry, effective_keys, key_name
from ragforge_tui.tui.widgets.choice_list import Choice
from ragforge_tui.tui.widgets.list_screen import Picker

MOST_USED = 5
USED_HEADING = "Most used"
LAST_HEADING = "Remove"


class CommandPalette(Picker):
    """Commands in the groups of /help: the most used first, those that remove something last.

    Returns the name of the picked command.
    """

    DEFAULT_CSS = """
    CommandPalette { align: center top; }
    CommandPalette > Vertical { width: 92; margin-top: 2; }
    """

    def __init__(self, registry: Registry, keymap: Mapping[str, str], used: Iterable[str]) -> None:
        rows = palette_rows(registry, keymap, used)

        async def load() -> list[Choice]:
            return rows

        super().__init__("Commands", load, empty="no commands", verb="runs it", detail_right=False)

    def searched(self, row: Choice) -> str:
        """Return what a command is found by: its name, its aliases and what it does."""
        return f"{row.label} {row.lead} {row.detail}"


def palette_rows(registry: Registry, keymap: Mapping[str, str], used: Iterable[str]) -> list[Choice]:
    """Return the rows of the palette.

    Args:
        used: Names of the commands used so far, the most used first; those that remove something are left out.
    """
    keys = effective_keys(keymap, registry)

    def row(command: Command, heading: str) -> Choice:
        key = key_name(keys[command.name]) if command.name in keys else ""
        return Choice(command.name, command.usage, command.help, heading, lead=" ".join(command.aliases), badge=key)

    found = [command for name in used if (command := registry.get(name)) is not None and not command.removes]
    first = found[:MOST_USED]
    rest = [command for command in registry.commands if command not in first]
    return [
        *(row(command, USED_HEADING) for command in first),
        *(row(command, command.group) for command in rest if not command.removes),
        *(row(command, LAST_HEADING) for command in rest if command.removes),
    ]
