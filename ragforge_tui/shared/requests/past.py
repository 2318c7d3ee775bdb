"""Requests about many past conversations: insights, a question to all, the work since a date, what models took."""

from __future__ import annotations

from datetime import datetime

from ragforge_tui.shared.finding_records import KeptFinding
from ragforge_tui.shared.past_records import InsightEntry, InsightPlan, InsightsMade, PastChoice, Recalled, WorkDone
from ragforge_tui.shared.usage_records import UsageBy, UsageReport
from ragforge_tui.shared.wire import Empty, Request


class ListInsights(Request[list[InsightEntry]]):
    """Stored insights, those of the conversations that changed last first."""

    choice: PastChoice = PastChoice()


class PlanInsights(Request[InsightPlan]):
    """Work that `MakeInsights` would do."""

    choice: PastChoice = PastChoice()
    most: int = 0


class MakeInsights(Request[InsightsMade]):
    """Make the missing insights, newest conversations first; each is stored at once and reported by an event.

    Fails with kind ``busy`` while another run is in progress.
    """

    choice: PastChoice = PastChoice()
    most: int = 0
    """Most conversations that a model is asked about; 0 for no limit."""


class ListKept(Request[list[KeptFinding]]):
    """Open points, wishes and decisions that these conversations keep now, the newest first."""

    choice: PastChoice = PastChoice()


class CancelInsights(Request[Empty]):
    """Stop the run; what it made is kept."""


class RecallPast(Request[Recalled]):
    """Ask the past conversations a question; no model is needed for the quotes."""

    question: str
    choice: PastChoice = PastChoice()
    limit: int = 10
    answer: bool = False
    """Whether a model should also answer in two sentences from the quotes."""


class Standup(Request[list[WorkDone]]):
    """Report the work done since a time, by conversation, those used last first."""

    since: datetime
    until: datetime | None = None
    workspace: str | None = None
    current: str = ""


class FetchUsage(Request[UsageReport]):
    """Report what requests to models took since a time, None for all that is stored.

    Of one conversation and its helpers, of one folder, or of all.
    """

    by: UsageBy = "day"
    since: datetime | None = None
    workspace: str | None = None
    conversation_id: str = ""
