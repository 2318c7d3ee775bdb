"""Turns events and stored turns into blocks.

Turns are in order; those that are not loaded are a gap. `turn_view.py` makes the blocks of one turn. Pure; the widget
reads what changed and draws it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise

from ragforge_tui.shared.events import (
    MessageFinished,
    MessageStarted,
    ModelRetry,
    ModelWaiting,
    ReasoningDelta,
    TextDelta,
    TurnCompleted,
    TurnEvent,
    TurnFailed,
    TurnStarted,
)
from ragforge_tui.shared.records import Turn
from ragforge_tui.tui.drawing.lines import Line, line_of
from ragforge_tui.tui.drawing.palette import Palette
from ragforge_tui.tui.transcript.blocks import Block, Level, NoteBlock
from ragforge_tui.tui.transcript.failure_block import FailureBlock
from ragforge_tui.tui.transcript.turn_view import DisplayOptions, TurnView, apply_event, stored_turn

__all__ = ["DisplayOptions", "Document"]

ROOM = 1 << 60
"""Serials reserved on each side of a gap: its turns take them, so that no other block has to change its serial."""


class GapBlock(Block):
    """The turns `first` to `last`, inclusive."""

    kind = "gap"

    def __init__(self, first: int, last: int) -> None:
        super().__init__(0)
        self.first = first
        self.last = last

    def __contains__(self, turn_index: int) -> bool:
        return self.first <= turn_index <= self.last

    def draw(self, width: int, palette: Palette) -> list[Line]:
        which = f"turn {self.first}" if self.first == self.last else f"turns {self.first} to {self.last}"
        return [line_of([("┄┄ ", palette.faint), (f"{which}, loading …", palette.muted)], width)]


class Document:
    """All blocks of a conversation, in order.

    Attributes:
        blocks: The blocks, with ascending serials.
        stable: Number of blocks at the start that are unchanged since the last `settled`.
        changed: Blocks to be drawn again since then.
        first_turn: The lowest loaded turn index, 0 for none.
        gaps: Turns that are not loaded between loaded ones; in no order.
    """

    def __init__(self, shown: DisplayOptions | None = None) -> None:
        self.shown = shown or DisplayOptions()
        self.blocks: list[Block] = []
        self.changed: set[Block] = set()
        self.stable = 0
        self.first_turn = 0
        self.gaps: list[GapBlock] = []
        self._views: dict[int, TurnView] = {}
        self._passing: list[Block] = []

    def settled(self) -> None:
        """Note that the reader has taken in all changes."""
        self.changed.clear()
        self.stable = len(self.blocks)

    def position(self, block: Block) -> int:
        """Return the position of a block; -1 if it was dropped."""
        at = self.place(block)
        return at if at < len(self.blocks) and self.blocks[at] is block else -1

    def place(self, block: Block) -> int:
        """Return the position of a block, or of the blocks that replaced it."""
        return bisect_left(self.blocks, block.serial, key=lambda other: other.serial)

    def clear(self) -> None:
        """Drop everything."""
        self.blocks.clear()
        self._views.clear()
        self._passing.clear()
        self.gaps.clear()
        self.changed.clear()
        self.stable = 0
        self.first_turn = 0

    def load(self, turns: Iterable[Turn]) -> None:
        """Show stored turns after the blocks so far."""
        for turn in turns:
            view = stored_turn(turn, self.shown)
            view.mark_switch(self._speaker_before(turn.turn_index))
            self._replace(turn.turn_index, view)
        self._offer_remedies()

    def add(self, turn: Turn) -> None:
        """Show a stored turn that is not loaded: at the end, or before turns that started meanwhile."""
        if self.gap_with(turn.turn_index) is not None:
            return  # It is loaded with its gap, when that comes into view.
        self._note_missing(turn.turn_index)
        view = stored_turn(turn, self.shown)
        view.mark_switch(self._speaker_before(turn.turn_index))
        self._views[turn.turn_index] = view
        self._note_first([turn.turn_index])
        self._rearrange([], view.blocks, before_turn=turn.turn_index + 1)
        self._offer_remedies()

    def resume(self, turn_index: int) -> None:
        """Show a stored turn as still being answered."""
        if view := self._views.get(turn_index):
            view.resume()
            self.changed.update(view.blocks)

    def holds(self, turn_index: int) -> bool:
        return turn_index in self._views

    def gap_with(self, turn_index: int) -> GapBlock | None:
        """Return the gap that contains a turn; None if the turn is loaded, or before or after all loaded turns."""
        return next((gap for gap in self.gaps if turn_index in gap), None)

    def insert(self, turns: Sequence[Turn], *, start: int, end: int) -> int:
        """Show the turns of [start, end), all in one gap or before all loaded turns.

        Args:
            turns: The existing turns of the page.
            start: First turn of the page.
            end: The turn after its last.

        Returns:
            The number of new blocks.
        """
        views = [stored_turn(turn, self.shown) for turn in turns if not self.holds(turn.turn_index)]
        for earlier, later in pairwise(views):
            later.mark_switch(earlier.speaker)
        gap = self.gap_with(start)
        fresh = [block for view in views for block in view.blocks]
        if gap is not None:
            self._into(gap, fresh, start, end)
        elif fresh:
            self._before_all(fresh, end)
        self._views.update((view.turn_index, view) for view in views)
        self._note_first(view.turn_index for view in views)
        if views:
            self._mark_after(views[-1])
        self._offer_remedies()
        return len(fresh)

    def _before_all(self, fresh: list[Block], end: int) -> None:
        serial = self.blocks[0].serial if self.blocks else 0
        if self.first_turn > end:
            gap = GapBlock(end, self.first_turn - 1)
            gap.serial = serial - ROOM
            serial -= 2 * ROOM
            self.gaps.append(gap)
            self.blocks.insert(0, gap)
        _number(fresh, serial - len(fresh))
        self.blocks[:0] = fresh
        self.stable = 0

    def _into(self, gap: GapBlock, fresh: list[Block], start: int, end: int) -> None:
        """Replace a gap by a page and the remaining gaps before and after it."""
        place = self.position(gap)
        low, high = self.blocks[place - 1].serial, self.blocks[place + 1].serial
        self.gaps.remove(gap)
        before, after = GapBlock(gap.first, start - 1), GapBlock(end, gap.last)
        keep_before, keep_after = before.first <= before.last, after.first <= after.last
        first = low + 1 if not keep_before else high - len(fresh) if not keep_after else (low + high) // 2
        _number(fresh, first)
        before.serial, after.serial = (low + first) // 2, (first + len(fresh) + high) // 2
        kept_before, kept_after = [before] * keep_before, [after] * keep_after
        self.gaps += [*kept_before, *kept_after]
        self.blocks[place : place + 1] = [*kept_before, *fresh, *kept_after]
        self.stable = min(self.stable, place)

    def _speaker_before(self, turn_index: int) -> str:
        """Return the persona of the nearest earlier turn, as far as the turns before it are loaded."""
        ends = [gap.last + 1 for gap in self.gaps if gap.last < turn_index]
        first = max(ends, default=self.first_turn) or turn_index
        views = (self._views.get(index) for index in range(turn_index - 1, first - 1, -1))
        return next((view.speaker for view in views if view is not None and view.speaker), "")

    def _mark_after(self, last: TurnView) -> None:
        """Mark a switch of personas in the turn after a page that was inserted before it."""
        view = self._views.get(last.turn_index + 1)
        before = list(view.blocks) if view is not None else []
        if view is not None and view.mark_switch(last.speaker):
            self._rearrange(before, view.blocks)

    def notice(self, text: str, level: Level, *, passing: bool = False) -> None:
        """Append a sentence of the program; a `passing` one disappears with the next answer."""
        block = NoteBlock("notice", 0, text, level)
        if self.blocks and self.blocks[-1].kind == "notice":
            block.gap = 0
        self._append(block)
        if passing:
            self._passing.append(block)

    def _remove_passing(self) -> None:
        for block in self._passing:
            at = self.position(block)
            del self.blocks[at]
            self.changed.discard(block)
            self.stable = min(self.stable, at)
            if block.gap and at < len(self.blocks) and self.blocks[at].kind == "notice":
                self.blocks[at].gap = block.gap
                self.blocks[at].touch()
        self._passing.clear()

    def apply(self, event: TurnEvent) -> None:
        """Update the blocks with an event."""
        view = self._views.get(event.turn_index)
        if isinstance(event, TextDelta) and view is not None and (block := view.growing(event.message_id)) is not None:
            block.append(event.text)
            self.changed.add(block)
            return
        if view is None:
            self._note_missing(event.turn_index)
            view = TurnView(event.turn_index, self.shown)
            self._views[event.turn_index] = view
            self._note_first([event.turn_index])
        before = list(view.blocks)
        if not isinstance(event, ModelRetry | ModelWaiting):
            view.drop_retry()
        changed = apply_event(view, event)
        if isinstance(event, MessageStarted | MessageFinished):
            view.mark_switch(self._speaker_before(event.turn_index))
        if changed is not None:
            self.changed.add(changed)
        elif not isinstance(event, ReasoningDelta | TextDelta):
            self.changed.update(view.blocks)
        if view.blocks != before:
            self._rearrange(before, view.blocks)
        if isinstance(event, TurnCompleted):
            self._remove_passing()
        if isinstance(event, TurnStarted | TurnFailed):
            self._offer_remedies()

    def _offer_remedies(self) -> None:
        """Offer the keys after a failure in the newest turn alone."""
        newest = max(self._views, default=0)
        failures = (block for block in self.blocks if isinstance(block, FailureBlock))
        self.changed.update(block for block in failures if block.set_newest(block.turn_index == newest))

    def _note_missing(self, turn_index: int) -> None:
        """Add a gap for turns that other processes added before this one."""
        last = max(self._views, default=turn_index)
        if turn_index > last + 1:
            gap = GapBlock(last + 1, turn_index - 1)
            gap.serial = self.blocks[-1].serial + ROOM
            self.blocks.append(gap)
            self.gaps.append(gap)

    def _note_first(self, turns: Iterable[int]) -> None:
        lowest = min(turns, default=0)
        if lowest and (not self.first_turn or lowest < self.first_turn):
            self.first_turn = lowest

    def _replace(self, turn_index: int, view: TurnView) -> None:
        old = self._views.get(turn_index)
        before = list(old.blocks) if old is not None else []
        self._views[turn_index] = view
        self._note_first([turn_index])
        _fold_alike(before, view.blocks)
        self._rearrange(before, view.blocks)

    def _append(self, block: Block) -> None:
        last = self.blocks[-1] if self.blocks else None
        room = ROOM if isinstance(last, GapBlock) else 1
        block.serial = last.serial + room if last is not None else 0
        self.blocks.append(block)

    def _rearrange(self, before: list[Block], after: list[Block], *, before_turn: int = 0) -> None:
        """Replace the blocks of a turn; new ones at the end are appended.

        Notices that arrived during the turn keep their place in time: after the blocks that were there before them.

        Args:
            before_turn: For a turn without a place: insert it before the blocks of this turn and later ones.
        """
        if before_turn and not before:
            start = next((at for at, block in enumerate(self.blocks) if block.turn_index >= before_turn), None)
            if start is not None:
                rest = self.blocks[start:]
                del self.blocks[start:]
                self.stable = min(self.stable, start)
                self._append_all(after, rest)
                return
        common = 0
        while common < len(before) and common < len(after) and before[common] is after[common]:
            common += 1
        if common == len(before) and (not before or self.blocks[-1:] == before[-1:]):
            for block in after[common:]:
                self._append(block)
            return
        start = self.position(before[common - 1]) + 1 if common else self.position(before[0])
        end = self.position(before[-1]) + 1
        while end < len(self.blocks) and self.blocks[end].kind == "notice":
            end += 1
        between, rest = self.blocks[start:end], self.blocks[end:]
        del self.blocks[start:]
        self.stable = min(self.stable, start)
        self._append_all(_in_time(between, before[common:], after[common:]), rest)

    def _append_all(self, fresh: list[Block], rest: list[Block]) -> None:
        for block in fresh:
            self._append(block)
        for block in rest:
            # Its serial stays when it can: around a gap they are far apart on purpose.
            if self.blocks and block.serial > self.blocks[-1].serial:
                self.blocks.append(block)
            else:
                self._append(block)


def _in_time(blocks: Sequence[Block], before: Sequence[Block], after: Sequence[Block]) -> list[Block]:
    """Return the new blocks of a turn with the notices among its old ones, each after what it came after."""
    old = set(before)
    placed: list[Block] = []
    taken = 0
    for block in blocks:
        if block not in old:
            placed.append(block)
            continue
        same = next((n for n in range(taken, len(after)) if _alike(block, after[n])), -1)
        if same >= 0:
            placed += after[taken : same + 1]
            taken = same + 1
    return [*placed, *after[taken:]]


def _alike(block: Block, other: Block) -> bool:
    return block is other or (bool(block.record_id) and (block.kind, block.record_id) == (other.kind, other.record_id))


def _fold_alike(before: Iterable[Block], after: Iterable[Block]) -> None:
    """Keep what the user folded or unfolded when a turn is rendered again."""
    folds = {(block.kind, block.record_id): block.folded for block in before if block.folded is not None}
    for block in after:
        folded = folds.get((block.kind, block.record_id))
        if folded is not None and block.folded is (not folded):
            block.toggle()


def _number(blocks: Iterable[Block], first: int) -> None:
    for serial, block in enumerate(blocks, first):
        block.serial = serial
