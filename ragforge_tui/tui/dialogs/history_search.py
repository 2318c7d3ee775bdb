"""Search in the earlier prompts: a list above the prompt, narrowed by typing. Loaded when first used.

The prompt keeps its draft until Enter replaces it by the chosen one, which undo takes back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import ClassVar

import msgspec
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from ragforge_tui.shared.formatting import counted
from ragforge_tui.shared.moments import age_text
from ragforge_tui.tui.command_registry import effective_keys
from ragforge_tui.tui.drawing.lines import one_line
from ragforge_tui.tui.folder import short_folder
from ragforge_tui.tui.host import HISTORY_BAR, Host
from ragforge_tui.tui.keys import key_name
from ragforge_tui.tui.prompt.history import Sent
from ragforge_tui.tui.widgets.choice_list import Choice, ChoiceList
from ragforge_tui.tui.widgets.new_size import on_new_size

MOST_ROWS = 8
MOST_FOUND = 200
"""Prompts that can be walked through; more letters find the ones before."""
_AROUND = 2_000
"""Characters around the first match of a long prompt that its row is made of."""


class Found(msgspec.Struct, frozen=True):
    """A prompt, and its text as it is compared with the words."""

    sent: Sent
    folded: str


def found_with(words: str, prompts: Iterable[Found]) -> list[Sent]:
    """Return the prompts that hold every word, anywhere, in upper or lower case."""
    wanted = words.lower().split()
    return [one.sent for one in prompts if all(word in one.folded for word in wanted)]


def prompt_row(sent: Sent, words: str, now: datetime, width: int, here: str) -> Choice:
    """Return a prompt as a row: its text from about the first match on, with its age.

    Args:
        here: The folder of the chat, which is not named.
    """
    pattern = re.compile("|".join(re.escape(word) for word in words.split()) or r"(?!)", re.IGNORECASE)
    match = pattern.search(sent.text)
    first = match.start() if match else 0
    text = one_line(sent.text[max(first - _AROUND, 0) : first + _AROUND])
    match = pattern.search(text)
    if match and match.end() > width * 2 // 3:
        # From its beginning on, the match would be out of view, or nearly.
        start = max(min(match.start() - width // 4, len(text) - width + 1), 0)
        text = f"…{text[start:]}" if start else text
    lines = sent.text.strip().count("\n") + 1
    facts = [f"{lines} lines"] if lines > 1 else []
    facts.append(age_text(sent.at, now))
    elsewhere = sent.folder if sent.folder != here else ""
    return Choice(
        key=sent.at.isoformat(),
        label=text,
        detail=" · ".join(facts),
        path=short_folder(elsewhere),
        found=tuple(match.span() for match in pattern.finditer(text)),
    )


class HistorySearch(Vertical):
    """The matching prompts, and below them the line where the words are typed."""

    DEFAULT_CSS = """
    HistorySearch { height: auto; padding: 0 2; margin-top: 1; }
    HistorySearch Horizontal { height: 1; }
    HistorySearch #history-mark { width: auto; color: $accent; }
    HistorySearch Input { width: 1fr; background: $background; }
    HistorySearch #history-where { width: auto; max-width: 60%; color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("alt+w", "scope", "this folder or all", show=False, priority=True),
        Binding("escape", "screen.escape", show=False),
    ]

    class Closed(Message):
        """The search is over; the prompt has the keyboard."""

    def __init__(self, host: Host, words: str = "") -> None:
        super().__init__(id=HISTORY_BAR)
        self._host = host
        self._keys = effective_keys(host.options.tui.keymap, host.registry).get("history", "").split(",")
        self._everywhere = False
        self._prompts: Sequence[Found] = ()
        self._rows: dict[str, Sent] = {}
        self._count = self._width = 0
        self._list = ChoiceList(max_rows=MOST_ROWS, detail_right=True)
        self._words = Input(words, placeholder="words of an earlier prompt", compact=True, select_on_focus=False)
        self._where = Static(id="history-where", markup=False)

    def compose(self) -> ComposeResult:
        """Lay out the rows, and below them a label, the words and the place."""
        yield self._list
        with Horizontal():
            yield Static("history  ", id="history-mark", markup=False)
            yield self._words
            yield self._where

    def on_mount(self) -> None:
        """Take the focus and list the prompts."""
        self._words.focus()
        self._list_prompts()
        on_new_size(self, self._cut_rows)

    def _list_prompts(self) -> None:
        prompts = self._host.prompt.earlier.prompts(everywhere=self._everywhere)
        self._prompts = [Found(sent, sent.text.lower()) for sent in prompts]
        self._narrow()

    def _cut_rows(self) -> None:
        """Cut the rows for a new width; their number changes the height only."""
        if self.outer_size.width != self._width:
            self._width = self.outer_size.width
            self._narrow(keep=True)

    def on_input_changed(self) -> None:
        self._narrow()

    def _narrow(self, *, keep: bool = False) -> None:
        """Show the prompts with the words, the newest first; `keep` leaves the cursor where it is."""
        words, now, width = self._words.value, self._host.now(), max(self._width - 20, 20)
        found = found_with(words, self._prompts)
        self._count = len(found)
        rows = [
            (prompt_row(sent, words, now, width, self._host.options.workspace), sent) for sent in found[:MOST_FOUND]
        ]
        self._rows = {row.key: sent for row, sent in rows}
        self._list.display = bool(rows)
        self._list.show([row for row, _ in rows], keep=keep)
        self._show_place()

    def _show_place(self) -> None:
        """Show which of how many prompts is chosen, and where they are from."""
        scope = "everywhere" if self._everywhere else "in this folder"
        chosen = self._list.chosen
        if chosen is not None:
            place = f"{self._list.rows.index(chosen) + 1} of {counted(self._count)} {scope}"
            older = f" · {key_name(self._keys[0])} older" if self._keys[0] else ""
            self._where.update(Content(f"  {place}{older}"))
        else:
            what = "no match" if self._words.value.strip() else "no prompts yet"
            self._where.update(Content(f"  {what} {scope}"))

    # -- keys

    async def on_key(self, event: events.Key) -> None:
        """Move in the list and take from it; other keys are for the words."""
        steps = {"down": 1, "up": -1, "pagedown": self._list.page, "pageup": -self._list.page}
        if event.key in steps or event.key in self._keys:
            self.step(steps.get(event.key, 1))
        elif event.key == "tab":
            self._choose()
        else:
            return
        event.stop()
        event.prevent_default()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take the chosen prompt."""
        event.stop()
        self._choose()

    def step(self, by: int = 1) -> None:
        """Move the cursor down, to older prompts, by default to the next."""
        self._list.move(by)
        self._show_place()

    def search_for(self, words: str) -> None:
        """Search for other words."""
        self._words.value = words
        self._words.focus()

    def action_scope(self) -> None:
        """Change between the prompts of this folder and those of all folders."""
        self._everywhere = not self._everywhere
        self._list_prompts()

    def on_choice_list_picked(self, event: ChoiceList.Picked) -> None:
        """Take a clicked prompt."""
        event.stop()
        self._choose()

    def _choose(self) -> None:
        if (chosen := self._list.chosen) is not None:
            self._host.prompt.take(self._rows[chosen.key].entry)
            self.close()

    def escape(self) -> bool:
        """End the search; the prompt is as it was."""
        self.close()
        return True

    def close(self) -> None:
        """Go back to the prompt."""
        self._host.prompt.focus()
        self.post_message(self.Closed())
        self.remove()

    def on_descendant_blur(self) -> None:
        """End the search when something else gets the keyboard, but not with the window of the terminal."""
        if self.app.app_focus and self.is_attached:
            self.call_later(self._left)

    def _left(self) -> None:
        if self.is_attached and not self.has_focus_within and self.screen.is_current:
            self.remove()
