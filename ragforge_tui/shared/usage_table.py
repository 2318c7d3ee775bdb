"""A report of usage as rows of text, for the command line and the screen."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ragforge_tui.shared.formatting import bar, counted, dollars
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.shared.usage_records import UsageReport, UsageRow

COLUMNS = ("", "", "sent", "cached", "received", "reasoning", "requests", "price")
BAR_CELLS = 16
UNKNOWN = "–"


class UsageLine(msgspec.Struct, frozen=True):
    """Line of the table: the cells of `COLUMNS`. A heading has its name alone."""

    cells: tuple[str, ...]
    heading: bool = False


def usage_lines(report: UsageReport) -> list[UsageLine]:
    """Return the lines of a report: its rows, by group with a heading each, and the total."""
    lines: list[UsageLine] = []
    group = ""
    for row in report.rows:
        if row.group != group:
            group = row.group
            lines.append(_heading(group))
        peers = [peer for peer in report.rows if peer.group == group]
        lines.append(UsageLine(_cells(row, max(peer.input_tokens for peer in peers))))
    if report.rows and report.by == "cause":
        lines.append(_heading("All requests"))
    if report.rows:
        lines.append(UsageLine(_cells(report.total, 0)))
    return lines


def _heading(text: str) -> UsageLine:
    return UsageLine((text, *[""] * (len(COLUMNS) - 1)), heading=True)


def _cells(row: UsageRow, most: int) -> tuple[str, ...]:
    return (
        " ".join(plain_text(row.name).split()),
        bar(row.input_tokens, most, BAR_CELLS),
        _known(row.input_tokens),
        _known(row.cached_tokens),
        _known(row.output_tokens),
        _known(row.reasoning_tokens),
        counted(row.requests),
        _price(row),
    )


def _known(tokens: int) -> str:
    return counted(tokens) if tokens else UNKNOWN


def _price(row: UsageRow) -> str:
    """Return the price, marked where it is not known of all requests."""
    if row.cost_usd is None:
        return UNKNOWN
    return f"{dollars(row.cost_usd)}{'+' * bool(row.unpriced)}"


def footnotes(report: UsageReport) -> Sequence[str]:
    """Return what the table cannot say by itself."""
    notes = []
    if report.total.cost_usd is not None and report.total.unpriced:
        notes.append(f"+ the price of {counted(report.total.unpriced)} requests is unknown.")
    if report.by == "cause":
        notes.append("Parts are estimated from what was sent; the provider counts a request as a whole.")
    return notes
