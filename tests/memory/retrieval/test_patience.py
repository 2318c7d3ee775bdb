"""How long a request waits for a search, and what is told when that was not enough."""

from __future__ import annotations

import logging
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from ragforge_tui.memory.retrieval.question import patience
from ragforge_tui.memory.retrieval.recall import LATE, STILL_STARTING
from ragforge_tui.shared.limits import LIMITS
from ragforge_tui.shared.records import ContextRecord

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "message",
    [
        "What did we decide about retries?",
        "Where did we stop last time?",
        "Qu'avons-nous décidé hier ?",
        "Was blieb offen?",
    ],
)
def test_a_question_about_the_past_waits_longer(message: str) -> None:
    assert patience(message) == LIMITS.asked
    assert patience(message, first=True) == max(LIMITS.asked, LIMITS.first_recall)


def test_another_message_waits_no_longer_than_before() -> None:
    assert patience("Write a function that adds two numbers") == LIMITS.recall
    assert patience("Why does `send` retry?", names_code=True) == LIMITS.asked


def test_only_searches_that_did_not_run_are_told() -> None:
    small = "The message had no vector in time: found by words."
    record = ContextRecord(
        conversation_id="c",
        turn_index=1,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        missing=[small, LATE, STILL_STARTING],
    )
    assert record.unsearched == [LATE, STILL_STARTING]


def test_a_program_that_sets_up_no_logging_has_a_quiet_stderr() -> None:
    warns = "import logging, ragforge_tui; logging.getLogger('ragforge_tui.memory').warning('late')"
    ran = subprocess.run([sys.executable, "-c", warns], capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    assert logging.getLogger("ragforge_tui").propagate, "a program that wants the lines gets them"
