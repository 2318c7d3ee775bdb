"""A scrolling widget that draws the blocks of a document line by line.

Base of the transcript and of the text viewer. Only the rows in view are drawn, and only those that changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.reactive import Reactive, var
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from ragforge_tui.tui.drawing.lines import Line
from ragforge_tui.tui.drawing.palette import Palette, palette_for
from ragforge_tui.tui.transcript.blocks import Block
from ragforge_tui.tui.transcript.document import DisplayOptions, Document
from ragforge_tui.tui.transcript.viewport import Frame, Row, Viewport, on_left_side, text_between

if TYPE_CHECKING:
    from textual.types import AnimationLevel, CallbackType, EasingFunction

MARGIN = 2
_USUAL_WIDTH = 80
_THUMB_STEPS = 8
"""A scrollbar's thumb moves by eighths of a cell."""

Painted = tuple[Row, "tuple[int, int] | None", Strip]
"""A row, the selected span of it, and the strip made of both."""


class BlockView(ScrollView):
    """Scrolls through the blocks of a document.

    Attributes:
        follow: Whether the end is kept in view: true until the user scrolls up, and again at the end.
        viewport: The positions of the blocks.
    """

    ALLOW_SELECT = True

    follow = var(True)
    # The size of the window does not depend on the scrollable height: a new line needs no layout of the screen.
    virtual_size: Reactive[Size] = Reactive(Size(0, 0), layout=False, repaint=False)

    def __init__(self, *, shown: DisplayOptions | None = None) -> None:
        super().__init__()
        self.document = Document(shown)
        self.viewport = Viewport(self.document)
        self._palette: Palette | None = None
        self._placing = False
        self._placed_for = Size(0, 0), Size(0, 0)
        """The size of the window when the blocks were placed last."""
        self._thumb: tuple[int, ...] = ()
        self._rows: list[Row] = []
        self._painted: dict[int, Painted] = {}
        self._painted_for: tuple[object, ...] = ()
        self._highlight = ""
        self._word: Strip | None = None

    # Geometry

    @property
    def text_width(self) -> int:
        """Cells for the text of a line, without the margins."""
        return max(1, self.scrollable_content_region.width - MARGIN - 1)

    @property
    def palette(self) -> Palette:
        """The styles of the current theme."""
        if self._palette is None:
            self._palette = palette_for(self.app)
        return self._palette

    @property
    def frame(self) -> Frame:
        """The window as the viewport needs it."""
        region = self.scrollable_content_region
        return Frame(max(1, region.width - MARGIN - 1), region.height, self.palette)

    @property
    def _sizes(self) -> tuple[Size, Size]:
        """The size of the window and the one that limits scrolling, which may only be the same after a layout."""
        return self.scrollable_content_region.size, self.container_size

    @property
    def top(self) -> int:
        """The line at the top of the window."""
        return round(self.scroll_y)

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, self._theme_changed)
        # Not a Resize event: Textual sends none if something asked for the new places before the layout was made.
        self.screen.screen_layout_refresh_signal.subscribe(self, self._laid_out)

    def _theme_changed(self, _: object) -> None:
        self._palette = None
        self.settle()
        self.refresh()

    def _laid_out(self, _: object) -> None:
        """Draw the visible blocks for the new size; the lines being read stay in view."""
        if self._sizes != self._placed_for:
            self.settle()

    def sync(self) -> None:
        """Take in what changed in the document."""
        self.viewport.sync(self.text_width if self.size else _USUAL_WIDTH)
        self.synced()
        self.settle()

    def view(self, blocks: Sequence[Block]) -> None:
        """Show these blocks only, at the same line as the blocks before."""
        self.follow, line = False, self.scroll_y
        self.document.clear()
        self.document.blocks.extend(blocks)
        self.sync()
        if line:
            self.scroll_to(y=line)

    def synced(self) -> None:
        """Hook: blocks may have been added or removed."""

    def settle(self) -> None:
        """Draw the visible blocks, correct their heights and scroll to where the window belongs."""
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
        """Hook: the window is where it belongs."""

    def _place(self) -> None:
        frame = self.frame
        self._placed_for = self._sizes
        top = self.viewport.place(frame, at_end=self.follow)
        size = Size(self.scrollable_content_region.width, self.viewport.index.total)
        if size != self.virtual_size:
            self.virtual_size = size
        if top != self.scroll_y or top != self.scroll_target_y:
            super().scroll_to(y=top, animate=False, force=True, immediate=True)
        self.viewport.hold_at(top, frame)

    def correct(self, block: Block) -> None:
        self.viewport.correct(block, self.frame)

    # Scrolling

    def watch_virtual_size(self) -> None:
        """Update the scrollbar, since nothing is laid out."""
        self._follow_scrollbar()

    def _follow_scrollbar(self) -> None:
        """Update the scrollbar if that moves its thumb by at least an eighth of a cell."""
        height, total = self.scrollable_content_region.height, self.virtual_size.height
        thumb: tuple[int, ...] = (height,)
        if 0 < height < total:
            size = max(1.0, height * height / total)
            start = int((height - size) * self.scroll_y / (total - height) * _THUMB_STEPS)
            thumb = (height, start, ceil(size * _THUMB_STEPS))
        if self.is_mounted and thumb != self._thumb:
            self._thumb = thumb
            self._scroll_update(self.virtual_size)
            if self.show_vertical_scrollbar:
                self.vertical_scrollbar.position = self.scroll_y

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """React to the user's scrolling; `settle` decides which rows are drawn again."""
        self._follow_scrollbar()
        if not self._placing and round(old_value) != round(new_value):
            self.follow = new_value >= self.max_scroll_y
            self.viewport.hold_at(round(new_value), self.frame)
            self.settle()

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

    def scroll_into_view(self, block: Block) -> None:
        """Scroll as little as possible so that a block is in view, or its beginning if it is too long."""
        position = self.document.position(block)
        start, height = self.viewport.index.start(position), self.viewport.index.height(position)
        window = self.scrollable_content_region.height
        if start < self.top:
            self.scroll_to(y=start)
        elif start + min(height, window) > self.top + window:
            self.scroll_to(y=start + min(height, window) - window)

    # Selection

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return self.text_in(selection), "\n"

    def text_in(self, selection: Selection) -> str:
        """Return the text of a selection, without the decoration around it."""
        return text_between(self.document.blocks, selection, self.text_width, self.palette, margin=MARGIN)

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()

    # Drawing

    def marks(self, block: Block) -> bool:
        """Return whether a block is drawn with a mark in the margin."""
        return False

    def highlight(self, text: str) -> None:
        """Highlight a text wherever it is drawn; an empty one ends that."""
        self._highlight = text.lower()
        self._painted_for = ()
        self.refresh()

    def last_row_word(self) -> Strip | None:
        """Hook: what covers the right end of the last row, if anything."""
        return None

    def repaint(self) -> None:
        """Draw the rows again that differ from the last ones."""
        before, self._rows = self._rows, self._visible_rows()
        covered, self._word = self._word, self.last_row_word()
        width = self.size.width
        if len(before) != len(self._rows):
            self.refresh()
            return
        changed = {y for y, row in enumerate(self._rows) if row != before[y]}
        if self._rows and covered != self._word:
            changed.add(len(self._rows) - 1)
        if changed:
            self.refresh(*(Region(0, y, width, 1) for y in sorted(changed)))

    def _visible_rows(self) -> list[Row]:
        return self.viewport.rows(self.top, self.frame, self.marks)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the rows of a region; rows that were drawn before are reused, wherever they were."""
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
        if strips:
            strips[-1] = self._with_word(strips[-1], width)
        # The place of the scrollbar when there is something to scroll.
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
        """Return one row of the window."""
        width, base = self.scrollable_content_region.width, self.rich_style
        rows = self._visible_rows()
        if y >= len(rows) or rows[y].line is None:
            return Strip.blank(width, base)
        strip = self._paint(rows[y], {}, base, width)
        return self._with_word(strip, width) if y == len(rows) - 1 else strip

    def _with_word(self, strip: Strip, width: int) -> Strip:
        word = self.last_row_word()
        if word is None or word.cell_length >= width:
            return strip
        return Strip.join([strip.crop(0, width - word.cell_length), word.apply_style(self.rich_style)])

    def _paint(self, row: Row, known: dict[int, Painted], base: Style, width: int) -> Strip:
        """Return the strip of a row that has a line."""
        strip = self._plain_strip(row, known, base, width)
        return highlighted(strip, self._highlight, Style(reverse=True)) if self._highlight else strip

    def _plain_strip(self, row: Row, known: dict[int, Painted], base: Style, width: int) -> Strip:
        span = self._span_of(row)
        before = known.get(row.at)
        if before is not None and before[0] == row and before[1] == span:
            self._painted[row.at] = before
            return before[2]
        assert row.line is not None
        strip = self._with_margin(row.line, marked=row.marked)
        if span is not None:
            strip = self._with_selection(strip, *span)
        fill = row.line.background or None
        strip = strip.crop_extend(0, width, fill).apply_offsets(0, row.at).apply_style(base)
        self._painted[row.at] = (row, span, strip)
        return strip

    def _span_of(self, row: Row) -> tuple[int, int] | None:
        """Return the selected characters of a row, within the side that copying gives."""
        selection = self.text_selection
        span = selection.get_span(row.at) if selection is not None else None
        if selection is None or span is None or row.line is None or (sides := row.line.sides) is None:
            return span
        middle = sides.middle + MARGIN
        blocks = self.document.blocks
        if on_left_side(blocks, selection, self.text_width, self.palette, margin=MARGIN):
            return span[0], middle if span[1] == -1 else min(middle, span[1])
        return max(middle, span[0]), span[1]

    def _with_margin(self, line: Line, *, marked: bool) -> Strip:
        margin = Segment("▎ " if marked else "  ", self.palette.cursor if marked else self.palette.text)
        strip = line.strip.apply_style(line.background) if line.background else line.strip
        return Strip([margin, *strip], MARGIN + strip.cell_length)

    def _with_selection(self, strip: Strip, start: int, end: int) -> Strip:
        text = strip.text
        first = cell_len(text[:start])
        last = strip.cell_length if end == -1 else cell_len(text[:end])
        if first >= last:
            return strip
        style = self.screen.get_component_rich_style("screen--selection")
        if self.app.theme_variables["screen-selection-foreground"] == "transparent":
            # As a color it would be that of the background, which would hide the letters.
            style += Style(color=self.palette.text.color)
        selected = Strip([Segment(part, (own or style) + style) for part, own, _ in strip.crop(first, last)])
        return Strip.join([strip.crop(0, first), selected, strip.crop(last, strip.cell_length)])


def highlighted(strip: Strip, needle: str, style: Style) -> Strip:
    """Return the strip with each occurrence of a lower-case text in another style."""
    text = strip.text.lower()
    at = text.find(needle)
    if at < 0 or len(text) != len(strip.text):
        return strip
    parts: list[Strip] = []
    done = 0
    while at >= 0:
        start, end = cell_len(strip.text[:at]), cell_len(strip.text[: at + len(needle)])
        match = strip.crop(start, end)
        parts += [
            strip.crop(done, start),
            Strip([Segment(piece, (own or style) + style, control) for piece, own, control in match], end - start),
        ]
        done = end
        at = text.find(needle, at + len(needle))
    return Strip.join([*parts, strip.crop(done, strip.cell_length)])
