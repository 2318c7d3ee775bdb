"""The prompt: a text area that sends with Enter, grows, remembers, and swallows large pastes.

Used by the chat screen, which gives it the menu. What is history, draft or paste lives in widget-free modules, what
is completed in `completing.py`; here is only what keys do.
"""

from __future__ import annotations

import logging
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.keys import Keys
from textual.message import Message
from textual.widgets import TextArea

from ragforge_tui.text import plain_text, storable
from ragforge_tui.tui.command_registry import Registry
from ragforge_tui.tui.prompt.completing import Completing
from ragforge_tui.tui.prompt.history import Entry, History
from ragforge_tui.tui.prompt.paste import Pastes, is_large
from ragforge_tui.tui.prompt.slash_menu import SlashMenu

log = logging.getLogger(__name__)

MAX_SHOWN = 20_000
"""A text of more characters is shown as a label, wherever it comes from: the prompt wraps all of it on every key."""
NEWLINE_KEYS = frozenset({"ctrl+j", "alt+enter", "shift+enter"})


def teach_alt_enter() -> None:
    """Let Textual know alt+enter of a terminal without the Kitty protocol (ESC CR), which it takes for Enter.

    There is no public way; where this one goes, ctrl+j is left.
    """
    try:
        from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
    except ImportError:
        log.info("alt+enter is unknown to this Textual")
        return
    if isinstance(ANSI_SEQUENCES_KEYS, dict):
        ANSI_SEQUENCES_KEYS.setdefault("\x1b\r", (Keys.ControlJ,))


class Prompt(TextArea):
    """Where the person types."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "tab", "Complete", show=False),
    ]

    class Submitted(Message):
        """Enter was pressed; `text` is whole, pastes included. The prompt is empty then, but for an unknown command."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class TakeBack(Message):
        """Up in an empty prompt: the newest queued message is wanted back."""

    class Answer(Message):
        """Tab in a prompt without a menu: the waiting question is wanted."""

    def __init__(self, history: History, registry: Registry, menu: SlashMenu) -> None:
        super().__init__(
            soft_wrap=True,
            compact=True,
            highlight_cursor_line=False,
            placeholder="Ask, type / for commands, @ for files",
            id="prompt",
        )
        self._history = history
        self._registry = registry
        self.completing = Completing(self, registry, menu)
        self._pastes = Pastes()
        self._walking = False
        self.take_back_first = False
        """Whether Up in an empty prompt takes a queued message back instead of walking the history."""

    @property
    def entry(self) -> Entry:
        """The prompt as it can be kept and brought back."""
        return Entry(self.text, self._pastes.used(self.text))

    def put(self, entry: Entry) -> None:
        """Replace what stands in the prompt; the cursor goes to its end."""
        self._pastes.restore(entry.pastes)
        # Titles, stored messages and files of earlier chats come in here too.
        self.text = plain_text(storable(entry.text))
        self.move_cursor(self.document.end)

    @property
    def whole(self) -> str:
        """What stands here, pastes included."""
        return self._pastes.expand(self.text)

    def put_whole(self, text: str) -> None:
        """Replace what stands here by a text in full; what was pasted and not touched is a label again."""
        text = plain_text(storable(text))
        short = self._pastes.shorten(text)
        self.put(Entry(short if len(short) <= MAX_SHOWN else self._pastes.collapse(text), self._pastes.texts))

    def put_back(self, text: str) -> None:
        """Put a message that was not sent before what stands here now."""
        shown = self._pastes.collapse(text) if is_large(text) else text
        both = f"{shown}\n\n{self.text}" if self.text.strip() else shown
        self.put(Entry(both, self._pastes.used(both)))

    def empty(self) -> None:
        """Clear it, and forget its pastes."""
        self.text = ""
        self._pastes.clear()
        self._history.leave()

    async def _on_key(self, event: events.Key) -> None:
        if event.key in NEWLINE_KEYS:
            # Here and not by a binding: bindings run when the key has bubbled up, after letters typed meanwhile.
            event.stop()
            event.prevent_default()
            self.insert("\n")
        elif event.key == "enter":
            event.stop()
            event.prevent_default()
            self._enter()

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        text = plain_text(storable(event.text)).rstrip("\n") if event.text.strip() else event.text
        self.insert(self._pastes.collapse(text) if is_large(text) else text)

    def _enter(self) -> None:
        if self.completing.enter():
            return
        text = self.whole
        if not text.strip():
            return
        parsed = self._registry.parse(text)
        if parsed is None or parsed.command is not None:
            # Here and not where it is dealt with: letters typed behind Enter come in before that.
            self._history.add(self.entry)
            self.empty()
        self.post_message(self.Submitted(text))

    def action_tab(self) -> None:
        """Complete what is chosen, or go to the question that waits."""
        if not self.completing.tab():
            self.post_message(self.Answer())

    def action_cursor_up(self, select: bool = False) -> None:
        """Up in the menu, in the text, or back in the history."""
        if self.completing.open:
            self.completing.move(-1)
        elif select or not self.navigator.is_first_wrapped_line(self.cursor_location):
            super().action_cursor_up(select)
        elif self.take_back_first and not self.text:
            self.post_message(self.TakeBack())
        elif (older := self._history.older(self.entry)) is not None:
            self._walk_to(older)

    def action_cursor_down(self, select: bool = False) -> None:
        """Down in the menu, in the text, or forward in the history."""
        if self.completing.open:
            self.completing.move(1)
        elif select or not self.navigator.is_last_wrapped_line(self.cursor_location):
            super().action_cursor_down(select)
        elif (newer := self._history.newer()) is not None:
            self._walk_to(newer)

    def _walk_to(self, entry: Entry) -> None:
        self._walking = True
        self.put(entry)

    def action_delete_left(self) -> None:
        """Delete a character, or a whole paste label."""
        row, column = self.cursor_location
        label = self._pastes.label_before(self.document.get_line(row)[:column]) if self.selection.is_empty else ""
        if label:
            self.delete((row, column - len(label)), (row, column))
        else:
            super().action_delete_left()

    def on_text_area_changed(self) -> None:
        """Open, narrow or close the menu. What is met in the history does not open it."""
        walking, self._walking = self._walking, False
        self.set_class(self.document.get_line(0).startswith("!"), "shell")
        if walking:
            self.completing.close()
        else:
            self._history.leave()
            self.completing.follow()

    def on_text_area_selection_changed(self) -> None:
        """The menu belongs to the place where the cursor stands."""
        self.completing.catch_up()
