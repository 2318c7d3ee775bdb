"""Preview of the session at the cursor: its record, and its first and last messages once they
are fetched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from datetime import datetime

import msgspec
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.records import Conversation, ConversationPeek
from ragforge_tui.shared.truncation import cut_middle
from ragforge_tui.tui.drawing.lines import one_line
from ragforge_tui.tui.drawing.palette import DEFAULT_GLYPH
from ragforge_tui.tui.limits import SCREEN
from ragforge_tui.tui.sessions.session_list_model import SessionList, session_title, short_time
from ragforge_tui.tui.sessions.session_service import SessionService
from ragforge_tui.tui.workers import start_worker


class SessionPane(VerticalScroll, can_focus=False):
    """Shows one session, next to or below the list."""

    def __init__(self, service: SessionService, sessions: SessionList) -> None:
        super().__init__()
        self._service = service
        self._sessions = sessions
        self._peeks: dict[str, ConversationPeek] = {}
        self._chosen: Conversation | None = None
        self._requested: Conversation | None = None
        self._text = Static(id="session-preview", markup=False)

    def compose(self) -> ComposeResult:
        yield self._text

    def show(self, chosen: Conversation | None) -> None:
        """Show a session; nothing is fetched while the pane is hidden."""
        if self._chosen is None or chosen is None or self._chosen.uuid != chosen.uuid:
            self.scroll_home(animate=False)
        self._chosen = chosen
        if chosen is None or not self.display:
            self._text.update("")
            return
        peek = self._peeks.get(chosen.uuid)
        self._draw(chosen, peek)
        if self._requested != chosen and (peek is None or peek.conversation.updated_at < chosen.updated_at):
            self._requested = chosen
            start_worker(self, self._fetch(chosen.uuid), group="peek", exclusive=True)

    async def _fetch(self, uuid: str) -> None:
        await asyncio.sleep(SCREEN.rest)
        try:
            peek = await self._service.peek(uuid)
            self._requested = None
        except RagforgeError as error:
            self._requested = None
            self._text.update(Content.styled(error.info.sentence(), "$error"))
            return
        self._peeks[uuid] = peek
        if self._chosen is not None and self._chosen.uuid == uuid:
            self._draw(self._chosen, peek)

    def _draw(self, chosen: Conversation, peek: ConversationPeek | None) -> None:
        if peek is not None:
            # The list follows what people change, the peek has the newer summary: that is no change of theirs.
            known = msgspec.structs.replace(chosen, summary=peek.conversation.summary or chosen.summary)
            peek = msgspec.structs.replace(peek, conversation=known)
        self._text.update(
            preview(
                chosen,
                peek,
                self._service.now,
                glyphs=self._service.glyphs,
                parent=self._sessions.get(chosen.branch_of) if chosen.branch_of else None,
                branches=self._sessions.branches(chosen.uuid),
            )
        )


_MOST_CHARS = 4_000
"""Maximum characters of each text: an imported title or summary may be of any size."""


def preview(
    conversation: Conversation,
    peek: ConversationPeek | None,
    now: datetime,
    *,
    glyphs: Mapping[str, str],
    parent: Conversation | None = None,
    branches: int = 0,
) -> Content:
    """Return a session in a few lines, the most important first, since the last ones may not fit.

    Args:
        peek: Its first and last messages, None while they are being fetched.
        parent: The session it branches off, if known.
        branches: The number of its branches.
    """
    current = peek.conversation if peek is not None else conversation
    lines = [Content.styled(_line(session_title(current)), "bold")]
    if current.summary.strip():
        lines += [Content(_read(current.summary))]
    lines += [Content.assemble((f"{label:<8}", "dim"), text) for label, text in _facts(current, now, glyphs)]
    lines += _ends(peek)
    if current.branch_of:
        whose = _line(session_title(parent)) if parent is not None else current.branch_of[:8]
        where = f"turn {current.branch_turn}" if current.branch_turn else "the start"
        lines.append(Content.assemble(("from    ", "dim"), f"{where} of {whose}"))
    if branches:
        lines.append(Content.assemble(("into    ", "dim"), f"{branches} branch{'' if branches == 1 else 'es'}"))
    lines += [Content.assemble((f"{label:<8}", "dim"), text) for label, text in _addresses(current)]
    return Content("\n").join(lines)


def _facts(conversation: Conversation, now: datetime, glyphs: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Return the known facts, as (label, text)."""
    if conversation.tags:
        yield "tags", " ".join(f"#{_line(tag)}" for tag in conversation.tags)
    today = now.date()
    created = short_time(conversation.created_at.astimezone(now.tzinfo), today)
    updated = short_time(conversation.updated_at.astimezone(now.tzinfo), today)
    moments = created if created == updated else f"{created} – {updated}"
    glyph = _line(glyphs.get(conversation.persona) or DEFAULT_GLYPH)
    who = f"{glyph} {_line(conversation.persona)}" if conversation.persona else ""
    yield "when", " · ".join(part for part in (moments, who, _line(conversation.model)) if part)


def _ends(peek: ConversationPeek | None) -> Iterator[Content]:
    """Return its first and its last messages."""
    if peek is None:
        yield Content.styled("first   …", "dim")
        return
    if peek.first:
        yield Content.assemble(("first   ", "dim"), ("> ", "$primary"), _line(peek.first))
    if peek.last:
        own = peek.last_role == "user"
        mark = ("> ", "$primary") if own else ("", "")
        yield Content.assemble(("last    ", "dim"), mark, _line(peek.last) if own else _read(peek.last))
    elif not peek.first:
        yield Content.styled("It has no messages yet.", "dim")


def _addresses(conversation: Conversation) -> Iterator[tuple[str, str]]:
    """Return its id and folder, as (label, text)."""
    yield "id", conversation.uuid
    if conversation.workspace:
        yield "folder", _line(conversation.workspace)
    if conversation.private:
        yield "private", "no other conversation recalls or finds it"


def _read(markdown: str) -> str:
    """Return Markdown as it is read, without its marks."""
    from ragforge_tui.tui.transcript.markdown import words_of

    return one_line(words_of(cut_middle(markdown, _MOST_CHARS)))


def _line(text: str) -> str:
    return one_line(cut_middle(text, _MOST_CHARS))
