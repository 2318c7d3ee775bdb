"""Unified diffs as files and rows.

The counts in a hunk's head decide where it ends: a removed line starting with ``-- `` looks like the head of a file.
Pure, and cheap enough for ten thousand lines; what colors cost is paid per row in `diff_lines.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple

from ragforge_tui.shared.formatting import counted
from ragforge_tui.shared.sanitize import plain_length
from ragforge_tui.tui.drawing.lines import clean, one_line

_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_NO_FILE = "/dev/null"
_WORD = re.compile(r"\w+")
_MOST_COMPARED = 400
"""Pairs of lines of one change that are compared with each other."""
_ALIKE = 0.55
"""Share of common words from which one line may have become the other."""

Sign = Literal["+", "-", " ", "fold", "note"]
FileState = Literal["changed", "new", "deleted"]


class DiffRow(NamedTuple):
    """A row of a file's changes.

    Attributes:
        sign: Added, removed, unchanged; ``fold`` for unchanged lines that the diff leaves out; ``note`` for a remark.
        old: The number of its line in the old file; 0 for none.
        new: The number of its line in the new file; 0 for none.
        old_at: Its position among the lines of the old file that the diff shows; -1 for none.
        new_at: The same for the new file.
    """

    sign: Sign
    text: str
    old: int = 0
    new: int = 0
    old_at: int = -1
    new_at: int = -1


class FileChange:
    """The changes of one file, cleaned.

    Attributes:
        path: Its path; empty for remarks that belong to no file.
        note: Remark on the file.
        old_lines: The shown lines of the old file; those of a hunk begin at a position of `old_starts`.
        new_lines: The same for the new file.
    """

    def __init__(self, path: str = "", state: FileState = "changed") -> None:
        self.path = path
        self.state: FileState = state
        self.last_line = 0
        self.note = ""
        self._partners: dict[int, int | None] = {}
        self._changes: dict[int, tuple[list[int], list[int]]] = {}
        self.rows: list[DiffRow] = []
        self.old_lines: list[str] = []
        self.new_lines: list[str] = []
        self.old_starts: list[int] = []
        self.new_starts: list[int] = []

    def note_change(self, removed: list[int], added: list[int]) -> None:
        if removed and added:
            self._changes.update(dict.fromkeys((*removed, *added), (removed, added)))

    def partner(self, at: int) -> int | None:
        """Return the row that a row replaces or that replaces it."""
        if at not in self._partners and at in self._changes:
            removed, added = self._changes[at]
            self._partners |= dict.fromkeys((*removed, *added))
            for old, new in self._paired(removed, added):
                self._partners[old], self._partners[new] = new, old
        return self._partners.get(at)

    def _paired(self, removed: list[int], added: list[int]) -> Iterable[tuple[int, int]]:
        """Return the pairs of a change: in their order if there are as many, else those most alike."""
        if len(removed) == len(added) or len(removed) * len(added) > _MOST_COMPARED:
            return zip(removed, added, strict=False)
        words = [[set(_WORD.findall(self.rows[at].text)) for at in rows] for rows in (removed, added)]
        best: list[list[tuple[float, list[tuple[int, int]]]]] = [[(0.0, [])] * (len(added) + 1)]
        for old, before in zip(removed, words[0], strict=True):
            line: list[tuple[float, list[tuple[int, int]]]] = [(0.0, [])]
            for at, (new, after) in enumerate(zip(added, words[1], strict=True)):
                alike = len(before & after) / max(1, len(before | after))
                score, pairs = best[-1][at]
                together = (score + alike, [*pairs, (old, new)]) if alike >= _ALIKE else (0.0, [])
                line.append(max(best[-1][at + 1], line[-1], together, key=lambda one: one[0]))
            best.append(line)
        return best[-1][-1][1]

    @cached_property
    def counts(self) -> tuple[int, int]:
        """The numbers of added and removed lines."""
        signs = [row.sign for row in self.rows]
        return signs.count("+"), signs.count("-")


def parse_diff(diff: str) -> list[FileChange]:
    """Return the files of a unified diff; any other line becomes a remark."""
    return _Parser(diff).files


@lru_cache(64)
def diff_counts(diff: str) -> tuple[int, int]:
    """Return the numbers of added and removed lines of a unified diff."""
    return count_changes(parse_diff(diff))


def count_changes(files: list[FileChange]) -> tuple[int, int]:
    """Return the numbers of added and removed lines of files."""
    return sum(file.counts[0] for file in files), sum(file.counts[1] for file in files)


class _Parser:
    def __init__(self, diff: str) -> None:
        self.files: list[FileChange] = []
        self._clean = "\t" not in diff and plain_length(diff) == len(diff)
        self._lines = diff.removesuffix("\n").split("\n") if diff else []
        self._next_line = 0
        """The line of the new file after the last hunk."""
        at = 0
        while at < len(self._lines):
            line = self._lines[at]
            if line.startswith("--- ") and self._is_file(at):
                self._file(line[4:], self._lines[at + 1][4:])
                at += 2
            elif (hunk := _HUNK.match(line)) is not None:
                at = self._hunk(hunk, at + 1)
            else:
                self._remark(line)
                at += 1

    def _is_file(self, at: int) -> bool:
        return at + 1 < len(self._lines) and self._lines[at + 1].startswith("+++ ")

    def _file(self, old: str, new: str) -> None:
        old, new = one_line(old.partition("\t")[0]), one_line(new.partition("\t")[0])
        state: FileState = "new" if old.startswith(_NO_FILE) else "deleted" if new.startswith(_NO_FILE) else "changed"
        path = old.removeprefix("a/") if state == "deleted" else new.removeprefix("b/")
        self.files.append(FileChange(path, state))

    def _remark(self, line: str) -> None:
        """Add a line that is no part of a file's changes."""
        if not line.strip():
            return
        if not self.files or self.files[-1].path:
            self.files.append(FileChange())
        self.files[-1].rows.append(DiffRow("note", one_line(line)))

    def _hunk(self, head: re.Match[str], at: int) -> int:
        """Read a hunk whose lines start at a position; return the position after them."""
        if not self.files:
            self.files.append(FileChange())
        file = self.files[-1]
        old, old_count, new, new_count = (int(part) if part is not None else 1 for part in head.groups())
        # A side without lines is given by the line before it.
        old, new = old + (old_count == 0), new + (new_count == 0)
        hidden = new - self._next_line
        if file.new_starts and hidden > 0:
            file.rows.append(DiffRow("fold", counted(hidden, "unchanged line")))
        file.old_starts.append(len(file.old_lines))
        file.new_starts.append(len(file.new_lines))
        old_end, new_end = old + old_count, new + new_count
        lines, rows, old_lines, new_lines = self._lines, file.rows, file.old_lines, file.new_lines
        removed: list[int] = []
        added: list[int] = []
        while at < len(lines):
            line = lines[at]
            sign, text = line[:1], line[1:] if self._clean else _cleaned(line[1:])
            over = old >= old_end and new >= new_end
            if sign == "\\":
                rows.append(DiffRow("note", one_line(text)))
                at += 1
                continue
            # With wrong counts the next file or hunk ends this one; no line of a hunk looks like those two.
            if over or sign not in ("+", "-", " ", "") or (line.startswith("--- ") and self._breaks_off(at)):
                break
            if sign == "+":
                added.append(len(rows))
                rows.append(DiffRow("+", text, 0, new, -1, len(new_lines)))
                new_lines.append(text)
                new += 1
            else:
                if sign != "-" or added:
                    file.note_change(removed, added)
                    removed, added = [], []
                if sign == "-":
                    removed.append(len(rows))
                    rows.append(DiffRow("-", text, old, 0, len(old_lines)))
                else:
                    rows.append(DiffRow(" ", text, old, new, len(old_lines), len(new_lines)))
                    new_lines.append(text)
                    new += 1
                old_lines.append(text)
                old += 1
            at += 1
        file.note_change(removed, added)
        file.last_line = max(file.last_line, old - 1, new - 1)
        self._next_line = new
        return at

    def _breaks_off(self, at: int) -> bool:
        return self._is_file(at) and at + 2 < len(self._lines) and self._lines[at + 2].startswith("@@ ")


def _cleaned(text: str) -> str:
    # A control that means a line break must not make a second row.
    return " ".join(clean(text.rstrip("\r")).split("\n"))
