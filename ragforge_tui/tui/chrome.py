"""The lines around the chat: header, queued messages, status line. Drawn from `ChatState`, never by a timer."""

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
ACTIVITIES = {
    "idle": ("○", "dim", "idle"),
    "thinking": ("◐", "$warning", "thinking"),
    "answering": ("◐", "$warning", "answering"),
    "running": ("◐", "$warning", "running"),
    "waiting": ("●", "$secondary bold", "waiting for you"),
}
MODES = {"plan": ("  plan", "$secondary"), "ask": ("  ask", "dim"), "edits": ("  accept edits", "$warning")}
CONNECTIONS = {
    "starting": ("◐", "$warning", "starting"),
    "lost": ("●", "$error", "engine lost, starting again"),
    "closing": ("◐", "$warning", "closing"),
}


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
        right.append((f"graph {_short(graph.name, 24)}" if graph else "graph", "dim"))
        width = self.size.width
        while len(right) > 1 and sum(cell_len(text) + 3 for text, _ in right) + 2 > width - min(len(title), 20):
            right.pop(0)
        parts: list[tuple[str, str]] = []
        for index, part in enumerate(right):
            parts += [(" · ", "dim"), part] if index else [part]
        parts.append((f" {dot[0]}", dot[1]))
        space = max(width - sum(cell_len(text) for text, _ in parts), 0)
        gap = min(space, 2)
        untitled = "opening …" if state.opening else "New conversation"
        shown = _cut(title or untitled, space - gap) + " " * gap
        return Content.assemble((shown, "bold" if title else "dim"), *parts)

    def _speaker(self, name: str) -> tuple[str, str]:
        """Who speaks next, in their own colour."""
        glyph, color = self.state.looks.get(name, ("", ""))
        own = None if self.app.native_ansi_color else ink(color, dark=self.app.current_theme.dark)
        style = f"{own.hex} bold" if own is not None else "$secondary bold"
        return f"{_short(glyph, 4) or '✶'} {_short(name)}", style


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
        lines.append(Content.styled(f"{note}↑ edit · esc stop and send", "dim"))
        return Content("\n").join(lines)


class StatusLine(Chrome):
    """What is going on, what it cost, which keys help now."""

    def __init__(self, state: ChatState, keys: str) -> None:
        super().__init__(state, id="status")
        self._keys = keys
        self.elapsed: int | None = None

    def text(self) -> Content:
        """One line; cost goes first when it is narrow, then the keys."""
        state = self.state
        glyph, style, word = CONNECTIONS.get(state.connection) or ACTIVITIES[state.activity]
        if state.connection == "up" and state.graph is not None and state.graph.phase == "starting":
            word = f"{word} · graph starting"
        if self.elapsed:
            word = f"{word} {self.elapsed} s"
        left = [(f"{glyph} {word}", style), MODES[state.mode]]
        if state.summarising:
            left.append((f"  summarising {_levels(state.summarising)}", "dim"))
        if state.graph is not None and state.graph.journaled:
            left.append((f"  {state.graph.journaled} in journal", "$warning"))
        spent = f"   {_count(state.spent.tokens)} tok" if state.spent.tokens else ""
        if state.spent.cost:
            spent += f" ${state.spent.cost:.2f}"
        keys = state.hint or self._hints()
        used = sum(cell_len(text) for text, _ in left)
        width = self.size.width
        if used + cell_len(spent) + cell_len(keys) + 2 <= width:
            left.append((spent, "dim"))
            used += cell_len(spent)
        room = width - used - 2
        shown = keys if cell_len(keys) <= room else _cut(keys.rpartition("· ")[2] if room < 12 else keys, max(room, 0))
        gap = " " * max(width - used - cell_len(shown), 0)
        return Content.assemble(*left, gap, (shown.rstrip(), "$warning" if state.hint else "dim"))

    def _hints(self) -> str:
        if self.state.editing:
            return f"editing turn {self.state.editing}: enter sends it as a branch · esc leaves it"
        if self.state.activity == "waiting":
            return "tab answer · esc no"
        return self._keys if self.state.activity == "idle" else f"esc stop · {self._keys}"


def _levels(summarising: set[tuple[int, int]]) -> str:
    return ", ".join(f"L{level}" for level in sorted({level for level, _ in summarising}))


def _short(name: str, width: int = 32) -> str:
    text = " ".join(plain_text(name).split())
    return text if cell_len(text) <= width else _cut(text, width)


def _cut(text: str, width: int) -> str:
    """Exactly `width` cells."""
    text = " ".join(text.split("\n"))
    if cell_len(text) <= width:
        return text + " " * (width - cell_len(text))
    return set_cell_size(text, max(width - 1, 0)) + "…" if width else ""


def _count(number: int) -> str:
    return f"{number / 1000:.1f}k" if number >= 1000 else str(number)
