"""The person's own keys: `tui.keymap` laid over the keys of the registry, and what is wrong with it.

`keymap_problems` is pure; the app says what it finds at the start, so that a key that cannot work is not found out
by pressing it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ragforge_tui.tui.commands import Registry

if TYPE_CHECKING:
    from ragforge_tui.tui.app import ChatApp

TYPING_KEYS = frozenset(
    {
        *(f"ctrl+{letter}" for letter in "acdejkuvwxyz"),
        *("up", "down", "left", "right", "home", "end", "backspace", "delete", "enter", "tab", "space"),
        *("pageup", "pagedown", "f6", "f7", "alt+enter", "shift+enter", "ctrl+p", "ctrl+backspace", "ctrl+h"),
        *("ctrl+i", "ctrl+m"),
    }
)
"""Keys the prompt and the palette need; a command bound to one of them would never hear it, or typing would suffer."""


def effective_keys(keymap: Mapping[str, str], registry: Registry) -> dict[str, str]:
    """Every command that has a key, with the person's own where they gave one."""
    keys = {command.name: command.key for command in registry.commands if command.key}
    for name, key in keymap.items():
        command = registry.get(name)
        if command is not None and key.strip():
            keys[command.name] = key.strip()
    return keys


def opening_keys(keymap: Mapping[str, str], registry: Registry) -> frozenset[str]:
    """The keys of commands that take the keyboard elsewhere, and that of the palette."""
    keys = effective_keys(keymap, registry)
    opening = [keys[command.name] for command in registry.commands if command.opens and command.name in keys]
    return frozenset({"ctrl+p", *(one for key in opening for one in _split(key))})


def keymap_problems(keymap: Mapping[str, str], registry: Registry) -> list[str]:
    """What is wrong with a keymap, in sentences."""
    problems = []
    for name, key in keymap.items():
        command = registry.get(name)
        if command is None:
            near = registry.suggest(name)
            guess = f"; did you mean {near.name}?" if near else "."
            problems.append(f"tui.keymap: there is no command {name!r}{guess}")
        elif not key.strip():
            problems.append(f"tui.keymap: {name} has no key; its own is kept.")
        else:
            taken = [one for one in _split(key) if _takes_typing(one)]
            problems += [f"tui.keymap: {one} is needed for typing, so {name} will not hear it." for one in taken]
    owners: dict[str, list[str]] = {}
    for name, keys in effective_keys(keymap, registry).items():
        for key in _split(keys):
            owners.setdefault(key, []).append(name)
    for key, names in owners.items():
        if len(names) > 1:
            problems.append(f"tui.keymap: {key} is the key of {' and '.join(names)}; only one of them will hear it.")
    return problems


def _split(keys: str) -> list[str]:
    return [key.strip() for key in keys.split(",") if key.strip()]


def _takes_typing(key: str) -> bool:
    return key in TYPING_KEYS or len(key) == 1


def use_keymap(app: ChatApp) -> None:
    """Bind the keys as the settings say. Commands without a key of their own get a binding."""
    registry = app.registry
    wanted = {
        command.name: key
        for name, key in app.options.tui.keymap.items()
        if (command := registry.get(name)) is not None and key.strip()
    }
    app.set_keymap(wanted)
    for name, keys in wanted.items():
        command = registry.get(name)
        if command is not None and not command.key:
            app.bind(keys, f"command('{command.name}')", description=command.help, show=False)
