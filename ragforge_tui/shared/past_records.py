"""Records about many past conversations: a choice of them, their insights, quotes that answer a question, work done.

Used by the requests and events about the past, and by exports.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from ragforge_tui.shared.finding_records import ShownFinding
from ragforge_tui.shared.records import Finding, Insight, Role

PastStatus = Literal["active", "archived", "any"]
QuoteKind = Literal["turn", "finding", "decision", "fact", "preference", "open", "answer"]


class PastChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Past conversations; deleted ones never belong to it, and private ones only if they are named.

    Attributes:
        refs: Ids or unique prefixes; empty for all that pass the rest.
        workspace: Only conversations of this folder; None: of all folders.
        since: Only those that changed at this time or later.
        until: Only those that began before this time.
        current: The open conversation, which may be private.
    """

    refs: list[str] = []
    tags: list[str] = []
    topic: str = ""
    workspace: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    status: PastStatus = "active"
    current: str = ""


class InsightEntry(Insight, kw_only=True):
    """Insight with facts on its conversation.

    Attributes:
        turns: Number of turns of the conversation.
        outdated: Whether the conversation has changed since it was read.
        gone: Its findings and then action items that no longer hold, by their place, with what became of them.
    """

    title: str = ""
    workspace: str = ""
    tags: list[str] = msgspec.field(default_factory=list)
    updated_at: datetime
    turns: int = 0
    outdated: bool = False
    gone: dict[int, ShownFinding] = msgspec.field(default_factory=dict)


class InsightPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Size of the work that makes the missing insights.

    Attributes:
        count: Conversations without a current insight.
        tokens: About the most tokens that the requests take; 0 without a model.
        model: Model that would write them; empty if they are extracted.
        destination: Server that receives the conversations.
    """

    count: int
    tokens: int = 0
    model: str = ""
    destination: str = ""


class InsightsMade(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of a run.

    Attributes:
        made: Insights stored by it.
        left: Conversations that still lack a current one.
        cancelled: It was stopped; what it made is kept.
        problem: Why it ended early; empty if it did not.
    """

    made: int
    left: int = 0
    cancelled: bool = False
    problem: str = ""


class Quote(msgspec.Struct, frozen=True, kw_only=True):
    """Passage of the past that answers a question.

    Attributes:
        role: Role of the quoted message; ``tool`` for a result, ``memory`` for a finding of a summary or an insight.
        quote: The sentences that answer best, on one line.
        score: Relevance to the question, comparable within one answer only.
        kind: ``turn``, or what kind of finding it is.
        highlights: (start, end) offsets of words of the question in `quote`.
        note: What became of the statement: ``corrected in t4``, ``done in t14: …``; empty if it stands.
    """

    conversation_id: str
    title: str
    turn_index: int
    date: datetime
    role: Role | Literal["tool", "memory"]
    quote: str
    score: float
    kind: QuoteKind = "turn"
    highlights: list[tuple[int, int]] = []
    note: str = ""


class Recalled(msgspec.Struct, frozen=True, kw_only=True):
    """Passages that answer a question, best first.

    Attributes:
        answer: The model's two sentences, citing turns; empty if none was asked for.
        answered_by: Name of that model.
        problem: Why there is no answer although one was asked for.
    """

    quotes: list[Quote] = []
    answer: str = ""
    answered_by: str = ""
    problem: str = ""


class WorkDone(msgspec.Struct, frozen=True, kw_only=True):
    """Work done in one conversation within a range of time.

    Attributes:
        first_turn: First turn within the range; both ends are included.
        text: The questions and answers, in whole sentences.
        actions: Commands that succeeded, as a sentence; empty if there are none.
        findings: Decisions.
        files: Files that were modified.
        commits: Commits that commands made, as ``abc1234 subject``.
        closed: Open points that were done within the range, with what closed them.
        failures: Commands and answers that failed and were not put right.
        open_points: Open tasks: todos, and open points of the conversation.
    """

    conversation_id: str
    title: str
    workspace: str
    first_turn: int
    last_turn: int
    started: datetime
    ended: datetime
    text: str = ""
    actions: str = ""
    findings: list[Finding] = []
    files: list[str] = []
    commits: list[str] = []
    closed: list[Finding] = []
    failures: list[Finding] = []
    open_points: list[Finding] = []
