"""The palette: every command on one line, narrowed by typing. Loaded when first used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ragforge_tui.tui import fuzzy
from ragforge_tui.tui.command_registry import Command, Registry, effective_keys
from ragforge_tui.tui.keys import key_name
from ragforge_tui.tui.widgets.choice_list import Choice
from ragforge_tui.tui.widgets.list_screen import Picker

LEAVES = "quit"
MOST_USED = 5
MEANT_LETTERS = 4
"""Letters of the name of a command that removes something, from which it comes before what only holds the words."""
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

        super().__init__("Commands", load, empty="no commands", verb="run", detail_right=False)

    def matching(self, query: str) -> list[Choice]:
        """Return the commands that a query means, best first; one that removes something only by its name."""
        return found(query, self._rows)


def found(query: str, rows: list[Choice]) -> list[Choice]:
    """Return the rows that match by name or alias, then those that hold the words; a removing one only by its name."""
    words = query.casefold().split()
    if not words:
        return rows
    named = fuzzy.by_name(query, rows, lambda row: (row.key, *row.lead.split()))
    exact = [row for row in named if row.key == words[0]]
    starts = [row for row in named if any(name.startswith(words[0]) for name in (row.key, *row.lead.split()))]
    texts = [(row, f"{row.detail} {row.lead}".casefold()) for row in rows if row.heading != LAST_HEADING]
    short = starts and len(query.strip()) < fuzzy.FEWEST_FUZZY
    described = [] if short else [row for row, text in texts if all(word in text for word in words)]
    removing = [row for row in starts if row.heading == LAST_HEADING]
    meant = removing if len(words[0]) >= MEANT_LETTERS else []
    rows = [row for row in (*exact, *starts) if row not in removing] + meant
    rows += [row for row in (*described, *named) if row.heading != LAST_HEADING]
    return list({row.key: row for row in (*rows, *removing)}.values())


def palette_rows(registry: Registry, keymap: Mapping[str, str], used: Iterable[str]) -> list[Choice]:
    """Return the rows of the palette.

    Args:
        used: Names of the commands used so far, the most used first. Those that remove something are left out, and
            the one that leaves, since the first row is what Enter runs.
    """
    keys = effective_keys(keymap, registry)

    def row(command: Command, heading: str) -> Choice:
        key = key_name(keys[command.name]) if command.name in keys else ""
        return Choice(command.name, command.usage, command.help, heading, lead=" ".join(command.aliases), badge=key)

    found = [command for name in used if (command := registry.get(name)) is not None and not command.removes]
    found = [command for command in found if command.name != LEAVES]
    first = found[:MOST_USED]
    rest = [command for command in registry.commands if command not in first]
    return [
        *(row(command, USED_HEADING) for command in first),
        *(row(command, command.group) for command in rest if not command.removes),
        *(row(command, LAST_HEADING) for command in rest if command.removes),
    ]
