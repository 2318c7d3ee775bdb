"""Rows of the pickers: conversations with their branches, models by name.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta

from ragforge_tui.shared.records import Conversation
from ragforge_tui.tui.widgets.choice_list import Choice

DEFAULT_GLYPH = "✶"
KEPT_DAYS = 7
"""Days for which a deleted conversation can be restored."""


def session_row(
    conversation: Conversation,
    now: datetime,
    *,
    current: str = "",
    glyphs: Mapping[str, str] | None = None,
    narrow: bool = False,
) -> Choice:
    """Return a conversation as a row, with times in the user's time zone.

    Args:
        current: Id of the open one.
        glyphs: Glyphs of personas, by name.
        narrow: Whether there is little room next to the title.
    """
    count = conversation.message_count
    moment = conversation.updated_at.astimezone(now.tzinfo)
    messages = "" if narrow else f" message{'' if count == 1 else 's'}"
    detail = f"{count}{messages} · {short_time(moment, now.date())}"
    badges = [badge for badge in _badges(conversation, now) if badge]
    if conversation.uuid == current:
        badges.insert(0, "open now")
    glyph = (glyphs or {}).get(conversation.persona) or DEFAULT_GLYPH
    sign = f"{glyph} " if conversation.persona else ""
    return Choice(
        conversation.uuid,
        session_title(conversation),
        detail,
        lead=f"{branch_sign(conversation, narrow=narrow)}{sign}",
        badge=f"({', '.join(badges)})" if badges else "",
    )


def _badges(conversation: Conversation, now: datetime) -> Iterable[str]:
    yield "private" if conversation.private else ""
    if conversation.status == "deleted" and conversation.deleted_at is not None:
        left = conversation.deleted_at + timedelta(days=KEPT_DAYS) - now
        days = max(left.days, 0)
        yield f"deleted, kept {days} day{'' if days == 1 else 's'}" if days else "deleted, purged soon"
    elif conversation.status != "active":
        yield conversation.status


def session_title(conversation: Conversation) -> str:
    return conversation.title.strip() or f"untitled {conversation.uuid[:8]}"


def branch_sign(conversation: Conversation, *, narrow: bool = False) -> str:
    """Return the turn at which it branches off; empty for a conversation that is no branch."""
    if not conversation.branch_of:
        return ""
    if not conversation.branch_turn:
        return "⎇ · " if narrow else "⎇ from the start · "
    return f"⎇ {'' if narrow else 'from turn '}{conversation.branch_turn} · "


def date_group(day: date, today: date) -> str:
    """Return the heading of a day."""
    age = (today - day).days
    if age <= 0:
        return "Today"
    if age == 1:
        return "Yesterday"
    if age < 7:
        return "This week"
    return day.strftime("%B %Y")


def short_time(moment: datetime, today: date) -> str:
    """Return the time for today, else the date."""
    if moment.date() == today:
        return moment.strftime("%H:%M")
    return f"{moment.day} {moment:%b}" if moment.year == today.year else f"{moment.day} {moment:%b %Y}"


def model_rows(names: Iterable[str], current: str) -> list[Choice]:
    """Return models as rows, the current one first."""
    ordered = sorted(names, key=lambda name: (name != current, name))
    return [Choice(name, name, "in use" if name == current else "") for name in ordered]
