"""Queries of the search over all sessions, and its hits as text: the place, and a snippet around the words.

Pure; `search_screen.py` shows them.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Literal, get_args

import msgspec
from rich.cells import cell_len
from textual.content import Content

from ragforge_tui.shared.records import SearchHit
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.tui.sessions.session_rows import short_time

Scope = Literal["folder", "all", "conversation"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
SCOPE_NAMES = {"folder": "this folder", "all": "all folders", "conversation": "this conversation"}
HIT_LINES = 3
HIGHLIGHT = "bold $accent"
_TOPIC = re.compile(r'(?<!\S)topic:(?:"([^"]*)"?|(\S*))', re.IGNORECASE)


class SearchQuery(msgspec.Struct, frozen=True):
    """Words, topic and scope of a search."""

    words: str = ""
    topic: str = ""
    scope: Scope = "folder"


def parse_query(text: str, scope: Scope) -> SearchQuery:
    """Parse a query: words, and ``topic:NAME`` or ``topic:"MORE WORDS"`` among them."""
    found = _TOPIC.search(text)
    topic = (found[1] or found[2] or "") if found else ""
    return SearchQuery(words=" ".join(_TOPIC.sub(" ", text).split()), topic=topic.strip(), scope=scope)


def with_topic(text: str, topic: str) -> str:
    """Return the query with this topic instead of any other; an empty topic removes it."""
    words = " ".join(_TOPIC.sub(" ", text).split())
    name = topic.replace('"', " ")
    return f'topic:"{name}" {words}' if name else words


def hit_lines(hit: SearchHit, now: datetime, width: int, *, selected: bool, current: str = "") -> list[Content]:
    """Return a hit as exactly `HIT_LINES` lines."""
    when = short_time(hit.timestamp.astimezone(now.tzinfo), now.date())
    where = f" · turn {hit.turn_index} · {when}" + (" · open now" if hit.conversation_id == current else "")
    title = _line(hit.title) or f"untitled {hit.conversation_id[:8]}"
    room = max(width - 2 - cell_len(where), 8)
    cursor = ("▸ ", "$primary") if selected else ("  ", "")
    head = Content.assemble(
        cursor, Content.styled(title, "bold" if selected else "").truncate(room, ellipsis=True), (where, "dim")
    )
    body = snippet(hit, (width - 4) * (HIT_LINES - 1)).wrap(max(width - 4, 10))[: HIT_LINES - 1]
    lines = [head, *(line.pad_left(4) for line in body)]
    return lines + [Content("")] * (HIT_LINES - len(lines))


def snippet(hit: SearchHit, room: int) -> Content:
    """Return the text around the words, with the words highlighted; text far before the first one is omitted."""
    text, spans = hit.snippet, hit.highlights
    first = spans[0][0] if spans else 0
    start = max(first - room // 4, 0) if first > room * 2 // 3 else 0
    parts: list[tuple[str, str]] = [("…", "dim")] if start else []
    at = start
    for begin, end in spans:
        if begin >= at:
            parts += [(_clean(text[at:begin]), "dim"), (_clean(text[begin:end]), HIGHLIGHT)]
            at = end
    return Content.assemble(*parts, (_clean(text[at:]), "dim"))


def _line(text: str) -> str:
    return " ".join(plain_text(text).split())


def _clean(text: str) -> str:
    """Return a text on one line, with the blanks at its ends."""
    return re.sub(r"\s+", " ", plain_text(text))
