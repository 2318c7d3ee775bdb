"""Decisions, open points and other findings of a conversation as lines; each opens its turn.

Pure, but for `FindingRows`, which draws the lines.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

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
    """

    key: str
    text: str
    turn: int = 0
    part: int = 0


class FindingList:
    """The findings of one conversation."""

    def __init__(self) -> None:
        self.loaded = False
        self.findings: list[Finding] = []

    def load(self, findings: Sequence[Finding]) -> None:
        self.findings = list(findings)
        self.loaded = True

    def get(self, key: str) -> Finding | None:
        """Return the finding of a line, None for a heading."""
        number = key.removeprefix(_KEY)
        return self.findings[int(number)] if number.isdecimal() and int(number) < len(self.findings) else None

    def lines(self, width: int) -> list[FindingLine]:
        """Return the lines for a width: below each heading its findings, wrapped to a few rows."""
        found: list[FindingLine] = []
        for heading, kinds in GROUPS:
            group = [(number, one) for number, one in enumerate(self.findings) if one.kind in kinds]
            if group:
                found.append(FindingLine("", f"{heading} {len(group)}"))
            for number, finding in group:
                rows = _rows(finding.text, max(width - _TURN_CELLS - 1, 8))
                turn = min(finding.turns, default=0)
                found += [FindingLine(f"{_KEY}{number}", row, turn, part) for part, row in enumerate(rows)]
        return found


def _rows(text: str, width: int) -> list[str]:
    text = one_line(unmarked(text))
    rows = [text[start:end] for start, end, _ in wrap_spans(text, width)]
    if len(rows) > MOST_ROWS:
        rows = [*rows[: MOST_ROWS - 1], clip(" ".join(rows[MOST_ROWS - 1 :]), width)]
    return rows


def finding_turns(finding: Finding) -> str:
    """Return the turns that a finding comes from."""
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
        return with_text([(f"{turn:<{_TURN_CELLS}} ", palette.accent)], line.text, palette.text, width)
