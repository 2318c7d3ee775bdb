"""The insights as the insights screen lists them: each conversation's topic, with findings and action items below.

Pure, but for `InsightRows`, which draws the lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal

import msgspec
from rich.cells import cell_len
from rich.style import Style

from ragforge_tui.shared.finding_records import SUMMED, KeptFinding
from ragforge_tui.shared.moments import parse_moment
from ragforge_tui.shared.past_records import InsightEntry, PastChoice
from ragforge_tui.shared.records import EXTRACTIVE, Finding
from ragforge_tui.tui.dialogs.detail import Section
from ragforge_tui.tui.drawing.lines import Run, clip, one_line, wrap_spans
from ragforge_tui.tui.drawing.palette import Palette
from ragforge_tui.tui.sessions.session_list_model import short_time
from ragforge_tui.tui.widgets.virtual_list import TreeList, fold_arrow, sign_or_word, with_text

Kind = Literal["sum", "insight", "where", "finding", "todo", "more", "became"]
_INDENT = 4
_TITLE_CELLS = 32
_KEPT = "kept"
_SUMS = tuple(f"sum|{kind}" for kind, _ in SUMMED)
_MARK_CELLS = 2


class InsightLine(msgspec.Struct, frozen=True):
    """A line of the list.

    Attributes:
        key: Identifies the line; empty for one that continues another.
        open: Whether findings are listed; None if there are none.
        detail: Muted text after the main text.
        gone: It no longer holds and is struck through.
    """

    kind: Kind
    key: str
    text: str
    open: bool | None = None
    detail: str = ""
    gone: bool = False


class InsightList:
    """Insights, and the open ones among them."""

    def __init__(self) -> None:
        self._entries: dict[str, InsightEntry] = {}
        self._kept: dict[str, KeptFinding] = {}
        self._open: set[str] = set()
        self.loaded = False

    def load(self, entries: Iterable[InsightEntry]) -> None:
        """Take in all insights of the choice, in their order."""
        self._entries = {entry.conversation_id: entry for entry in entries}
        self.loaded = True

    def load_kept(self, findings: Iterable[KeptFinding]) -> None:
        """Take in the open points, wishes and decisions of all conversations of the choice."""
        self._kept = {f"{_KEPT}|{finding.uuid}": finding for finding in findings}

    def put(self, entry: InsightEntry) -> None:
        """Add or replace one, in the order of the last changes of the conversations."""
        entries = {**self._entries, entry.conversation_id: entry}.values()
        self.load(sorted(entries, key=lambda one: one.updated_at, reverse=True))

    def entry(self, key: str) -> InsightEntry | None:
        """Return the insight that a line belongs to."""
        return self._entries.get(key.partition("|")[0])

    def place(self, key: str) -> tuple[str, int] | None:
        """Return conversation and turn of a line; turn 0 is the end of the conversation."""
        if (kept := self._kept.get(key)) is not None:
            return kept.conversation_id, kept.turn_index
        entry = self.entry(key)
        if entry is None:
            return None
        _, _, number = key.partition("|")
        gone = entry.gone.get(int(number)) if number.isdecimal() else None
        if gone is not None and gone.leads_turn:
            # What no longer holds leads to the turn that closed or replaced it.
            return gone.leads_to or entry.conversation_id, gone.leads_turn
        cited = _points(entry)[int(number)].turns if number.isdecimal() else []
        return entry.conversation_id, cited[0] if cited else 0

    def toggle(self, key: str, wanted: bool | None = None) -> bool:
        """Open or close an insight; return whether anything changed."""
        if key not in (*self._entries, *_SUMS) or wanted is (key in self._open):
            return False
        self._open.symmetric_difference_update({key})
        return True

    def lines(self, query: str, now: datetime, width: int) -> list[InsightLine]:
        """Return the visible lines of the insights that hold all words of a query."""
        words = query.casefold().split()
        found = self._sums(words, now, width)
        for uuid, entry in self._entries.items():
            if not all(word in _searched(entry) for word in words):
                continue
            opened = uuid in self._open
            when = short_time(entry.updated_at.astimezone(now.tzinfo), now.date())
            detail = f"{_facts(entry)} · {when}" if _facts(entry) else when
            found.append(InsightLine("insight", uuid, entry.main_topic, opened, detail))
            if opened:
                found += _below(entry, width)
        return found

    def _sums(self, words: Sequence[str], now: datetime, width: int) -> list[InsightLine]:
        """Return how much of each kind is kept over all conversations; none while nothing is."""
        found: list[InsightLine] = []
        kept = {key: one for key, one in self._kept.items() if all(word in one.text.casefold() for word in words)}
        for (kind, label), sum_key in zip(SUMMED, _SUMS, strict=True):
            of_kind = {key: one for key, one in kept.items() if one.kind == kind}
            if not kept or (words and not of_kind):
                continue
            opened = sum_key in self._open if of_kind else None
            found.append(InsightLine("sum", sum_key, f"{label} {len(of_kind)}", opened))
            if opened:
                mark: Kind = "todo" if kind == "open" else "finding"
                for key, one in of_kind.items():
                    when = short_time(one.since.astimezone(now.tzinfo), now.date())
                    place = f"[{_title(self._entries, one)}t{one.turn_index}, {when}]"
                    found += _wrapped(mark, key, f"{one.text} {place}", width)
        return found


def _title(entries: Mapping[str, InsightEntry], finding: KeptFinding) -> str:
    entry = entries.get(finding.conversation_id)
    return f"{clip(one_line(entry.title), _TITLE_CELLS)} · " if entry is not None and entry.title else ""


def parse_choice(text: str, choice: PastChoice, now: datetime) -> tuple[PastChoice, str]:
    """Return the choice narrowed by what a command names, and the words left to filter by.

    ``#tag``, ``topic:NAME``, ``since:WHEN``, ``until:WHEN`` and ``all`` (folders) narrow or widen it.

    Raises:
        RagforgeError: A time cannot be read.
    """
    words: list[str] = []
    for word in text.split():
        name, colon, value = word.partition(":")
        if word == "all":
            choice = msgspec.structs.replace(choice, workspace=None)
        elif word.startswith("#") and len(word) > 1:
            choice = msgspec.structs.replace(choice, tags=[*choice.tags, word[1:]])
        elif colon and value and name == "topic":
            choice = msgspec.structs.replace(choice, topic=value)
        elif colon and value and name == "since":
            choice = msgspec.structs.replace(choice, since=parse_moment(value, now))
        elif colon and value and name == "until":
            choice = msgspec.structs.replace(choice, until=parse_moment(value, now, end=True))
        else:
            words.append(word)
    return choice, " ".join(words)


def insight_sections(entry: InsightEntry) -> list[Section]:
    """Return an insight as sections to read and copy."""
    parts = [
        ("Main topic", entry.main_topic),
        ("Findings", "\n".join(f"- {text}" for text in _read(entry, "finding"))),
        ("To do", "\n".join(f"[ ] {text}" for text in _read(entry, "todo"))),
        ("No longer so", "\n".join(f"- {one.text} ({one.became})" for one in entry.gone.values())),
        ("Made by", _origin(entry)),
    ]
    return [Section(title=title, text=text, kind="prose") for title, text in parts if text]


def _read(entry: InsightEntry, kind: Kind) -> list[str]:
    """Return the findings or action items that still hold."""
    held = [(at, one) for at, one in enumerate(_points(entry)) if at not in entry.gone]
    if kind == "todo":
        return [_cited(one) for at, one in held if at >= len(entry.key_findings)]
    return [f"{_kind(one)}{_cited(one)}" for at, one in held if at < len(entry.key_findings)]


def _origin(entry: InsightEntry) -> str:
    who = "extracted, without a model" if entry.made_by == EXTRACTIVE else entry.made_by
    return f"{who}, from turns 1 to {entry.up_to_turn} of {entry.turns}"


def _points(entry: InsightEntry) -> list[Finding]:
    return [*entry.key_findings, *entry.action_items]


def _searched(entry: InsightEntry) -> str:
    texts = [entry.title, entry.main_topic, *entry.tags, *(point.text for point in _points(entry))]
    return "\n".join(texts).casefold()


def _facts(entry: InsightEntry) -> str:
    if entry.outdated:
        return f"t{entry.up_to_turn} of {entry.turns}"
    return "extracted" if entry.made_by == EXTRACTIVE else ""


def _below(entry: InsightEntry, width: int) -> list[InsightLine]:
    """Return the lines below an insight, wrapped."""
    title = entry.title or f"untitled {entry.conversation_id[:8]}"
    found = [InsightLine("where", f"{entry.conversation_id}|where", title)]
    for number, point in enumerate(_points(entry)):
        kind: Kind = "finding" if number < len(entry.key_findings) else "todo"
        text = f"{_kind(point) if kind == 'finding' else ''}{_cited(point)}"
        found += _wrapped(kind, f"{entry.conversation_id}|{number}", text, width, gone=number in entry.gone)
        if number in entry.gone:
            found.append(InsightLine("became", "", one_line(entry.gone[number].became)))
    return found


def _wrapped(kind: Kind, key: str, text: str, width: int, *, gone: bool = False) -> list[InsightLine]:
    """Return a finding as lines; only the first one has its key."""
    text = one_line(text)
    spans = wrap_spans(text, max(20, width - _INDENT - _MARK_CELLS))
    return [
        InsightLine("more" if place else kind, "" if place else key, text[start:end], gone=gone)
        for place, (start, end, _) in enumerate(spans)
    ]


def _kind(finding: Finding) -> str:
    return f"{finding.kind}: " if finding.kind else ""


def _cited(finding: Finding) -> str:
    turns = f" [{', '.join(f't{turn}' for turn in finding.turns)}]" if finding.turns else ""
    return f"{finding.text}{turns}"


class InsightRows(TreeList[InsightLine]):
    """The insights."""

    def key_of(self, line: InsightLine) -> str:
        return line.key

    def draw(self, line: InsightLine, width: int, palette: Palette) -> list[Run]:
        """Draw a topic, its conversation, a finding, an action item, or the next line of one."""
        lead: Run = (" " * _INDENT, palette.text)
        text = palette.muted + Style(strike=True) if line.gone else palette.text
        match line.kind:
            case "sum":
                arrow = fold_arrow(line.open, palette)
                return with_text([(arrow, palette.arrow)], line.text, palette.text + Style(bold=True), width)
            case "insight":
                head = [(fold_arrow(line.open, palette), palette.arrow)]
                room = max(8, width - cell_len(head[0][0]) - cell_len(line.detail) - 2)
                topic = clip(one_line(line.text), room)
                gap = " " * max(1, width - cell_len(head[0][0]) - cell_len(topic) - cell_len(line.detail))
                return [*head, (topic, palette.text), (gap, palette.text), (line.detail, palette.muted)]
            case "where":
                return with_text([(" " * _MARK_CELLS, palette.text)], f"in {line.text}", palette.link, width)
            case "todo":
                mark = (sign_or_word("☐", "to do:", palette), palette.muted if line.gone else palette.running)
                return with_text([(" " * _MARK_CELLS, palette.text), mark], line.text, text, width)
            case "finding":
                mark = (sign_or_word("·", "found:", palette), palette.muted)
                return with_text([(" " * _MARK_CELLS, palette.text), mark], line.text, text, width)
            case "more":
                return with_text([lead], line.text, text, width)
            case "became":
                return with_text([lead], line.text, palette.muted, width)
