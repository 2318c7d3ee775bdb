"""Incremental rendering of unclosed fences, tables and long paragraphs, so that their length does not slow it down.

The stream passes in the text from the block's first line on, ever longer, until the block returns None because it has
closed. Then the block is rendered once as a whole.
"""

from __future__ import annotations

import re
from typing import Protocol

from ragforge_tui.tui.drawing.code import GrowingCode, run_lines
from ragforge_tui.tui.drawing.lines import Line, Run, clean, wrap
from ragforge_tui.tui.style.palette import Palette
from ragforge_tui.tui.transcript.render.markdown import inline_runs, table_rows
from ragforge_tui.tui.transcript.render.markdown_parser import parse
from ragforge_tui.tui.transcript.render.table import Cell, fitted_widths, table_lines, wanted_widths

_FENCE = re.compile(r" {0,3}(`{3,})([^`\n]*)\n| {0,3}(~{3,})([^\n]*)\n")
_LEADING_BLANKS = re.compile(r"(?:[ \t]*\n)*")
_NO_PARAGRAPH = re.compile(
    r"[ \t]*$| {0,3}(?:[>#]|[-+*](?:[ \t]|$)|\d{1,9}[.)](?:[ \t]|$)|`{3}|~{3}|[-=_*:| \t]+$)", re.MULTILINE
)
"""Start of a line that may not belong to the paragraph before it, or turn it into something else."""
_LONG_PARAGRAPH = 800
"""Characters from which on a paragraph is rendered in pieces."""
_PIECE = 500
_LONGEST_PIECE = 4_000
_WIDE = "[\u3041-\u9fff\uac00-\ud7a3]"
_BREAK = re.compile(rf"(?<=\S) (?=\S)|(?<={_WIDE})(?={_WIDE})")
"""Where a paragraph may be cut: next to no Markdown mark."""


class OpenBlock(Protocol):
    """A block that is still growing.

    Attributes:
        closed: Whether it has ended, so that nothing can continue it.
        ends_at: One of these characters must arrive before it can end or be rendered as a whole again.
    """

    closed: bool
    ends_at: str

    def extend(self, text: str, partial: str) -> list[Line] | None:
        """Return the lines so far; None if the block has closed.

        Args:
            text: All complete lines from its first on; starts with the text of the last call.
            partial: The incomplete line after them.
        """


def open_block(text: str, partial: str, width: int, palette: Palette) -> OpenBlock | None:
    """Return the growing fence, table or long paragraph at the start of a text; None for others."""
    match = _FENCE.match(text)
    if match is not None:
        return _OpenFence(match, width, palette)
    if "|" in text and text.count("\n") >= 2 and "\n\n" not in text:
        table = _OpenTable(text, width, palette)
        if table.is_table:
            return table
    if len(text) + len(partial) >= _LONG_PARAGRAPH:
        paragraph = _OpenParagraph(text + partial, width, palette)
        return paragraph if paragraph.is_paragraph else None
    return None


class _OpenFence:
    def __init__(self, opening: re.Match[str], width: int, palette: Palette) -> None:
        mark = opening[1] or opening[3]
        info = (opening[2] if opening[1] else opening[4]).split()
        self._closing = re.compile(rf"^ {{0,3}}{re.escape(mark[0])}{{{len(mark)},}}[ \t]*$", re.MULTILINE)
        self._growing = GrowingCode(info[0] if info else "", palette)
        self._width = width
        self._palette = palette
        self._taken = opening.end()
        self._drawn: list[Line] = []
        self.closed = False
        self.ends_at = mark[0]

    def extend(self, text: str, partial: str) -> list[Line] | None:
        if self._closing.search(text, self._taken):
            self.closed = True
            return None
        if fresh := text[self._taken :]:
            self._taken = len(text)
            self._drawn.extend(self._lines(self._growing.add(clean(fresh)), whole=True))
        return [*self._drawn, *(self._lines(self._growing.look(clean(partial))) if partial else [])]

    def _lines(self, runs: list[Run], *, whole: bool = False) -> list[Line]:
        lines = run_lines(runs, self._width, self._palette)
        # Nothing follows the end of the last complete line.
        return lines[:-1] if whole else lines


class _OpenTable:
    """When a row needs wider columns, all rows are rendered again; that is rare after the first few."""

    def __init__(self, text: str, width: int, palette: Palette) -> None:
        self.closed = False
        self.ends_at = "\n"
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

    def _draw(self, rows: list[list[Cell]], *, head: bool) -> None:
        self._drawn.extend(table_lines(rows, self._width, self._palette, widths=self._widths, head=head))

    def _parsed(self, body: str) -> list[list[Cell]] | None:
        units = parse(self._head + body).units
        return table_rows(units[0], self._palette) if len(units) == 1 else None


class _OpenParagraph:
    """Rendered for good up to a blank before which no inline element is open; only the rest is rendered again.

    If there is none for long, as after a lone backtick, it is cut anyway.
    """

    def __init__(self, body: str, width: int, palette: Palette) -> None:
        self.closed = False
        self.ends_at = "\n"
        self._width = width
        self._palette = palette
        start = _LEADING_BLANKS.match(body)
        self._begin = self._cut = start.end() if start is not None else 0
        self._seen = body[: self._begin]
        self._checked = self._begin
        self._drawn: list[Line] = []
        self._last: list[Run] = []
        self._tried = 0
        self.is_paragraph = not body.startswith(("    ", "\t"), self._begin)

    def extend(self, text: str, partial: str) -> list[Line] | None:
        body = text + partial
        if not body.startswith(self._seen) or not self._continues(text, partial):
            return None
        self._seen = body
        piece = body[self._cut :].rstrip()
        if len(piece) > max(_PIECE, self._tried):
            self._settle(piece)
            piece = body[self._cut :].rstrip()
        runs, _ = inline_runs(piece, self._palette)
        return [*self._drawn, *wrap([*self._last, *runs], self._width)]

    def _continues(self, text: str, partial: str) -> bool:
        """Return whether all lines belong to the paragraph."""
        at = self._checked
        while (end := text.find("\n", at)) >= 0:
            if _NO_PARAGRAPH.match(text, at):
                self.closed = not text[at:end].strip()
                return False
            at = self._checked = end + 1
        return not partial or not _NO_PARAGRAPH.match(partial)

    def _settle(self, piece: str) -> None:
        """Render as much as possible for good."""
        self._tried = 0
        blanks = [match.start() for match in _BREAK.finditer(piece)]
        for share in (0.95, 0.6, 0.3):
            if not blanks:
                break
            at = blanks[int(len(blanks) * share)]
            runs, complete = inline_runs(piece[:at], self._palette)
            if complete or len(piece) > _LONGEST_PIECE:
                *done, last = wrap([*self._last, *runs], self._width)
                self._drawn.extend(done)
                self._last = [(segment.text, segment.style or self._palette.text) for segment in last.strip]
                self._cut += at
                return
        # Not tried again before it has grown by a good part.
        self._tried = len(piece) * 5 // 4
