"""Completion in the prompt: commands, their arguments, and files after an @.

`completion_target` finds the word at the cursor, `Completing` follows the text, `SlashMenu` shows the rows.
The prompt keeps the focus and forwards the keys; `commands/suggestions.py` is the source of the rows.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec
from textual.containers import Container
from textual.widgets import Static, TextArea

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.tui import fuzzy
from ragforge_tui.tui.command_registry import Command, Registry
from ragforge_tui.tui.keys import key_name
from ragforge_tui.tui.widgets.choice_list import Choice, ChoiceList
from ragforge_tui.tui.workers import start_worker

log = logging.getLogger(__name__)


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


MOST_ROWS = 8
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


def mention_row(path: str, query: str, lines: str = "") -> Suggestion:
    """Return a file or folder (``src/``) as a row; a folder can be continued, unless it is the typed one.

    Args:
        lines: Lines of the file that are meant, such as ``:10-40``.
    """
    if lines:
        return Suggestion(f"{mention(path)}{lines} ", f"{path}{lines}", "only these lines")
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
    return Suggestion(f"/{command.name}{space}", command.usage, detail, unfinished=command.needs_argument)


class SlashMenu(Container):
    """Hidden while there is nothing to offer; the prompt keeps the focus and moves the cursor.

    Attributes:
        moved: Whether the user moved in the rows, which makes the row at the cursor their choice.
        picked: Called with a clicked row.
    """

    def __init__(self) -> None:
        super().__init__(id="menu")
        self._list = ChoiceList(max_rows=MOST_ROWS)
        self._count = Static(classes="menu-count", markup=False)
        self._rows: dict[str, Suggestion] = {}
        self.moved = False
        self.picked: Callable[[Suggestion], None] | None = None

    @property
    def chosen(self) -> Suggestion | None:
        """The row at the cursor; None while the menu is closed."""
        choice = self._list.chosen if self.display else None
        return self._rows[choice.key] if choice else None

    def offer(self, rows: list[Suggestion]) -> None:
        """Show rows; none closes the menu. The cursor stays on a row that the user moved to."""
        self._rows = {row.text: row for row in rows}
        if rows and not self._list.is_attached:
            self.mount(self._list, self._count)  # Not at the start, which would have to wait for it.
        self.display = bool(rows)
        self._list.show([Choice(row.text, row.label, row.detail) for row in rows], keep=self.moved)
        chosen = self._list.chosen
        self.moved = self.moved and chosen is not None and self._list.rows[0] is not chosen
        self._show_count()

    def move(self, step: int) -> None:
        """Move the cursor, wrapping around."""
        self.moved = True
        self._list.move(step, wrap=True)
        self._show_count()

    def _show_count(self) -> None:
        """Show which of the rows is chosen, where not all are in view."""
        rows, chosen = self._list.rows, self._list.chosen
        self._count.display = len(rows) > MOST_ROWS
        if chosen is not None:
            self._count.update(f"  {rows.index(chosen) + 1} of {len(rows)} · ↑↓")

    def close(self) -> None:
        """Hide the menu until the text changes."""
        self.moved = False
        self.offer([])

    def on_choice_list_picked(self, event: ChoiceList.Picked) -> None:
        """Insert a clicked row."""
        event.stop()
        if self.picked is not None:
            self.picked(self._rows[event.choice.key])


Source = Callable[[str, str], Awaitable[list[Suggestion]]]
"""Returns the rows of a source for the typed text."""


class Completing:
    """Completion of one prompt.

    Attributes:
        source: Returns the rows for an argument or a file; commands come from the registry.
    """

    def __init__(self, prompt: TextArea, registry: Registry, menu: SlashMenu) -> None:
        self._prompt = prompt
        self._registry = registry
        self._menu = menu
        self._shown_for: CompletionTarget | None = None
        """Target of the rows in the menu."""
        self._known: list[Suggestion] = []
        """The last fetched rows of the argument or file that is being typed."""
        self.source: Source | None = None
        menu.picked = self.take

    @property
    def open(self) -> bool:
        """Whether there is a menu to move in."""
        return self._menu.chosen is not None

    def move(self, step: int) -> None:
        self._menu.move(step)

    def close(self) -> None:
        """Hide the menu until the text changes."""
        self._shown_for = None
        self._menu.close()

    def follow(self) -> None:
        """Update the menu after a change of the text or the cursor."""
        target = self._target()
        if target == self._shown_for:
            return
        before, self._shown_for = self._shown_for, target
        self._menu.moved = False  # Letters typed after moving in the menu start a new choice.
        if target is None:
            self._menu.close()
        elif target.kind == "command":
            found = self._registry.complete(f"/{target.query}")
            self._menu.offer([command_suggestion(command, key_name(command.key)) for command in found])
        else:
            if not target.continues(before):
                self._known = []
            # What still fits of the rows that are known is shown at once; fresh ones may follow.
            self._narrow(target)
            if target.live or not target.continues(before):
                start_worker(self._prompt, self._fetch(target), group="completion", exclusive=True)

    def catch_up(self) -> None:
        """Update an open menu before a key acts on it: after fast typing its rows may belong to an earlier text."""
        if self.open:
            self.follow()

    def enter(self) -> bool:
        """Insert the chosen row; return whether Enter was meant for the menu only."""
        self.catch_up()
        chosen, target = self._menu.chosen, self._shown_for
        if chosen is None or target is None:
            return False
        if target.kind == "command":
            if self._registry.get(target.query) is not None and not self._menu.moved:
                return False  # Typed to its end: it runs, whatever arguments it could have.
            self.take(chosen)
            return chosen.unfinished
        if target.kind == "argument":
            unfinished = target.query and target.closed and target.query not in {row.text for row in self._known}
            if self._menu.moved or unfinished:
                self.take(chosen)
            return False
        if chosen.text.rstrip() == self._typed(target):
            return False
        self.take(chosen)
        return True

    def tab(self) -> bool:
        """Insert the chosen row; return whether there was one."""
        self.catch_up()
        chosen = self._menu.chosen
        if chosen is not None:
            self.take(chosen)
        return chosen is not None

    def take(self, chosen: Suggestion) -> None:
        """Replace the typed text by a row."""
        target = self._shown_for
        if target is None:
            return
        row = self._prompt.cursor_location[0]
        follows = self._prompt.document.get_line(row)[target.end : target.end + 1]
        text = chosen.text.rstrip() if follows.isspace() else chosen.text
        self.close()
        self._prompt.replace(text, (row, target.start), (row, target.end), maintain_selection_offset=False)
        self._prompt.move_cursor((row, target.start + len(text)))
        if target.kind != "command" and not (target.kind == "file" and chosen.unfinished):
            self._shown_for = self._target()  # The inserted text is not offered again.

    def _typed(self, target: CompletionTarget) -> str:
        line = self._prompt.document.get_line(self._prompt.cursor_location[0])
        return line[target.start : target.end]

    def _target(self) -> CompletionTarget | None:
        row, column = self._prompt.cursor_location
        document = self._prompt.document
        return completion_target(document.get_line(row), column, self._registry, alone=document.line_count == 1)

    def _narrow(self, target: CompletionTarget) -> None:
        self._menu.offer(fuzzy.best(target.query, self._known, _read))

    async def _fetch(self, target: CompletionTarget) -> None:
        source = target.source
        if isinstance(source, tuple):
            rows = [Suggestion(word, word) for word in source]
        elif self.source is None:
            return
        else:
            try:
                rows = await self.source(source, target.query)
            except RagforgeError as error:
                log.info("nothing to complete with: %s", error)
                return
        offered = self._shown_for
        if offered is None or not offered.continues(target) or (target.live and offered != target):
            return
        self._known = rows
        self._menu.offer(rows if target.live else fuzzy.best(offered.query, rows, _read))


def _read(row: Suggestion) -> str:
    return f"{row.label} {row.text}"
