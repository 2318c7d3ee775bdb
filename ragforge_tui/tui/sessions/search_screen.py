"""Search over all sessions: results as you type; Enter opens the session at that turn.

Loaded when first used.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input

from ragforge_tui.shared.formatting import counted
from ragforge_tui.shared.records import SearchHit
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.tui.drawing.lines import one_line
from ragforge_tui.tui.limits import SCREEN
from ragforge_tui.tui.sessions.session_list_model import short_time
from ragforge_tui.tui.sessions.session_service import (
    MOST_HITS,
    SCOPE_NAMES,
    SCOPES,
    Scope,
    SessionService,
    parse_query,
    with_topic,
)
from ragforge_tui.tui.sessions.turn_pane import TurnPane
from ragforge_tui.tui.widgets.choice_list import HIGHLIGHT, Choice, banded
from ragforge_tui.tui.widgets.key_bar import KeyBar, KeyHint
from ragforge_tui.tui.widgets.list_screen import BACK, ListScreen

ANY_TOPIC = "\x00any"
HINT = 'type words · topic:NAME or topic:"MORE WORDS" limits the search to a topic'


HIT_LINES = 3
_MARKS = re.compile(
    r"```\w*|`|(?<!\w)\*\*(?=\S)|(?<=\S)\*\*(?!\w)|~~"
    r"|(?<![\w*])\*(?=[^\s*][^*\n]*\*)|(?<=[^\s*])\*(?![\w*])|(?m:^#{1,6} )"
)
"""Marks of Markdown that a snippet, which may begin anywhere, can hold."""
_GONE = "\0"
"""Stands for a character that is not shown; stored texts have none."""


class HitList(Widget):
    """Hits with a cursor, all of the same height, so that only those in view are drawn."""

    DEFAULT_CSS = "HitList { height: 1fr; width: 1fr; }"
    ALLOW_SELECT = False

    @dataclass
    class Picked(Message):
        """The user clicked on a hit."""

        hit: SearchHit

    def __init__(self, service: SessionService) -> None:
        super().__init__()
        self._service = service
        self._cursor = 0
        self.hits: list[SearchHit] = []

    @property
    def chosen(self) -> SearchHit | None:
        return self.hits[self._cursor] if self.hits else None

    def show(self, hits: list[SearchHit]) -> None:
        """Replace the hits and go to the best one."""
        self.hits = hits
        self._cursor = 0
        self.refresh()

    def move(self, step: int) -> None:
        if self.hits:
            self._cursor = max(0, min(self._cursor + step, len(self.hits) - 1))
            self.refresh()

    @property
    def page(self) -> int:
        return max(self.size.height // HIT_LINES, 1)

    def _top(self) -> int:
        return max(0, min(self._cursor - self.page // 2, len(self.hits) - self.page))

    def render(self) -> Content:
        """Return the hits in view."""
        top, now, current = self._top(), self._service.now, self._service.current
        lines: list[Content] = []
        for index, hit in enumerate(self.hits[top : top + self.page + 1], top):
            selected = index == self._cursor
            of_hit = hit_lines(hit, now, self.size.width, selected=selected, current=current)
            lines += [banded(line, self.size.width) if selected and line.plain else line for line in of_hit]
        return Content("\n").join(lines[: max(self.size.height, 1)])

    def on_click(self, event: events.Click) -> None:
        """Pick the hit under the mouse."""
        index = self._top() + event.y // HIT_LINES
        if index < len(self.hits):
            self._cursor = index
            self.refresh()
            self.post_message(self.Picked(self.hits[index]))

    def on_mouse_scroll_down(self) -> None:
        self.move(1)

    def on_mouse_scroll_up(self) -> None:
        self.move(-1)


class SearchScreen(ListScreen[SearchHit | None]):
    """Returns the picked hit, None if none was picked.

    Args:
        words: Initial search words.
    """

    CSS = """
    SearchScreen > Vertical { width: 100%; max-width: 140; height: 100%; }
    SearchScreen Input { margin-bottom: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("alt+w", "scope", "this folder or all", show=False, priority=True),
        Binding("alt+g", "topic", "only one tag or topic", show=False, priority=True),
    ]

    def __init__(self, service: SessionService, words: str = "") -> None:
        super().__init__()
        self._service = service
        self._words = words
        self._scope: Scope = "folder" if service.folder is not None else "all"
        self.cursor_list = self._hits = HitList(service)
        self._input = Input(words, placeholder="words to search for", compact=True)
        self._preview = TurnPane(service)
        self._title = KeyBar(self, lines=2, id="search-title")
        self._keys = KeyBar(self, lines=2, id="search-keys")
        self._keys.show_keys([BACK], lead=HINT)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self._title
            yield self._input
            yield self._hits
            yield self._preview
            yield self._keys

    def on_mount(self) -> None:
        """Search at once if there are words already."""
        self._input.focus()
        self._show_title()
        self._preview.show(None)

    def _show_title(self) -> None:
        topic = parse_query(self._input.value, self._scope).topic
        hints = [
            KeyHint("scope", "alt+w", SCOPE_NAMES[self._scope], self._scope != "folder"),
            KeyHint("topic", "alt+g", f"topic {topic}" if topic else "all topics", bool(topic)),
        ]
        self._title.show_keys(hints, lead="Search", style="bold")

    # -- searching

    def on_input_changed(self) -> None:
        """Search after a pause in typing, without waiting for the search before."""
        self._search_soon()

    def _search_soon(self) -> None:
        self._show_title()
        self.run_guarded(self._search(), group="search")

    async def _search(self) -> None:
        wanted = parse_query(self._input.value, self._scope)
        if not wanted.words:
            self._show_hits([])
            self._keys.show_keys([BACK], lead="add words to search for" if wanted.topic else HINT)
            return
        await asyncio.sleep(SCREEN.settle)
        self._keys.show_keys([BACK], lead="searching …")
        hits = await self._service.search(wanted)
        self._show_hits(hits)
        where = SCOPE_NAMES[wanted.scope]
        if not hits:
            elsewhere = [] if wanted.scope == "all" else [KeyHint("scope", "alt+w", "search elsewhere")]
            self._keys.show_keys([*elsewhere, BACK], lead=f"no match in {where}")
            return
        count = f"the best {MOST_HITS} hits" if len(hits) >= MOST_HITS else counted(len(hits), "hit")
        self._keys.show_keys([KeyHint("open", "enter", "open at that turn"), BACK], lead=f"{count} in {where}")

    def _show_hits(self, hits: list[SearchHit]) -> None:
        self._hits.show(hits)
        self.cursor_moved()

    def cursor_moved(self) -> None:
        """Show the turn of the hit at the cursor."""
        self._preview.show(self._hits.chosen)

    # -- keys

    def on_input_submitted(self) -> None:
        self.action_open()

    def action_open(self) -> None:
        """Leave with the chosen hit."""
        if self._hits.chosen is not None:
            self.dismiss(self._hits.chosen)

    def on_hit_list_picked(self, event: HitList.Picked) -> None:
        self.dismiss(event.hit)

    def show_error(self, sentence: str) -> None:
        """Show an error in place of the hits and keys."""
        self._show_hits([])
        self._keys.show_note(sentence, "$error")

    def action_scope(self) -> None:
        """Change the scope; this conversation is offered only while one is open."""
        offered = [
            scope
            for scope in SCOPES
            if (scope != "conversation" or self._service.current)
            and (scope != "folder" or self._service.folder is not None)
        ]
        self._scope = offered[(offered.index(self._scope) + 1) % len(offered)]
        self._search_soon()

    def action_topic(self) -> None:
        """Choose a topic to search in."""
        from ragforge_tui.tui.widgets.list_screen import Picker

        def picked(name: str | None) -> None:
            if name is not None:
                self._input.value = with_topic(self._input.value, "" if name == ANY_TOPIC else name)
                self._input.cursor_position = len(self._input.value)

        empty = "topics appear once two summaries name them"
        self.app.push_screen(Picker("Topics", self._topics, empty=empty, verb="search in it"), picked)

    async def _topics(self) -> list[Choice]:
        found = await self._service.topics(everywhere=self._scope != "folder")
        rows = [Choice(topic.name, topic.name, counted(topic.conversations, "session")) for topic in found]
        return [Choice(ANY_TOPIC, "any topic"), *rows] if rows else []


def hit_lines(hit: SearchHit, now: datetime, width: int, *, selected: bool, current: str = "") -> list[Content]:
    """Return a hit as exactly `HIT_LINES` lines."""
    when = short_time(hit.timestamp.astimezone(now.tzinfo), now.date())
    where = f" · turn {hit.turn_index} · {when}" + (" · open now" if hit.conversation_id == current else "")
    title = one_line(hit.title) or f"untitled {hit.conversation_id[:8]}"
    room = max(width - 2 - cell_len(where), 8)
    cursor = ("▸ ", "$text-primary") if selected else ("  ", "")
    head = Content.assemble(
        cursor, Content.styled(title, "bold" if selected else "").truncate(room, ellipsis=True), (where, "dim")
    )
    body = snippet(hit, (width - 4) * (HIT_LINES - 1)).wrap(max(width - 4, 10))[: HIT_LINES - 1]
    lines = [head, *(line.pad_left(4) for line in body)]
    return lines + [Content("")] * (HIT_LINES - len(lines))


def snippet(hit: SearchHit, room: int) -> Content:
    """Return who said it and the text around the words, highlighted; text far before the first one is omitted."""
    # Marks give way to as many characters as they have, so that the places of the words hold.
    text, spans = _MARKS.sub(lambda mark: _GONE * len(mark[0]), hit.snippet), hit.highlights
    first = spans[0][0] if spans else 0
    start = max(first - room // 4, 0) if first > room * 2 // 3 else 0
    who = ("you ", "$text-primary") if hit.role == "user" else ("answer ", "$text-secondary")
    parts = [who, ("…", "dim")] if start else [who]
    at = start
    for begin, end in spans:
        if begin >= at:
            parts += [(_clean(text[at:begin]), "dim"), (_clean(text[begin:end]), HIGHLIGHT)]
            at = end
    return Content.assemble(*parts, (_clean(text[at:]), "dim"))


def _clean(text: str) -> str:
    """Return a text on one line, with the blanks at its ends."""
    return re.sub(r"\s+", " ", plain_text(text.replace(_GONE, "")))
