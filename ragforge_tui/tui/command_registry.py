"""Registry of commands by name and alias, and their keys: the defaults and the user's `tui.keymap`.

Problems of a keymap are shown at the start and after a change, so that no user finds out by pressing a dead key. The
commands themselves are in the folder `commands`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
from textual.binding import Binding

from ragforge_tui.tui import fuzzy
from ragforge_tui.tui.keys import key_name
from ragforge_tui.tui.type_ahead import TypeAheadApp

Handler = Callable[[Any, str], Coroutine[Any, Any, None]]
"""Runs a command: called with the `Host` and the argument."""


class Command(msgspec.Struct, frozen=True):
    """One command.

    Attributes:
        arguments: How they are written, such as ``[ID]``; empty if it takes none.
        key: The default key, empty for none; `name` is its id in `tui.keymap`.
        hint: A word for the footer; empty keeps the command out of it.
        completes: Completions of the argument: the words themselves, or the name of a source in
            `commands/suggestions.py`; empty for none.
        opens: Whether its key moves the focus elsewhere: later keys wait until the focus has moved.
        removes: Whether it takes something away; it is last in the palette.
        keys: Keys that work where it leads, and their meanings, for /help; empty for none.
        group: Heading in /help.
    """

    name: str
    help: str
    handler: Handler
    aliases: tuple[str, ...] = ()
    arguments: str = ""
    key: str = ""
    hint: str = ""
    completes: str | tuple[str, ...] = ""
    group: str = ""
    opens: bool = False
    removes: bool = False
    keys: tuple[str, str] = ("", "")

    @property
    def usage(self) -> str:
        return f"/{self.name} {self.arguments}".rstrip()

    @property
    def needs_choice(self) -> bool:
        """Whether it does nothing without an argument, which the prompt completes."""
        return bool(self.completes) and self.needs_argument

    @property
    def needs_argument(self) -> bool:
        return bool(self.arguments) and not self.arguments.startswith("[")


class Commands(list[Command]):
    """The commands below one heading of /help, in the order of their functions."""

    def __init__(self, group: str) -> None:
        super().__init__()
        self._group = group

    def add(
        self,
        name: str,
        help: str,
        aliases: tuple[str, ...] = (),
        *,
        arguments: str = "",
        key: str = "",
        hint: str = "",
        completes: str | tuple[str, ...] = "",
        opens: bool = False,
        removes: bool = False,
    ) -> Callable[[Handler], Handler]:
        """Add the decorated function as a command; see `Command`."""

        def added(handler: Handler) -> Handler:
            self.append(
                Command(
                    name,
                    help,
                    handler,
                    aliases,
                    arguments,
                    key,
                    hint,
                    completes,
                    group=self._group,
                    opens=opens,
                    removes=removes,
                )
            )
            return handler

        return added


_SHAPE = re.compile(r"/([A-Za-z?][\w-]*|\?)?$")


class Parsed(msgspec.Struct, frozen=True):
    """A line in the form of a command; `command` is None if the name is unknown."""

    name: str
    argument: str
    command: Command | None


class Registry:
    """Commands by name and alias."""

    def __init__(self, commands: tuple[Command, ...]) -> None:
        self._fixed = commands
        self.use([])

    def use(self, own: Sequence[Command]) -> None:
        """Have the user's own commands after the program's, whose names they cannot take."""
        taken = {name for command in self._fixed for name in (command.name, *command.aliases)}
        self.commands = (*self._fixed, *(command for command in own if command.name.lower() not in taken))
        self._by_name = {
            name.lower(): command for command in self.commands for name in (command.name, *command.aliases)
        }

    def get(self, name: str) -> Command | None:
        """Return the command with a name or alias."""
        return self._by_name.get(name.lower())

    def groups(self) -> dict[str, list[Command]]:
        """Return all commands by their headings."""
        groups: dict[str, list[Command]] = {}
        for command in self.commands:
            groups.setdefault(command.group, []).append(command)
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
        return fuzzy.by_name(text[1:], self.commands, lambda command: (command.name, *command.aliases))


def stop_key(keymap: Mapping[str, str], registry: Registry) -> str:
    """Return the short form of the key that stops an answer, leaves the chat and goes back a turn."""
    return key_name(effective_keys(keymap, registry).get("stop", "no key"))


TYPING_KEYS = frozenset(
    {
        *(f"ctrl+{letter}" for letter in "acdejkuvwxyz"),
        *("up", "down", "left", "right", "home", "end", "backspace", "delete", "enter", "tab", "space"),
        *("pageup", "pagedown", "f6", "f7", "alt+enter", "shift+enter", "ctrl+p", "ctrl+backspace", "ctrl+h"),
        *("ctrl+i", "ctrl+m"),
    }
)
"""Keys that the prompt and the palette need: a command bound to one of them would never run, or typing would suffer."""


def effective_keys(keymap: Mapping[str, str], registry: Registry) -> dict[str, str]:
    """Return the keys of every command, the user's own first; a key belongs to one command."""
    has = {key: names[0] for key, names in _owners(keymap, registry).items()}
    kept = {
        name: ",".join(key for key in _split(keys) if has[key] == name)
        for name, keys in _wanted_keys(keymap, registry).items()
    }
    return {name: keys for name, keys in kept.items() if keys}


def _wanted_keys(keymap: Mapping[str, str], registry: Registry) -> dict[str, str]:
    keys = {command.name: command.key for command in registry.commands if command.key}
    for name, key in keymap.items():
        command = registry.get(name)
        if command is not None and key.strip():
            keys[command.name] = key.strip()
    return keys


def _owners(keymap: Mapping[str, str], registry: Registry) -> dict[str, list[str]]:
    """Return the commands that want each key; the first one gets it, the user's own keys before the defaults."""
    own = {command.name for name, key in keymap.items() if key.strip() and (command := registry.get(name))}
    wanted = _wanted_keys(keymap, registry)
    owners: dict[str, list[str]] = {}
    for name in sorted(wanted, key=lambda name: name not in own):
        for key in dict.fromkeys(_split(wanted[name])):
            owners.setdefault(key, []).append(name)
    return owners


def opening_keys(keymap: Mapping[str, str], registry: Registry) -> frozenset[str]:
    """Return the keys of commands that move the focus elsewhere, and that of the palette."""
    keys = effective_keys(keymap, registry)
    opening = [keys[command.name] for command in registry.commands if command.opens and command.name in keys]
    return frozenset({"ctrl+p", *(one for key in opening for one in _split(key))})


def keymap_problems(keymap: Mapping[str, str], registry: Registry) -> list[str]:
    """Return the problems with a keymap, in sentences."""
    problems = []
    for name, key in keymap.items():
        command = registry.get(name)
        if command is None:
            near = registry.suggest(name)
            guess = f"; did you mean {near.name}?" if near else "."
            problems.append(f"tui.keymap: there is no command {name!r}{guess}")
        elif not key.strip():
            problems.append(f"tui.keymap: {name} has no key; its default is kept.")
        else:
            taken = [one for one in _split(key) if one in TYPING_KEYS or len(one) == 1]
            problems += [f"tui.keymap: {one} is needed for typing, so it will not run {name}." for one in taken]
    names = list(_wanted_keys(keymap, registry))
    for key, owners in _owners(keymap, registry).items():
        if len(owners) > 1:
            both = " and ".join(sorted(owners, key=names.index))
            problems.append(f"tui.keymap: {key} is the key of {both}; it will only run {owners[0]}.")
    return problems


def _split(keys: str) -> list[str]:
    return [key.strip() for key in keys.split(",") if key.strip()]


def bind_keys(app: TypeAheadApp, keymap: Mapping[str, str], registry: Registry) -> None:
    """Replace the app's command bindings by those of the keymap, one command to a key.

    Not by the framework's own keymap: that knows only commands with a default key, and where such a key is moved away
    it drops whatever else was bound to it.
    """
    names = {command.name for command in registry.commands}
    table = app._bindings.key_to_bindings  # The framework has no public way to remove a binding.
    for key, bindings in list(table.items()):
        table[key] = [binding for binding in bindings if binding.id not in names]
        if not table[key]:
            del table[key]
    # Escape and ctrl+q do more than to run their command, also in the keymap.
    fixed = {one.id: one for one in app.BINDINGS if isinstance(one, Binding)}
    for name, keys in effective_keys(keymap, registry).items():
        # The framework itself binds the key of the mode, to move the focus.
        usual = Binding("", f"command('{name}')", show=False, priority=name == "mode")
        binding = fixed.get(name) or usual
        for one in Binding.make_bindings([replace(binding, key=keys, id=name)]):
            bound = replace(one, action=f"mode('{one.key}')") if name == "mode" else one
            table.setdefault(one.key, []).append(bound)
    app.opening_keys = opening_keys(keymap, registry)
    app.refresh_bindings()
