"""Finds the completion target at the cursor: a command, its argument, or a file after an @.

Pure. `completing.py` calls this on every key.
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
        text: Replaces the typed text.
        label: The text in the menu.
        unfinished: Whether more has to be typed after it, so that Enter does not send yet.
    """

    text: str
    label: str
    detail: str = ""
    unfinished: bool = False


class CompletionTarget(msgspec.Struct, frozen=True):
    """A word that can be completed.

    Attributes:
        query: The part typed so far.
        start: First column of the replaced part; it ends at `end`, the cursor.
        command: The command whose argument it is.
    """

    kind: Literal["command", "argument", "file"]
    query: str
    start: int
    end: int
    command: Command | None = None

    @property
    def source(self) -> str | tuple[str, ...]:
        """Source of the rows: its name, or the words themselves."""
        return self.command.completes if self.command is not None else "mentions"

    @property
    def live(self) -> bool:
        """Whether the rows are fetched again on every key."""
        return self.source in LIVE

    @property
    def closed(self) -> bool:
        return isinstance(self.source, tuple) or self.source in CLOSED

    def continues(self, before: CompletionTarget | None) -> bool:
        """Return whether this continues the same word as before."""
        if before is None:
            return False
        return (self.kind, self.start, self.command) == (before.kind, before.start, before.command)


CLOSED = frozenset({"sessions", "themes"})
"""Sources that list all valid values: Enter after the beginning of one chooses that row."""
LIVE = frozenset({"files", "mentions"})
"""Sources that are fetched on every key, because they have too many rows."""

_ARGUMENT = re.compile(r"/([\w?-]+)[ ]+")
_MENTION = re.compile(r"(?<![\w@./\\])@(?:\"([^\"\n]*)|([^\s\"'`<>|@]*))\Z")
_PLAIN = re.compile(r"[^\s\"'`<>|@]+")


def completion_target(line: str, column: int, registry: Registry, *, alone: bool) -> CompletionTarget | None:
    """Return what can be completed at the cursor, None for nothing.

    Args:
        line: The line of the prompt with the cursor.
        alone: Whether the prompt has no other line: commands have one line.
    """
    if alone and line.startswith("/"):
        if registry.complete(line):
            return CompletionTarget("command", line[1:], 0, len(line))
        if argument := _ARGUMENT.match(line):
            command = registry.get(argument[1])
            if command is None or not command.completes or column < len(line):
                return None
            return CompletionTarget("argument", line[argument.end() :], argument.end(), len(line), command)
    if line.startswith("!"):
        return None  # A shell command: @ is what it is there.
    mention = _MENTION.search(line[:column])
    if mention is None or (column < len(line) and not line[column].isspace()):
        return None
    query = mention[1] if mention[1] is not None else mention[2]
    return CompletionTarget("file", query, mention.start(), column)


def mention(path: str) -> str:
    """Return a file as a message names it: in quotes if its name needs them."""
    if _PLAIN.fullmatch(path) and path[-1] not in ".,;:!?)]}":
        return f"@{path}"
    return f"@'{path}'" if '"' in path else f'@"{path}"'


def mention_row(path: str, query: str) -> Suggestion:
    """Return a file or folder (``src/``) as a row; a folder can be continued, unless it is the typed one."""
    if not path.endswith("/"):
        return Suggestion(f"{mention(path)} ", path)
    if path == query:
        return Suggestion(f"{mention(path)} ", path, "this folder")
    # The quote stays open: the name continues after the slash.
    return Suggestion(mention(path).rstrip("\"'"), path, unfinished=True)


def command_suggestion(command: Command, key: str) -> Suggestion:
    """Return a command as a row; `key` is the short form of its key."""
    detail = f"{command.help} · {key}" if key else command.help
    space = " " if command.arguments else ""
    return Suggestion(f"/{command.name}{space}", command.usage, detail, unfinished=bool(command.arguments))
