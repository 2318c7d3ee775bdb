"""The header line."""

from __future__ import annotations

import os

import msgspec
from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from ragforge_tui.shared.records import Conversation
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.tui.drawing.lines import fit, one_line
from ragforge_tui.tui.drawing.palette import DEFAULT_GLYPH, persona_color
from ragforge_tui.tui.folder import folder_text, short_folder
from ragforge_tui.tui.session.state import EngineState
from ragforge_tui.tui.widgets.clickable import command_at, runs_command

DOTS = {"ready": ("●", "$success"), "starting": ("◐", "$warning"), "unreachable": ("●", "$error")}

NEW = "New conversation"
MIN_TITLE = 20
MIN_FOLDER = 26
"""Columns that the title keeps on a narrow screen, and the folder for as long as it can keep its branch."""
MIN_NAME = 12
"""Columns that the folder's name keeps while persona and model are shown."""
UNKNOWN_DOT = ("○", "dim")
"""Without an engine the state of the graph is unknown."""


class HeaderContents(msgspec.Struct, frozen=True):
    """Everything the header shows; it is redrawn when one of these values changes."""

    title: str = ""
    opening: bool = False
    private: bool = False
    origin: str = ""
    speaker: str = ""
    glyph: str = ""
    color: str = ""
    model: str | None = None
    model_ready: bool = True
    graph: str | None = None
    graph_phase: str = "starting"
    connected: bool = True
    folder: str = ""
    branch: str = ""


def header_contents(state: EngineState) -> HeaderContents:
    """Return what the header shows of a state."""
    conversation, model, graph = state.conversation, state.model, state.graph
    glyph, color = state.persona_styles.get(state.speaker, ("", ""))
    return HeaderContents(
        title=plain_text(conversation.title).strip() if conversation else "",
        opening=state.opening,
        private=state.private,
        origin=origin(conversation) if conversation else "",
        speaker=state.speaker,
        glyph=glyph,
        color=color,
        model=model.name if model is not None else None,
        model_ready=model is None or model.phase == "ready",
        graph=graph.name if graph is not None else None,
        graph_phase=graph.phase if graph is not None else "starting",
        connected=state.connection != "lost",
        folder=state.folder,
        branch=state.branch,
    )


class Header(Widget):
    """Title on the left; folder, persona, model and graph with its dot on the right."""

    ALLOW_SELECT = False

    contents: reactive[HeaderContents] = reactive(HeaderContents())

    def __init__(self) -> None:
        super().__init__(id="header")

    def render(self) -> Content:
        """Return one line; a narrow one leaves out the least important parts."""
        shown = self.contents
        named = [(*self._speaker(shown), "personas")] if shown.speaker else []
        if shown.model is not None:
            named.append((_short(shown.model) or "no model", "dim" if shown.model_ready else "$warning", "model"))
        dot = DOTS.get(shown.graph_phase, DOTS["unreachable"]) if shown.connected else UNKNOWN_DOT
        graph = [(f"graph {_short(shown.graph, 24)}" if shown.graph is not None else "graph", "dim", "")]
        if self.app.has_class("-plain") and shown.graph_phase != "ready":
            graph.append((shown.graph_phase, "dim", ""))
        width = self.size.width
        room = width - min(cell_len(shown.title) or len(NEW), MIN_TITLE) - 2
        folder = folder_text(shown.folder, shown.branch, max(min(width // 3, 60), MIN_FOLDER)) if shown.folder else ""
        needed = cell_len(folder) + 3 if folder else 0
        # The state of the graph is its dot. First its name gives way, then branch and path, then the model.
        while graph and _cells(named + graph) + needed > room:
            graph.pop()
        name = short_folder(shown.folder).rpartition(os.sep)[2]
        least = min(needed, cell_len(name) + 3, MIN_NAME + 3)
        while named and _cells(named) + least > room:
            named.pop()
        right = named + graph
        if folder:
            short = folder_text(shown.folder, shown.branch, max(min(cell_len(folder), room - _cells(right) - 3), 1))
            right.insert(0, (short, "", ""))
        parts: list[Content] = []
        for index, (text, style, command) in enumerate(right):
            word = runs_command(Content.styled(text, style), command)
            parts += [Content.styled(" · ", "dim"), word] if index else [word]
        parts.append(Content.styled(f" {dot[0]}", dot[1]))
        # The title takes the rest; a private conversation keeps its mark even when the title is truncated.
        space = max(width - sum(part.cell_length for part in parts), 0)
        gap = min(space, 2)
        title = shown.title or ("opening …" if shown.opening else NEW)
        mark = " (private)" if shown.private else ""
        room = max(space - gap - cell_len(mark), 0)
        origin = f" ({shown.origin})" if shown.origin else ""
        if cell_len(title) + cell_len(origin) > room:
            origin = ""
        left = fit(title, min(room, cell_len(title)) if mark or origin else room)
        mark = fit(mark, space - gap - cell_len(left) - cell_len(origin)) + " " * gap
        words = runs_command(Content.styled(left, "bold" if shown.title else "dim"), "sessions")
        return Content.assemble(words, (origin, "dim"), (mark, "$warning"), *parts)

    async def on_click(self, event: events.Click) -> None:
        """Run the command of the word under the mouse."""
        if command := command_at(event):
            event.stop()
            await self.app.run_action(f"command({command!r})")

    def _speaker(self, shown: HeaderContents) -> tuple[str, str]:
        """Return glyph and name of the persona that answers next, in its color."""
        own = None if self.app.native_ansi_color else persona_color(shown.color, dark=self.app.current_theme.dark)
        style = f"{own.hex} bold" if own is not None else "$secondary bold"
        sign = "" if self.app.has_class("-plain") else f"{_short(shown.glyph, 4) or DEFAULT_GLYPH} "
        return f"{sign}{_short(shown.speaker)}", style


def _cells(parts: list[tuple[str, str, str]]) -> int:
    """Return the cells of parts, each with the point next to it."""
    return sum(cell_len(text) + 3 for text, *_ in parts)


def origin(conversation: Conversation) -> str:
    """Return where a branch left its parent; empty for another conversation."""
    if not conversation.branch_of:
        return ""
    return f"branch from turn {conversation.branch_turn}" if conversation.branch_turn else "branch from the start"


def _short(name: str, width: int = 32) -> str:
    text = one_line(name)
    return text if cell_len(text) <= width else fit(text, width)
