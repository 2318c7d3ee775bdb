"""Texts of a summary or a topic, as sections. Pure; `text_viewer.py` shows them."""

from __future__ import annotations

from collections.abc import Sequence

from ragforge_tui.shared.records import Summary, Topic
from ragforge_tui.shared.requests.tree import TopicPlace
from ragforge_tui.tui.dialogs.detail import Section
from ragforge_tui.tui.memory.memory_tree import range_text
from ragforge_tui.tui.memory.topic_list import topic_text

_MOST_CITED = 9


def summary_title(summary: Summary) -> str:
    """Return level, turns and author of a summary."""
    turns = range_text(summary.start_turn_index, summary.end_turn_index)
    made = f" · by {summary.made_by}" if summary.made_by else ""
    return f"L{summary.level} · turns {turns} · {summary.created_at.astimezone():%Y-%m-%d %H:%M}{made}"


def summary_sections(summary: Summary) -> list[Section]:
    """Return the sections of a summary: both parts, findings with their turns, files, tools, topics."""
    findings = [
        f"{number}. {found.text}{_cited(found.turns)}" for number, found in enumerate(summary.key_findings, start=1)
    ]
    parts = [
        ("Conversation", summary.conversation_summary),
        ("Actions", summary.actions_summary),
        ("Key findings", "\n".join(findings)),
        ("Files", "\n".join(summary.files_mentioned)),
        ("Tools", ", ".join(summary.tools_used)),
        ("Topics", ", ".join(summary.topics)),
    ]
    return [Section(title=title, text=text, look="prose") for title, text in parts if text.strip()]


def cited_turns(summary: Summary) -> dict[str, int]:
    """Return the key and first turn of each finding that names a turn."""
    numbered = enumerate(summary.key_findings[:_MOST_CITED], start=1)
    return {str(number): found.turns[0] for number, found in numbered if found.turns}


def topic_sections(topic: Topic, places: Sequence[TopicPlace]) -> list[Section]:
    """Return the sections of a topic: description, merged names, related topics, places."""
    return [Section(title=title, text=text, look="prose") for title, text in topic_text(topic, places)]


def _cited(turns: Sequence[int]) -> str:
    return f" [{', '.join(f't{turn}' for turn in turns)}]" if turns else ""
