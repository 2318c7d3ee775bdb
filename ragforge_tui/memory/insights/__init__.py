"""Insights: main topic, findings and open tasks of a whole conversation, made once while it is unchanged.

A model writes them; without one they are extracted from the summaries.
"""

from __future__ import annotations

from ragforge_tui.memory.insights.contents import InsightDraft, extract_insight, open_todos, read_insight
from ragforge_tui.memory.insights.writer import InsightWriter, estimated_tokens, is_due

__all__ = [
    "InsightDraft",
    "InsightWriter",
    "estimated_tokens",
    "extract_insight",
    "is_due",
    "open_todos",
    "read_insight",
]
