"""The transcript: a conversation in one widget, composed of a viewport, a stream painter, a cursor and a finder.

Streaming text is drawn with pauses, in a thread if there is much of it, so that typing stays fast. A pause is three
times as long as the last drawing took: drawing takes at most a quarter of the time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from ragforge_tui.shared.events import ReasoningDelta, TextDelta, TurnEvent, TurnStarted
from ragforge_tui.shared.records import Turn
from ragforge_tui.tui.drawing.code import COPY
from ragforge_tui.tui.hint import Hint
from ragforge_tui.tui.limits import SCREEN
from ragforge_tui.tui.transcript.block_view import BlockView
from ragforge_tui.tui.transcript.blocks import GO_BACK_META, PLACE, Block, Level, RecallBlock, TextBlock
from ragforge_tui.tui.transcript.copying import Copier
from ragforge_tui.tui.transcript.cursor import Cursor, Finder, Offers
from ragforge_tui.tui.transcript.document import DisplayOptions, GapBlock
from ragforge_tui.tui.transcript.end_chip import END, EndChip
from ragforge_tui.tui.transcript.failure_block import RUNS
from ragforge_tui.tui.transcript.links import META, Link
from ragforge_tui.tui.transcript.unloaded import Unloaded

if TYPE_CHECKING:
    from ragforge_tui.tui.transcript.stream import StreamedText

SHORTEST_PAUSE = 0.05
_PAUSE_FACTOR = 3
_SLOW = 0.02
"""Seconds of a drawing after which the next one runs in a thread, however little has arrived."""


class StreamPainter:
    """Draws the growing text blocks of one view.

    Attributes:
        shortest_pause: Minimum seconds between two drawings.
    """

    def __init__(self, view: BlockView) -> None:
        self._view = view
        self._waiting: set[TextBlock] = set()
        self._timer: Timer | None = None
        self._drawing = False
        self._ending: set[TextBlock] = set()
        self._last_cost = 0.0
        self.shortest_pause = SHORTEST_PAUSE

    @property
    def busy(self) -> bool:
        """Whether some text has arrived that is not drawn yet."""
        return self._timer is not None or self._drawing or bool(self._waiting or self._ending)

    def clear(self) -> None:
        """Forget the text that is not drawn yet."""
        self._waiting.clear()

    def text_arrived(self) -> None:
        """Draw what the last delta changed, soon."""
        document = self._view.document
        self._waiting.update(block for block in document.changed if isinstance(block, TextBlock))
        if document.stable != len(document.blocks):
            self._view.sync()
        self.draw_soon()

    def texts_ended(self) -> None:
        """Draw the texts that are complete in a thread, if that takes long; until then they stay as they are."""
        for block in self._view.document.changed:
            stream = block.unended if isinstance(block, TextBlock) and block not in self._ending else None
            if isinstance(block, TextBlock) and stream is not None:
                self._ending.add(block)
                self._view.run_worker(self._end_in_thread(block, stream), group="transcript", exclusive=False)

    async def _end_in_thread(self, block: TextBlock, stream: StreamedText) -> None:
        try:
            await asyncio.to_thread(stream.finish)
        finally:
            self._ending.discard(block)
        block.touch()
        self._view.correct(block)
        self._view.sync()

    def draw_soon(self) -> None:
        """Draw after a pause, unless that is already planned."""
        if self._timer is None and not self._drawing:
            pause = max(self.shortest_pause, _PAUSE_FACTOR * self._last_cost)
            self._timer = self._view.set_timer(pause, self._draw)

    def _draw(self) -> None:
        self._timer = None
        blocks = [block for block in self._waiting if not block.finished]
        self._waiting.clear()
        if not blocks:
            self._view.sync()
            return
        streams = [self._stream_of(block) for block in blocks]
        if self._last_cost < _SLOW and all(stream.light for stream in streams):
            start = time.perf_counter()
            for stream in streams:
                stream.advance()
            self._last_cost = time.perf_counter() - start
            self._drawn(blocks)
        else:
            self._drawing = True
            drawing = self._draw_in_thread(blocks, streams)
            self._view.run_worker(drawing, group="transcript", exclusive=False, exit_on_error=True)

    def _stream_of(self, block: TextBlock) -> StreamedText:
        width, palette = self._view.text_width, self._view.palette
        fits = block.streams_at(width, palette)
        return block.stream if fits and block.stream is not None else block.begin_stream(width, palette)

    async def _draw_in_thread(self, blocks: Sequence[TextBlock], streams: Sequence[StreamedText]) -> None:
        start = time.perf_counter()
        try:
            for stream in streams:
                await asyncio.to_thread(stream.advance)
        finally:
            self._drawing = False
        self._last_cost = time.perf_counter() - start
        self._drawn(blocks)

    def _drawn(self, blocks: Sequence[TextBlock]) -> None:
        """Show the drawn blocks."""
        for block in blocks:
            if not block.finished:
                block.touch()
                self._view.correct(block)
        self._view.sync()
        if self._waiting:
            self.draw_soon()


_ASK_AGAIN_SECONDS = 3.0
_NO_BLOCK = "j and k choose a block first"


class Transcript(BlockView, can_focus=True):
    """All turns of a conversation.

    Attributes:
        stream_painter: Draws text while it arrives.
        cursor: The block that the keyboard is at.
        copier: Copies blocks and code.
        finder: Finds a text in the loaded turns.
    """

    DEFAULT_CSS = """
    Transcript {
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-gutter: stable;
        scrollbar-size-vertical: 1;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,ctrl+down", "move_cursor(1)", "down", show=False),
        Binding("k,ctrl+up", "move_cursor(-1)", "up", show=False),
        Binding("enter,space", "activate", "open or close", show=False),
        Binding("v", "view", "view: whole, its code, as it was sent", show=False),
        Binding("y", "copy('block')", "copy", show=False),
        Binding("c", "copy('code')", "copy the next piece of code", show=False),
        Binding("C", "copy('all_code')", "copy all code", show=False),
        Binding("o", "open_link", "open a link", show=False),
        Binding("e", "with_turn('edit')", "edit", show=False),
        Binding("b", "with_turn('branch')", "go back to it in a branch", show=False),
        Binding("n", "find(1)", "next", show=False),
        Binding("N", "find(-1)", "previous", show=False),
        Binding("g", "scroll_home", "first turn", show=False),
        Binding("G", "scroll_end", "newest turn", show=False),
        Binding("ctrl+d", "half_page(1)", "half a page down", show=False),
        Binding("ctrl+u", "half_page(-1)", "half a page up", show=False),
    ]

    @dataclass
    class NeedTurns(Message):
        """Turns [start, end) exist, are not loaded and come into view."""

        start: int
        end: int

    @dataclass
    class WantTurn(Message):
        """The user wants to see a turn that is not loaded."""

        turn_index: int

    @dataclass
    class TurnCommand(Message):
        """The user wants to run a command for the turn at the cursor."""

        command: str
        turn_index: int

    @dataclass
    class FindStep(Message):
        """The user wants to see the next (1) or previous (-1) match."""

        by: int

    @dataclass
    class LinkClicked(Message):
        """A link was clicked on: a full address, or the path of a file."""

        target: str

    @dataclass
    class PlaceClicked(Message):
        """A turn of another conversation was chosen, from which something was recalled."""

        conversation_id: str
        turn_index: int

    @dataclass
    class RecalledWanted(Message):
        """The user wants to see what was recalled for a turn."""

        block: RecallBlock

    @dataclass
    class LinksWanted(Message):
        """The user wants to open one of the links near the cursor."""

        links: list[Link]

    @dataclass
    class ViewRequested(Message):
        """The user wants to read a whole block in a screen of its own."""

        block: Block

    class CursorMoved(Message):
        """The cursor is at another block, at none, or at one that was folded or unfolded."""

    def __init__(self, *, shown: DisplayOptions | None = None) -> None:
        super().__init__(shown=shown)
        self.stream_painter = StreamPainter(self)
        self.cursor = Cursor(self, self._cursor_moved)
        self._offers = Offers(self, self.cursor)
        self.copier = Copier(self, self.cursor)
        self.finder = Finder(self, self.cursor)
        self._unloaded = Unloaded(self)
        self._end_chip = EndChip(self)

    # What the screen calls

    def apply(self, event: TurnEvent) -> None:
        """Show an event of the conversation's turns."""
        if isinstance(event, TurnStarted):
            self.follow = True
        self._end_chip.note(event)
        self.document.apply(event)
        if isinstance(event, TextDelta):
            self.stream_painter.text_arrived()
        elif isinstance(event, ReasoningDelta) and self.document.stable == len(self.document.blocks):
            self.stream_painter.draw_soon()
        else:
            self.stream_painter.texts_ended()
            self.sync()

    def load(self, turns: Sequence[Turn], *, first: int, last: int) -> None:
        """Show a conversation from its newest turns.

        Args:
            first: The lowest turn index that exists; earlier turns are requested when they come near.
            last: The highest.
        """
        self.clear()
        self._unloaded.first = first if last >= first else 0
        self.document.load(turns)
        self.sync()

    def insert(self, turns: Sequence[Turn], *, start: int, end: int) -> None:
        """Show turns [start, end) that were not loaded; the lines being read stay in view."""
        self._unloaded.answered()
        if isinstance(held := self.viewport.held_block, GapBlock):
            after = self.document.blocks[self.document.position(held) + 1]
            self.viewport.hold(after, self.top - self.viewport.start(after))
        if not self.document.insert(turns, start=start, end=end) and end >= self.document.first_turn:
            self._unloaded.first = self.document.first_turn
        self.sync()

    def not_inserted(self) -> None:
        """Note that requested turns could not be loaded: a while later they are requested again."""
        self.set_timer(_ASK_AGAIN_SECONDS, self._unloaded.answered)

    def show_turn(self, turn: Turn) -> None:
        """Render a turn from its records, again or for the first time; the lines being read stay in view."""
        if self.document.holds(turn.turn_index):
            self.document.load([turn])
        else:
            self.document.add(turn)
        self.sync()

    def resume_turn(self, turn_index: int) -> None:
        """Show a turn as still being answered."""
        self.document.resume(turn_index)
        self.sync()

    def notice(self, text: str, level: Level = "info", *, passing: bool = False) -> None:
        """Show a sentence of the program; a `passing` one disappears with the next answer."""
        self.document.notice(text, level, passing=passing)
        self._end_chip.note_sentence(level)
        self.sync()

    def clear(self) -> None:
        """Show nothing."""
        self.document.clear()
        self.viewport.clear()
        self.cursor.clear()
        self.stream_painter.clear()
        self._unloaded.forget()
        self.follow = True
        self.sync()

    @property
    def newest_turn(self) -> int:
        """The highest turn of the conversation; 0 for none."""
        return next((block.turn_index for block in reversed(self.document.blocks) if block.turn_index), 0)

    @property
    def selected_text(self) -> str:
        """The text that is selected with the mouse, without the decoration around it."""
        selection = self.text_selection
        return self.text_in(selection) if selection is not None else ""

    @property
    def turn_in_view(self) -> int:
        """The turn at the top of the window; 0 for none."""
        if (found := self.viewport.block_at(min(self.top, self.viewport.index.total - 1))) is None:
            return 0
        position = self.document.position(found[0])
        return next((block.turn_index for block in self.document.blocks[position:] if block.turn_index), 0)

    def scroll_to_turn(self, turn_index: int, last: int = 0) -> bool:
        """Bring the beginning of a turn to the top and mark it for a moment; return False if it is not loaded.

        Args:
            last: Turns up to this one are marked too.
        """
        block = next((block for block in self.document.blocks if block.turn_index == turn_index), None)
        if block is None:
            return False
        self.follow, self.cursor.block = False, block
        self.viewport.hold(block, 0)
        self.cursor.turns = range(turn_index, max(turn_index, last) + 1)
        self.settle()
        self.follow = self.viewport.start(block) >= self.max_scroll_y
        self.set_timer(SCREEN.mark, self._unmark)
        return True

    def _unmark(self) -> None:
        self.cursor.turns = range(0)
        self.repaint()

    def toggle_fold(self, block: Block) -> None:
        """Fold or unfold a block; it stays under the pointer and opens downwards."""
        self.follow = False
        self.viewport.hold(block, self.top - self.viewport.start(block))
        block.toggle()
        self.post_message(self.CursorMoved())
        if isinstance(block, RecallBlock) and not block.folded and block.texts is None:
            self.post_message(self.RecalledWanted(block))
        self.settle()
        self.follow = self.scroll_y >= self.max_scroll_y

    def leave(self) -> None:
        """Remove the cursor."""
        self.cursor.block = None
        self.repaint()

    # Hooks of the view

    def marks(self, block: Block) -> bool:
        """Mark the block at the cursor and the turns that were jumped to."""
        return self.cursor.marks(block)

    def last_row_word(self) -> Strip | None:
        """Say what is below the window."""
        return self._end_chip.strip()

    def synced(self) -> None:
        """Keep the cursor on a block of the document."""
        self.cursor.follow_document()

    def settled(self) -> None:
        """Request turns that are not loaded when they come near."""
        if (wanted := self._unloaded.next_request()) is not None:
            self.post_message(self.NeedTurns(*wanted))

    # The offer to go back, on the user's message at the cursor and under the mouse

    def _cursor_moved(self) -> None:
        self._offers.update()
        self.copier.cycle.forget()
        self.post_message(self.CursorMoved())

    def on_focus(self, event: events.Focus) -> None:
        """Show the offer to go back; nothing else in the rows shows the focus."""
        _note_focus(self, event, events.DescendantFocus(self), focused=True)
        self._offers.update()

    def on_blur(self, event: events.Blur) -> None:
        _note_focus(self, event, events.DescendantBlur(self), focused=False)
        self._offers.update()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Offer to go back to the message under the mouse, but not while text is being selected."""
        if not event.button:
            found = self.viewport.block_at(self.top + event.y)
            self._offers.hover(found[0] if found is not None else None)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Withdraw the offer where a selection may start, so that only the message itself is selected."""
        if GO_BACK_META not in event.style.meta:
            self._offers.hover(None)

    def on_leave(self) -> None:
        self._offers.hover(None)

    # Mouse and keys

    async def on_click(self, event: events.Click) -> None:
        """Go to the end, open a link, go back to a turn, copy code, or fold or unfold a block."""
        if event.style.meta.get(END):
            self.action_scroll_end()
            return
        if self.text_selection is not None and self.selected_text.strip():
            return
        if turn := event.style.meta.get(GO_BACK_META):
            self.post_message(self.TurnCommand("branch", int(turn)))
            return
        if target := event.style.meta.get(META):
            self.post_message(self.LinkClicked(str(target)))
            return
        if command := event.style.meta.get(RUNS):
            await self.app.run_action(f"command({str(command)!r})")
            return
        if place := event.style.meta.get(PLACE):
            conversation_id, _, turn = str(place).partition(" ")
            self.post_message(self.PlaceClicked(conversation_id, int(turn)))
            return
        if (found := self.viewport.block_at(self.top + event.y)) is None:
            return
        block, offset = found
        if event.style.meta.get(COPY):
            self.copier.clicked(block, offset)
        elif block.folds_at(offset, self.viewport.index.height(self.document.position(block))):
            self.toggle_fold(block)

    def action_scroll_end(self) -> None:
        """Go to the end and follow it."""
        self.follow = True
        self.settle()

    def action_scroll_home(self) -> None:
        """Go to the first turn of the conversation."""
        if self._unloaded.earlier:
            self.post_message(self.WantTurn(self._unloaded.first))
        else:
            self.scroll_to(y=0)

    def action_half_page(self, by: int) -> None:
        """Scroll half of what is in view down (1) or up (-1)."""
        self.scroll_relative(y=by * max(1, self.scrollable_content_region.height // 2))

    def action_move_cursor(self, by: int) -> None:
        self.cursor.move(by)

    def action_activate(self) -> None:
        """Fold or unfold the block at the cursor; an unfolded one comes into view as far as it fits."""
        block = self.cursor.block
        if block is None:
            self._hint(_NO_BLOCK)
            return
        if block.folded is None and (links := self.cursor.links(near=False)):
            self.post_message(self.LinksWanted(links))
            return
        self.toggle_fold(block)
        self.correct(block)
        start, position = self.viewport.start(block), self.document.position(block)
        below = start + self.viewport.index.height(position) - self.scrollable_content_region.height
        if block.folded is False and below > self.top:
            self.scroll_to(y=min(below, start))

    def _open_recalled(self, block: RecallBlock) -> None:
        """Go to the recalled turn; where several conversations gave something, list all that was sent."""
        if len(block.places) == 1:
            self.post_message(self.PlaceClicked(block.places[0].conversation_id, block.places[0].turn_index))
        else:
            self.post_message(self.TurnCommand("context", block.turn_index))

    def _hint(self, text: str) -> None:
        """Show the result of a key, or why it has none; its letter is not typed into the prompt instead."""
        self.post_message(Hint(text))

    def action_with_turn(self, command: str) -> None:
        """Run a command for the turn at the cursor."""
        if self.cursor.block is None:
            self._hint(_NO_BLOCK)
        elif not self.cursor.block.turn_index:
            self._hint("no turn here")
        else:
            self.post_message(self.TurnCommand(command, self.cursor.block.turn_index))

    def action_open_link(self) -> None:
        """Open a link of the block at the cursor, or of its turn."""
        if self.cursor.block is None:
            self._hint(_NO_BLOCK)
        elif isinstance(self.cursor.block, RecallBlock) and self.cursor.block.places:
            self._open_recalled(self.cursor.block)
        else:
            self.post_message(self.LinksWanted(self.cursor.links()))

    def action_find(self, by: int) -> None:
        self.post_message(self.FindStep(by))

    def action_view(self) -> None:
        """Read the whole block at the cursor."""
        block = self.cursor.block
        if block is None or not block.source:
            self._hint(_NO_BLOCK if block is None else "nothing more to show here")
        else:
            self.post_message(self.ViewRequested(block))

    def action_copy(self, what: str) -> None:
        """Copy the block at the cursor, the next piece of its code, or all of it."""
        {"block": self.copier.block, "code": self.copier.code, "all_code": self.copier.all_code}[what]()


def _note_focus(view: Transcript, event: events.Event, told: Message, *, focused: bool) -> None:
    """Do what the base class does when the focus comes or goes, but for drawing all rows again."""
    event.prevent_default()
    view.has_focus = focused
    if isinstance(view.parent, Widget):
        view.parent.post_message(told)
