"""What can be completed where the cursor stands: a command, its argument, or a file after an @.

Pure. `completing.py` asks this on every key and shows what fits in the menu above the prompt.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from ragforge_tui.tui.command_registry import Command, Registry


class Suggestion(msgspec.Struct, frozen=True):
    """One row of the menu.

    Attributes:
        text: What is put in the place of what was typed.
        label: What is read in the menu.
        go_on: Whether more is to be typed behind it, so that Enter does not send yet.
    """

    text: str
    label: str
    detail: str = ""
    go_on: bool = False


class Wanted(msgspec.Struct, frozen=True):
    """What is being typed.

    Attributes:
        query: The part of it that was typed already.
        start: The column of the line where it begins, and `end` where the cursor stands; that much is replaced.
        command: The command whose argument it is.
    """

    kind: Literal["command", "argument", "file"]
    query: str
    start: int
    end: int
    command: Command | None = None

    @property
    def source(self) -> str | tuple[str, ...]:
        """Where the rows come from: the name of a source, or the words themselves."""
        return self.command.completes if self.command is not None else "mentions"

    @property
    def live(self) -> bool:
        """Whether the rows are asked for anew on every key."""
        return self.source in LIVE

    @property
    def closed(self) -> bool:
        """Whether nothing else than the rows makes sense."""
        return isinstance(self.source, tuple) or self.source in CLOSED

    def continues(self, before: Wanted | None) -> bool:
        """Whether this is the same thing as before, a letter on."""
        if before is None:
            return False
        return (self.kind, self.start, self.command) == (before.kind, before.start, before.command)


CLOSED = frozenset({"sessions", "themes"})
"""Sources whose rows are all there is: Enter behind the beginning of one means that row."""
LIVE = frozenset({"files", "mentions"})
"""Sources that are asked anew on every key, because nobody wants all their rows."""

_ARGUMENT = re.compile(r"/([\w?-]+)[ ]+")
_MENTION = re.compile(r"(?<![\w@./\\])@(?:\"([^\"\n]*)|([^\s\"'`<>|@]*))\Z")
_PLAIN = re.compile(r"[^\s\"'`<>|@]+")


def wanted(line: str, column: int, registry: Registry, *, alone: bool) -> Wanted | None:
    """What the cursor stands behind, None for nothing that could be completed.

    Args:
        line: The line of the prompt the cursor is on.
        alone: Whether the prompt has no other line: commands are one line.
    """
    if alone and line.startswith("/"):
        if registry.complete(line):
            return Wanted("command", line[1:], 0, len(line))
        if argument := _ARGUMENT.match(line):
            command = registry.get(argument[1])
            if command is None or not command.completes or column < len(line):
                return None
            return Wanted("argument", line[argument.end() :], argument.end(), len(line), command)
    if line.startswith("!"):
        return None  # A shell command: @ is what it is there.
    mention = _MENTION.search(line[:column])
    if mention is None or (column < len(line) and not line[column].isspace()):
        return None
    query = mention[1] if mention[1] is not None else mention[2]
    return Wanted("file", query, mention.start(), column)


def mention(path: str) -> str:
    """A file as it is named in a message: in quotes where its name needs them."""
    if _PLAIN.fullmatch(path) and path[-1] not in ".,;:!?)]}":
        return f"@{path}"
    return f"@'{path}'" if '"' in path else f'@"{path}"'


def mention_row(path: str, query: str) -> Suggestion:
    """A file or folder (``src/``) as a row; one goes on into a folder, unless it is the one that was typed."""
    if not path.endswith("/"):
        return Suggestion(f"{mention(path)} ", path)
    if path == query:
        return Suggestion(f"{mention(path)} ", path, "this folder")
    # A quote stays open: the name goes on behind the slash.
    return Suggestion(mention(path).rstrip("\"'"), path, go_on=True)


def command_suggestion(command: Command, key: str) -> Suggestion:
    """A command as a row; `key` is the one it is bound to, as people write it."""
    detail = f"{command.help} · {key}" if key else command.help
    space = " " if command.arguments else ""
    return Suggestion(f"/{command.name}{space}", command.usage, detail, go_on=bool(command.arguments))
