"""The keyboard's place among the blocks of a transcript: walking, opening, copying, and the mouse's selection.

A base of `widget.py`. What opening a link or editing a turn leads to is the screen's business: it is asked by
messages, which go by the transcript's name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.selection import Selection

from ragforge_tui.tui.transcript.model.blocks import Block, TextBlock, UserBlock
from ragforge_tui.tui.transcript.render.links import META, Link, links_of
from ragforge_tui.tui.transcript.widget.copying import code_of, text_between
from ragforge_tui.tui.transcript.widget.stream_painter import StreamingWindow
from ragforge_tui.tui.transcript.widget.viewport import MARGIN

_NO_BLOCK = "j and k choose a block first"


class BlockCursor(StreamingWindow):
    """A window in which the keyboard is at one of the blocks."""

    ALLOW_SELECT = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,ctrl+down", "move_cursor(1)", "Next block", show=False),
        Binding("k,ctrl+up", "move_cursor(-1)", "Previous block", show=False),
        Binding("enter,space", "activate", "Open or close", show=False),
        Binding("v", "view", "Read it whole", show=False),
        Binding("y", "copy_block", "Copy block", show=False),
        Binding("c", "copy_code", "Copy code", show=False),
        Binding("o", "open_link", "Open a link", show=False),
        Binding("e", "with_turn('edit')", "Edit and resend", show=False),
        Binding("b", "with_turn('branch')", "Branch from here", show=False),
        Binding("n", "find(1)", "Next match", show=False),
        Binding("N", "find(-1)", "Previous match", show=False),
    ]

    class BlockActivated(Message, namespace="transcript"):
        """A block was clicked on, or Enter pressed at it; folding has been done already."""

        def __init__(self, block: Block) -> None:
            super().__init__()
            self.block = block

    @dataclass
    class TurnCommand(Message, namespace="transcript"):
        """A command is wanted for the turn the keyboard is at."""

        command: str
        turn_index: int

    @dataclass
    class FindStep(Message, namespace="transcript"):
        """The next (1) or previous (-1) place of what is looked for is wanted."""

        by: int

    @dataclass
    class LinkClicked(Message, namespace="transcript"):
        """A link was clicked on: a whole address, or the path of a file."""

        target: str

    @dataclass
    class LinksWanted(Message, namespace="transcript"):
        """The person wants to open one of the links near the keyboard's place."""

        links: list[Link]

    @dataclass
    class ViewRequested(Message, namespace="transcript"):
        """The person wants to read a block whole, in a window of its own."""

        block: Block

    @dataclass
    class CopyRequested(Message, namespace="transcript"):
        """The person wants a text on the clipboard; `what` names it."""

        text: str
        what: str

    @dataclass
    class NothingToDo(Message, namespace="transcript"):
        """A key was pressed that has nothing to do here, and why."""

        why: str

    @property
    def selected_text(self) -> str:
        """The text that is selected with the mouse, without the decoration around it."""
        selection = self.text_selection
        return self._between(selection) if selection is not None else ""

    @property
    def cursor_block(self) -> Block | None:
        """The block the keyboard is at."""
        return self._cursor

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text, for the screen."""
        return self._between(selection), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        """Show the selection."""
        self.refresh()

    def _between(self, selection: Selection) -> str:
        return text_between(self.document.blocks, selection, self._text_width, self.palette, margin=MARGIN)

    def on_click(self, event: events.Click) -> None:
        """Open the link, or fold or unfold what was clicked on."""
        if self.text_selection is not None and self.selected_text.strip():
            return
        if target := event.style.meta.get(META):
            self.post_message(self.LinkClicked(str(target)))
            return
        position, offset = self._index.find(round(self.scroll_y) + event.y) if len(self._index) else (-1, 0)
        if position < 0 or round(self.scroll_y) + event.y >= self._index.total:
            return
        block = self.document.blocks[position]
        if block.folds_at(offset, self._index.height(position)):
            self._activate(block)

    def _activate(self, block: Block) -> None:
        position = self.document.position(block)
        # What was clicked on stays under the pointer; its body opens below.
        self.follow = False
        self._hold = (block, round(self.scroll_y) - self._index.start(position))
        block.toggle()
        self._settle()
        self.follow = self.scroll_y >= self.max_scroll_y
        self.post_message(self.BlockActivated(block))

    def toggle_fold(self, block: Block) -> None:
        """Fold or unfold a block."""
        self._activate(block)

    def leave(self) -> None:
        """The keyboard is at no block any more."""
        self._cursor = None
        self.repaint()

    def action_move_cursor(self, by: int) -> None:
        """Go to the next or previous block and bring it into view."""
        blocks = self.document.blocks
        if not blocks:
            return
        if self._cursor is None:
            top, bottom = round(self.scroll_y), round(self.scroll_y) + self.scrollable_content_region.height - 1
            position = self._index.find(min(bottom, self._index.total - 1) if by < 0 else top)[0]
        else:
            position = min(len(blocks) - 1, max(0, self.document.position(self._cursor) + by))
        self._cursor = blocks[position]
        start, height = self._index.start(position), self._index.height(position)
        top, window = round(self.scroll_y), self.scrollable_content_region.height
        if start < top:
            self.scroll_to(y=start)
        elif start + min(height, window) > top + window:
            self.scroll_to(y=start + min(height, window) - window)
        self.repaint()

    def action_activate(self) -> None:
        """Open or close the block the keyboard is at; what opens comes into view as far as it fits."""
        block = self._cursor
        if block is None:
            self._nothing()
            return
        self._activate(block)
        self._correct(block)
        position = self.document.position(block)
        below = self._index.start(position) + self._index.height(position) - self.scrollable_content_region.height
        if block.folded is False and below > round(self.scroll_y):
            self.scroll_to(y=min(below, self._index.start(position)))

    def _nothing(self, why: str = "") -> None:
        """A letter that means something here says so; it is never typed into the prompt just because it cannot act."""
        self.post_message(self.NothingToDo(why or _NO_BLOCK))

    def action_with_turn(self, command: str) -> None:
        """A command for the turn the keyboard is at."""
        if self._cursor is None:
            self._nothing()
        elif not self._cursor.turn_index:
            self._nothing("no turn here")
        else:
            self.post_message(self.TurnCommand(command, self._cursor.turn_index))

    def action_open_link(self) -> None:
        """Open a link of the block the keyboard is at, else one of its turn."""
        if self._cursor is None:
            self._nothing()
            return
        near = [block for block in self.document.blocks if block.turn_index == self._cursor.turn_index]
        self.post_message(self.LinksWanted(_links([self._cursor]) or _links(near)))

    def action_find(self, by: int) -> None:
        """Go on looking."""
        self.post_message(self.FindStep(by))

    def action_view(self) -> None:
        """Read the block the keyboard is at whole."""
        if self._cursor is None or not self._cursor.source:
            self._nothing("" if self._cursor is None else "nothing more to read here")
        else:
            self.post_message(self.ViewRequested(self._cursor))

    def action_copy_block(self) -> None:
        """Copy the block the keyboard is at, as it was written, else the last answer there is."""
        answers = (block for block in reversed(self.document.blocks) if isinstance(block, TextBlock))
        block = self._cursor or next(answers, None)
        if block is None or not block.source:
            self._nothing("nothing to copy here")
        else:
            self.post_message(self.CopyRequested(block.source, "block" if self._cursor else "last answer"))

    def action_copy_code(self) -> None:
        """Copy the code in the block the keyboard is at, else the last code there is."""
        candidates = [self._cursor] if self._cursor is not None else self.document.blocks[::-1]
        for block in candidates:
            if isinstance(block, TextBlock) and (code := code_of(block.source)):
                self.post_message(self.CopyRequested(code[-1], "code"))
                return
        self._nothing("no code here")


def _links(blocks: Sequence[Block]) -> list[Link]:
    """The links of what was said in these blocks, each target once."""
    said = [block for block in blocks if isinstance(block, TextBlock | UserBlock)]
    found = [link for block in said for link in links_of(block.source, markdown=isinstance(block, TextBlock))]
    return list({link.target: link for link in found}.values())
