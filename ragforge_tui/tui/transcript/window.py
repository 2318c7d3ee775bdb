"""A window of lines over the blocks of a document: what is visible is drawn, and what is read stays in place.

Blocks that were never seen have an estimated height; when they come into view they are drawn and the height is
corrected in such a way that what is being read stays where it is. The base of `widget.py`, which adds what the
person and the screen do with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.segment import Segment
from textual.geometry import Size
from textual.reactive import var
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ragforge_tui.tui.transcript.blocks import Block
from ragforge_tui.tui.transcript.copying import LINES_PER_BLOCK
from ragforge_tui.tui.transcript.document import Document, Shown
from ragforge_tui.tui.transcript.index import LineIndex
from ragforge_tui.tui.transcript.lines import Line
from ragforge_tui.tui.transcript.palette import Palette, palette_of

if TYPE_CHECKING:
    from textual._animator import EasingFunction
    from textual._types import AnimationLevel, CallbackType

MARGIN = 2
_USUAL_WIDTH = 80


class BlockWindow(ScrollView):
    """The geometry and the drawing of a document's blocks.

    `follow` says whether the end is kept in view: true until the person scrolls up, and again at the end.
    """

    follow = var(True)

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
            self._cursor = None
        self._settle()

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
        self.refresh()

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
        if self._hold is not None:
            position = self.document.position(self._hold[0])
            if position >= 0:
                return position, self._hold[1]
        return 0, 0

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

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """The person scrolled, unless we did ourselves."""
        super().watch_scroll_y(old_value, new_value)
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

    def render_line(self, y: int) -> Strip:
        """One line of the window."""
        width = self.scrollable_content_region.width
        base = self.rich_style
        line_number = round(self.scroll_y) + y
        if line_number >= self._index.total:
            return Strip.blank(width, base)
        position, offset = self._index.find(line_number)
        block = self.document.blocks[position]
        lines = block.lines(self._text_width, self.palette)
        if offset >= len(lines):
            return Strip.blank(width, base)
        at = block.serial * LINES_PER_BLOCK + offset
        strip = self._with_margin(lines[offset], marked=block is self._cursor and offset >= block.gap)
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(at)) is not None:
            strip = self._with_selection(strip, *span)
        return strip.crop_extend(0, width, None).apply_offsets(0, at).apply_style(base)

    def _with_margin(self, line: Line, *, marked: bool) -> Strip:
        margin = Segment("▎ " if marked else "  ", self.palette.cursor if marked else self.palette.text)
        return Strip([margin, *line.strip], MARGIN + line.strip.cell_length)

    def _with_selection(self, strip: Strip, start: int, end: int) -> Strip:
        text = strip.text
        first = cell_len(text[:start])
        last = strip.cell_length if end == -1 else cell_len(text[:end])
        if first >= last:
            return strip
        style = self.screen.get_component_rich_style("screen--selection")
        selected = Strip([Segment(part, (own or style) + style) for part, own, _ in strip.crop(first, last)])
        return Strip.join([strip.crop(0, first), selected, strip.crop(last, strip.cell_length)])
