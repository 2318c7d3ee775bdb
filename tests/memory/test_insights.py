"""Insights made: which are due, what is read out of an answer, and what stands in for a model."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ragforge_tui.graph import Graph, Store
from ragforge_tui.memory.insights import (
    InsightWriter,
    estimated_tokens,
    extract_insight,
    is_due,
    open_todos,
    read_insight,
)
from ragforge_tui.memory.summaries import Summarizer
from ragforge_tui.memory.summaries.draft import UnusableAnswerError
from ragforge_tui.settings.schema import SummarizationSettings
from ragforge_tui.shared.errors import ModelError
from ragforge_tui.shared.records import EXTRACTIVE, Conversation, Finding, Insight, ToolResult, Turn, fingerprint, now
from tests.conftest import ONE_BACKEND
from tests.support.records import call_of, conversation
from tests.support.stored_memory import summary
from tests.support.summaries import WritingModel
from tests.support.turns import exchanges, imported, turn_of


def answer(**changes: Any) -> str:
    """A good answer."""
    body = {
        "main_topic": "How the retry policy waits",
        "key_findings": [{"kind": "decision", "text": "Part 1 waits one second.", "turns": [1]}],
        "action_items": [{"text": "Measure part 2.", "turns": [2]}],
    }
    return json.dumps({**body, **changes})


def talked(**changes: Any) -> Conversation:
    """A conversation of three turns."""
    return conversation(**{"next_turn": 4, "message_count": 6, "total_chars": 900, **changes})


def insight_of(owner: Conversation, **changes: Any) -> Insight:
    """The insight of what it is now."""
    values = {"main_topic": "Leases", "made_by": "openai/x", "fingerprint": fingerprint(owner), "up_to_turn": 3}
    return Insight(uuid="i", conversation_id=owner.uuid, created_at=now(), **values | changes)


def test_due_insights() -> None:
    owner = talked()
    grown = talked(message_count=8)
    assert not is_due(conversation(), None, "openai/x")  # nothing was said yet
    assert is_due(owner, None, "") and is_due(owner, None, "openai/x")
    written = insight_of(owner)
    assert not is_due(owner, written, "openai/x")
    assert not is_due(owner, written, "openai/other")
    assert is_due(grown, written, "openai/x")
    assert not is_due(grown, written, "")  # an extract would not replace it
    extract = insight_of(owner, made_by=EXTRACTIVE)
    assert not is_due(owner, extract, "")
    assert is_due(grown, extract, "")
    assert is_due(owner, extract, "openai/x")
    refused = insight_of(owner, made_by=EXTRACTIVE, tried="openai/x")
    assert not is_due(owner, refused, "openai/x")
    assert is_due(owner, refused, "openai/other")
    assert is_due(grown, refused, "openai/x")


def test_the_estimate_grows_with_the_text_up_to_the_window() -> None:
    small, large = talked(total_chars=4_000), talked(total_chars=10_000_000)
    assert 1_000 < estimated_tokens([small], 32_000) < 2_000
    assert estimated_tokens([large], 32_000) < 32_000
    assert estimated_tokens([small, large], 32_000) == estimated_tokens([small], 32_000) + estimated_tokens(
        [large], 32_000
    )


def test_an_answer_is_read_however_it_is_wrapped() -> None:
    draft = read_insight(f"Sure:\n```json\n{answer()}\n```", turns=range(1, 4))
    assert draft.main_topic == "How the retry policy waits"
    assert draft.key_findings == [Finding(text="Part 1 waits one second.", turns=[1], kind="decision")]
    assert draft.action_items == [Finding(text="Measure part 2.", turns=[2], kind="open")]


def test_invented_findings_are_left_out() -> None:
    draft = read_insight(
        answer(
            key_findings=["Cites nothing.", {"text": "Cites turn 9.", "turns": [9]}, {"turns": [1]}, 5],
            action_items=["Cites nothing.", "Do it [t2]", "do it"],
        ),
        turns=range(1, 4),
    )
    assert draft.key_findings == [Finding(text="Cites turn 9.", turns=[])]
    assert [(item.text, item.turns) for item in draft.action_items] == [("Cites nothing.", []), ("Do it", [2])]


@pytest.mark.parametrize("bad", ["", "I cannot.", "[1]", answer(main_topic=" "), answer(main_topic=None)])
def test_an_answer_without_a_topic_is_unusable(bad: str) -> None:
    with pytest.raises(UnusableAnswerError):
        read_insight(bad, turns=range(1, 4))


def test_keys_and_escapes_never_get_into_an_insight() -> None:
    draft = read_insight(answer(main_topic="\x1b[31mred sk-abcdefghijklmnopqrstuvwxyz0123456789"), turns=[1])
    assert "\x1b" not in draft.main_topic
    assert "sk-abcdefghij" not in draft.main_topic


def planned(index: int, *entries: tuple[str, str]) -> Turn:
    """A turn with a plan."""
    turn = turn_of("c", index, "Plan it.", "Planned.")
    todos = [{"content": content, "status": status} for content, status in entries]
    call = call_of(turn.messages[1].uuid, tool_name="update_todos", success=True)
    result = json.dumps({"text": "Done.", "todos": todos})
    call.result = ToolResult(uuid="r", tool_call_id=call.uuid, success=True, result=result, timestamp=now())
    turn.messages[1].tool_calls = [call]
    return turn


def test_the_last_plan_counts() -> None:
    turns = [planned(1, ("Old", "pending")), planned(2, ("New", "in_progress"), ("Done", "completed"))]
    assert [(todo.content, turn) for todo, turn in open_todos(turns)] == [("New", 2)]
    assert open_todos([*turns, planned(3)]) == []
    turns[1].messages[1].state = "superseded"
    assert [todo.content for todo, _ in open_todos(turns)] == ["Old"]
    assert open_todos([turn_of("c", 1, "Hello", "Hi")]) == []


def test_without_a_model_it_comes_from_summaries_and_the_turns_after_them() -> None:
    done = summary("c", 1, 1, 5, key_findings=[Finding(text="Leases last 30 s.", turns=[2], kind="decision")])
    still = summary("c", 1, 6, 9, key_findings=[Finding(text="The backup is missing.", turns=[7], kind="open")])
    draft = extract_insight([done, still], [planned(10, ("Write the backup", "pending"))], title="Leases")
    assert draft.main_topic == "Leases"
    assert draft.made_by == EXTRACTIVE
    assert Finding(text="Leases last 30 s.", turns=[2], kind="decision") in draft.key_findings
    assert [item.text for item in draft.action_items] == ["Write the backup", "The backup is missing."]
    assert {item.kind for item in draft.action_items} == {"open"}
    assert extract_insight([], [turn_of("c", 1, "Why do leases expire?", "They last 30 s.")]).main_topic


async def written(store: Store, model: WritingModel | None, count: int = 3) -> tuple[str, Insight]:
    """The insight of a new conversation."""
    uuid = await imported(store, exchanges(count), title="Retries")
    return uuid, await InsightWriter(store, model).write(await store.conversations.get(uuid))


async def test_a_model_reads_a_short_conversation_whole(graph: Graph) -> None:
    model = WritingModel(lambda messages: answer())
    uuid, made = await written(Store(graph), model)
    assert made.made_by == model.name
    assert (made.up_to_turn, made.tried) == (3, "")
    [request] = model.requests
    assert [message["role"] for message in request] == ["system", "user"]
    assert all(f"Part {n} waits" in request[1]["content"] for n in (1, 2, 3))
    assert "Write in English" in request[0]["content"]
    assert not is_due(await Store(graph).conversations.get(uuid), made, model.name)


@ONE_BACKEND
async def test_a_bad_answer_is_asked_for_again_once_and_never_for_the_same_conversation(graph: Graph) -> None:
    answers = iter(["nonsense", answer()])
    model = WritingModel(lambda messages: next(answers))
    _, made = await written(Store(graph), model)
    assert made.made_by == model.name
    assert "cannot be used" in model.requests[1][-1]["content"]
    stubborn = WritingModel(lambda messages: "nonsense")
    uuid, made = await written(Store(graph), stubborn)
    assert (made.made_by, made.tried, len(stubborn.requests)) == (EXTRACTIVE, stubborn.name, 2)
    assert made.key_findings
    assert not is_due(await Store(graph).conversations.get(uuid), made, stubborn.name)


@ONE_BACKEND
async def test_an_extract_stands_in_while_the_model_fails(graph: Graph) -> None:
    def fail(messages: Any) -> str:
        raise ModelError("The server is away.", kind="provider")

    store = Store(graph)
    uuid = await imported(store, exchanges(3))
    owner = await store.conversations.get(uuid)
    with pytest.raises(ModelError):
        await InsightWriter(store, WritingModel(fail)).write(owner)
    extract = (await store.insights.of([uuid]))[uuid]
    assert extract.made_by == EXTRACTIVE
    assert is_due(owner, extract, WritingModel.name)
    made = await InsightWriter(store, WritingModel(lambda messages: answer())).write(owner)
    with pytest.raises(ModelError):
        await InsightWriter(store, WritingModel(fail)).write(owner)
    assert (await store.insights.of([uuid]))[uuid] == made


@pytest.mark.slow
@ONE_BACKEND
async def test_a_long_conversation_is_read_through_its_summaries(graph: Graph) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(220))
    await Summarizer(store, SummarizationSettings(level_chars=1_500), None, lambda event: None).run_due(uuid)
    model = WritingModel(lambda messages: answer())
    made = await InsightWriter(store, model).write(await store.conversations.get(uuid))
    [[_, asked]] = model.requests
    assert made.up_to_turn == 220
    assert "Turns 1 to" in asked["content"]
    assert "Part 220 waits" in asked["content"]
    assert "Turn 100 (" not in asked["content"]
    await store.summaries.of(uuid)
    small = WritingModel(lambda messages: answer())
    small.context_window = 4_200
    await InsightWriter(store, small).write(await store.conversations.get(uuid))
    assert len(small.requests[0][1]["content"]) < len(asked["content"])
