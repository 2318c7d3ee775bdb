"""Completion in the prompt: follows the text, fills the menu and inserts the chosen row.

The prompt keeps the focus and forwards the keys. `completion.py` decides what is completed; the app gives the `source`
of the rows.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from textual.widgets import TextArea

from ragforge_tui.errors import RagforgeError
from ragforge_tui.tui import fuzzy
from ragforge_tui.tui.command_registry import Registry, key_name
from ragforge_tui.tui.prompt.completion import Suggestion, Wanted, command_suggestion, wanted
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
        self._offered: Wanted | None = None
        """What the rows of the menu complete."""
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
        self._offered = None
        self._menu.close()

    def follow(self) -> None:
        """Update the menu after a change of the text or the cursor."""
        want = self._wanted()
        if want == self._offered:
            return
        before, self._offered = self._offered, want
        self._menu.moved = False  # Letters typed after walking say anew what is wanted.
        if want is None:
            self._menu.close()
        elif want.kind == "command":
            found = self._registry.complete(f"/{want.query}")
            self._menu.offer([command_suggestion(command, key_name(command.key)) for command in found])
        else:
            if not want.continues(before):
                self._known = []
            # What still fits of the rows that are known is shown at once; fresh ones may follow.
            self._narrow(want)
            if want.live or not want.continues(before):
                start_worker(self._prompt, self._fetch(want), group="completion", exclusive=True)

    def catch_up(self) -> None:
        """Update an open menu before a key acts on it: after fast typing its rows may belong to an earlier text."""
        if self.open:
            self.follow()

    def enter(self) -> bool:
        """Insert the chosen row; return whether Enter was meant for the menu only."""
        self.catch_up()
        chosen, want = self._menu.chosen, self._offered
        if chosen is None or want is None:
            return False
        if want.kind == "command":
            if self._registry.get(want.query) is not None and not self._menu.moved:
                return False  # Typed to its end: it runs, whatever arguments it could have.
            self.take(chosen)
            return chosen.go_on
        if want.kind == "argument":
            unfinished = want.query and want.closed and want.query not in {row.text for row in self._known}
            if self._menu.moved or unfinished:
                self.take(chosen)
            return False
        if chosen.text.rstrip() == self._typed(want):
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
        want = self._offered
        if want is None:
            return
        row = self._prompt.cursor_location[0]
        follows = self._prompt.document.get_line(row)[want.end : want.end + 1]
        text = chosen.text.rstrip() if follows.isspace() else chosen.text
        self.close()
        self._prompt.replace(text, (row, want.start), (row, want.end), maintain_selection_offset=False)
        self._prompt.move_cursor((row, want.start + len(text)))
        if want.kind != "command" and not (want.kind == "file" and chosen.go_on):
            self._offered = self._wanted()  # What was just put there need not be offered again.

    def _typed(self, want: Wanted) -> str:
        line = self._prompt.document.get_line(self._prompt.cursor_location[0])
        return line[want.start : want.end]

    def _wanted(self) -> Wanted | None:
        row, column = self._prompt.cursor_location
        document = self._prompt.document
        return wanted(document.get_line(row), column, self._registry, alone=document.line_count == 1)

    def _narrow(self, want: Wanted) -> None:
        self._menu.offer(fuzzy.best(want.query, self._known, _read))

    async def _fetch(self, want: Wanted) -> None:
        source = want.source
        if isinstance(source, tuple):
            rows = [Suggestion(word, word) for word in source]
        elif self.source is None:
            return
        else:
            try:
                rows = await self.source(source, want.query)
            except RagforgeError as error:
                log.info("nothing to complete with: %s", error)
                return
        offered = self._offered
        if offered is None or not offered.continues(want) or (want.live and offered != want):
            return
        self._known = rows
        self._menu.offer(rows if want.live else fuzzy.best(offered.query, rows, _read))


def _read(row: Suggestion) -> str:
    return f"{row.label} {row.text}"
