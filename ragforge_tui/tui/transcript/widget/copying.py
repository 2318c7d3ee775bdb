"""Text for the clipboard: selected lines without decoration, and the code in a message.

A place in the transcript is (block, line of the block), encoded as the single number that Textual's selections keep
for a line: a selection survives corrected heights and earlier turns inserted above it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from textual.selection import Selection

from ragforge_tui.tui.style.palette import Palette
from ragforge_tui.tui.transcript.model.blocks import Block

LINES_PER_BLOCK = 1 << 24


def text_between(blocks: Sequence[Block], selection: Selection, width: int, palette: Palette, *, margin: int) -> str:
    """Return the text of a selection without soft line breaks, gutters and margins."""
    if not blocks:
        return ""
    first = 0
    if selection.start is not None:
        serial = selection.start.y // LINES_PER_BLOCK
        first = bisect_left(blocks, serial, key=lambda block: block.serial)
    last = blocks[-1].serial if selection.end is None else selection.end.y // LINES_PER_BLOCK
    parts: list[str] = []
    join = ""
    for block in blocks[first:]:
        if block.serial > last:
            break
        lines, top = block.lines(width, palette), block.serial * LINES_PER_BLOCK
        # Only selected lines are touched, since that makes the lines of a long text.
        begin = 0 if selection.start is None else max(0, selection.start.y - top)
        stop = len(lines) if selection.end is None else min(len(lines), selection.end.y - top + 1)
        for offset in range(begin, stop):
            span = selection.get_span(top + offset)
            if span is None:
                continue
            line = lines[offset]
            start, end = max(0, span[0] - margin), span[1]
            text = line.strip.text
            cut = text[max(line.gutter, start) : len(text) if end == -1 else max(0, end - margin)]
            # A soft line break is replaced by its join.
            parts += [join, cut.rstrip() if line.join == "\n" else cut]
            join = line.join
    return "".join(parts).strip("\n")


def code_of(markdown: str) -> list[str]:
    """Return the contents of the fences of a text, in order."""
    from ragforge_tui.tui.transcript.render.markdown_parser import clean_source, parse

    units = parse(clean_source(markdown)).units
    return [token.content for unit in units for token in unit.tokens if token.type == "fence"]
