"""What all past conversations of a scripted engine hold together: insights, quotes, work done; with foreign text."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.events import InsightsProgress
from ragforge_tui.shared.finding_records import KeptFinding, KeptKind
from ragforge_tui.shared.past_records import InsightEntry, InsightPlan, InsightsMade, Quote, Recalled, WorkDone
from ragforge_tui.shared.records import EXTRACTIVE, Finding
from ragforge_tui.shared.requests.past import (
    CancelInsights,
    FetchUsage,
    ListInsights,
    ListKept,
    PlanInsights,
    RecallPast,
    Standup,
)
from ragforge_tui.shared.usage_records import UsageReport, UsageRow
from ragforge_tui.shared.wire import Empty
from tests.support.fake_answers import answers

if TYPE_CHECKING:
    from tests.support.fake_engine import FakeEngine

CLOCK = datetime(2026, 11, 3, 14, 2, tzinfo=UTC)
HOSTILE = "\x1b[31m[bold]red[/bold]\x1b]0;owned\x07"
FIRST, SECOND = "00000001-0000-4000-8000-000000000000", "00000002-0000-4000-8000-000000000000"


def insight(uuid: str, topic: str, **changes: Any) -> InsightEntry:
    """An insight."""
    values: dict[str, Any] = {
        "title": "Retries double turns",
        "workspace": "/w",
        "updated_at": CLOCK.replace(day=2),
        "turns": 3,
        "up_to_turn": 3,
        "made_by": "openai/gpt-5",
        "created_at": CLOCK,
    }
    return InsightEntry(uuid=f"i-{uuid}", conversation_id=uuid, main_topic=topic, **values | changes)


STORED = insight(
    FIRST,
    f"Why a retried request doubles turns {HOSTILE}",
    key_findings=[
        Finding(
            text="The lock was missing, so that the second retry began before the first one had ended, which stored "
            "the same turn twice.",
            turns=[2, 3],
            kind="decision",
        ),
        Finding(text="Leases last 30 seconds."),
    ],
    action_items=[Finding(text=f"Measure it under load. {HOSTILE}", turns=[3], kind="open")],
)
FRESH = insight(
    SECOND,
    "How indexes are allocated",
    title="Index allocation",
    updated_at=CLOCK,
    turns=9,
    up_to_turn=7,
    outdated=True,
    made_by=EXTRACTIVE,
    key_findings=[Finding(text="The store allocates them.", turns=[1])],
)
QUOTES = [
    Quote(
        conversation_id=SECOND,
        title="Index allocation",
        turn_index=1,
        date=CLOCK,
        role="assistant",
        quote=f"We decided that leases last 30 seconds. {HOSTILE}",
        score=2.6,
        highlights=[(16, 22)],
    ),
    Quote(
        conversation_id=FIRST,
        title="",
        turn_index=2,
        date=CLOCK.replace(day=2),
        role="memory",
        quote="Leases are renewed every ten seconds.",
        score=1.5,
        kind="decision",
        highlights=[(0, 6)],
    ),
]
WORK = [
    WorkDone(
        conversation_id=FIRST,
        title="Retries double turns",
        workspace="/w",
        first_turn=2,
        last_turn=3,
        started=CLOCK.replace(hour=9),
        ended=CLOCK,
        text="The user asked why turns double; the lock was missing.",
        actions="Ran `make test` (2 times).",
        findings=[Finding(text="One retry is enough.", turns=[3], kind="decision")],
        files=["src/store.py"],
        closed=[Finding(text="Write a test. (t3: its test passed)", turns=[2], kind="open")],
        failures=[Finding(text="`ruff check .` ended with exit status 1", turns=[3])],
        open_points=[Finding(text="Measure it.", turns=[3], kind="open")],
    )
]


def kept(number: int, kind: KeptKind, text: str, **changes: Any) -> KeptFinding:
    """A finding that the memory keeps, of the first conversation."""
    values: dict[str, Any] = {
        "state": "open" if kind == "open" else "valid",
        "workspace": "/w",
        "conversation_id": FIRST,
        "turn_index": 2,
        "since": CLOCK.replace(day=2),
    }
    return KeptFinding(uuid=f"f-{number}", kind=kind, text=text, **values | changes)


KEPT = [
    kept(1, "open", f"naturaltime still raises OverflowError. {HOSTILE}"),
    kept(2, "open", "The backup is missing.", conversation_id=SECOND, turn_index=1),
    kept(3, "wish", "Answer in French."),
    kept(4, "wish", "Never push."),
    kept(5, "decision", "One retry is enough.", turn_index=1),
]


class PastShelf:
    """Answers the requests about the past.

    Attributes:
        stored: Insights that are there.
        missing: Insights that a run makes, in its order.
        kept: Open points, wishes and decisions of all conversations.
        model: Who would write them; empty for none.
        gate: A run waits for it after its first insight; None: it does not wait.
    """

    def __init__(self) -> None:
        self.stored = [STORED]
        self.missing: list[InsightEntry] = []
        self.kept: list[KeptFinding] = []
        self.model = "openai/gpt-5"
        self.gate: asyncio.Event | None = None
        self.problem = ""
        self.quotes = list(QUOTES)
        self.work = list(WORK)
        self._cancelled = False

    @answers(ListInsights)
    def _list_insights(self, request: ListInsights) -> Any:
        choice = request.choice
        if choice.topic:
            raise NotFoundError(f"There is no topic {choice.topic!r}.")
        return list(self.stored)

    @answers(ListKept)
    def _list_kept(self, request: ListKept) -> Any:
        return list(self.kept)

    @answers(PlanInsights)
    def _plan_insights(self, request: PlanInsights) -> Any:
        count = len(self.missing)
        if not self.model:
            return InsightPlan(count=count)
        return InsightPlan(count=count, tokens=count * 2_400, model=self.model, destination="api.openai.com")

    @answers(CancelInsights)
    def _cancel_insights(self, request: CancelInsights) -> Any:
        self._cancelled = True
        if self.gate is not None:
            self.gate.set()
        return Empty()

    @answers(RecallPast)
    def _recall_past(self, request: RecallPast) -> Any:
        question = request.question
        answer = request.answer
        found = [quote for quote in self.quotes if "zebra" not in question]
        if answer:
            return Recalled(quotes=found, answer="30 seconds [00000002 t1].", answered_by="openai/gpt-5")
        return Recalled(quotes=found)

    @answers(Standup)
    def _standup(self, request: Standup) -> Any:
        return self.work

    async def make(self, engine: FakeEngine) -> InsightsMade:
        """A run, which tells of each insight it makes."""
        made, total = 0, len(self.missing)
        while self.missing and not self._cancelled:
            entry = self.missing.pop(0)
            self.stored = [one for one in self.stored if one.conversation_id != entry.conversation_id] + [entry]
            made += 1
            engine.emit(InsightsProgress(done=made, total=total, entry=entry))
            if self.gate is not None:
                await self.gate.wait()
        return InsightsMade(made=made, left=len(self.missing), cancelled=self._cancelled, problem=self.problem)

    @answers(FetchUsage)
    def _usage(self, request: FetchUsage) -> Any:
        rows = {
            "day": [UsageRow(name="2026-11-03", requests=4, input_tokens=41_200, cached_tokens=9_000, cost_usd=0.12)],
            "model": [UsageRow(name=f"openai/{HOSTILE}", requests=4, input_tokens=41_200, output_tokens=600)],
            "cause": [
                UsageRow(name="Tools", group="Sent, by part of the request", requests=4, input_tokens=12_000),
                UsageRow(name="titles", group="In the background", requests=1, input_tokens=900, cost_usd=0.001),
            ],
        }
        total = UsageRow(name="total", requests=4, input_tokens=41_200, output_tokens=600, cost_usd=0.12, unpriced=1)
        return UsageReport(by=request.by, rows=rows.get(request.by, []), total=total)
