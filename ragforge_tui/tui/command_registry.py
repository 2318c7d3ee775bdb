"""Commands by name, alias and key, and how a prompt is parsed for them.

Pure; loads no widgets. The commands themselves are listed in `commands/catalog.py`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from ragforge_tui.tui import fuzzy


class Command(msgspec.Struct, frozen=True):
    """One command.

    Attributes:
        handler: Called with the `Host` and the argument.
        arguments: How they are written, such as ``[ID]``; empty if it takes none.
        key: The default key, empty for none; `name` is its id in `tui.keymap`.
        hint: A word for the footer; empty keeps the command out of it.
        completes: Completions of the argument: the words themselves, or the name of a source in
            `commands/suggestions.py`; empty for none.
        opens: Whether its key moves the focus elsewhere: later keys wait until the focus has moved.
        group: Heading in /help for it and the commands after it; empty continues the heading before.
    """

    name: str
    help: str
    handler: Callable[[Any, str], Awaitable[None]]
    aliases: tuple[str, ...] = ()
    arguments: str = ""
    key: str = ""
    hint: str = ""
    completes: str | tuple[str, ...] = ""
    group: str = ""
    opens: bool = False

    @property
    def usage(self) -> str:
        return f"/{self.name} {self.arguments}".rstrip()


_SHAPE = re.compile(r"/([A-Za-z?][\w-]*|\?)?$")


class Parsed(msgspec.Struct, frozen=True):
    """A line in the form of a command; `command` is None if the name is unknown."""

    name: str
    argument: str
    command: Command | None


class Registry:
    """Commands by name and alias."""

    def __init__(self, commands: tuple[Command, ...]) -> None:
        self.commands = commands
        self._by_name = {name: command for command in commands for name in (command.name, *command.aliases)}

    def get(self, name: str) -> Command | None:
        """Return the command with a name or alias."""
        return self._by_name.get(name.lower())

    def groups(self) -> dict[str, list[Command]]:
        """Return all commands by their headings."""
        groups: dict[str, list[Command]] = {}
        heading = ""
        for command in self.commands:
            heading = command.group or heading
            groups.setdefault(heading, []).append(command)
        return groups

    def parse(self, text: str) -> Parsed | None:
        """Return the command in a prompt, or None if the prompt is a message.

        A path such as ``/usr/bin`` at the start of a message is not a command.
        """
        word, _, argument = text.strip().partition(" ")
        match = _SHAPE.match(word)
        if match is None or "\n" in word:
            return None
        name = match[1] or ""
        return Parsed(name, argument.strip(), self.get(name))

    def suggest(self, name: str) -> Command | None:
        """Return the command that the user probably meant."""
        close = difflib.get_close_matches(name.lower(), self._by_name, n=3, cutoff=0.6)
        close.sort(key=lambda near: sorted(near) != sorted(name.lower()))  # Swapped letters are the commonest slip.
        return self._by_name[close[0]] if close else None

    def complete(self, text: str) -> list[Command]:
        """Return the commands that match the first word of a prompt, best first."""
        if not text.startswith("/") or not _SHAPE.match(text):
            return []
        return fuzzy.best(text[1:], self.commands, lambda command: " ".join((command.name, *command.aliases)))


def key_name(keys: str) -> str:
    """Return the short form of a key: ``^o`` for ``ctrl+o``; of several keys, of the first."""
    key = keys.partition(",")[0].strip()
    if key[:1] == "f" and key[1:].isdecimal():
        return key.upper()
    return "esc" if key == "escape" else key.replace("ctrl+", "^")
