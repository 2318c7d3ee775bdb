"""The prompt: a growing text area with history, completion and labels for large pastes; Enter sends.

A large paste is shown as a label and sent as it is. All pastes are remembered, because they are not the user's word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import TextArea

from ragforge_tui.shared.formatting import counted, size_text
from ragforge_tui.shared.records import Conversation
from ragforge_tui.shared.sanitize import plain_text, storable
from ragforge_tui.tui.command_registry import Parsed, Registry
from ragforge_tui.tui.limits import SCREEN
from ragforge_tui.tui.prompt.completion import Completing, SlashMenu
from ragforge_tui.tui.prompt.draft import Draft
from ragforge_tui.tui.prompt.history import Entry, History
from ragforge_tui.tui.prompt.vim import VimKeys
from ragforge_tui.tui.session.message_queue import MessageQueue

_FEWEST_WORDS = 3
MAX_LINES = 8
MAX_CHARS = 2_000


def is_large(text: str) -> bool:
    """Return whether a paste is shown as a label."""
    return len(text) > MAX_CHARS or text.count("\n") >= MAX_LINES


class Pastes:
    """The texts of the labels in one prompt; a small paste is a label of itself."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def collapse(self, text: str) -> str:
        """Remember a text; return its label."""
        if not is_large(text):
            if len(text.split()) >= _FEWEST_WORDS:  # A name or a path becomes part of the user's sentence.
                self._texts[text] = text
            return text
        lines = text.count("\n") + 1
        characters = f"{counted(len(text))} characters"
        size = f"{counted(lines)} lines, {size_text(len(text.encode()))}" if lines > 1 else characters
        label = f"[pasted {size}]"
        number = 2
        while label in self._texts and self._texts[label] != text:
            label = f"[pasted {size} #{number}]"
            number += 1
        self._texts[label] = text
        return label

    def expand(self, text: str) -> str:
        """Replace every label in a text by its paste."""
        pieces = [text]
        for label, whole in self._texts.items():
            # Piece by piece, so that a pasted text that happens to hold a label is not expanded again.
            pieces = [part for piece in pieces for part in _split(piece, label, whole)]
        return "".join(str(piece) for piece in pieces)

    def shorten(self, text: str) -> str:
        """Replace every paste in a text by its label, the longest first."""
        for label, whole in sorted(self._texts.items(), key=lambda item: -len(item[1])):
            text = text.replace(whole, label)
        return text

    @property
    def texts(self) -> dict[str, str]:
        return dict(self._texts)

    def label_before(self, text: str) -> str:
        """Return the label at the end of a text, or an empty string."""
        if not text.endswith("]"):
            return ""
        return next((label for label, whole in self._texts.items() if label != whole and text.endswith(label)), "")

    def used(self, text: str) -> dict[str, str]:
        """Return the labels in a text and their texts."""
        return {label: whole for label, whole in self._texts.items() if label in text}

    def within(self, text: str) -> list[str]:
        """Return the pasted parts of a whole text: pastes, or the remaining lines of an edited one."""
        found = []
        for whole in self._texts.values():
            parts = [whole] if whole in text else whole.splitlines()
            found += [part for part in parts if len(part.split()) >= _FEWEST_WORDS and part in text]
        return found

    def restore(self, texts: dict[str, str]) -> None:
        self._texts.update(texts)

    def clear(self) -> None:
        self._texts.clear()


class _Whole(str):
    """A pasted text, which is not searched for labels."""

    __slots__ = ()


def _split(piece: str, label: str, whole: str) -> list[str]:
    if isinstance(piece, _Whole) or label not in piece:
        return [piece]
    parts: list[str] = []
    for index, part in enumerate(piece.split(label)):
        if index:
            parts.append(_Whole(whole))
        parts.append(part)
    return parts


MAX_SHOWN = 20_000
"""A longer text is shown as a label: the prompt wraps all of its text on every key."""
NEWLINE_KEYS = frozenset({"ctrl+j", "alt+enter", "shift+enter"})


class Prompt(TextArea):
    """The text area for messages and commands."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "tab", "Complete", show=False),
        # ctrl+z gives the shell back, as in other programs of the terminal; both keys are 0x1f in most of them.
        Binding("ctrl+underscore,ctrl+slash,super+z", "undo", "undo what was typed", show=False),
    ]

    @dataclass
    class Submitted(Message):
        """Enter was pressed; `text` includes pastes. The prompt is empty then, except after an unknown command.

        Attributes:
            parsed: The text as a command; None for a message.
            materials: What of the text was pasted.
            queue: Tab was pressed instead: the message waits for the end of the running turn.
        """

        text: str
        parsed: Parsed | None
        materials: list[str]
        queue: bool = False

    class TakeBack(Message):
        """Up was pressed in an empty prompt: the user wants the newest queued message back."""

    class Answer(Message):
        """Tab was pressed without a menu: the user wants to answer the waiting question."""

    def __init__(
        self, history: History, draft: Draft, outgoing: MessageQueue, registry: Registry, menu: SlashMenu
    ) -> None:
        super().__init__(
            soft_wrap=True,
            compact=True,
            highlight_cursor_line=False,
            placeholder="Ask, type / for commands, @ for files, Ctrl+J for a new line",
            id="prompt",
        )
        self.earlier = history
        self._draft = draft
        self._draft_timer: Timer | None = None
        self._outgoing = outgoing
        self._registry = registry
        self.completing = Completing(self, registry, menu)
        self._pastes = Pastes()
        self._walking = False
        self._blinking: Timer | None = None
        self._rests = False
        self.vim: VimKeys | None = None
        """Vim's keys, where the user wants them."""
        self.editing = 0
        """The turn whose message is being edited; 0 for none."""
        self.may_queue: Callable[[], bool] = bool
        """Returns whether a turn runs, so that Tab queues a message."""
        self.in_burst: Callable[[], bool] = bool
        """Returns whether Enter is part of a burst of keys that a question came into."""
        self.first_letter: Callable[[str], str] = str
        """Returns what the first letter adds to an empty prompt: nothing if it may answer a question."""

    def on_mount(self) -> None:
        """Start the time until the cursor rests."""
        self._blinking = self.set_interval(SCREEN.blink, self._rest)

    def _rest(self) -> None:
        """Stop the cursor from blinking until the next key."""
        if self._blinking is not None:
            self._blinking.pause()
        if self.cursor_blink:
            self._rests, self.cursor_blink = True, False

    def _wake(self) -> None:
        if self._rests:
            self._rests = False
            self.cursor_blink = self.app.animation_level != "none"
        if self._blinking is not None:
            self._blinking.reset()

    @property
    def entry(self) -> Entry:
        """The prompt in a form that can be stored and restored."""
        return Entry(self.text, self._pastes.used(self.text))

    def put(self, entry: Entry) -> None:
        """Replace the contents; the cursor goes to the end."""
        self._pastes.restore(entry.pastes)
        # The text may also be a title, a stored message or a draft of an earlier chat.
        self.text = plain_text(storable(entry.text))
        self.move_cursor(self.document.end)

    def take(self, entry: Entry) -> None:
        """Replace the contents by an earlier prompt; undo brings them back."""
        self.earlier.leave()
        self._pastes.restore(entry.pastes)
        self._walking = True
        self.replace(plain_text(storable(entry.text)), (0, 0), self.document.end)
        self.move_cursor(self.document.end)

    @property
    def blank(self) -> bool:
        """Whether it holds nothing; cheap, however long the text is."""
        return self.document.line_count == 1 and not self.document.get_line(0)

    @property
    def whole(self) -> str:
        return self._pastes.expand(self.text)

    def put_whole(self, text: str) -> None:
        """Replace the contents by a full text; untouched pastes become labels again."""
        text = plain_text(storable(text))
        short = self._pastes.shorten(text)
        self.put(Entry(short if len(short) <= MAX_SHOWN else self._pastes.collapse(text), self._pastes.texts))

    def put_back(self, text: str, materials: Sequence[str] = ()) -> None:
        """Insert a message that was not sent before the current contents, and take the focus.

        Args:
            materials: What of it was pasted.
        """
        self._pastes.restore({one: one for one in materials})
        self.put(self._with_unsent([text]))
        self.focus()

    def belongs_to(self, conversation: Conversation | None, *, private: bool) -> None:
        """Assign what is typed and sent to a conversation, or to the next one; show the draft that waits for it."""
        self.earlier.open(conversation, private=private)
        if self._draft.open(conversation.uuid if conversation is not None else "", private=private):
            self.restore_draft()
            self.save_draft_soon()

    def restore_draft(self) -> None:
        """Show the draft of the last chat, unless the user is already typing."""
        if not self.text and (draft := self._draft.restore()) is not None:
            self.put(draft)

    def save_draft(self) -> None:
        """Store the contents and the messages that wait to be sent, to survive the end of the chat."""
        self._draft_timer = None
        unsent = self._outgoing.items
        self._pastes.restore({one: one for item in unsent for one in item.materials})
        self._draft.save(self._with_unsent([item.text for item in unsent]))

    def save_draft_soon(self) -> None:
        """Store the draft at most once per half second."""
        if self._draft_timer is None:
            self._draft_timer = self.set_timer(SCREEN.draft, self.save_draft)

    def _with_unsent(self, texts: Sequence[str]) -> Entry:
        """Return the contents with messages that were not sent before them."""
        parts = [self._pastes.collapse(text) if is_large(text) else text for text in texts]
        if self.text.strip():
            parts.append(self.text)
        together = "\n\n".join(parts)
        return Entry(together, self._pastes.used(together))

    def empty(self) -> None:
        """Clear the prompt and its pastes."""
        self.text = ""
        self._pastes.clear()
        self.earlier.leave()
        if self.vim is not None:
            self.vim.insert()

    async def on_key(self, event: events.Key) -> None:
        if event.key in NEWLINE_KEYS:
            # Here and not by a binding: bindings run when the key has bubbled up, after letters typed meanwhile.
            event.stop()
            event.prevent_default()
            self.insert("\n")
        elif event.key == "enter":
            event.stop()
            event.prevent_default()
            self._enter()
        elif event.key.startswith("alt+") and event.key in self.screen.active_bindings:
            event.prevent_default()  # Terminals send the letter with Alt, and it would be typed.
        elif self._vim_takes(event):
            event.stop()
            event.prevent_default()
        elif event.is_printable and event.character and self.blank:
            text = self.first_letter(event.character)
            if text == event.character:
                return
            event.stop()
            event.prevent_default()
            if text:
                self.insert(text)
                self.screen.set_focus(self)

    def _vim_takes(self, event: events.Key) -> bool:
        """Let Vim's normal mode have a key, unless it answers a question."""
        if self.vim is None or self.vim.mode == "insert":
            return False
        if self.blank and event.is_printable and event.character and not self.first_letter(event.character):
            return True
        return self.vim.press(event.key, event.character)

    def use_vim(self, wanted: bool) -> None:
        """Take on or drop Vim's keys."""
        self.vim = VimKeys(self, self._show_vim) if wanted else None
        self._show_vim()

    def _show_vim(self) -> None:
        """Name the normal mode in the frame."""
        if isinstance(self.parent, Widget):
            normal = self.vim is not None and self.vim.mode == "normal"
            self.parent.border_subtitle = "normal" if normal else ""

    async def on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        text = plain_text(storable(event.text)).rstrip("\n") if event.text.strip() else event.text
        self.insert(self._pastes.collapse(text))

    def action_paste(self) -> None:
        """Insert the text cut or copied in this program."""
        self._pastes.collapse(self.app.clipboard)
        super().action_paste()

    def _enter(self) -> None:
        if self.completing.enter():
            return
        text = self.whole
        if not text.strip():
            return
        if self.in_burst():
            self.insert("\n")
            return
        parsed, materials = self._registry.parse(text), self._pastes.within(text)
        if parsed is None or parsed.command is not None:
            # Here, not in the handler of the message: letters typed after Enter arrive before that.
            self.earlier.add(self.entry)
            self.empty()
        self.post_message(self.Submitted(text, parsed, materials))

    def escape(self) -> bool:
        """Close the menu, else drop an edit that was not sent."""
        if self.completing.open:
            self.completing.close()
        elif self.vim is not None and self.vim.escape():
            pass
        elif self.editing:
            self.editing = 0
            self.empty()
        else:
            return False
        return True

    def action_tab(self) -> None:
        """Complete a word, queue a message behind the running turn, or leave the prompt."""
        if self.completing.tab():
            return
        text = self.whole
        if text.strip() and self.may_queue() and self._registry.parse(text) is None:
            materials = self._pastes.within(text)
            self.earlier.add(self.entry)
            self.empty()
            self.post_message(self.Submitted(text, None, materials, queue=True))
        else:
            self.post_message(self.Answer())

    def action_cursor_page_up(self) -> None:
        """Leave the key to the chat, as does page down: a prompt is no longer than a page."""
        raise SkipAction

    def action_cursor_page_down(self) -> None:
        raise SkipAction

    def action_cursor_line_end(self, select: bool = False) -> None:
        """Go to the end of the line; at the end of the text the key goes to the end of the chat."""
        if not select and self.cursor_location == self.document.end:
            self.call_next(self.run_action, "screen.scroll_chat(0)")
        super().action_cursor_line_end(select)

    def action_cursor_up(self, select: bool = False) -> None:
        """Move up in the menu, in the text, or back in the history."""
        if self.completing.open:
            self.completing.move(-1)
        elif select or not self.navigator.is_first_wrapped_line(self.cursor_location):
            super().action_cursor_up(select)
        elif self._outgoing.newest is not None and not self.text:
            self.post_message(self.TakeBack())
        elif (older := self.earlier.older(self.entry)) is not None:
            self._walk_to(older)

    def action_cursor_down(self, select: bool = False) -> None:
        """Move down in the menu, in the text, or forward in the history."""
        if self.completing.open:
            self.completing.move(1)
        elif select or not self.navigator.is_last_wrapped_line(self.cursor_location):
            super().action_cursor_down(select)
        elif (newer := self.earlier.newer()) is not None:
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
        """Open, narrow or close the menu, which entries of the history do not open, and store the draft."""
        self._wake()
        walking, self._walking = self._walking, False
        self.set_class(self.document.get_line(0).startswith("!"), "shell")
        if walking:
            self.completing.close()
        else:
            self.earlier.leave()
            self.completing.follow()
        self.save_draft_soon()

    def on_text_area_selection_changed(self) -> None:
        """Update the menu, which belongs to the position of the cursor."""
        self._wake()
        self.completing.catch_up()
