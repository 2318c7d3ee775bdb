"""Preview of the session at the cursor: its record, and its first and last messages, as the chat shows them, once
they are fetched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
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
from ragforge_tui.tui.transcript.excerpt import Excerpt, Said
from ragforge_tui.tui.workers import start_worker


class SessionPane(VerticalScroll, can_focus=False):
    """Shows one session, next to or below the list.

    Attributes:
        beside: Whether it is next to the list, as high as the screen; else its messages take a line each.
    """

    def __init__(self, service: SessionService, sessions: SessionList) -> None:
        super().__init__()
        self._service = service
        self._sessions = sessions
        self._peeks: dict[str, ConversationPeek] = {}
        self._chosen: Conversation | None = None
        self._requested: Conversation | None = None
        self.beside = True
        self._text = Static(id="session-preview", markup=False)
        self._messages = Excerpt()
        self._addresses = Static(id="session-addresses", markup=False)

    def compose(self) -> ComposeResult:
        yield self._text
        yield self._messages
        yield self._addresses

    def show(self, chosen: Conversation | None) -> None:
        """Show a session; nothing is fetched while the pane is hidden."""
        if self._chosen is None or chosen is None or self._chosen.uuid != chosen.uuid:
            self.scroll_home(animate=False)
        self._chosen = chosen
        if chosen is None or not self.display:
            self._text.update("")
            self._messages.display = self.beside
            self._messages.show(())
            self._addresses.update("")
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
            self._messages.show((), error.info.sentence())
            return
        self._peeks[uuid] = peek
        if self._chosen is not None and self._chosen.uuid == uuid:
            self._draw(self._chosen, peek)

    def _draw(self, chosen: Conversation, peek: ConversationPeek | None) -> None:
        if peek is not None:
            # The list follows what people change, the peek has the newer summary: that is no change of theirs.
            chosen = msgspec.structs.replace(chosen, summary=peek.conversation.summary or chosen.summary)
        text = preview(
            chosen,
            self._service.now,
            glyphs=self._service.glyphs,
            parent=self._sessions.get(chosen.branch_of) if chosen.branch_of else None,
            branches=self._sessions.branches(chosen.uuid),
        )
        glyph, color = self._service.persona_style(chosen.persona)
        said = ends(peek, glyph, color) if peek is not None else []
        self._text.update(text if self.beside else Content("\n").join([text, *brief(said)]))
        self._messages.display = self.beside or not said
        self._messages.show(said, "…" if peek is None else "It has no messages yet.")
        self._addresses.update(addresses(chosen))


_MOST_CHARS = 4_000
"""Maximum characters of each text: an imported title or summary may be of any size."""


MOST_LINES = 8
"""Maximum lines of each message."""


def preview(
    conversation: Conversation,
    now: datetime,
    *,
    glyphs: Mapping[str, str],
    parent: Conversation | None = None,
    branches: int = 0,
) -> Content:
    """Return what is known about a session, for the place above its messages.

    Args:
        parent: The session it branches off, if known.
        branches: The number of its branches.
    """
    lines = [Content.styled(_line(session_title(conversation)), "bold")]
    if conversation.summary.strip():
        lines += [Content(_read(conversation.summary))]
    lines += [Content.assemble((f"{label:<8}", "dim"), text) for label, text in _facts(conversation, now, glyphs)]
    if conversation.branch_of:
        whose = _line(session_title(parent)) if parent is not None else conversation.branch_of[:8]
        where = f"turn {conversation.branch_turn}" if conversation.branch_turn else "the start"
        lines.append(Content.assemble(("from    ", "dim"), f"{where} of {whose}"))
    if branches:
        lines.append(Content.assemble(("into    ", "dim"), f"{branches} branch{'' if branches == 1 else 'es'}"))
    return Content("\n").join(lines)


def ends(peek: ConversationPeek, glyph: str = "", color: str = "") -> list[Said]:
    """Return the first and the last message of a session, with the look of its persona."""
    found = [Said(peek.first, most=MOST_LINES)] if peek.first.strip() else []
    if peek.last.strip() and not (peek.last_role == "user" and peek.last == peek.first):
        persona = (peek.conversation.persona or "Assistant") if peek.last_role != "user" else ""
        found.append(Said(peek.last, persona, glyph, color, MOST_LINES))
    return found


def brief(said: Sequence[Said]) -> list[Content]:
    """Return the first and the last message of a session, a line each."""
    labels = ("first", "last") if len(said) > 1 else ("first",)
    texts = (_read(one.text) if one.persona else f"> {_line(one.text)}" for one in said)
    return [Content.assemble((f"{label:<8}", "dim"), text) for label, text in zip(labels, texts, strict=False)]


def addresses(conversation: Conversation) -> Content:
    """Return where a session is stored, for the place below its messages."""
    lines = [Content.assemble((f"{label:<8}", "dim"), text) for label, text in _addresses(conversation)]
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
