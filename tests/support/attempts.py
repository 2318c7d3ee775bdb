"""Attempts for tests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ragforge_tui.graph.store.records import derived
from ragforge_tui.shared.attempt_records import Attempt


def undone(conversation_id: str, message: str, **fields: Any) -> Attempt:
    """An edit of `/w/src/app.py` in turn 1 that was undone."""
    given = {
        "uuid": derived("attempt", conversation_id),
        "turn_index": 1,
        "end_turn": 1,
        "workspace": "/w",
        "key": "src/app.py",
        "outcome": "undone",
        "what": "wait = 30 → wait = 60",
        "why": "no, revert that",
        "marks": ["-a1", "+b2"],
        "at": datetime(2026, 10, 3, 9, 30, tzinfo=UTC),
    }
    return Attempt(conversation_id=conversation_id, message=message, **{**given, **fields})
