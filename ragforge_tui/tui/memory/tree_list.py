"""Lists with lines that open and close: the tree of summaries, the topics.

This draws the lines that `memory_tree.py` and `topic_list.py` make.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from rich.cells import cell_len
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.message import Message

from ragforge_tui.tui.drawing.lines import Run, clip, one_line
from ragforge_tui.tui.drawing.palette import Palette
from ragforge_tui.tui.memory.memory_tree import TreeLine, range_text
from ragforge_tui.tui.memory.topic_list import TopicLine
from ragforge_tui.tui.widgets.virtual_list import VirtualList

L = TypeVar("L")

_DEEPEST = 6
"""Levels with an indentation of their own; deeper levels share the last one, so that text keeps its room."""


class TreeList(VirtualList[L]):
    """A list with lines that open and close."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "fold", show=False),
        Binding("right,l", "fold(True)", show=False),
        Binding("left,h", "fold(False)", show=False),
    ]

    class Folded(Message):
        """The user wants to open or close a line; None toggles it."""

        def __init__(self, rows: TreeList[Any], key: str, wanted: bool | None) -> None:
            super().__init__()
            self.rows = rows
            self.key = key
            self.wanted = wanted

        @property
        def control(self) -> TreeList[Any]:
            return self.rows

    def action_fold(self, wanted: bool | None = None) -> None:
        """Open or close the line at the cursor."""
        if self.chosen:
            self.post_message(self.Folded(self, self.chosen, wanted))


class TreeRows(TreeList[TreeLine]):
    """The tree of summaries.

    Args:
        missing: Called with a turn that came into view before its beginning is known.
    """

    def __init__(self, missing: Callable[[int], None]) -> None:
        super().__init__(empty="loading …")
        self._missing = missing

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
                return _fit([lead, (f"{turns:>5} ", palette.muted)], line.text or "…", palette.text, width)
            case "working":
                runs: list[Run] = [
                    lead,
                    (_sign("◐", "working", palette), palette.running),
                    (f"L{line.level} ", palette.running),
                ]
                return _fit([*runs, (f"{turns} ", palette.muted)], "summarising …", palette.muted, width)
            case "failed":
                failed = _sign("✕", "failed", palette)
                runs = [lead, (f"{failed}L{line.level} ", palette.failed), (f"{turns} ", palette.muted)]
                return _fit(runs, line.text or "", palette.muted, width)
            case "raw":
                runs = [lead, (_arrow(line.open, palette), palette.arrow), ("not summarised ", palette.muted)]
                return _fit(runs, turns, palette.text, width)
            case "summary":
                style = palette.persona if line.level > 1 else palette.you
                runs = [
                    lead,
                    (_arrow(line.open, palette), palette.arrow),
                    (f"L{line.level} ", style),
                    (f"{turns} ", palette.muted),
                ]
                return _fit(runs, line.text or "", palette.text, width)


class TopicRows(TreeList[TopicLine]):
    """The topics. `marked` is the key of one that is about to be merged."""

    marked = ""

    def key_of(self, line: TopicLine) -> str:
        return line.key

    def draw(self, line: TopicLine, width: int, palette: Palette) -> list[Run]:
        """Draw a topic, a name merged into it, or turns."""
        lead: Run = ("  " * line.depth, palette.text)
        match line.kind:
            case "note":
                return [lead, (line.text, palette.muted)]
            case "merged":
                return _fit([lead, ("+ ", palette.muted)], f"{line.text} (merged)", palette.muted, width)
            case "place":
                style = palette.you if line.own else palette.link
                runs = [lead, ("  ", palette.text), (line.text, style), (" ", palette.text)]
                return _fit(runs, line.detail, palette.muted, width)
            case "topic":
                mark: Run = (_sign("⋈", "to merge:", palette) if line.key == self.marked else "", palette.running)
                head = [lead, (_arrow(line.open, palette), palette.arrow), mark]
                name = one_line(line.text)
                used = sum(cell_len(text) for text, _ in head)
                room = width - used - cell_len(line.detail) - 2
                if not line.detail or room < min(cell_len(name), 12):
                    return _fit(head, name, palette.text, width)
                name = clip(name, room)
                gap = " " * (width - used - cell_len(name) - cell_len(line.detail))
                return [*head, (name, palette.text), (gap, palette.text), (line.detail, palette.muted)]


def _arrow(opened: bool | None, palette: Palette) -> str:
    if opened is None:
        return "" if palette.plain else "  "
    return _sign("▾", "open", palette) if opened else _sign("▸", "closed", palette)


def _sign(sign: str, word: str, palette: Palette) -> str:
    """Return a sign, or in the plain mode a word."""
    return f"{word if palette.plain else sign} "


def _fit(runs: list[Run], text: str, style: Style, width: int) -> list[Run]:
    """Return the runs, followed by as much of the text as fits."""
    used = sum(cell_len(part) for part, _ in runs)
    return [*runs, (clip(one_line(text), max(0, width - used)), style)]
