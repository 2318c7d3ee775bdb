"""The transcript's widget: what the screen tells it, text that streams, cursor, folding and copying.

Text that streams is drawn with pauses, and in a thread when there is much to draw, so that typing stays quick. Which
lines are visible and how they are drawn is in `window.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.selection import Selection

from ragforge_tui.events import ReasoningDelta, TextDelta, TurnEvent, TurnStarted
from ragforge_tui.models import Turn
from ragforge_tui.tui.transcript.blocks import Block, Level, TextBlock, UserBlock
from ragforge_tui.tui.transcript.copying import code_of, text_between
from ragforge_tui.tui.transcript.document import Shown
from ragforge_tui.tui.transcript.gaps import GapBlock
from ragforge_tui.tui.transcript.index import LineIndex
from ragforge_tui.tui.transcript.links import META, Link, links_of
from ragforge_tui.tui.transcript.streaming import StreamingWindow
from ragforge_tui.tui.transcript.window import MARGIN

PAGE_TURNS = 30
_MARK_SECONDS = 4.0
_ASK_AGAIN_SECONDS = 3.0


class Transcript(StreamingWindow, can_focus=True):
    """Everything of a conversation, in one widget."""

    ALLOW_SELECT = True
    DEFAULT_CSS = """
    Transcript {
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-gutter: stable;
        scrollbar-size-vertical: 1;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,ctrl+down", "move_cursor(1)", "Next block", show=False),
        Binding("k,ctrl+up", "move_cursor(-1)", "Previous block", show=False),
        Binding("enter,space", "activate", "Open or close", show=False),
        Binding("y", "copy_block", "Copy block", show=False),
        Binding("c", "copy_code", "Copy code", show=False),
        Binding("o", "open_link", "Open a link", show=False),
        Binding("e", "with_turn('edit')", "Edit and resend", show=False),
        Binding("b", "with_turn('branch')", "Branch from here", show=False),
        Binding("n", "find(1)", "Next match", show=False),
        Binding("N", "find(-1)", "Previous match", show=False),
    ]

    class NeedTurns(Message):
        """A place that is not loaded comes into view: turns [start, end) exist and should be inserted."""

        def __init__(self, start: int, end: int) -> None:
            super().__init__()
            self.start = start
            self.end = end

    class BlockActivated(Message):
        """A block was clicked on, or Enter pressed at it; folding has been done already."""

        def __init__(self, block: Block) -> None:
            super().__init__()
            self.block = block

    class WantTurn(Message):
        """A turn that is not loaded is wanted in view."""

        def __init__(self, turn_index: int) -> None:
            super().__init__()
            self.turn_index = turn_index

    @dataclass
    class TurnCommand(Message):
        """A command is wanted for the turn the keyboard is at."""

        command: str
        turn_index: int

    @dataclass
    class FindStep(Message):
        """The next (1) or previous (-1) place of what is looked for is wanted."""

        by: int

    @dataclass
    class LinkClicked(Message):
        """A link was clicked on: a whole address, or the path of a file."""

        target: str

    @dataclass
    class LinksWanted(Message):
        """The person wants to open one of the links near the keyboard's place."""

        links: list[Link]

    @dataclass
    class CopyRequested(Message):
        """The person wants a text on the clipboard; `what` names it."""

        text: str
        what: str

    def __init__(
        self,
        *,
        shown: Shown | None = None,
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(shown=shown, name=name, id=id, classes=classes)
        self._first = 0
        self._asked: tuple[int, int] | None = None

    # What the screen calls

    def apply(self, event: TurnEvent) -> None:
        """Show what the engine said of the conversation's turns."""
        if isinstance(event, TurnStarted):
            self.follow = True
        self.document.apply(event)
        if isinstance(event, TextDelta):
            self._streamed()
        elif isinstance(event, ReasoningDelta) and self.document.stable == len(self.document.blocks):
            self._wake()
        else:
            self._sync()

    def load(self, turns: Sequence[Turn], *, first: int, last: int) -> None:
        """Show a conversation from its newest turns.

        Args:
            first: The lowest turn index that exists; earlier turns are asked for when they come near.
            last: The highest.
        """
        self.clear()
        self._first = first if last >= first else 0
        self.document.load(turns)
        self._sync()

    def insert(self, turns: Sequence[Turn], *, start: int, end: int) -> None:
        """Show turns that were not loaded, [start, end), where they belong; what is being read stays where it is."""
        self._asked = None
        if self._hold is not None and isinstance(self._hold[0], GapBlock):
            after = self.document.position(self._hold[0]) + 1
            self._hold = (self.document.blocks[after], round(self.scroll_y) - self._index.start(after))
        if not self.document.insert(turns, start=start, end=end) and end >= self.document.first_turn:
            self._first = self.document.first_turn
        self._sync()

    def not_inserted(self) -> None:
        """What was needed could not be had: it is asked for again when it is looked at a while later."""
        self.set_timer(_ASK_AGAIN_SECONDS, self._forget_asked)

    def _forget_asked(self) -> None:
        self._asked = None

    def replace_turn(self, turn: Turn) -> None:
        """Show a turn anew from its records."""
        self.document.load([turn])
        self._sync()

    def add_turn(self, turn: Turn) -> None:
        """Show a turn that was begun elsewhere, in its place; what is being read stays where it is."""
        self.document.add(turn)
        self._sync()

    def go_on(self, turn_index: int) -> None:
        """Show what is open in a turn as under way: it is still being answered."""
        self.document.go_on(turn_index)
        self._sync()

    def notice(self, text: str, level: Level = "info", *, passing: bool = False) -> None:
        """Show a sentence of the program; a `passing` one goes when an answer came."""
        self.document.notice(text, level, passing=passing)
        self._sync()

    def clear(self) -> None:
        """Show nothing."""
        self.document.clear()
        self._index = LineIndex()
        self._hold = self._cursor = None
        self._waiting.clear()
        self._first = 0
        self._asked = None
        self._marked = range(0)
        self.follow = True
        self._sync()

    def set_user_name(self, name: str) -> None:
        """Head the person's messages from now on with this name."""
        self.document.shown.user_name = name or "you"

    def follow_end(self) -> None:
        """Go to the end and stay there."""
        self.follow = True
        self._settle()

    def scroll_to_turn(self, turn_index: int, last: int = 0) -> bool:
        """Bring the beginning of a turn to the top and mark it for a moment; false when it is not loaded.

        Args:
            last: Turns up to this one are marked too.
        """
        for position, block in enumerate(self.document.blocks):
            if block.turn_index == turn_index:
                self.follow, self._cursor = False, block
                self._hold = (block, 0)
                self._marked = range(turn_index, max(turn_index, last) + 1)
                self._settle()
                self.follow = self._index.start(position) >= self.max_scroll_y
                self.set_timer(_MARK_SECONDS, self._unmark)
                return True
        return False

    def _unmark(self) -> None:
        self._marked = range(0)
        self.repaint()

    @property
    def turn_in_view(self) -> int:
        """The turn at the top of the window; 0 when there is none."""
        if not len(self._index):
            return 0
        position, _ = self._index.find(round(self.scroll_y))
        return next((block.turn_index for block in self.document.blocks[position:] if block.turn_index), 0)

    @property
    def selected_text(self) -> str:
        """The text that is selected with the mouse, without the decoration around it."""
        selection = self.text_selection
        return self._between(selection) if selection is not None else ""

    @property
    def cursor_block(self) -> Block | None:
        """The block the keyboard is at."""
        return self._cursor

    def action_scroll_end(self) -> None:
        """Go to the end and follow it."""
        self.follow_end()

    def action_scroll_home(self) -> None:
        """Go to the first turn there is."""
        if self._first and self.document.first_turn > self._first:
            self.post_message(self.WantTurn(self._first))
        else:
            self.scroll_to(y=0)

    # Turns that are not loaded

    def settled(self) -> None:
        """Ask for turns that are not loaded when their place is near."""
        wanted = self._missing_near()
        if wanted is not None and wanted != self._asked:
            self._asked = wanted
            self.post_message(self.NeedTurns(*wanted))

    def _missing_near(self) -> tuple[int, int] | None:
        """A page of turns whose place is in view or within a window's height of it."""
        top, height = round(self.scroll_y), self.scrollable_content_region.height
        for gap in self.document.gaps:
            line = self._index.start(self.document.position(gap))
            if top - height <= line <= top + 2 * height:
                if line > top:
                    return gap.first, min(gap.first + PAGE_TURNS, gap.last + 1)
                return max(gap.first, gap.last + 1 - PAGE_TURNS), gap.last + 1
        before = self.document.first_turn
        if top <= height and self._first and before > self._first:
            return max(self._first, before - PAGE_TURNS), before
        return None

    # Selection, cursor, copying

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
            return
        self._activate(block)
        self._correct(block)
        position = self.document.position(block)
        below = self._index.start(position) + self._index.height(position) - self.scrollable_content_region.height
        if block.folded is False and below > round(self.scroll_y):
            self.scroll_to(y=min(below, self._index.start(position)))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Letters that mean nothing here are typed into the prompt."""
        if action == "find":
            return bool(self._needle)
        if action == "open_link":
            return self._cursor is not None
        if action == "with_turn":
            return self._cursor is not None and bool(self._cursor.turn_index)
        return True

    def action_with_turn(self, command: str) -> None:
        """A command for the turn the keyboard is at."""
        if self._cursor is not None:
            self.post_message(self.TurnCommand(command, self._cursor.turn_index))

    def action_open_link(self) -> None:
        """Open a link of the block the keyboard is at, else one of its turn."""
        if self._cursor is not None:
            near = [block for block in self.document.blocks if block.turn_index == self._cursor.turn_index]
            self.post_message(self.LinksWanted(_links([self._cursor]) or _links(near)))

    def action_find(self, by: int) -> None:
        """Go on looking."""
        self.post_message(self.FindStep(by))

    def action_copy_block(self) -> None:
        """Copy the block the keyboard is at, as it was written."""
        if self._cursor is not None and self._cursor.source:
            self.post_message(self.CopyRequested(self._cursor.source, "block"))

    def action_copy_code(self) -> None:
        """Copy the code in the block the keyboard is at, else the last code there is."""
        candidates = [self._cursor] if self._cursor is not None else self.document.blocks[::-1]
        for block in candidates:
            if isinstance(block, TextBlock) and (code := code_of(block.source)):
                self.post_message(self.CopyRequested(code[-1], "code"))
                return


def _links(blocks: Sequence[Block]) -> list[Link]:
    """The links of what was said in these blocks, each target once."""
    said = [block for block in blocks if isinstance(block, TextBlock | UserBlock)]
    found = [link for block in said for link in links_of(block.source, markdown=isinstance(block, TextBlock))]
    return list({link.target: link for link in found}.values())
