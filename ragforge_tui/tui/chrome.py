"""The lines around the chat: header, queued messages. Drawn from `ChatState`, never by a timer."""

from __future__ import annotations

from abc import abstractmethod

from rich.cells import cell_len, set_cell_size
from textual.content import Content
from textual.widget import Widget

from ragforge_tui.text import plain_text
from ragforge_tui.tui.inks import ink
from ragforge_tui.tui.outbox import Outgoing
from ragforge_tui.tui.state import ChatState

DOTS = {"ready": ("●", "$success"), "starting": ("◐", "$warning"), "unreachable": ("●", "$error")}

UNKNOWN_DOT = ("○", "dim")
"""Without an engine nothing is known of the graph."""


class Chrome(Widget):
    """A line of the frame."""

    ALLOW_SELECT = False

    def __init__(self, state: ChatState, *, id: str) -> None:
        super().__init__(id=id)
        self.state = state
        self._drawn: Content | None = None

    @abstractmethod
    def text(self) -> Content:
        """What it says, as things are."""

    def render(self) -> Content:
        """The line."""
        self._drawn = self.text()
        return self._drawn

    def update(self) -> None:
        """Draw it again if it says something else than before."""
        before, text = self._drawn, self.text()
        # Contents are equal when their letters are, whatever their colours.
        if before is None or (before.plain, before.spans) != (text.plain, text.spans):
            self.refresh()


class Header(Chrome):
    """Title on the left; persona, model and graph with its dot on the right."""

    def text(self) -> Content:
        """One line; parts are left out from the least needed when it is narrow."""
        state = self.state
        conversation = state.conversation
        title = plain_text(conversation.title).strip() if conversation else ""
        speaking = (conversation.persona if conversation else "") or state.persona
        right = [self._speaker(speaking)] if speaking else []
        if state.model is not None:
            right.append(
                (_short(state.model.name) or "no model", "dim" if state.model.phase == "ready" else "$warning")
            )
        graph = state.graph
        dot = DOTS.get(graph.phase, DOTS["unreachable"]) if graph else DOTS["starting"]
        if state.connection == "lost":
            dot = UNKNOWN_DOT
        right.append((f"graph {_short(graph.name, 24)}" if graph else "graph", "dim"))
        if self.app.has_class("-plain") and (graph is None or graph.phase != "ready"):
            right.append((graph.phase if graph else "starting", "dim"))
        width = self.size.width
        while len(right) > 1 and sum(cell_len(text) + 3 for text, _ in right) + 2 > width - min(len(title), 20):
            right.pop(1 if speaking else 0)
        parts: list[tuple[str, str]] = []
        for index, part in enumerate(right):
            parts += [(" · ", "dim"), part] if index else [part]
        parts.append((f" {dot[0]}", dot[1]))
        space = max(width - sum(cell_len(text) for text, _ in parts), 0)
        gap = min(space, 2)
        untitled = "opening …" if state.opening else "New conversation"
        mark = " (private)" if conversation and conversation.private else ""
        room = max(space - gap - cell_len(mark), 0)
        shown = _cut(title or untitled, min(room, cell_len(title or untitled)) if mark else room)
        mark = _cut(mark, space - gap - cell_len(shown)) + " " * gap
        return Content.assemble((shown, "bold" if title else "dim"), (mark, "$warning"), *parts)

    def _speaker(self, name: str) -> tuple[str, str]:
        """Who speaks next, in their own colour."""
        glyph, color = self.state.looks.get(name, ("", ""))
        own = None if self.app.native_ansi_color else ink(color, dark=self.app.current_theme.dark)
        style = f"{own.hex} bold" if own is not None else "$secondary bold"
        sign = "" if self.app.has_class("-plain") else f"{_short(glyph, 4) or '✶'} "
        return f"{sign}{_short(name)}", style


class Queue(Widget):
    """Messages that wait, one line each; hidden when none do."""

    ALLOW_SELECT = False

    def __init__(self) -> None:
        super().__init__(id="queue")
        self._items: list[Outgoing] = []
        self.display = False

    def show(self, items: list[Outgoing]) -> None:
        """These wait."""
        if items != self._items or self.display != bool(items):
            self._items = [Outgoing(item.message_id, item.text, item.place) for item in items]
            self.display = bool(items)
            self.refresh(layout=True)

    def render(self) -> Content:
        """The newest three and how many more."""
        lines = []
        words = {"waiting": "waits for the start", "sending": "sending", "queued": "queued"}
        for item in self._items[:3]:
            text = " ".join(plain_text(item.text[:400]).split())
            room = max(self.size.width - len(words[item.place]) - 2, 4)
            lines.append(Content.assemble((f"{words[item.place]}  ", "$accent"), (_cut(text, room).rstrip(), "dim")))
        more = len(self._items) - 3
        note = f"{more} more · " if more > 0 else ""
        # Before the start there is nothing to stop.
        starts = all(item.place == "waiting" for item in self._items)
        lines.append(Content.styled(f"{note}↑ edit{'' if starts else ' · esc stop and send'}", "dim"))
        return Content("\n").join(lines)


def _short(name: str, width: int = 32) -> str:
    text = " ".join(plain_text(name).split())
    return text if cell_len(text) <= width else _cut(text, width)


def _cut(text: str, width: int) -> str:
    """Exactly `width` cells."""
    text = " ".join(text.split("\n"))
    if cell_len(text) <= width:
        return text + " " * (width - cell_len(text))
    return set_cell_size(text, max(width - 1, 0)) + "…" if width else ""
