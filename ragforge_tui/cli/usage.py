"""The command `usage`: what requests to models took."""

from __future__ import annotations

from typing import Annotated

import typer

from ragforge_tui.cli.common import JsonFlag, with_memory
from ragforge_tui.cli.output import print_json, print_styled, print_text, width
from ragforge_tui.cli.past import FolderOption, SinceOption, folder_of, moment_of
from ragforge_tui.shared.requests.past import FetchUsage
from ragforge_tui.shared.usage_records import UsageBy
from ragforge_tui.shared.usage_table import COLUMNS, UsageLine, footnotes, usage_lines

_LEFT = 2
"""Columns at the left: the name and the plot."""


def usage(
    ctx: typer.Context,
    by: Annotated[UsageBy, typer.Option("--by", help="What to add up.")] = "day",
    since: SinceOption = None,
    workspace: FolderOption = None,
    json: JsonFlag = False,
) -> None:
    """Print the tokens, requests and price of models, by day, model, folder, persona or cause."""
    request = FetchUsage(by=by, since=moment_of(since), workspace=folder_of(workspace))
    report = with_memory(ctx, lambda engine: engine.request(request))
    if json:
        print_json(report.rows)
        return
    lines = usage_lines(report)
    if not lines:
        print_text("No request to a model is stored" + (" since then." if since else "."))
        return
    widths = _widths(lines)
    for line in (UsageLine((by, *COLUMNS[1:])), *lines):
        print_styled(f"\n{line.cells[0]}" if line.heading else _aligned(line, widths))
    for note in footnotes(report):
        print_text(note)


def _widths(lines: list[UsageLine]) -> list[int]:
    rows = [COLUMNS, *(line.cells for line in lines if not line.heading)]
    return [max(width(row[column]) for row in rows) for column in range(len(COLUMNS))]


def _aligned(line: UsageLine, widths: list[int]) -> str:
    """Return the cells in columns, numbers at the right."""
    cells = []
    for column, (cell, wide) in enumerate(zip(line.cells, widths, strict=True)):
        gap = " " * (wide - width(cell))
        cells.append(cell + gap if column < _LEFT else gap + cell)
    return "  ".join(cells).rstrip()
