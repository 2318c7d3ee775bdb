"""The tree of a conversation's summaries as the sidebar lists it: by their titles, down to the turns.

Pure, but for `TreeRows`, which draws the lines. The outline is fetched once and kept up to date with events; the
beginnings of turns are fetched when they come into view. Only open nodes make lines: thousands of closed summaries
cost nothing.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Literal

import msgspec
from rich.style import Style

from ragforge_tui.shared.events import Event, SummaryCreated, SummaryFailed, SummaryStarted, TurnStarted
from ragforge_tui.shared.formatting import counted, short_count
from ragforge_tui.shared.moments import age_text
from ragforge_tui.shared.records import EXTRACTIVE, Summary
from ragforge_tui.shared.requests.memory import MemoryDue, MemoryTree, ShownSummary, TreeNode, TurnLine
from ragforge_tui.tui.dialogs.detail import Section
from ragforge_tui.tui.drawing.lines import Run, one_line
from ragforge_tui.tui.drawing.palette import Palette
from ragforge_tui.tui.transcript.markdown import words_of
from ragforge_tui.tui.widgets.virtual_list import TreeList, fold_arrow, sign_or_word, with_facts, with_text

Kind = Literal["about", "summary", "working", "failed", "raw", "turn"]

ABOUT = "about"
RAW = "raw"
ABOUT_LINES = 3
SHOWN_CHARS = 160
EXPLAINED = (
    "Every few turns are summed up in one line here, and later several lines in one. What no longer fits into a "
    "request is sent as these summaries; what matters for a question is looked up in full. "
    "/memory shows the wishes, decisions and open points of the folder."
)
_TURN = "turn:"
_MOST_CITED = 9
"""Findings with a key of their own, 1 to 9."""
_KINDS = {"": "", "decision": "Decision: ", "fact": "", "preference": "Preference: ", "open": "Open: "}


class TreeLine(msgspec.Struct, frozen=True):
    """A line of the list.

    Attributes:
        key: Identifies the node.
        first: First turn it covers; `last` the last one.
        open: Whether its children are listed; None if it can have none.
        text: None while unknown.
        made: When a summary was written.
        part: The number of the line, in a text of several lines.
    """

    kind: Kind
    key: str
    depth: int = 0
    level: int = 0
    first: int = 0
    last: int = 0
    open: bool | None = None
    text: str | None = ""
    made: datetime | None = None
    part: int = 0


class SummaryTree:
    """The tree of one conversation."""

    def __init__(self) -> None:
        self.loaded = False
        self.last_turn = 0
        self._nodes: dict[str, TreeNode] = {}
        self._under: dict[str, list[str]] = {}
        self._working: dict[tuple[int, int], int] = {}
        self._failed: dict[tuple[int, int], tuple[int, str]] = {}
        self._turns: dict[int, str] = {}
        self._open: set[str] = set()

    # -- updates

    def load(self, tree: MemoryTree) -> None:
        """Take in the outline; open nodes and running summaries stay."""
        if not self.loaded and not tree.nodes:
            self._open.add(RAW)
        self.loaded = True
        self.last_turn = max(self.last_turn, tree.last_turn)
        known = {node.uuid: node for node in tree.nodes}
        # A summary whose event was faster than the outline that was asked for before it.
        known.update((uuid, node) for uuid, node in self._nodes.items() if uuid not in known)
        self._nodes = known
        self._under = {}
        for node in sorted(known.values(), key=_order):
            self._under.setdefault(self._parent(node), []).append(node.uuid)

    def apply(self, event: Event) -> bool:
        """Take in an event; return whether anything changed."""
        match event:
            case SummaryStarted(level=level, start_turn_index=first, end_turn_index=last):
                self._working[level, first] = last
                self._failed.pop((level, first), None)
            case SummaryFailed(level=level, start_turn_index=first, end_turn_index=last, reason=reason):
                self._working.pop((level, first), None)
                self._failed[level, first] = last, reason
            case SummaryCreated(summary=made):
                self._working.pop((made.level, made.start_turn_index), None)
                self._failed.pop((made.level, made.start_turn_index), None)
                self._add(
                    TreeNode(
                        uuid=made.uuid,
                        level=made.level,
                        start_turn_index=made.start_turn_index,
                        end_turn_index=made.end_turn_index,
                        title=made.title,
                        headline=made.conversation_summary[:SHOWN_CHARS],
                        topics=made.topics,
                        created_at=made.created_at,
                    ),
                    made.parent_summaries,
                )
            case TurnStarted(turn_index=index, message=message):
                self.last_turn = max(self.last_turn, index)
                self._turns[index] = message.content[:SHOWN_CHARS]
            case _:
                return False
        return True

    def add_turns(self, turns: Iterable[TurnLine]) -> None:
        for turn in turns:
            self._turns[turn.turn_index] = turn.text

    def _add(self, node: TreeNode, children: Iterable[str]) -> None:
        """Insert a new node, with the nodes it summarizes below it; a summary written again keeps its place."""
        if (known := self._nodes.get(node.uuid)) is not None:
            self._nodes[node.uuid] = msgspec.structs.replace(node, parent=known.parent)
            return
        self._nodes[node.uuid] = node
        roots = self._under.setdefault("", [])
        moved = {uuid for uuid in children if uuid in self._nodes}
        for uuid in moved:
            self._nodes[uuid] = msgspec.structs.replace(self._nodes[uuid], parent=node.uuid)
        if moved:
            self._under[""] = roots = [uuid for uuid in roots if uuid not in moved]
            self._under[node.uuid] = sorted(moved, key=self._order_of)
        insort(roots, node.uuid, key=self._order_of)

    def _parent(self, node: TreeNode) -> str:
        return node.parent if node.parent in self._nodes else ""

    def _order_of(self, uuid: str) -> tuple[int, int]:
        return _order(self._nodes[uuid])

    # -- folding

    def toggle(self, key: str, wanted: bool | None = None) -> bool:
        """Open or close a node; return whether anything changed."""
        leaf = key != RAW and key not in self._nodes
        if leaf or wanted is (key in self._open):
            return False
        self._open.symmetric_difference_update({key})
        return True

    def parent_of(self, key: str) -> str:
        """Return the key of the parent line; empty at the top."""
        if key in self._nodes:
            return self._parent(self._nodes[key])
        turn = turn_of(key)
        if not turn:
            return ""
        over = (n.uuid for n in self._nodes.values() if n.level == 1 and _covers(n, turn))
        return next(over, RAW)

    def over(self, first: int, last: int) -> list[str]:
        """Return the summaries of all levels that include these turns."""
        return [n.uuid for n in self._nodes.values() if n.start_turn_index <= first and n.end_turn_index >= last]

    def node(self, key: str) -> TreeNode | None:
        """Return the summary of a line, None for other lines."""
        return self._nodes.get(key)

    def at(self, first: int, last: int) -> TreeNode | None:
        """Return the lowest summary of exactly these turns."""
        found = [n for n in self._nodes.values() if (n.start_turn_index, n.end_turn_index) == (first, last)]
        return min(found, key=lambda node: node.level, default=None)

    def range_of(self, key: str) -> tuple[int, int]:
        """Return the first and last turn of a line, (0, 0) for none."""
        if turn := turn_of(key):
            return turn, turn
        if key == RAW:
            return self._raw_from, self.last_turn
        for one, first, last, _ in self._unfinished():
            if one == key:
                return first, last
        node = self._nodes.get(key)
        return (node.start_turn_index, node.end_turn_index) if node is not None else (0, 0)

    def failure(self, key: str) -> str:
        """Return why the summary of a line could not be made."""
        return next((reason for one, _, _, reason in self._unfinished() if one == key), "")

    # -- lines

    def count(self) -> str:
        """Return the numbers of turns and summaries, for the pane's title."""
        parts = [turns_text(self.last_turn)] if self.last_turn else []
        if number := len(self._nodes):
            parts.append(f"{number} summar{'y' if number == 1 else 'ies'}")
        return " · ".join(parts)

    @property
    def levels(self) -> dict[int, int]:
        """The number of summaries of each level."""
        levels: dict[int, int] = {}
        for node in self._nodes.values():
            levels[node.level] = levels.get(node.level, 0) + 1
        return dict(sorted(levels.items()))

    @property
    def empty(self) -> bool:
        return not (self._nodes or self._working or self._failed or self.last_turn)

    def stop_working(self) -> bool:
        """Forget running summaries; return whether there were any."""
        stopped = bool(self._working)
        self._working.clear()
        return stopped

    @property
    def working(self) -> list[tuple[int, int, int]]:
        return sorted((level, first, last) for (level, first), last in self._working.items())

    @property
    def _raw_from(self) -> int:
        ends = [node.end_turn_index for node in self._nodes.values() if node.level == 1]
        ends += [last for (level, _), last in self._working.items() if level == 1]
        return max(ends, default=0) + 1

    def _unfinished(self) -> list[tuple[str, int, int, str]]:
        """Yield key, range and failure of running and failed summaries."""
        working = [(f"working:{level}-{first}", first, last, "") for (level, first), last in self._working.items()]
        return working + [
            (f"failed:{level}-{first}", first, last, reason) for (level, first), (last, reason) in self._failed.items()
        ]

    def lines(self) -> list[TreeLine]:
        """Return the visible lines, from the top."""
        tops = [self._line(uuid, 0) for uuid in self._under.get("", [])]
        for (level, first), last in self._working.items():
            tops.append(TreeLine("working", f"working:{level}-{first}", 0, level, first, last))
        for (level, first), (last, reason) in self._failed.items():
            tops.append(TreeLine("failed", f"failed:{level}-{first}", 0, level, first, last, text=reason))
        tops.sort(key=lambda line: (line.first, -line.level))
        raw = self._raw_from
        if self.last_turn >= raw:
            tops.append(TreeLine("raw", RAW, 0, 0, raw, self.last_turn, RAW in self._open))
        found: list[TreeLine] = []
        waiting = tops[::-1]
        while waiting:
            line = waiting.pop()
            found.append(line)
            if line.open:
                waiting += self._below(line)[::-1]
        return found

    def _line(self, uuid: str, depth: int) -> TreeLine:
        node = self._nodes[uuid]
        first, last = node.start_turn_index, node.end_turn_index
        text = unmarked(node.title or node.headline)
        return TreeLine("summary", uuid, depth, node.level, first, last, uuid in self._open, text, node.created_at)

    def _below(self, line: TreeLine) -> list[TreeLine]:
        if under := self._under.get(line.key):
            return [self._line(uuid, line.depth + 1) for uuid in under]
        return [
            TreeLine("turn", turn_key(turn), line.depth + 1, 0, turn, turn, None, self._turns.get(turn))
            for turn in range(line.first, line.last + 1)
        ]


def turn_key(turn: int) -> str:
    return f"{_TURN}{turn}"


def turn_of(key: str) -> int:
    """Return the turn of a key, 0 for other keys."""
    return int(key.removeprefix(_TURN)) if key.startswith(_TURN) else 0


def range_text(first: int, last: int) -> str:
    return f"{first}–{last}" if last > first else f"{first}"


def spoken_range(first: int, last: int) -> str:
    return f"turn{'s' if last > first else ''} {range_text(first, last)}"


def turns_text(number: int) -> str:
    return counted(number, "turn")


def state_text(due: MemoryDue | None, left: str = "") -> str:
    """Return in one line what the user should know about the memory; empty while all is well.

    Args:
        left: What cannot be searched yet.
    """
    if due is not None and due.behind:
        return f"behind: {due.behind}"
    if left or due is None:
        return left
    return "" if due.enabled else "summaries are switched off"


def next_text(due: MemoryDue | None) -> str:
    """Return what the next summary waits for; empty while unknown."""
    if due is None or due.behind or not due.enabled:
        return state_text(due)
    if due.next_turns <= 0 or due.next_chars <= 0:
        return "the next L1 is due"
    return f"next L1 in {turns_text(due.next_turns)} or {short_count(due.next_chars)} characters"


def memory_sections(tree: SummaryTree, summary: str, due: MemoryDue | None) -> list[Section]:
    """Return the sections of the pane's detail view: the conversation, its levels, the next summary."""
    above = {1: "turns", 2: "summaries"}
    levels = [
        f"L{level}: {number}, each over several {above.get(level, f'summaries of L{level - 1}')}"
        for level, number in tree.levels.items()
    ]
    parts = [
        ("This conversation", unmarked(summary)),
        ("How it works", EXPLAINED),
        ("Levels", "\n".join([f"{turns_text(tree.last_turn)} in all", *levels])),
        ("Next", next_text(due)),
    ]
    return [Section(title=title, text=text, kind="prose") for title, text in parts if text.strip()]


@lru_cache(maxsize=2_000)
def unmarked(text: str) -> str:
    """Return the text of a summary without its Markdown marks, line by line."""
    return "\n".join(words_of(line) for line in text.split("\n"))


def _order(node: TreeNode) -> tuple[int, int]:
    return node.start_turn_index, -node.level


def _covers(node: TreeNode, turn: int) -> bool:
    return node.start_turn_index <= turn <= node.end_turn_index


def summary_title(summary: Summary) -> str:
    """Return title, size, turns, author and level of a summary."""
    first, last = summary.start_turn_index, summary.end_turn_index
    writer = "made without a model" if summary.made_by == EXTRACTIVE else f"by {summary.made_by}"
    made = f" · {writer}" if summary.made_by else ""
    title = f"{summary.title} · " if summary.title else ""
    size = f"summary of {turns_text(last - first + 1)} ({range_text(first, last)})"
    return f"{title}{size} · {summary.created_at.astimezone():%Y-%m-%d %H:%M}{made} · level {summary.level}"


def summary_sections(summary: ShownSummary) -> list[Section]:
    """Return the sections of a summary: both parts, findings with kind and turns, files, tools, topics."""
    # A topic of one extract is not listed: its words are often accidental.
    topics = "Topics, listed once another summary names them" if summary.made_by == EXTRACTIVE else "Topics"
    findings = [
        f"{number}. {_KINDS[found.kind]}{unmarked(found.text)}{_cited(found.turns)}"
        for number, found in enumerate(summary.key_findings, start=1)
        if number - 1 not in summary.gone
    ]
    gone = [
        f"{at + 1}. {_KINDS[found.kind]}{unmarked(found.text)}{_cited(found.turns)}"
        for at, found in enumerate(summary.key_findings)
        if at in summary.gone
    ]
    parts = [
        ("Conversation", unmarked(summary.conversation_summary)),
        ("Actions", unmarked(summary.actions_summary)),
        ("Key findings", "\n".join(findings)),
        ("Files", "\n".join(summary.files_mentioned)),
        ("Tools", ", ".join(summary.tools_used)),
        (topics, ", ".join(summary.topics)),
    ]
    sections = [Section(title=title, text=text, kind="prose") for title, text in parts if text.strip()]
    if gone:
        became = "\n".join(f"{at + 1}. {became}" for at, became in sorted(summary.gone.items()))
        sections += [
            Section(title="No longer so", text="\n".join(gone), kind="struck"),
            Section(title="What became of it", text=became, kind="prose"),
        ]
    return sections


def cited_turns(summary: Summary) -> dict[str, int]:
    """Return the key and first turn of each finding that names a turn."""
    numbered = enumerate(summary.key_findings[:_MOST_CITED], start=1)
    return {str(number): found.turns[0] for number, found in numbered if found.turns}


def _cited(turns: Sequence[int]) -> str:
    return f" [{', '.join(f't{turn}' for turn in turns)}]" if turns else ""


_BOLD = Style(bold=True)
_WIDE = 56
_DEEPEST = 6
"""Levels with an indentation of their own; deeper levels share the last one, so that text keeps its room."""


class TreeRows(TreeList[TreeLine]):
    """The tree of summaries; the newest are in view.

    Attributes:
        lit: Keys of summaries that were just made or recalled.

    Args:
        missing: Called with a turn that came into view before its beginning is known.
        now: Gives the time, for the age of summaries.
    """

    def __init__(self, missing: Callable[[int], None], now: Callable[[], datetime]) -> None:
        super().__init__(empty="loading …", follow=True)
        self._missing = missing
        self._now = now
        self.lit: frozenset[str] = frozenset()

    def key_of(self, line: TreeLine) -> str:
        return line.key

    def draw(self, line: TreeLine, width: int, palette: Palette) -> list[Run]:
        """Draw a summary, a turn, or a gap between them."""
        lead: Run = ("  " * min(line.depth, _DEEPEST), palette.text)
        turns = range_text(line.first, line.last)
        match line.kind:
            case "about":
                return [(one_line(line.text or ""), palette.muted)]
            case "turn":
                if line.text is None:
                    self._missing(line.first)
                return with_text([lead, (f"{turns:>5} ", palette.muted)], line.text or "…", palette.text, width)
            case "working":
                runs: list[Run] = [lead, (sign_or_word("◐", "working", palette), palette.running)]
                return with_text(runs, f"summarising {spoken_range(line.first, line.last)} …", palette.muted, width)
            case "failed":
                runs = [lead, (sign_or_word("✕", "failed", palette), palette.failed)]
                return with_text(
                    runs, f"{spoken_range(line.first, line.last)}: {line.text or ''}", palette.muted, width
                )
            case "raw":
                runs = [lead, (fold_arrow(line.open, palette), palette.arrow)]
                facts = (spoken_range(line.first, line.last), palette.muted)
                return with_facts(runs, "not summarised yet", palette.muted, facts, width)
            case "summary":
                style = palette.text + _BOLD if line.level > 1 else palette.text
                if line.key in self.lit:
                    style = palette.accent + _BOLD
                runs = [lead, (fold_arrow(line.open, palette), palette.arrow)]
                return with_facts(runs, line.text or "", style, (self._facts(line, width), palette.muted), width)

    def _facts(self, line: TreeLine, width: int) -> str:
        """Return turns and age of a summary; in words if there is room."""
        turns, age = range_text(line.first, line.last), age_text(line.made, self._now()) if line.made else ""
        if width < _WIDE:
            return f"{turns} {age:>6}" if age else turns
        words = spoken_range(line.first, line.last)
        return f"{words} {age:>7}" if age else words
