"""What the terminal shows, cell by cell, and the shortest text that changes it into what the app has drawn.

Textual sends the whole regions of the widgets that were refreshed, however little in them is new. `ShownCells`
remembers what was sent and passes on only the cells that differ: a tenth of the bytes, which a slow line, a screen
reader and `script` feel. A wrong cell is worse than a byte, so whatever may have changed the terminal behind its back
(another size, the shell, an editor) has to call `forget`, after which everything that is drawn is sent.

How many cells a character takes is not agreed between terminals except for the letters and signs in `_AGREED`. A piece
of a line with any other character is one unit: sent whole, with everything to its right, or not at all.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import compress, groupby, pairwise, repeat
from operator import itemgetter, ne
from typing import Any, NamedTuple, TypeAlias

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.console import COLOR_SYSTEMS, Console
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.strip import Strip

FEW_LINES = 4
"""Changed lines among which none is looked for that has moved."""
FEW_CELLS = 200
"""The same for changed cells."""
KNOWN = 200
"""Pieces of lines whose cells are remembered; 8 kB each."""
NEAR = 4
"""Cells between two changes that cost no more than moving the cursor over them."""
_AGREED = re.compile(
    "[ -~\xa0-\xac\xae-\u02ff\u0370-\u0482\u048a-\u0558\u1e00-\u1eff"
    "\u2010-\u2027\u2030-\u205e\u20a0-\u20bf\u2100-\u27bf\u2800-\u2bff]*"
)
"""Letters and signs without zero-width ones; wide ones among them are found by their width."""
_ERASES_IN_COLOR = re.compile("(xterm(?!-kitty)|alacritty|foot|konsole|linux|vte)")
"""Names of terminals that erase to the background colour that is set, as their terminfo has it (bce)."""
_STYLED = re.compile(r"(\x1b\]8;(?P<link>[^\x1b]*)\x1b\\)?(\x1b\[(?P<codes>[\d;]*)m)?")
_CODE = re.compile(r"[34]8;(?:2;\d+;\d+|5);\d+|\d+")
_OFF = {"1": "22", "2": "22", "3": "23", "4": "24", "5": "25", "6": "25", "7": "27", "8": "28", "9": "29"} | {
    "21": "24",
    "51": "54",
    "52": "54",
    "53": "55",
}
"""What turns attributes off."""


class Look(NamedTuple):
    """How a cell is drawn, in parts of escape sequences.

    Attributes:
        attributes: Bold, underline and the like.
        ink: Foreground colour.
        paper: Background colour.
        link: Parameters and address of a hyperlink.
    """

    attributes: str = ""
    ink: str = ""
    paper: str = ""
    link: str = ""


NO_LOOK = Look()
Cell: TypeAlias = "tuple[str, Look] | tuple[str, int]"
"""A character and its look; or a piece that is sent whole, with the number of the cell in it."""
Cells: TypeAlias = "Sequence[Cell | None]"
"""Cells of a line; None where it is not known what the terminal shows."""
BLANK: Cell = (" ", NO_LOOK)
_LOOK_OF: Callable[[Any], Any] = itemgetter(1)


@lru_cache(4096)
def _looks(styled: str) -> tuple[Look, Look]:
    """Return the look of letters and of blanks, whose ink is not seen, in an empty text that Textual has styled."""
    found = _STYLED.match(styled)
    link, codes = (found["link"] or "", found["codes"] or "") if found else ("", "")
    parts: dict[str, list[str]] = {"attributes": [], "ink": [], "paper": []}
    for code in _CODE.findall(codes):
        number = int(code.partition(";")[0])
        is_ink, is_paper = 30 <= number < 40 or 90 <= number < 98, 40 <= number < 50 or 100 <= number < 108
        parts["ink" if is_ink else "paper" if is_paper else "attributes"].append(code)
    look = Look(link=link, **{name: ";".join(part) for name, part in parts.items()})
    return look, look if look.attributes or look.link else Look(paper=look.paper)


def _cells(strip: Strip, rendered: str, colors: ColorSystem, same: dict[Cell, Cell]) -> list[Cell]:
    """Return the cells of a piece of a line: each by itself, or as parts of the whole if its width is disputed."""
    cells: list[Cell] = []
    for text, style, control in strip:
        if control or _AGREED.fullmatch(text) is None or not (text.isascii() or cell_len(text) == len(text)):
            break
        letters, blanks = _looks("" if style is None else Strip.render_style(style, "", colors))
        drawn = list(zip(text, repeat(blanks if text.isspace() else letters)))
        cells += map(same.setdefault, drawn, drawn)
    else:
        if len(cells) == strip.cell_length:
            return cells
    return list(zip(repeat(rendered), range(strip.cell_length)))


class _Row:
    """One line of the terminal.

    Attributes:
        cells: What it shows; None where that is not known.
        pieces: Text and cells of the pieces it was drawn from, by column: the same ones need not be compared.
    """

    def __init__(self, width: int) -> None:
        self.cells: list[Cell | None] = [None] * width
        self.pieces: dict[int, tuple[Strip, Sequence[Cell]]] = {}

    def put(self, column: int, strip: Strip, cells: Sequence[Cell]) -> None:
        """Note that a piece is shown from a column on."""
        end = column + len(cells)
        for other, (_, shown) in list(self.pieces.items()):
            if other < end and other + len(shown) > column:
                del self.pieces[other]
        self.pieces[column] = strip, cells
        self.cells[column:end] = cells[: len(self.cells) - column]


class _Writer:
    """Writes cells, and moves the cursor and changes the look only where needed."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._look = NO_LOOK
        self._x = self._y = -1

    def move(self, x: int, y: int) -> None:
        """Move the cursor."""
        if y == self._y and x > self._x >= 0:
            self._parts.append(f"\x1b[{x - self._x}C" if x - self._x > 1 else "\x1b[C")
        elif x == 0 and y == self._y + 1 and y:
            self._parts.append("\r\n")
        elif (x, y) != (self._x, self._y):
            self._parts.append(f"\x1b[{y + 1};{x + 1}H")
        self._x, self._y = x, y

    def cells(self, x: int, y: int, cells: Cells, *, alone: bool) -> None:
        """Write cells from a place on; of those that are parts of a piece, the piece.

        Args:
            alone: There are no such parts.
        """
        for kind, group in groupby(cells, _LOOK_OF if alone and None not in cells else _kind):
            same = list(group)
            if isinstance(kind, Look):
                text = "".join([cell[0] for cell in same if cell])
                self.move(x, y)
                self._use(kind, blank=text.isspace())
                self._parts.append(text)
                self._x += len(text)
            elif kind:
                for start in (at for at, cell in enumerate(same, x) if cell and cell[1] == 0):
                    self.move(start, y)
                    self._use(NO_LOOK)
                    self._parts.append(kind)
                    self._x = -1
            x += len(same)

    def erase(self, look: Look) -> None:
        """Make the rest of the line blank."""
        self._use(look, blank=True)
        self._parts.append("\x1b[K")

    def scroll(self, top: int, bottom: int, by: int) -> None:
        """Move lines up, or down by a negative number, before anything is written; lines that come in are blank."""
        self._parts.append(f"\x1b[{top + 1};{bottom + 1}r\x1b[{top + 1}H\x1b[{abs(by)}{'M' if by > 0 else 'L'}\x1b[r")

    def text(self) -> str:
        """Return everything written, with the terminal's look as it was before."""
        self._use(NO_LOOK)
        return "".join(self._parts)

    def _use(self, look: Look, *, blank: bool = False) -> None:
        before = self._look
        if blank and not (look.ink or look.attributes or look.link or before.attributes or before.link):
            look = look._replace(ink=before.ink)
        if look == before:
            return
        self._look = look
        if look.link != before.link:
            self._parts.append(f"\x1b]8;{look.link or ';'}\x1b\\")
        codes = list(_changed_attributes(before.attributes, look.attributes))
        if look.ink != before.ink:
            codes.append(look.ink or "39")
        if look.paper != before.paper:
            codes.append(look.paper or "49")
        if codes:
            self._parts.append(f"\x1b[{'' if look[:3] == NO_LOOK[:3] else ';'.join(codes)}m")


@lru_cache(256)
def _changed_attributes(before: str, after: str) -> Sequence[str]:
    """Return the codes that turn attributes off and on."""
    had, wanted = before.split(";") if before else [], after.split(";") if after else []
    off = {_OFF[code] for code in had if code not in wanted}
    return [*sorted(off), *(code for code in wanted if code not in had or _OFF[code] in off)]


class ShownCells:
    """What the terminal shows.

    Args:
        term: Name of the terminal, as in `TERM`.
    """

    def __init__(self, term: str) -> None:
        self._erases_in_color = _ERASES_IN_COLOR.match(term) is not None
        self._rows: list[_Row] = []
        self._width = 0
        self._known: dict[str, list[Cell]] = {}
        self._same: dict[Cell, Cell] = {}
        """Each cell once: the garbage collector would look through tens of thousands."""
        self._has_disputed = False
        """Whether any cells were parts of a piece that is sent whole; most users never see one."""

    def forget(self) -> None:
        """Take nothing for shown any more."""
        self._rows = []

    def only_changes(self, renderable: Any) -> Any:
        """Return what sends of an update only the cells that differ; anything but an update as it is."""
        if isinstance(renderable, LayoutUpdate | ChopsUpdate):
            return _Changes(self, renderable)
        if renderable is not None:
            self.forget()
        return renderable

    def update(self, update: LayoutUpdate | ChopsUpdate, console: Console) -> str:
        """Return the text that makes the terminal show an update, and note it as shown."""
        width, height = _size(update)
        if width != self._width or height != len(self._rows):
            self._width, self._rows = width, [_Row(width) for _ in range(height)]
        before: dict[int, Cells] = {}
        for y, x, strip in _pieces(update):
            row = self._rows[y]
            shown, shown_cells = row.pieces.get(x, (None, None))
            if shown is strip:
                continue
            cells = self._cells_of(strip, console)
            if cells is shown_cells:
                row.pieces[x] = strip, cells
                continue
            if y not in before:
                before[y] = row.cells.copy()
            row.put(x, strip, cells)
        differ = {y: found for y, old in before.items() if (found := _differences(old, self._rows[y].cells))}
        writer = _Writer()
        if len(differ) >= FEW_LINES and sum(map(len, differ.values())) >= FEW_CELLS:
            moved = self._scroll(writer, before, differ)
            before |= moved
            differ |= {y: _differences(old, self._rows[y].cells) for y, old in moved.items()}
        for y, indexes in sorted(differ.items()):
            if indexes:
                self._draw(writer, y, before[y], indexes)
        return writer.text()

    def _cells_of(self, strip: Strip, console: Console) -> list[Cell]:
        """Return the cells of a piece, for the same text the same ones: widgets draw their lines again and again."""
        rendered = strip.render(console)
        if (cells := self._known.get(rendered)) is None:
            if len(self._known) >= KNOWN:
                self._known.clear()
                self._same.clear()
            colors = COLOR_SYSTEMS.get(console.color_system or "", ColorSystem.TRUECOLOR)
            cells = self._known[rendered] = _cells(strip, rendered, colors, self._same)
            self._has_disputed = self._has_disputed or any(_number(cell) >= 0 for cell in cells[:1])
        return cells

    def _scroll(
        self, writer: _Writer, before: Mapping[int, Cells], differ: Mapping[int, Sequence[int]]
    ) -> Mapping[int, Cells]:
        """Move lines that have only changed their place, if that leaves less than half of the cells to send.

        Args:
            before: Lines of the update, as they were shown.
            differ: The cells that differ, by line.

        Returns:
            The lines that are shown otherwise now.
        """
        places = {text: y for y, cells in before.items() if (text := _text(cells))}
        moved = {y: places[text] - y for y in differ if (text := _text(self._rows[y].cells)) in places}
        by = max(Counter(moved.values()).items(), key=itemgetter(1), default=(0, 0))[0]
        if not by:
            return {}
        ends = [end for y, how_far in moved.items() if how_far == by for end in (y, y + by)]
        lines = range(min(ends), max(ends) + 1)
        now = {y: self._rows[y].cells for y in lines}
        if any(None in cells for cells in now.values()) or (self._has_disputed and any(map(_has_parts, now.values()))):
            return {}  # What cannot be sent again has to stay where it is.
        old = {y: before.get(y, cells) for y, cells in now.items()}
        after: dict[int, Cells] = {y: old.get(y + by, [BLANK] * self._width) for y in lines}
        sent = sum(len(_differences(cells, now[y])) for y, cells in after.items())
        if 2 * sent > sum(len(differ.get(y, ())) for y in lines):
            return {}
        writer.scroll(lines[0], lines[-1], by)
        return after

    def _draw(self, writer: _Writer, y: int, before: Cells, differ: Sequence[int]) -> None:
        """Write the cells of a line that differ."""
        cells = self._rows[y].cells
        parts = (index for index in differ if _number(before[index]) + _number(cells[index]) > -2)
        if self._has_disputed and (disputed := next(parts, None)) is not None:
            start = disputed - max(_number(cells[disputed]), 0)
            differ = [*(index for index in differ if index < start), *range(start, self._width)]
        blank, last = self._width, cells[-1]
        if last and cells[differ[-1]] == last:
            end = self._end_of_text(cells)
            blank = next((index for index in differ if index >= end), self._width)
            if differ[-1] - blank < NEAR:
                blank = self._width
        for start, stop in _runs([index for index in differ if index < blank]):
            writer.cells(start, y, cells[start:stop], alone=not self._has_disputed)
        if blank < self._width and last and isinstance(last[1], Look):
            writer.move(blank, y)
            writer.erase(last[1])

    def _end_of_text(self, cells: Cells) -> int:
        """Return where the blank begins that erasing the rest of a line makes."""
        end, last = self._width, cells[-1]
        if last and last[0] == " " and isinstance(look := last[1], Look) and self._erases(look):
            while end and cells[end - 1] == last:
                end -= 1
        return end

    def _erases(self, look: Look) -> bool:
        """Whether erasing leaves blanks of that look."""
        return look == NO_LOOK or (self._erases_in_color and look == Look(paper=look.paper))


def _text(cells: Cells) -> str:
    """Return what a line is recognized by in another place: its text, without the last cells and their scrollbar."""
    return "".join([cell[0] for cell in cells[:-2] if cell]).strip()


def _differences(before: Cells, after: Cells) -> list[int]:
    """Return which cells differ."""
    return [] if before == after else list(compress(range(len(after)), map(ne, before, after)))


def _has_parts(cells: Cells) -> bool:
    """Whether a line has parts of a piece whose beginning is covered: they cannot be sent again."""
    return any(
        _number(cell) > 0 and (before is None or cell is None or before != (cell[0], _number(cell) - 1))
        for before, cell in pairwise([None, *cells])
    )


def _kind(cell: Cell | None) -> Look | str | None:
    """Return what cells that are written together have in common: their look, or the whole they are part of."""
    return cell and (cell[1] if isinstance(cell[1], Look) else cell[0])


def _number(cell: Cell | None) -> int:
    """Return the number of a cell in a piece that is sent whole; -1 for one that is sent by itself."""
    return cell[1] if cell and isinstance(cell[1], int) else -1


class _Changes(CompositorUpdate):
    """An update whose text has only what differs; it is asked for that text once, when it is written."""

    def __init__(self, shown: ShownCells, update: LayoutUpdate | ChopsUpdate) -> None:
        self._shown = shown
        self._update = update

    def render_segments(self, console: Console) -> str:
        """Return the text for the terminal."""
        return self._shown.update(self._update, console)


def _size(update: LayoutUpdate | ChopsUpdate) -> tuple[int, int]:
    """Return the size of the screen that an update is of."""
    if isinstance(update, LayoutUpdate):
        return update.region.right, update.region.bottom
    return update.chop_ends[0][-1], len(update.chop_ends)


def _pieces(update: LayoutUpdate | ChopsUpdate) -> Iterator[tuple[int, int, Strip]]:
    """Yield line, column and text of the pieces that Textual would send, in its order."""
    if isinstance(update, LayoutUpdate):
        for y, line in enumerate(update.strips, update.region.y):
            x = update.region.x
            for strip in line:
                yield y, x, strip
                x += strip.cell_length
        return
    for y, x1, x2 in update.spans:
        for end, (x, piece) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            if piece is not None and x < x2 and end > x1:
                yield y, x, piece if end <= x2 else piece.crop(0, x2 - x)


def _runs(indexes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield start and end of the stretches that hold the indexes, joined where they are near."""
    if indexes and indexes[-1] - indexes[0] - len(indexes) < NEAR:
        yield indexes[0], indexes[-1] + 1
        return
    start = end = -1
    for index in indexes:
        if start >= 0 and index - end > NEAR:
            yield start, end
            start = -1
        if start < 0:
            start = index
        end = index + 1
    if start >= 0:
        yield start, end
