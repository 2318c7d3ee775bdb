"""Rows of the pickers: conversations by date, models by name.

Pure; `picker.py` shows them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime, tzinfo

from ragforge_tui.models import Conversation
from ragforge_tui.tui.choices import Choice


def session_rows(
    conversations: Iterable[Conversation],
    now: datetime,
    *,
    current: str = "",
    glyphs: Mapping[str, str] | None = None,
) -> list[Choice]:
    """Conversations as rows, grouped by when they were last touched (in the person's own time zone).

    Args:
        glyphs: Signs of personas, by name.
    """
    today = now.date()
    return [_session_row(conversation, today, now.tzinfo, current, glyphs or {}) for conversation in conversations]


def _session_row(
    conversation: Conversation, today: date, zone: tzinfo | None, current: str, glyphs: Mapping[str, str]
) -> Choice:
    moment = conversation.updated_at.astimezone(zone)
    count = conversation.message_count
    who = f"{glyphs.get(conversation.persona) or '✶'} {conversation.persona} · " if conversation.persona else ""
    detail = f"{who}{count} message{'' if count == 1 else 's'} · {_when(moment, today)}"
    title = conversation.title.strip() or f"untitled {conversation.uuid[:8]}"
    label = f"{title} (open now)" if conversation.uuid == current else title
    return Choice(conversation.uuid, label, detail, heading=date_group(moment.date(), today))


def date_group(day: date, today: date) -> str:
    """The heading a day stands under."""
    age = (today - day).days
    if age <= 0:
        return "Today"
    if age == 1:
        return "Yesterday"
    if age < 7:
        return "This week"
    return day.strftime("%B %Y")


def _when(moment: datetime, today: date) -> str:
    if moment.date() == today:
        return moment.strftime("%H:%M")
    return f"{moment.day} {moment:%b}" if moment.year == today.year else f"{moment.day} {moment:%b %Y}"


def model_rows(names: Iterable[str], current: str) -> list[Choice]:
    """Models as rows, the one in use first."""
    ordered = sorted(names, key=lambda name: (name != current, name))
    return [Choice(name, name, "in use" if name == current else "") for name in ordered]
