"""Completion in the prompt: follows the text, fills the menu and inserts the chosen row.

The prompt keeps the focus and forwards the keys. `completion.py` decides what is completed; the app gives the `source`
of the rows.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from textual.widgets import TextArea

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.tui import fuzzy
from ragforge_tui.tui.command_registry import Registry, key_name
from ragforge_tui.tui.prompt.completion import CompletionTarget, Suggestion, command_suggestion, completion_target
from ragforge_tui.tui.prompt.slash_menu import SlashMenu
from ragforge_tui.tui.workers import start_worker

log = logging.getLogger(__name__)

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
