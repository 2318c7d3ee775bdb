"""Decisions, open points and other findings of a conversation as lines; each opens its turn.

Pure, but for `FindingRows`, which draws the lines.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rich.style import Style

from ragforge_tui.shared.finding_records import ShownFinding
from ragforge_tui.shared.records import Finding, FindingKind
from ragforge_tui.tui.drawing.lines import Run, clip, one_line, wrap_spans
from ragforge_tui.tui.drawing.palette import Palette
from ragforge_tui.tui.memory.memory_tree import spoken_range, unmarked
from ragforge_tui.tui.widgets.virtual_list import VirtualList, with_text

GROUPS: tuple[tuple[str, tuple[FindingKind, ...]], ...] = (
    ("Open", ("open",)),
    ("Decisions", ("decision",)),
    ("Wishes", ("preference",)),
    ("Findings", ("fact", "")),
)
"""Headings and the kinds of findings below them, in order."""
MOST_ROWS = 3
_TURN_CELLS = 4
_KEY = "finding:"


class FindingLine(msgspec.Struct, frozen=True):
    """A heading, or a row of a finding.

    Attributes:
        key: Identifies the finding; empty for a heading.
        turn: First turn it comes from, 0 if it names none; shown in its first row only.
        gone: It no longer holds: its text is struck through; `note` says what became of it.
    """

    key: str
    text: str
    turn: int = 0
    part: int = 0
    gone: bool = False
    note: str = ""


class FindingList:
    """The findings of one conversation."""

    def __init__(self) -> None:
        self.loaded = False
        self.findings: list[ShownFinding] = []

    def load(self, findings: Sequence[ShownFinding]) -> None:
        self.findings = list(findings)
        self.loaded = True

    def get(self, key: str) -> ShownFinding | None:
        """Return the finding of a line, None for a heading."""
        number = key.removeprefix(_KEY)
        return self.findings[int(number)] if number.isdecimal() and int(number) < len(self.findings) else None

    def lines(self, width: int) -> list[FindingLine]:
        """Return the lines for a width: below each heading its findings, wrapped to a few rows."""
        found: list[FindingLine] = []
        for heading, kinds in GROUPS:
            group = [(number, one) for number, one in enumerate(self.findings) if one.kind in kinds]
            if group:
                held = sum(not one.became for _, one in group)
                found.append(FindingLine("", f"{heading} {held}"))
            for number, finding in group:
                inner = max(width - _TURN_CELLS - 1, 8)
                rows = _rows(finding.text, inner)
                turn, gone = min(finding.turns, default=0), bool(finding.became)
                lines = [FindingLine(f"{_KEY}{number}", row, turn, part, gone) for part, row in enumerate(rows)]
                if gone:
                    note = clip(one_line(f"{_arrow(finding)}{finding.became}"), inner)
                    lines.append(FindingLine(f"{_KEY}{number}", "", turn, len(lines), gone, note))
                found += lines
        return found


def _rows(text: str, width: int) -> list[str]:
    text = one_line(unmarked(text))
    rows = [text[start:end] for start, end, _ in wrap_spans(text, width)]
    if len(rows) > MOST_ROWS:
        rows = [*rows[: MOST_ROWS - 1], clip(" ".join(rows[MOST_ROWS - 1 :]), width)]
    return rows


def _arrow(finding: ShownFinding) -> str:
    return f"→ t{finding.leads_turn} " if finding.leads_turn and not finding.leads_to else ""


def finding_turns(finding: Finding) -> str:
    """Return the turns that a finding comes from, in words."""
    if not finding.turns:
        return "no turn is known"
    first, last = min(finding.turns), max(finding.turns)
    return spoken_range(first, last)


class FindingRows(VirtualList[FindingLine]):
    """The list of findings."""

    def key_of(self, line: FindingLine) -> str:
        return line.key

    def draw(self, line: FindingLine, width: int, palette: Palette) -> list[Run]:
        """Draw a heading, or a row with its turn before the first one."""
        if not line.key:
            return [(clip(line.text, width), palette.heading)]
        turn = f"t{line.turn}" if line.turn and not line.part else ""
        lead = [(f"{turn:<{_TURN_CELLS}} ", palette.muted if line.gone else palette.accent)]
        if line.note:
            return with_text(lead, line.note, palette.muted, width)
        style = palette.muted + Style(strike=True) if line.gone else palette.text
        return with_text(lead, line.text, style, width)
