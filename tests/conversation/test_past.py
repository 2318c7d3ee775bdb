"""All past conversations through the engine: insights made, stopped and resumed; questions answered; work told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ragforge_tui.engine.in_process import InProcessEngine
from ragforge_tui.graph.store.findings import new_finding
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.errors import NotFoundError, RagforgeError
from ragforge_tui.shared.finding_records import finding_sums
from ragforge_tui.shared.past_records import PastChoice, Quote
from ragforge_tui.shared.records import EXTRACTIVE, now
from ragforge_tui.shared.requests.past import (
    CancelInsights,
    ListInsights,
    ListKept,
    MakeInsights,
    PlanInsights,
    RecallPast,
    Standup,
)
from tests.conftest import ONE_BACKEND
from tests.support.agents import with_model
from tests.support.model_script import Script
from tests.support.openai_server import Step
from tests.support.stored_memory import talk
from tests.support.turns import imported

LEASES = [
    ("How long should a lease last?", "We decided that leases last 30 seconds. They are renewed every ten."),
    ("And the clock?", "It is the monotonic one, so that a changed time zone does no harm."),
]


def step(topic: str = "Leases", **fields: Any) -> Step:
    """An answer to a request for an insight."""
    findings = [{"kind": "decision", "text": f"{topic} last 30 seconds.", "turns": [1]}]
    body = {"main_topic": topic, "key_findings": findings, "action_items": [{"text": "Test it.", "turns": [2]}]}
    return Step(when="plain", text=json.dumps(body), chunk=2_000, **fields)


def asked(server: Script) -> list[str]:
    """The texts of all requests for insights."""
    plain = [request.body for request in server.requests if request.path.endswith("/chat/completions")]
    return [body["messages"][1]["content"] for body in plain if "main_topic" in body["messages"][0]["content"]]


@pytest.fixture
async def engine(loaded: Loaded) -> AsyncIterator[InProcessEngine]:
    running = InProcessEngine(loaded)
    yield running
    await running.close()


async def filled(engine: InProcessEngine, count: int, **fields: Any) -> list[str]:
    """Conversations with different titles, the oldest first."""
    store = await engine.agent.store()
    start = datetime(2026, 11, 1, tzinfo=UTC)
    return [
        await imported(
            store,
            LEASES,
            title=f"Talk {n}",
            created_at=start + timedelta(days=n),
            updated_at=start + timedelta(days=n),
            **fields,
        )
        for n in range(count)
    ]


async def test_five_are_read_newest_first_and_never_twice(engine: InProcessEngine, server: Script) -> None:
    uuids = await filled(engine, 5, workspace="/w")
    server.script([step(f"Leases {n}") for n in range(5)])
    plan = await engine.request(PlanInsights())
    assert (plan.count, plan.model) == (5, "openai/scripted")
    assert 3_000 < plan.tokens < 6_000
    made = await engine.request(MakeInsights(most=2))
    assert (made.made, made.left, made.cancelled, made.problem) == (2, 3, False, "")
    assert ["Title: Talk 4" in text for text in asked(server)] == [True, False]
    assert (await engine.request(MakeInsights())).made == 3
    entries = await engine.request(ListInsights())
    assert [entry.conversation_id for entry in entries] == uuids[::-1]
    assert [entry.main_topic for entry in entries] == [f"Leases {n}" for n in range(5)]
    assert {(entry.made_by, entry.outdated, entry.turns) for entry in entries} == {("openai/scripted", False, 2)}
    assert (await engine.request(PlanInsights())).count == 0
    assert (await engine.request(MakeInsights())).made == 0
    assert len(asked(server)) == 5

    # One that has grown is read again, and no other.
    await talk(await engine.agent.store(), uuids[0], "What of locks?")
    [grown, *_] = await engine.request(ListInsights())
    assert (grown.conversation_id, grown.outdated, grown.up_to_turn, grown.turns) == (uuids[0], True, 2, 3)
    server.script([step("Locks")])
    assert (await engine.request(MakeInsights())).made == 1
    assert len(asked(server)) == 6
    assert (await engine.request(ListInsights()))[0].main_topic == "Locks"


async def test_a_run_is_stopped_after_the_second_and_the_next_does_three(
    engine: InProcessEngine, server: Script
) -> None:
    await filled(engine, 5)
    server.script([step("One"), step("Two"), step("Never", gate="third")])
    run = asyncio.create_task(engine.request(MakeInsights()))
    while len(asked(server)) < 3:
        await asyncio.sleep(0.01)
    with pytest.raises(RagforgeError, match="being made already"):
        await engine.request(MakeInsights())
    await engine.request(CancelInsights())
    made = await run
    assert (made.made, made.left, made.cancelled) == (2, 3, True)
    assert {entry.main_topic for entry in await engine.request(ListInsights())} == {"One", "Two"}
    server.script([step("Three"), step("Four"), step("Five")])
    before = len(asked(server))
    assert (await engine.request(MakeInsights())).made == 3
    assert len(asked(server)) == before + 3
    await engine.request(CancelInsights())  # there is nothing to stop


async def test_which_conversations_are_read(engine: InProcessEngine, server: Script) -> None:
    store = await engine.agent.store()
    [plain, tagged] = await filled(engine, 2, workspace="/w")
    await store.conversations.update(tagged, tags=["db"], updated_at=datetime(2026, 11, 10, tzinfo=UTC))
    [private] = await filled(engine, 1, private=True, workspace="/w")
    [archived] = await filled(engine, 1, status="archived")
    [gone] = await filled(engine, 1)
    await store.conversations.update(gone, status="deleted", deleted_at=now())

    async def count(**choice: Any) -> int:
        return (await engine.request(PlanInsights(choice=PastChoice(**choice)))).count

    assert await count() == 2
    assert await count(status="any") == 3
    assert await count(status="archived") == 1
    assert await count(current=private) == 3
    assert await count(refs=[private[:8], plain]) == 2
    assert await count(refs=[gone]) == 0
    assert await count(tags=["db"]) == 1
    assert await count(workspace="/elsewhere") == 0
    assert await count(since=datetime(2026, 11, 9, tzinfo=UTC)) == 1
    assert await count(until=datetime(2026, 11, 2, tzinfo=UTC)) == 1
    with pytest.raises(NotFoundError):
        await count(topic="nothing like it")
    with pytest.raises(NotFoundError):
        await count(refs=["nothing"])
    server.script([step()] * 2)
    await engine.request(MakeInsights())
    assert {entry.conversation_id for entry in await engine.request(ListInsights(choice=PastChoice(status="any")))} == {
        plain,
        tagged,
    }
    assert archived not in str(asked(server))


@ONE_BACKEND
async def test_without_a_model_they_are_extracted_and_a_models_replaces_them(loaded: Loaded, server: Script) -> None:
    engine = InProcessEngine(with_model(loaded, name="offline"))
    try:
        await filled(engine, 2)
        plan = await engine.request(PlanInsights(most=1))
        assert (plan.count, plan.tokens, plan.model) == (2, 0, "")  # what costs nothing has no limit
        assert (await engine.request(MakeInsights(most=1))).made == 2
        assert {entry.made_by for entry in await engine.request(ListInsights())} == {EXTRACTIVE}
        assert (await engine.request(MakeInsights())).made == 0
    finally:
        await engine.close()
    engine = InProcessEngine(loaded)
    try:
        server.script([step(), step()])
        assert (await engine.request(MakeInsights())).made == 2
        assert {entry.made_by for entry in await engine.request(ListInsights())} == {"openai/scripted"}
    finally:
        await engine.close()
    assert len(asked(server)) == 2


@ONE_BACKEND
async def test_a_run_ends_when_the_model_keeps_failing(engine: InProcessEngine, server: Script) -> None:
    await filled(engine, 5)
    server.script([step("One"), *[Step(when="plain", status=400, message="no such thing")] * 20])
    made = await engine.request(MakeInsights())
    assert (made.made, made.left) == (1, 4)
    assert "no such thing" in made.problem
    # What could not be asked has an extract for now, and is asked about again.
    entries = await engine.request(ListInsights())
    assert sorted(entry.made_by for entry in entries) == [EXTRACTIVE, EXTRACTIVE, "openai/scripted"]
    server.script([step(f"Again {n}") for n in range(4)])
    assert (await engine.request(MakeInsights())).made == 4


async def test_a_question_is_answered_by_what_was_said(engine: InProcessEngine) -> None:
    store = await engine.agent.store()
    day = datetime(2026, 11, 3, tzinfo=UTC)
    leases = await imported(store, LEASES, title="Leases", workspace="/w", updated_at=day)
    other = await imported(store, [("Where do lanterns hang?", "By the quay.")], title="Quay", workspace="/w")
    away = await imported(store, LEASES, title="Away", workspace="/elsewhere")
    private = await imported(store, LEASES, title="Private", workspace="/w", private=True)

    async def quotes(question: str, **choice: Any) -> list[Quote]:
        chosen = PastChoice(**{"workspace": "/w", "status": "any", **choice})
        return (await engine.request(RecallPast(question=question, choice=chosen))).quotes

    best, *rest = await quotes("What did we decide about leases?")
    assert (best.conversation_id, best.title, best.turn_index, best.role, best.kind) == (
        leases,
        "Leases",
        1,
        "assistant",
        "turn",
    )
    assert best.quote.startswith("We decided that leases last 30 seconds.")
    assert [best.quote[start:end] for start, end in best.highlights] == ["leases"]
    assert best.date.tzinfo is not None
    assert all(quote.conversation_id == leases for quote in rest)
    assert [quote.conversation_id for quote in await quotes("lanterns")] == [other]
    assert await quotes("zebras") == []
    assert {quote.conversation_id for quote in await quotes("leases", workspace=None)} == {leases, away}
    assert {quote.conversation_id for quote in await quotes("leases", current=private)} == {leases, private}
    assert await quotes("leases", since=now() + timedelta(days=1)) == []
    assert await quotes("leases", until=datetime(2026, 1, 1, tzinfo=UTC)) == []
    assert await quotes("leases", workspace="/nowhere") == []
    with pytest.raises(RagforgeError, match="no word to search for"):
        await quotes("and what of it?")


async def test_findings_of_insights_answer_too(engine: InProcessEngine, server: Script) -> None:
    [uuid] = await filled(engine, 1)
    server.script([step("Tariffs")])
    await engine.request(MakeInsights())
    [quote] = (await engine.request(RecallPast(question="What about tariffs?", choice=PastChoice()))).quotes
    assert (quote.conversation_id, quote.turn_index, quote.role, quote.kind) == (uuid, 1, "memory", "decision")
    assert quote.quote == "Tariffs last 30 seconds."


@ONE_BACKEND
async def test_a_model_answers_from_the_quotes_which_always_stand(engine: InProcessEngine, server: Script) -> None:
    [uuid] = await filled(engine, 1)
    request = RecallPast(question="How long do leases last?", choice=PastChoice(), answer=True)
    server.script([Step(when="plain", text=f"30 seconds [{uuid[:8]} t1].")])
    found = await engine.request(request)
    assert (found.answer, found.answered_by) == (f"30 seconds [{uuid[:8]} t1].", "openai/scripted")
    body = server.requests[-1].body
    assert f"[{uuid[:8]} t1]" in body["messages"][1]["content"]
    server.script([Step(when="plain", status=400, message="no such thing")] * 3)
    failed = await engine.request(request)
    assert failed.quotes == found.quotes
    assert not failed.answer and "no such thing" in failed.problem


async def test_the_work_of_a_day(engine: InProcessEngine) -> None:
    store = await engine.agent.store()
    uuid = await imported(store, LEASES, title="Leases", workspace="/w")
    [private] = await filled(engine, 1, private=True)
    start = now()
    await talk(store, uuid, "We decided to write the backup. Write it.", ("backup.py", "write"), ("a.py", "read"))
    await talk(store, private, "Hush.")
    [work] = await engine.request(Standup(since=start))
    assert (work.conversation_id, work.workspace, work.first_turn, work.last_turn) == (uuid, "/w", 3, 3)
    assert work.files == ["backup.py"]
    assert work.text == "Asked: Write it."
    assert "lease" not in work.text
    assert [finding.kind for finding in work.findings][:1] == ["decision"]
    assert await engine.request(Standup(since=now())) == []
    assert await engine.request(Standup(since=start, workspace="/elsewhere")) == []
    assert {one.conversation_id for one in await engine.request(Standup(since=start, current=private))} == {
        uuid,
        private,
    }


async def test_closed_and_corrected_statements_are_known_as_such(engine: InProcessEngine) -> None:
    store = await engine.agent.store()
    uuid = await imported(store, LEASES, title="Leases", workspace="/w")
    [elsewhere] = await filled(engine, 1, workspace="/elsewhere")
    [hidden] = await filled(engine, 1, workspace="/w", private=True)
    decided = new_finding(uuid, "/w", 1, "decision", "Leases last 30 seconds.")
    todo = new_finding(uuid, "/w", 2, "open", "Measure the clock.")
    await store.findings.add(
        [
            decided,
            todo,
            new_finding(uuid, "/w", 2, "open", "Test the renewal."),
            new_finding(uuid, "/w", 2, "fact", "The clock is monotonic."),
            new_finding(elsewhere, "/elsewhere", 1, "wish", "Answer in French."),
            new_finding(hidden, "/w", 1, "wish", "Hush."),
        ]
    )
    await engine.request(MakeInsights(choice=PastChoice(refs=[uuid])))
    [before] = await engine.request(ListInsights(choice=PastChoice(refs=[uuid])))
    assert any("30 seconds" in one.text for one in before.key_findings)
    await store.findings.replace(decided.uuid, new_finding(uuid, "/w", 2, "decision", "Leases last a minute."))
    await store.findings.close(todo.uuid, until=now(), closed_by="t2: its test passed")

    kept = await engine.request(ListKept(choice=PastChoice(workspace="/w")))
    assert {one.text for one in kept} == {"Test the renewal.", "Leases last a minute."}
    kept = await engine.request(ListKept(choice=PastChoice()))
    assert finding_sums(kept) == "Open 1 · Wishes 1 · Decisions 1"
    [after] = await engine.request(ListInsights(choice=PastChoice(refs=[uuid])))
    [gone] = [at for at, one in enumerate(after.key_findings) if "30 seconds" in one.text]
    assert "a minute" in after.gone[gone].became
    found = await engine.request(RecallPast(question="How long do leases last?", choice=PastChoice(workspace="/w")))
    assert {(one.turn_index, one.note) for one in found.quotes if "30 seconds" in one.quote} == {(1, "corrected in t2")}


@ONE_BACKEND
async def test_the_users_words_come_before_the_echo_of_another_day(engine: InProcessEngine) -> None:
    store = await engine.agent.store()
    told = [("The release of the harbour is planned for Friday the 12th.", "Noted.")]
    first = await imported(store, told, title="Plans", workspace="/w")
    echo = [("When is it?", "The release of the harbour is planned for Friday the 12th, as the release plan has it.")]
    second = await imported(store, echo, title="Question", workspace="/w")
    question = "When is the release of the harbour planned?"
    found = (await engine.request(RecallPast(question=question, choice=PastChoice(workspace="/w")))).quotes
    assert [(one.conversation_id, one.role) for one in found] == [(first, "user"), (second, "assistant")]
