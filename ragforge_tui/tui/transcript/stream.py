"""Streaming Markdown: finished units are rendered once, only the open end again and again.

`add` only stores a piece; `advance` does the work and may run in a thread. A fence, table or long paragraph would make
the open end long, so it is rendered incrementally and once more as a whole when it closes. Pure.
"""

from __future__ import annotations

import re
import threading
from typing import Protocol

from ragforge_tui.shared.sanitize import plain_length
from ragforge_tui.tui.drawing.code import GrowingCode, code_label, run_lines
from ragforge_tui.tui.drawing.lines import BLANK, Line, Run, clean, clip, wrap
from ragforge_tui.tui.drawing.palette import Palette
from ragforge_tui.tui.transcript import markdown
from ragforge_tui.tui.transcript.tables import Cell, Table

_FENCE = re.compile(r" {0,3}(`{3,})([^`\n]*)\n| {0,3}(~{3,})([^\n]*)\n")
_LEADING_BLANKS = re.compile(r"(?:[ \t]*\n)*")
_NO_PARAGRAPH = re.compile(
    r"[ \t]*$| {0,3}(?:[>#]|[-+*](?:[ \t]|$)|\d{1,9}[.)](?:[ \t]|$)|`{3}|~{3}|[-=_*:| \t]+$)", re.MULTILINE
)
"""Start of a line that may not belong to the paragraph before it, or turn it into something else."""
_ROW = re.compile(r" {0,3}\|")
_BELOW_HEAD = re.compile(r"[ \t|:-]*")
"""The line below a table's head, as far as it has come."""
_LONGEST_HEAD = 500
_LONG_PARAGRAPH = 800
"""Characters from which on a paragraph is rendered in pieces."""
_PIECE = 500
_LONGEST_PIECE = 4_000
_WIDE = "[\u3041-\u9fff\uac00-\ud7a3]"
_BREAK = re.compile(rf"(?<=\S) (?=\S)|(?<={_WIDE})(?={_WIDE})")
"""Places to cut a paragraph: next to no Markdown mark."""


class OpenBlock(Protocol):
    """A block that is still growing.

    Attributes:
        closed: Whether it has ended, so that nothing can continue it.
        ends_at: One of these characters must arrive before it can end or be rendered as a whole again.
        unsettled: Characters that are rendered again each time.
    """

    closed: bool
    ends_at: str
    unsettled: int

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
        language = info[0] if info else ""
        self._growing = GrowingCode(language, palette)
        self._label = code_label(clip(language, markdown.LANGUAGE_CELLS), palette)
        self._width = width
        self._palette = palette
        self._taken = opening.end()
        self._drawn: list[Line] = []
        self.closed = False
        self.ends_at = mark[0]
        self.unsettled = 0

    def extend(self, text: str, partial: str) -> list[Line] | None:
        if self._closing.search(text, self._taken):
            self.closed = True
            return None
        if fresh := text[self._taken :]:
            self._taken = len(text)
            self._drawn.extend(self._lines(self._growing.add(clean(fresh)), whole=True))
        self.unsettled = len(partial)
        return [*self._drawn, *(self._lines(self._growing.peek(clean(partial))) if partial else [])]

    def _lines(self, runs: list[Run], *, whole: bool = False) -> list[Line]:
        lines = run_lines(runs, self._width, self._palette, label=() if self._drawn else self._label)
        # Nothing follows the end of the last complete line.
        return lines[:-1] if whole else lines


class _OpenTable:
    def __init__(self, text: str, width: int, palette: Palette) -> None:
        self.closed = False
        self.ends_at = "\n"
        self.unsettled = 0
        self._head = "".join(text.splitlines(keepends=True)[:2])
        self._palette = palette
        self._taken = len(self._head)
        self._table = Table(width, palette)
        head = self._parsed("") or []
        self._table.add(head)
        self.is_table = bool(head)

    def extend(self, text: str, partial: str) -> list[Line] | None:
        if fresh := text[self._taken :]:
            rows = self._parsed(fresh)
            if rows is None or "\n\n" in text[self._taken - 1 :]:
                return None
            self._taken = len(text)
            self._table.add(rows[1:])
        return list(self._table.lines)

    def _parsed(self, body: str) -> list[list[Cell]] | None:
        units = markdown.parse(self._head + body).units
        return markdown.table_rows(units[0], self._palette) if len(units) == 1 else None


class _OpenParagraph:
    """Rendered for good up to a blank before which no inline element is open; only the rest is rendered again.

    If there is none for long, as after a lone backtick, it is cut anyway, even within a word.
    """

    def __init__(self, body: str, width: int, palette: Palette) -> None:
        self.closed = False
        self.ends_at = "\n"
        self.unsettled = 0
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
        self.unsettled = len(piece)
        runs, _ = markdown.inline_runs(piece, self._palette)
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
        if not blanks and len(piece) > _LONGEST_PIECE:
            blanks = [len(piece) - _PIECE]
        for share in (0.95, 0.6, 0.3):
            if not blanks:
                break
            at = blanks[int(len(blanks) * share)]
            runs, complete = markdown.inline_runs(piece[:at], self._palette)
            if complete or len(piece) > _LONGEST_PIECE:
                *done, last = wrap([*self._last, *runs], self._width)
                self._drawn.extend(done)
                self._last = [(segment.text, segment.style or self._palette.text) for segment in last.strip]
                self._cut += at
                return
        # Not tried again before it has grown by a good part.
        self._tried = len(piece) * 5 // 4


_ENDED_BY_BLANK_LINE = frozenset({"paragraph_open", "heading_open", "hr", "table_open"})
_LIGHT = 1_500
"""Characters that render faster than a thread would start."""
_LIGHT_BLOCK = 4_000


class StreamedText:
    """Markdown that arrives in pieces, rendered for one width and palette."""

    def __init__(self, width: int, palette: Palette) -> None:
        self.width = width
        self.palette = palette
        self._pending: list[str] = []
        self._raw = ""
        self._line = ""  # With the line before it, as long as the two may be the start of a table.
        self._tail = ""
        self._grown = False
        self._list: markdown.OpenList | None = None
        self._block: OpenBlock | None = None
        self._closed: list[Line] = []
        self._lock = threading.Lock()
        self.lines: list[Line] = []
        """The lines of the last rendering; replaced, never changed."""
        self.complete = False
        """Whether they are those of the whole text, as `finish` renders it."""

    def add(self, text: str) -> None:
        self._pending.append(text)

    @property
    def light(self) -> bool:
        """Whether the next `advance` is fast; it is not while another thread runs one."""
        if self._lock.locked():
            return False
        came = sum(map(len, self._pending))
        size = len(self._tail) + len(self._line)
        block = self._block
        if block is None:
            return came + size <= _LIGHT
        if size > _LIGHT_BLOCK and any(mark in piece for piece in self._pending for mark in block.ends_at):
            return False
        return came + block.unsettled <= _LIGHT

    @property
    def ends_light(self) -> bool:
        """Whether `finish` is fast."""
        size = sum(map(len, self._pending)) + len(self._tail) + len(self._line)
        return not self._lock.locked() and size <= _LIGHT

    def advance(self) -> None:
        """Render what has arrived since the last call."""
        with self._lock:
            self._take()
            partial = self._line + markdown.clean_source(self._raw.removesuffix("\r"))
            opened = self._open_end("" if self._may_be_head(partial) else partial)
            self.lines = [*self._closed, *opened]

    def finish(self) -> None:
        with self._lock:
            self._take()
            self._tail += self._line + markdown.clean_source(self._raw)
            self._line = self._raw = ""
            self.lines = [*self._closed, *self._draw(markdown.parse(self._tail, self._list).units)]
            self.complete = True

    def _take(self) -> None:
        """Clean what has arrived; an incomplete escape sequence at its end waits for the rest."""
        count = len(self._pending)
        raw = self._raw + "".join(self._pending[:count])
        del self._pending[:count]
        at = raw.rfind("\n") + 1
        if at:
            self._tail += self._line + markdown.clean_source(raw[:at])
            self._line, raw = "", raw[at:]
            self._grown = True
            begin = self._tail.rfind("\n", 0, -1) + 1
            last, self._tail = self._tail[begin:], self._tail[:begin]
            if self._may_be_head(last):
                self._line = last
            else:
                self._tail += last
        plain = plain_length(raw)
        self._line += raw[:plain]
        self._raw = raw[plain:]
        head, end, below = self._line.rpartition("\n")
        if end and not (_BELOW_HEAD.fullmatch(below) and self._may_be_head(self._line)):
            self._tail += head + end
            self._line, self._grown = below, True

    def _may_be_head(self, line: str) -> bool:
        """Return whether what follows the complete lines may turn out to be the head of a table, whose marks are
        not for the reader."""
        if isinstance(self._block, _OpenFence) or not _ROW.match(line) or len(line) > _LONGEST_HEAD:
            return False
        return not _ROW.match(self._tail, self._tail.rfind("\n", 0, -1) + 1)

    def _draw(self, units: list[markdown.Unit]) -> list[Line]:
        lines: list[Line] = []
        for unit in units:
            lines.extend(markdown.render_unit(unit, self.width, self.palette, first=not self._closed and not lines))
        return lines

    def _commit(self, *, last: bool = False) -> None:
        """Render and cut off the units of the complete lines; the last one may continue, so only if `last` is set."""
        units, starts, lists = markdown.parse(self._tail, self._list)
        # A paragraph followed by a blank line is complete, a list may continue.
        ended = bool(units) and self._tail.endswith("\n\n") and units[-1].tokens[0].type in _ENDED_BY_BLANK_LINE
        if ended or (last and len(units) == 1):
            self._closed.extend(self._draw(units))
            self._tail, self._list = "", None
        elif len(units) > 1:
            self._closed.extend(self._draw(units[:-1]))
            offset = 0
            for _ in range(starts[-1]):
                offset = self._tail.index("\n", offset) + 1
            self._tail, self._list = self._tail[offset:], lists[-1]

    def _open_end(self, partial: str) -> list[Line]:
        """Commit the complete units and render the rest."""
        block = self._block
        lines = block.extend(self._tail, partial) if block is not None else None
        if lines is None:
            if self._grown:
                self._commit(last=block is not None and block.closed)
                self._grown = False
            block = self._block = open_block(self._tail, partial, self.width, self.palette)
            lines = block.extend(self._tail, partial) if block is not None else None
        if lines is None:
            if block is not None and block.closed:
                self._commit(last=True)
            self._block = None
            return self._draw(markdown.parse(self._tail + partial, self._list).units)
        return [BLANK, *lines] if self._closed and lines else lines
