"""The transcript's widget: what the screen tells it, and which turns it asks for.

Each of its bases adds one thing: `window.py` the visible lines, `finding.py` what is looked for, `streaming.py` text
that is being written, `block_cursor.py` the keyboard's place and what can be done there.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual.message import Message

from ragforge_tui.events import ReasoningDelta, TextDelta, TurnEvent, TurnStarted
from ragforge_tui.models import Turn
from ragforge_tui.tui.transcript.model.blocks import Level
from ragforge_tui.tui.transcript.model.document import Shown
from ragforge_tui.tui.transcript.model.gaps import GapBlock
from ragforge_tui.tui.transcript.widget.cursor import BlockCursor
from ragforge_tui.tui.transcript.widget.line_index import LineIndex

PAGE_TURNS = 30
_MARK_SECONDS = 4.0
_ASK_AGAIN_SECONDS = 3.0


class Transcript(BlockCursor, can_focus=True):
    """Everything of a conversation, in one widget."""

    DEFAULT_CSS = """
    Transcript {
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-gutter: stable;
        scrollbar-size-vertical: 1;
    }
    """

    class NeedTurns(Message):
        """A place that is not loaded comes into view: turns [start, end) exist and should be inserted."""

        def __init__(self, start: int, end: int) -> None:
            super().__init__()
            self.start = start
            self.end = end

    class WantTurn(Message):
        """A turn that is not loaded is wanted in view."""

        def __init__(self, turn_index: int) -> None:
            super().__init__()
            self.turn_index = turn_index

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
