"""What is remembered as lines: kinds, findings below them, and for each what it replaced or what closed it.

Pure, but for `RememberedRows`, which draws the lines.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import PurePath

import msgspec
from rich.style import Style

from ragforge_tui.shared.finding_records import KeptFinding, KeptKind
from ragforge_tui.shared.memory_acts import ACT_WORDS, MemoryAct
from ragforge_tui.shared.requests.findings import RememberedList
from ragforge_tui.tui.dialogs.detail import Section
from ragforge_tui.tui.drawing.lines import Run, one_line
from ragforge_tui.tui.drawing.palette import Palette
from ragforge_tui.tui.sessions.session_list_model import short_time
from ragforge_tui.tui.widgets.virtual_list import TreeList, fold_arrow, sign_or_word, with_facts, with_text

KINDS: tuple[tuple[KeptKind, str], ...] = (
    ("wish", "Wishes"),
    ("decision", "Decisions"),
    ("open", "Open points"),
    ("fact", "Facts"),
)
_STATES = {"done": "done", "replaced": "replaced", "forgotten": "forgotten"}
_STRUCK = Style(strike=True)


class RememberedLine(msgspec.Struct, frozen=True):
    """A kind, a finding, or what is to be known of the finding above.

    Attributes:
        key: Identifies the line; empty for one below a finding.
        open: Whether the findings of a kind are listed; None for other lines.
        facts: Muted text at the right edge.
        struck: Whether the text no longer holds.
    """

    key: str
    text: str
    open: bool | None = None
    facts: str = ""
    struck: bool = False
    pinned: bool = False


class RememberedModel:
    """What is remembered, and which kinds are listed.

    Attributes:
        everything: Whether what no longer holds is listed too.
    """

    def __init__(self) -> None:
        self._found = RememberedList(findings=[])
        self._by_id: dict[str, KeptFinding] = {}
        self._folded: set[str] = set()
        self.everything = False
        self.loaded = False

    def load(self, found: RememberedList) -> None:
        self._found = found
        self._by_id = {one.uuid: one for one in found.findings}
        self.loaded = True

    @property
    def acts(self) -> list[MemoryAct]:
        return self._found.acts

    def finding(self, key: str) -> KeptFinding | None:
        """Return the finding of a line; None of a kind."""
        return self._by_id.get(key)

    def toggle(self, key: str, wanted: bool | None = None) -> bool:
        """List or fold a kind; return whether anything changed."""
        if key not in dict(KINDS) or wanted is (key not in self._folded):
            return False
        self._folded.symmetric_difference_update({key})
        return True

    def lines(self, query: str, today: datetime) -> list[RememberedLine]:
        """Return the lines of the findings that hold all words of a query."""
        words = query.casefold().split()
        found: list[RememberedLine] = []
        for kind, title in KINDS:
            group = [one for one in self._found.findings if one.kind == kind and self._is_listed(one, words)]
            if not group:
                continue
            opened = kind not in self._folded
            found.append(RememberedLine(kind, f"{title} {len(group)}", opened))
            if opened:
                for one in sorted(group, key=lambda one: not (one.pinned and one.is_current)):
                    found += self._of_finding(one, today)
        return found

    def _is_listed(self, one: KeptFinding, words: list[str]) -> bool:
        if not self.everything and not one.is_current:
            return False
        searched = f"{one.text}\n{self._title(one)}\n{place_of(one)}\n{one.kind}\n{one.state}".casefold()
        return all(word in searched for word in words)

    def _title(self, one: KeptFinding) -> str:
        return self._found.titles.get(one.conversation_id, "") or f"untitled {one.conversation_id[:8]}"

    def _of_finding(self, one: KeptFinding, today: datetime) -> list[RememberedLine]:
        when = short_time(one.since.astimezone(today.tzinfo), today.date())
        state = _STATES.get(one.state, "")
        facts = " · ".join(part for part in (state, place_of(one), f"t{one.turn_index}", when) if part)
        found = [
            RememberedLine(
                one.uuid, one.text, facts=facts, struck=not one.is_current, pinned=one.pinned and one.is_current
            )
        ]
        if one.closed_by:
            found.append(RememberedLine("", one.closed_by))
        if not self.everything:
            replaced = (old for old in self._found.findings if old.replaced_by == one.uuid and old.state == "replaced")
            found += [RememberedLine("", old.text, struck=True) for old in replaced]
        elif (new := self._by_id.get(one.replaced_by)) is not None and one.state == "replaced":
            found.append(RememberedLine("", new.text))
        return found

    def sections(self, one: KeptFinding) -> list[Section]:
        """Return all about a finding, to read and copy."""
        acts = [act for act in self._found.acts if act.finding == one.uuid or act.replaced_by == one.uuid]
        parts = [
            (one.kind.capitalize(), one.text),
            ("State", f"{one.state}{', pinned' if one.pinned else ''}, {place_of(one)}"),
            ("Said", f"{one.since.astimezone():%Y-%m-%d %H:%M}, turn {one.turn_index} of {self._title(one)}"),
            ("Noted by", _MAKERS.get(one.made_by, one.made_by)),
            ("Closed by", one.closed_by),
            ("Replaced by", self._by_id[one.replaced_by].text if one.replaced_by in self._by_id else ""),
            ("Files", "\n".join(one.files)),
            ("What you did", "\n".join(act_lines(acts))),
        ]
        return [Section(title=title, text=text, kind="prose") for title, text in parts if text]


_MAKERS = {"rule": "your words", "user": "you", "tool": "the agent, with its tool"}


def place_of(one: KeptFinding) -> str:
    """Return where a finding holds, in a word or two."""
    if one.scope == "user":
        return "everywhere"
    return "this conversation" if one.scope == "conversation" else PurePath(one.workspace).name


def act_lines(acts: Iterable[MemoryAct]) -> list[str]:
    """Return acts as lines, the newest first."""
    return [
        f"{act.at.astimezone():%Y-%m-%d %H:%M} {ACT_WORDS[act.act]}: {one_line(act.text)}"
        f"{f' → {one_line(act.new_text)}' if act.new_text else ''}{' (taken back)' if act.undone else ''}"
        for act in acts
    ]


class RememberedRows(TreeList[RememberedLine]):
    """The list of what is remembered."""

    def key_of(self, line: RememberedLine) -> str:
        return line.key

    def draw(self, line: RememberedLine, width: int, palette: Palette) -> list[Run]:
        """Draw a kind, a finding, or a line below one."""
        if line.open is not None:
            return with_text([(fold_arrow(line.open, palette), palette.arrow)], line.text, palette.heading, width)
        struck = palette.muted + _STRUCK
        if not line.key:
            word = sign_or_word("↳", "instead of:" if line.struck else "then:", palette)
            below: list[Run] = [("    ", palette.text), (word, palette.muted)]
            return with_text(below, line.text, struck if line.struck else palette.muted, width)
        sign = sign_or_word("·", "gone:" if line.struck else "-", palette)
        if line.pinned:
            sign = sign_or_word("◆", "pinned:", palette)
        mark: list[Run] = [("  ", palette.text), (sign, palette.accent if line.pinned else palette.muted)]
        return with_facts(mark, line.text, struck if line.struck else palette.text, (line.facts, palette.muted), width)
