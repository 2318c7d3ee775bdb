"""Fences and tables that have not closed: drawn in pieces, so that they cost no more the longer they get.

Used by the streamed text, which hands over the text from the block's first line on, ever longer, until the block
gives it back by saying None. What is drawn here stands until the block closes; then it is drawn once as a whole.
"""

from __future__ import annotations

import re
from typing import Protocol

from ragforge_tui.tui.transcript.code import code_lines
from ragforge_tui.tui.transcript.lines import Line, Run
from ragforge_tui.tui.transcript.markdown import parse, table_rows
from ragforge_tui.tui.transcript.palette import Palette
from ragforge_tui.tui.transcript.table import fitted_widths, table_lines, wanted_widths

_FENCE = re.compile(r" {0,3}(`{3,})([^`\n]*)\n| {0,3}(~{3,})([^\n]*)\n")
_CHUNK = 40
"""Lines of an open fence that are highlighted together: enough for context, few enough to be cheap."""


class OpenBlock(Protocol):
    """A block that is being written.

    Attributes:
        closed: Whether it has ended by its own last line, so that nothing can go on with it.
    """

    closed: bool

    def extend(self, text: str, partial: str) -> list[Line] | None:
        """Its lines; None when it has closed.

        Args:
            text: All complete lines from its first on; begins with what it was before.
            partial: The line after them, so far.
        """


def open_block(text: str, width: int, palette: Palette) -> OpenBlock | None:
    """The fence or table a text begins with, when it may go on."""
    match = _FENCE.match(text)
    if match is not None:
        return _OpenFence(match, width, palette)
    if "|" in text and text.count("\n") >= 2 and "\n\n" not in text:
        table = _OpenTable(text, width, palette)
        return table if table.is_table else None
    return None


class _OpenFence:
    def __init__(self, opening: re.Match[str], width: int, palette: Palette) -> None:
        mark = opening[1] or opening[3]
        info = (opening[2] if opening[1] else opening[4]).split()
        self._closing = re.compile(rf"^ {{0,3}}{re.escape(mark[0])}{{{len(mark)},}}[ \t]*$", re.MULTILINE)
        self._language = info[0] if info else ""
        self._width = width
        self._palette = palette
        self._taken = opening.end()
        self._drawn: list[Line] = []
        self._code: list[str] = []
        self.closed = False

    def extend(self, text: str, partial: str) -> list[Line] | None:
        if self._closing.search(text, self._taken):
            self.closed = True
            return None
        self._code.extend(text[self._taken :].split("\n")[:-1])
        self._taken = len(text)
        while len(self._code) >= _CHUNK:
            chunk, self._code = self._code[:_CHUNK], self._code[_CHUNK:]
            self._drawn.extend(self._highlighted(chunk))
        rest = [*self._code, *([partial] if partial else [])]
        return [*self._drawn, *(self._highlighted(rest) if rest else [])]

    def _highlighted(self, lines: list[str]) -> list[Line]:
        return code_lines("\n".join(lines) + "\n", self._language, self._width, self._palette)


class _OpenTable:
    """Columns widen when a row wants it, for which all rows are drawn again; that is rare after the first few."""

    def __init__(self, text: str, width: int, palette: Palette) -> None:
        self.closed = False
        self._head = "".join(text.splitlines(keepends=True)[:2])
        self._width = width
        self._palette = palette
        self._taken = len(self._head)
        self._rows = self._parsed("") or []
        self._wanted = wanted_widths(self._rows)
        self._widths = fitted_widths(self._wanted, width)
        self._drawn: list[Line] = []
        self.is_table = bool(self._rows) and self._widths is not None
        if self.is_table:
            self._draw(self._rows, head=True)

    def extend(self, text: str, partial: str) -> list[Line] | None:
        fresh = text[self._taken :]
        if not fresh:
            return list(self._drawn)
        rows = self._parsed(fresh)
        if rows is None or "\n\n" in text[self._taken - 1 :]:
            return None
        self._taken = len(text)
        self._rows.extend(rows[1:])
        self._wanted = wanted_widths(rows, self._wanted)
        widths = fitted_widths(self._wanted, self._width)
        if widths is None:
            return None
        if widths == self._widths:
            self._draw(rows[1:], head=False)
        else:
            self._widths = widths
            self._drawn = []
            self._draw(self._rows, head=True)
        return list(self._drawn)

    def _draw(self, rows: list[list[list[Run]]], *, head: bool) -> None:
        self._drawn.extend(table_lines(rows, self._width, self._palette, widths=self._widths, head=head))

    def _parsed(self, body: str) -> list[list[list[Run]]] | None:
        units = parse(self._head + body).units
        return table_rows(units[0], self._palette) if len(units) == 1 else None
