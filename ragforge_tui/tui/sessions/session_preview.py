"""Preview of a session: title, summary, facts, first and last messages.

Pure: records in, `Content` out, everything as plain text. Loaded with the first session picker.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from textual.content import Content

from ragforge_tui.shared.records import Conversation, ConversationPeek
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.shared.truncation import cut_middle
from ragforge_tui.tui.sessions.session_rows import DEFAULT_GLYPH, session_title, short_time

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
        lines += [Content(plain_text(cut_middle(current.summary, _MOST_CHARS)).strip())]
    lines += [Content.assemble((f"{label:<8}", "dim"), text) for label, text in _facts(current, now, glyphs)]
    lines += _ends(peek)
    if current.branch_of:
        whose = _line(session_title(parent)) if parent is not None else current.branch_of[:8]
        where = f"turn {current.branch_turn}" if current.branch_turn else "the start"
        lines.append(Content.assemble(("⎇ from  ", "dim"), f"{where} of {whose}"))
    if branches:
        lines.append(Content.assemble(("⎇       ", "dim"), f"{branches} branch{'' if branches == 1 else 'es'}"))
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
        mark = ("> ", "$primary") if peek.last_role == "user" else ("", "")
        yield Content.assemble(("last    ", "dim"), mark, _line(peek.last))
    elif not peek.first:
        yield Content.styled("It has no messages yet.", "dim")


def _addresses(conversation: Conversation) -> Iterator[tuple[str, str]]:
    """Return its id and folder, as (label, text)."""
    yield "id", conversation.uuid
    if conversation.workspace:
        yield "folder", _line(conversation.workspace)
    if conversation.private:
        yield "private", "no other conversation recalls or finds it"


def _line(text: str) -> str:
    return " ".join(plain_text(cut_middle(text, _MOST_CHARS)).split())
