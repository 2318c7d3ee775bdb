"""A window of lines over the blocks of a document: what is visible is drawn, and what is read stays in place.

Blocks that were never seen have an estimated height; when they come into view they are drawn and the height is
corrected in such a way that what is being read stays where it is. The base of `widget.py`, which adds what the
person and the screen do with it.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.reactive import Reactive, var
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ragforge_tui.tui.drawing.lines import Line
from ragforge_tui.tui.style.palette import Palette, palette_of
from ragforge_tui.tui.transcript.model.blocks import Block
from ragforge_tui.tui.transcript.model.document import Document, Shown
from ragforge_tui.tui.transcript.widget.copying import LINES_PER_BLOCK
from ragforge_tui.tui.transcript.widget.line_index import LineIndex

if TYPE_CHECKING:
    from textual._animator import EasingFunction
    from textual._types import AnimationLevel, CallbackType

MARGIN = 2
_USUAL_WIDTH = 80
_THUMB_STEPS = 8
"""The parts of a cell a scrollbar's thumb moves by."""


class Row(NamedTuple):
    """What stands in one row of the window.

    Attributes:
        line: The line of a block, None below the last.
        at: The number a selection knows it by.
        marked: Whether the keyboard is at its block, or its turn was gone to.
    """

    line: Line | None
    at: int = -1
    marked: bool = False


Painted = tuple[Row, "tuple[int, int] | None", Strip]
"""A row, the span of it that is selected, and the strip that was made of both."""


class BlockWindow(ScrollView):
    """The geometry and the drawing of a document's blocks.

    `follow` says whether the end is kept in view: true until the person scrolls up, and again at the end.
    """

    follow = var(True)
    # The window's own size does not depend on how much there is to scroll: no layout of the screen for a new line.
    virtual_size: Reactive[Size] = Reactive(Size(0, 0), layout=False, repaint=False)

    def __init__(
        self,
        *,
        shown: Shown | None = None,
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self.document = Document(shown)
        self._index = LineIndex()
        self._palette: Palette | None = None
        self._hold: tuple[Block, int] | None = None
        self._placing = False
        self._cursor: Block | None = None
        self._marked = range(0)
        self._thumb: tuple[int, ...] = ()
        self._rows: list[Row] = []
        self._painted: dict[int, Painted] = {}
        self._painted_for: tuple[object, ...] = ()

    # Geometry

    @property
    def _text_width(self) -> int:
        return max(1, self.scrollable_content_region.width - MARGIN - 1)

    @property
    def palette(self) -> Palette:
        """The styles of the theme in use."""
        if self._palette is None:
            app = self.app
            self._palette = palette_of(app.theme_variables, dark=app.current_theme.dark, ansi=app.native_ansi_color)
        return self._palette

    def on_mount(self) -> None:
        """Follow changes of the theme."""
        self.app.theme_changed_signal.subscribe(self, self._theme_changed)

    def _theme_changed(self, _: object) -> None:
        self._palette = None
        self._settle()
        self.refresh()

    def on_resize(self) -> None:
        """Draw what is visible for the new width; what is read stays."""
        self._settle()

    def _sync(self) -> None:
        """Take in what changed in the document."""
        document, index = self.document, self._index
        if document.stable < len(index):
            index.truncate(document.stable)
        width = self._text_width if self.size else _USUAL_WIDTH
        for block in document.blocks[len(index) :]:
            index.append(block.height or block.estimate(width))
        document.settled()
        if self._cursor is not None and document.position(self._cursor) < 0:
            self._cursor = self._successor(self._cursor)
        self._settle()

    def _successor(self, dropped: Block) -> Block | None:
        """What a turn that was put anew has where this block stood."""
        place, blocks = self.document.place(dropped), self.document.blocks
        there = blocks[place] if place < len(blocks) else None
        same = there is not None and (there.turn_index, there.kind) == (dropped.turn_index, dropped.kind)
        return there if same else None

    def _settle(self) -> None:
        """Draw the visible blocks, correct their heights and put the window where it belongs."""
        if not self.is_mounted or not self.size or self._placing:
            return
        self._placing = True
        try:
            self._place()
        finally:
            self._placing = False
        self.settled()
        self.repaint()

    def settled(self) -> None:
        """The window is where it belongs; for subclasses."""

    def _place(self) -> None:
        height = self.scrollable_content_region.height
        index, blocks = self._index, self.document.blocks
        hold, offset = self._held()
        top = round(self.scroll_y)
        for _ in range(len(blocks) + 1):
            top = max(0, index.total - height) if self.follow else max(0, index.start(hold) + offset)
            if not self._measure(top, height):
                break
        total = index.total
        if (size := Size(self.scrollable_content_region.width, total)) != self.virtual_size:
            self.virtual_size = size
        top = min(top, max(0, total - height))
        if top != self.scroll_y or top != self.scroll_target_y:
            super().scroll_to(y=top, animate=False, force=True, immediate=True)
        self._hold_at(top)

    def _held(self) -> tuple[int, int]:
        """Position of the block that must not move, and by how much the window's top is below its first line."""
        if self._hold is None or not len(self._index):
            return 0, 0
        block, offset = self._hold
        position = min(self.document.place(block), len(self._index) - 1)
        if self.document.blocks[position] is not block:
            # It was dropped: a turn was put anew, or a notice went.
            offset = min(offset, self._index.height(position) - 1)
        return position, offset

    def _measure(self, top: int, height: int) -> bool:
        """Draw the blocks between two lines; whether a height was corrected."""
        if not len(self._index):
            return False
        width, palette = self._text_width, self.palette
        position, offset = self._index.find(top)
        line = top - offset
        corrected = False
        while line < top + height and position < len(self._index):
            lines = self.document.blocks[position].lines(width, palette)
            corrected = bool(self._index.set(position, len(lines))) or corrected
            line += len(lines)
            position += 1
        return corrected

    def _hold_at(self, top: int) -> None:
        """Note which block must stay where it is: the first that is drawn, so that its height is known."""
        index, blocks = self._index, self.document.blocks
        if not len(index):
            self._hold = None
            return
        position, offset = index.find(top)
        first = position
        bottom = top + self.scrollable_content_region.height
        if top > 0:
            while not blocks[position].drawn_for(self._text_width, self.palette):
                position += 1
                if position >= len(blocks) or index.start(position) >= bottom:
                    position = first
                    break
        self._hold = (blocks[position], offset if position == first else top - index.start(position))

    def watch_virtual_size(self) -> None:
        """The scrollbar follows at once, since nothing is laid out."""
        self._follow_scrollbar()

    def _follow_scrollbar(self) -> None:
        """Tell the scrollbar where the window is, when that moves its thumb by at least an eighth of a cell."""
        height, total = self.scrollable_content_region.height, self.virtual_size.height
        thumb: tuple[int, ...] = (height,)
        if 0 < height < total:
            size = max(1.0, height * height / total)
            begin = int((height - size) * self.scroll_y / (total - height) * _THUMB_STEPS)
            thumb = (height, begin, ceil(size * _THUMB_STEPS))
        if self.is_mounted and thumb != self._thumb:
            self._thumb = thumb
            self._scroll_update(self.virtual_size)
            if self.show_vertical_scrollbar:
                self.vertical_scrollbar.position = self.scroll_y

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """The person scrolled, unless we did ourselves. Which rows are drawn again is seen when it has settled."""
        self._follow_scrollbar()
        if not self._placing and round(old_value) != round(new_value):
            self.follow = new_value >= self.max_scroll_y
            self._hold_at(round(new_value))
            self._settle()

    def scroll_to(
        self,
        x: float | None = None,
        y: float | None = None,
        *,
        animate: bool = True,
        speed: float | None = None,
        duration: float | None = None,
        easing: EasingFunction | str | None = None,
        force: bool = False,
        on_complete: CallbackType | None = None,
        level: AnimationLevel = "basic",
        immediate: bool = False,
        release_anchor: bool = True,
    ) -> None:
        """Scroll at once: an animation would work against corrected heights."""
        super().scroll_to(x, y, animate=False, force=force, on_complete=on_complete, immediate=immediate)

    def _correct(self, block: Block) -> None:
        """Measure a block that grew, whether it can be seen or not."""
        position = self.document.position(block)
        if 0 <= position < len(self._index):
            self._index.set(position, len(block.lines(self._text_width, self.palette)))

    # Drawing

    def repaint(self) -> None:
        """Draw again the rows that show something else than before."""
        before, self._rows = self._rows, self._visible_rows()
        width = self.size.width
        if len(before) != len(self._rows):
            self.refresh()
        elif changed := [y for y, row in enumerate(self._rows) if row != before[y]]:
            self.refresh(*(Region(0, y, width, 1) for y in changed))

    def _visible_rows(self) -> list[Row]:
        height = self.scrollable_content_region.height
        rows: list[Row] = []
        if len(self._index):
            width, palette, blocks = self._text_width, self.palette, self.document.blocks
            position, offset = self._index.find(round(self.scroll_y))
            while len(rows) < height and position < len(self._index):
                block = blocks[position]
                at, marked = block.serial * LINES_PER_BLOCK, block is self._cursor or block.turn_index in self._marked
                lines = block.lines(width, palette)
                for number in range(offset, min(len(lines), offset + height - len(rows))):
                    rows.append(Row(lines[number], at + number, marked and number >= block.gap))
                position, offset = position + 1, 0
        return rows + [Row(None)] * (height - len(rows))

    def render_lines(self, crop: Region) -> list[Strip]:
        """The rows of a region; a row that was drawn before is taken from there, wherever it stood."""
        styles = self.styles
        if styles.gutter or styles.tint.a or self.opacity != 1.0:
            return super().render_lines(crop)
        rows = self._visible_rows()
        base, width = self.rich_style, self.scrollable_content_region.width
        filters, background = self.get_line_filters(), self.background_colors[1]
        made_for = (base, width, self.palette, background)
        known = self._painted if made_for == self._painted_for else {}
        self._painted, self._painted_for = {}, made_for
        blank = Strip.blank(width, base)
        strips = [self._paint(row, known, base, width) if row.line is not None else blank for row in rows]
        # Where the scrollbar would stand when there is something to scroll.
        edge = Style(bgcolor=base.bgcolor)
        blank = blank.adjust_cell_length(self.size.width, edge)
        strips = [strip.adjust_cell_length(self.size.width, edge) for strip in strips]
        strips = (strips + [blank] * (crop.bottom - len(strips)))[crop.y : crop.bottom]
        for line_filter in filters:
            strips = [strip.apply_filter(line_filter, background) for strip in strips]
        if crop.column_span != (0, self.size.width):
            strips = [strip.crop(*crop.column_span) for strip in strips]
        return strips

    def render_line(self, y: int) -> Strip:
        """One row of the window."""
        width, base = self.scrollable_content_region.width, self.rich_style
        rows = self._visible_rows()
        if y >= len(rows) or rows[y].line is None:
            return Strip.blank(width, base)
        return self._paint(rows[y], {}, base, width)

    def _paint(self, row: Row, known: dict[int, Painted], base: Style, width: int) -> Strip:
        """The strip of a row that has a line."""
        selection = self.text_selection
        span = selection.get_span(row.at) if selection is not None else None
        before = known.get(row.at)
        if before is not None and before[0] == row and before[1] == span:
            self._painted[row.at] = before
            return before[2]
        assert row.line is not None
        strip = self._with_margin(row.line, marked=row.marked)
        if span is not None:
            strip = self._with_selection(strip, *span)
        strip = strip.crop_extend(0, width, None).apply_offsets(0, row.at).apply_style(base)
        self._painted[row.at] = (row, span, strip)
        return strip

    def _with_margin(self, line: Line, *, marked: bool) -> Strip:
        margin = Segment("▎ " if marked else "  ", self.palette.cursor if marked else self.palette.text)
        return Strip([margin, *line.strip], MARGIN + line.strip.cell_length)

    def _with_selection(self, strip: Strip, start: int, end: int) -> Strip:
        text = strip.text
        first = cell_len(text[:start])
        last = strip.cell_length if end == -1 else cell_len(text[:end])
        if first >= last:
            return strip
        theirs = self.screen.get_component_rich_style("screen--selection")
        if self.app.theme_variables["screen-selection-foreground"] == "transparent":
            # Made into a colour it would be that of the ground, and the letters would be gone.
            theirs += Style(color=self.palette.text.color)
        selected = Strip([Segment(part, (own or theirs) + theirs) for part, own, _ in strip.crop(first, last)])
        return Strip.join([strip.crop(0, first), selected, strip.crop(last, strip.cell_length)])
