"""Rows of the context screen: sections with their share of the budget, and their items with the source.

The lines are pure; `ContextRows` draws them.
"""

from __future__ import annotations

import msgspec
from rich.cells import cell_len

from ragforge_tui.export.context import item_kind, item_turns
from ragforge_tui.shared.records import ContextItem, ContextRecord, ContextSection
from ragforge_tui.shared.requests.tree import SentRequest
from ragforge_tui.tui.drawing.lines import Run, clip, one_line
from ragforge_tui.tui.memory.tree_list import TreeList
from ragforge_tui.tui.style.palette import Palette
from ragforge_tui.tui.widgets.status_bar import count

BAR_CELLS = 8
_PREVIEW_CELLS = 16
"""Cells of an item's text that are shown next to its source."""
_PREVIEW_CHARS = 400


class ContextLine(msgspec.Struct, frozen=True):
    """A section, or an item of one.

    Attributes:
        share: The section's part of the budget, from 0 to 1.
        open: Whether the section's items are listed; None if it has none.
    """

    key: str
    section: ContextSection
    item: ContextItem | None = None
    share: float = 0.0
    open: bool | None = None


def lines_of(record: ContextRecord, folded: set[str]) -> list[ContextLine]:
    """Return the non-empty sections in the order they were sent."""
    found: list[ContextLine] = []
    whole = max(record.budget, record.tokens, 1)
    for place, section in enumerate(record.sections):
        if not section.items and not section.left_out:
            continue
        key = f"s{place}"
        opened = key not in folded if section.items else None
        found.append(ContextLine(key, section, share=section.tokens / whole, open=opened))
        if opened:
            found += [ContextLine(f"{key}.{n}", section, item) for n, item in enumerate(section.items)]
    return found


def bar(share: float, cells: int = BAR_CELLS) -> tuple[str, str]:
    """Return a bar of two parts, the filled one first; any share above zero fills at least one cell."""
    filled = min(cells, max(round(share * cells), 1 if share > 0 else 0))
    return "▰" * filled, "▱" * (cells - filled)


def percent(share: float) -> str:
    """Return a share in percent; a share above zero is never shown as zero."""
    return "<1%" if 0 < share < 0.005 else f"{share:.0%}"


def headline(sent: SentRequest) -> str:
    """Return turn, request number, model, tokens and the form of the history."""
    record = sent.record
    which = f" · request {sent.number} of {sent.count}" if sent.count > 1 else ""
    replies = f" · for {sent.replies} replies" if sent.replies > 1 else ""
    budget = f" of {count(record.budget)}" if record.budget else ""
    how = "whole conversation" if record.whole else record.strategy
    return (
        f"Turn {record.turn_index} of {sent.last_turn}{which} · {count(record.tokens)}{budget} tokens · {how}"
        f" · {record.model}{replies}"
    )


def source_of(item: ContextItem, own: str) -> tuple[str, int, int] | None:
    """Return the conversation, first and last turn of an item's source; None if it is no turn."""
    if not item.turn_index:
        return None
    return item.conversation_id or own, item.turn_index, max(item.last_turn, item.turn_index)


class ContextRows(TreeList[ContextLine]):
    """The list of sections and items."""

    def key_of(self, line: ContextLine) -> str:
        return line.key

    def draw(self, line: ContextLine, width: int, palette: Palette) -> list[Run]:
        """Draw the text on the left and the size on the right."""
        if line.item is None:
            return _section_runs(line, width, palette)
        return _item_runs(line.item, width, palette)


def _section_runs(line: ContextLine, width: int, palette: Palette) -> list[Run]:
    section = line.section
    filled, empty = bar(line.share)
    budget = f" of {count(section.budget)}" if section.budget else ""
    right: list[Run] = [(f"{section.left_out} left out  ", palette.running)] if section.left_out else []
    right += [
        (filled, palette.you),
        (empty, palette.faint),
        (f" {percent(line.share):>4} {f'{count(section.tokens)}{budget}':>12}", palette.muted),
    ]
    arrow = "▾ " if line.open else "▸ " if line.open is False else "  "
    cells = sum(cell_len(text) for text, _ in right)
    if width - cells < 16:
        right, cells = [(f" {count(section.tokens)}", palette.muted)], cell_len(count(section.tokens)) + 1
    title = clip(one_line(section.title), max(4, width - cells - 3))
    gap = max(1, width - 2 - cell_len(title) - cells)
    return [(arrow, palette.arrow), (title, palette.strong_heading), (" " * gap, palette.text), *right]


def _item_runs(item: ContextItem, width: int, palette: Palette) -> list[Run]:
    right = f" {f'{count(item.cut)} chars cut ' if item.cut else ''}{count(item.tokens):>5}"
    date = f"{item.date.astimezone():%Y-%m-%d}" if item.date is not None else ""
    level = f"L{item.level}" if item.level else ""
    away = one_line(item.title) or (f"from {item.conversation_id[:8]}" if item.conversation_id else "")
    form = item.form if item.form not in ("", "whole", "kept") else ""
    named = " ".join(part for part in (level, item_turns(item)) if part)
    runs: list[Run] = [("    ", palette.text), (item_kind(item), palette.text)]
    if named:
        runs.append((f" {named}", palette.you))
    for part, style in ((away, palette.link if item.conversation_id else palette.text), (date, palette.muted)):
        if part:
            runs += [(" · ", palette.faint), (part, style)]
    if form:
        runs += [(" · ", palette.faint), (form, palette.muted)]
    room = max(1, width - cell_len(right))
    shown = _clipped(runs, room)
    left = room - sum(cell_len(text) for text, _ in shown)
    text = one_line(item.text[:_PREVIEW_CHARS])
    if left >= _PREVIEW_CELLS and text != away:
        preview = clip(f"  {text}", left - 1)
        shown.append((preview, palette.muted))
        left -= cell_len(preview)
    return [*shown, (" " * left, palette.text), (right, palette.muted)]


def _clipped(runs: list[Run], room: int) -> list[Run]:
    """Return the runs that fit, the last one truncated."""
    found: list[Run] = []
    for text, style in runs:
        if cell_len(text) > room:
            if room > 1:
                found.append((clip(text, room), style))
            break
        found.append((text, style))
        room -= cell_len(text)
    return found
