"""One key has one meaning: bindings, bars, windows, commands and the tables of docs/using.md against the one table."""

from __future__ import annotations

import ast
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from textual.binding import Binding
from textual.dom import DOMNode

import ragforge_tui.tui
from ragforge_tui.tui.app import ChatApp
from ragforge_tui.tui.command_registry import Registry
from ragforge_tui.tui.commands import all_commands
from ragforge_tui.tui.dialogs.help_screen import help_text
from ragforge_tui.tui.keys import ALT, ANSWERS, CTRL, LETTERS, MEANINGS, NUMBERS, PAGER, key_name, spoken_key

EXCEPTIONS = {"Transcript": PAGER, "InsightsScreen": ANSWERS, "PersonaReview": ANSWERS}
"""What may give a key another meaning: the chat scrolls like a pager, and two dialogs ask a question."""
OFFERED = {"turn": "g", "turns": "g", "source": "g", "code": "v", "CODE_ACTION": "v", "insert": "at"}
"""Keys of windows, by what a window is left with."""
FIXED = {"enter", "space", "tab", "escape", "up", "down", "left", "right", "home", "end", "pageup", "pagedown"}
FIXED |= {"delete", "backspace"}
PLACES = {
    "In the chat, panes, lists and windows, where nothing is typed": {**LETTERS, **NUMBERS},
    "In a list that typing filters": ALT,
    "In the chat, which scrolls like a pager": PAGER,
    "Everywhere": CTRL,
}
DOCS = Path(__file__).parents[2] / "docs" / "using.md"


def modules() -> Iterator[str]:
    yield from (one.name for one in pkgutil.walk_packages(ragforge_tui.tui.__path__, "ragforge_tui.tui."))


def nodes() -> list[type[DOMNode]]:
    """All screens and widgets of the program."""
    for name in modules():
        import_module(name)
    found, left = [], [DOMNode]
    while left:
        below = left.pop().__subclasses__()
        left += below
        found += [one for one in below if one.__module__.startswith("ragforge_tui.") and one not in found]
    return found


def bound(node: type[DOMNode]) -> list[Binding]:
    """The bindings that a class itself has, one for each key."""
    return list(Binding.make_bindings(node.__dict__.get("BINDINGS", [])))


def is_shared(key: str) -> bool:
    """Whether the table has to name a key: all but arrows, Enter and the like, also with Shift."""
    return key.rpartition("shift+")[2] not in FIXED if key.startswith("shift+") else key not in FIXED


def faults(node: type[DOMNode], bindings: list[Binding], command_keys: dict[str, str]) -> list[str]:
    """What is wrong with the bindings of a class."""
    allowed = EXCEPTIONS.get(node.__name__, {})
    found = []
    for one in bindings:
        if not is_shared(one.key):
            continue
        if one.key in command_keys:
            found.append(f"{node.__name__}: {one.key} runs /{command_keys[one.key]}")
        elif one.description not in (MEANINGS.get(one.key), allowed.get(one.key)) or not one.description:
            found.append(f"{node.__name__}: {one.key} means {MEANINGS.get(one.key)!r}, not {one.description!r}")
    return found


def command_keys() -> dict[str, str]:
    return {key: command.name for command in all_commands() for key in command.key.split(",") if key}


def test_each_key_has_the_meaning_of_the_table() -> None:
    keys = command_keys()
    own = {command.name for command in all_commands()}
    wrong = []
    for node in nodes():
        bindings = [one for one in bound(node) if one.id not in own]  # The app's own ones of commands.
        if node.__name__ == "HelpScreen":
            bindings = [one for one in bindings if one.key != "f1"]  # Opens and closes it.
        wrong += faults(node, bindings, keys)
    assert not wrong, "\n".join(wrong)
    assert any(node is ChatApp for node in nodes())


def test_no_command_has_a_key_of_the_table() -> None:
    keys = command_keys()
    assert not {key for key in keys if key in MEANINGS}
    assert len(keys) == sum(len(command.key.split(",")) for command in all_commands() if command.key)


@pytest.mark.parametrize(
    ("binding", "fault"),
    [
        (Binding("g", "grow", "bigger"), "g means 'go to its turn', not 'bigger'"),
        (Binding("g", "go", ""), "not ''"),
        (Binding("ctrl+d", "delete", "half a page down"), "ctrl+d means None"),
        (Binding("ctrl+o", "order", "order"), "ctrl+o runs /sessions"),
        (Binding("alt+y", "copy", "copy"), "alt+y means None"),
    ],
)
def test_another_meaning_is_found(binding: Binding, fault: str) -> None:
    class Other(DOMNode):
        """Some list."""

    (found,) = faults(Other, [binding], command_keys())
    assert fault in found


def test_every_meaning_is_used() -> None:
    used = {one.key for node in nodes() for one in bound(node)}
    unused = {key for key in MEANINGS if key not in used} - {"ctrl+p"} - set(NUMBERS)
    assert not unused


def trees() -> Iterator[tuple[str, ast.Module]]:
    for name in modules():
        file = import_module(name).__file__
        assert file is not None
        yield name, ast.parse(Path(file).read_text(encoding="utf-8"))


def test_a_bar_names_the_keys_that_are_bound() -> None:
    """A key of a bar is one that runs the same action in a class of the same file, or in what the class comes from."""
    wrong = []
    classes = nodes()
    for name, tree in trees():
        here = [node for node in classes if node.__module__ == name]
        line = {one for node in here for above in node.__mro__ if issubclass(above, DOMNode) for one in bound(above)}
        keys = {(one.action, key_name(one.key)) for one in line}
        for call in ast.walk(tree):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "KeyHint"):
                continue
            action, key = call.args[:2]
            if isinstance(action, ast.Constant) and isinstance(key, ast.Constant):
                shown = key_name(key.value)
                if is_shared(key.value) and shown != "esc" and shown != "[ ]" and (action.value, shown) not in keys:
                    wrong.append(f"{name}: {shown} does not run {action.value}")
    assert not wrong, "\n".join(wrong)


def offered(tree: ast.Module) -> Iterator[tuple[object, str]]:
    """The keys that windows offer, each with what the window is left with."""
    pairs: list[tuple[ast.expr | None, ast.expr]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            tuples = [(key, value) for key, value in zip(node.keys, node.values, strict=True)]
            pairs += [(key, value.elts[0]) for key, value in tuples if isinstance(value, ast.Tuple) and value.elts]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "offer":
            pairs += [(node.args[0], node.args[1])] if len(node.args) == 3 else []
    for key, action in pairs:
        name = getattr(action, "value", getattr(action, "id", None))
        if isinstance(key, ast.Constant) and key.value in MEANINGS and isinstance(name, str):
            yield key.value, name


def test_windows_offer_keys_of_the_table() -> None:
    pairs = {pair for _, tree in trees() for pair in offered(tree)}
    assert {pair for pair in pairs if pair[1] != "_COMMENT"} == {(key, action) for action, key in OFFERED.items()}


def table() -> str:
    """The tables of keys as docs/using.md has them."""
    parts = []
    for heading, meanings in PLACES.items():
        keys: dict[str, list[str]] = {}
        for key, meaning in meanings.items():
            keys.setdefault(meaning, []).append(spoken_key(key))
        rows = [f"| {' '.join(_quoted(key) for key in names)} | {meaning} |" for meaning, names in keys.items()]
        parts.append("\n".join([f"{heading}:", "", "| Key | Meaning |", "|---|---|", *rows]))
    return "\n\n".join(parts)


def _quoted(key: str) -> str:
    return f"`{key}`" if len(key) == 1 else key


def test_the_manual_has_the_table() -> None:
    text = DOCS.read_text(encoding="utf-8")
    assert table() in text, f"docs/using.md needs these tables below its heading Keys:\n\n{table()}"


def test_help_has_the_table() -> None:
    shown = help_text(Registry(all_commands()), {}).plain
    for key, meaning in {**LETTERS, **ALT, **PAGER}.items():
        assert any(line.split() == [*key_name(key).split(), *meaning.split()] for line in shown.splitlines()), key


def test_keys_are_written_one_way() -> None:
    """Only `key_name` writes the short form of a key."""
    wrong = []
    for name, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and name != "ragforge_tui.tui.keys":
                words = node.value.split()
                wrong += [
                    f"{name}: {word}" for word in words if len(word) == 2 and word[0] == "^" and word[1].isalpha()
                ]
    assert not wrong, "\n".join(wrong)
