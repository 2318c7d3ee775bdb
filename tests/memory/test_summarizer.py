"""Summaries made and stored: the tree its rules demand, whatever the model answers and whoever is killed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from weakref import WeakValueDictionary

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragforge_tui.graph import Graph, GraphTarget, Store
from ragforge_tui.graph.store.findings import new_finding
from ragforge_tui.graph.store.summary_tree import TurnSize
from ragforge_tui.llm import OfflineAssistant
from ragforge_tui.memory.findings.keeper import FindingKeeper
from ragforge_tui.memory.summaries import Summarizer
from ragforge_tui.memory.summaries.plan import frontier
from ragforge_tui.memory.summaries.summarizer import Locks
from ragforge_tui.settings.schema import Paths, SummarizationSettings
from ragforge_tui.shared.errors import ModelError
from ragforge_tui.shared.events import (
    ConversationChanged,
    Event,
    SummaryCreated,
    SummaryFailed,
    SummaryStarted,
    TopicsChanged,
)
from ragforge_tui.shared.records import Summary
from tests.conftest import ONE_BACKEND
from tests.memory.test_plan import covered, grown, shape
from tests.support.model_script import Script, Step
from tests.support.openai_server import OpenAIServer
from tests.support.records import conversation, one_turn, rows_of
from tests.support.scripted_model import model_of
from tests.support.summaries import (
    CONVERSATION_CHARS,
    FINDINGS_CHARS,
    Run,
    WritingModel,
    answer,
    main,
    scripted_model,
    steps_for,
)
from tests.support.turns import exchanges, imported
from tests.support.warm_engine import start_warm

SMALL = SummarizationSettings(level_chars=1_500)


@pytest.fixture
def script() -> Script:
    return Script(turns_only=False)


@pytest.fixture
async def server() -> AsyncIterator[OpenAIServer]:
    async with OpenAIServer(turns_only=False) as running:
        yield running


def planned(count: int, chosen: SummarizationSettings = SMALL) -> list[tuple[int, int, int]]:
    """The tree the rules demand of `count` turns when each summary is as long as `answer` makes it."""
    sizes = [TurnSize(n, len(asked) + len(said)) for n, (asked, said) in enumerate(exchanges(count), 1)]
    return shape(grown(sizes, chosen, [CONVERSATION_CHARS + FINDINGS_CHARS]))


def first_turn(messages: list[dict[str, Any]]) -> int:
    """The first turn that a request is about."""
    material = messages[1]["content"]
    return int(material.split("Turns " if "Turns " in material else "Turn ", 1)[1].split(" ", 1)[0])


def quiet(event: Event) -> None:
    """Nobody listens."""


async def test_sixty_turns_become_three_levels(graph: Graph, script: Script) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(60))
    wanted = planned(60)
    assert {level for level, _, _ in wanted} >= {1, 2, 3}
    script.script([*steps_for(wanted), Step(when="plain", text="Retries were discussed. Nothing was done.")])
    events: list[Event] = []
    summarizer = Summarizer(store, SMALL, model_of(script), events.append)
    made = await summarizer.run_due(uuid)
    tree = await store.summaries.of(uuid)
    assert shape(tree) == shape(made) == wanted
    assert {s.made_by for s in tree} == {"openai/scripted"}
    assert covered(frontier(tree)) == list(range(1, 58))
    for body in script.chats():
        assert not body.get("tools")
        assert not {"tool_choice", "functions", "response_format"} & set(body)
    kinds = [type(event) for event in events]
    assert kinds.count(SummaryStarted) == kinds.count(SummaryCreated) == len(wanted)
    assert kinds[-2:] == [TopicsChanged, ConversationChanged]
    await summarizer.upgrade(uuid, most=1, refused=set())
    assert (await store.conversations.get(uuid)).summary == "Retries were discussed. Nothing was done."
    assert await rows_of(graph, "MATCH (:Summary {level: 1})-[r:SUMMARIZES]->(m:Message) RETURN r") == 2 * 57
    assert await summarizer.run_due(uuid) == []
    assert [topic.name for topic in await store.topics.search()] == ["Retry policy", "Waiting"]


async def test_without_a_model_the_same_rules_hold(graph: Graph) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(40))
    await Summarizer(store, SMALL, OfflineAssistant(), quiet).run_due(uuid)
    tree = await store.summaries.of(uuid)
    assert {s.made_by for s in tree} == {"extractive"}
    assert {s.level for s in tree} == {1, 2, 3}
    assert covered(frontier(tree)) == covered([s for s in tree if s.level == 1]) == list(range(1, 37))
    for summary in tree:
        assert 0 < len(summary.conversation_summary) <= 500
        assert summary.key_findings
        assert all(set(f.turns) <= set(covered([summary])) for f in summary.key_findings)
        assert 2 <= len(summary.topics) <= 4
    assert (await store.conversations.get(uuid)).summary


MALFORMED = [
    "",
    "I cannot do that.",
    '{"conversation_summary": "cut of',
    "[1, 2]",
    answer([1], conversation_summary=" "),
]


@pytest.mark.parametrize("bad", MALFORMED)
@ONE_BACKEND
async def test_a_bad_answer_is_asked_for_again_once(graph: Graph, bad: str) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(5))
    answers = [bad, answer([1]), "A conversation about retries."]
    model = WritingModel(lambda messages: answers.pop(0))
    [made] = await Summarizer(store, SMALL, model, quiet).run_due(uuid)
    assert made.made_by == model.name
    again = model.requests[1]
    assert again[:2] == model.requests[0]
    assert again[-1]["content"].startswith("That cannot be used:")

    other = await imported(store, exchanges(5))
    model = WritingModel(lambda messages: bad)
    [made] = await Summarizer(store, SMALL, model, quiet).run_due(other)
    assert made.made_by == "extractive"
    assert made.conversation_summary
    assert len([r for r in model.requests if "JSON" in r[0]["content"]]) == 2


async def test_oversized_and_failing_answers(graph: Graph, script: Script) -> None:
    store = Store(graph)

    async def made_with(step: Step) -> Summary:
        uuid = await imported(store, exchanges(5))
        script.script([step, Step(when="plain", text="About retries.")])
        made = await Summarizer(store, SMALL, model_of(script), quiet).run_due(uuid)
        assert len(made) == 1
        return made[0]

    assert (await made_with(Step(status=500))).made_by == "extractive"
    assert (await made_with(Step(cut=True, text=answer([1])[:40]))).made_by == "extractive"
    long = "A sentence that is long enough to count. " * 200
    huge = await made_with(
        Step(
            text=answer(
                [1],
                conversation_summary=long,
                actions_summary=long,
                key_findings=[{"text": long, "turns": [n % 3 + 1]} for n in range(50)] + [{"text": "b", "turns": [2]}],
                topics=[f"Topic {n} {'x' * 500}" for n in range(50)],
            ),
            chunk=50_000,
        )
    )
    assert huge.made_by == "openai/scripted"
    assert 250 < len(huge.conversation_summary) <= 500
    assert huge.conversation_summary.endswith("count.")
    assert huge.actions_summary == ""
    assert 1 <= len(huge.key_findings) <= 5
    assert max(len(f.text) for f in huge.key_findings) <= 300
    assert len(huge.topics) == 4


class Late(WritingModel):
    """A model that gives no answer in time from some request on."""

    late = False

    async def complete(self, messages: Any, *, max_tokens: int | None = None) -> Any:
        if self.late:
            self.requests.append(messages)
            raise TimeoutError
        return await super().complete(messages, max_tokens=max_tokens)


async def test_a_summary_that_times_out_stays_due(graph: Graph) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(8))
    model = Late(lambda messages: answer([1]))
    model.late = True
    events: list[Event] = []
    summarizer = Summarizer(store, SMALL, model, events.append)
    assert await summarizer.run_due(uuid) == []
    assert await store.summaries.of(uuid) == []
    # Once only, without a text on the whole conversation: what asks again is the next run.
    assert len(model.requests) == 1
    assert isinstance(events[-1], SummaryFailed)
    assert "in time" in events[-1].reason
    model.late = False
    assert shape(await summarizer.run_due(uuid)) == planned(8)
    assert {s.made_by for s in await store.summaries.of(uuid)} == {model.name}


async def test_extracts_are_written_again_by_a_model_a_few_at_a_time(graph: Graph) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(40))
    await Summarizer(store, SMALL, None, quiet).run_due(uuid)
    before = await store.summaries.of(uuid)
    assert {s.level for s in before} >= {1, 2}
    about = (await store.conversations.get(uuid)).summary

    def write(messages: list[dict[str, Any]]) -> str:
        if "JSON" not in messages[0]["content"]:
            return "About retries, by a model."
        return answer([first_turn(messages)], topics=["Retry policy"])

    model = WritingModel(write)
    events: list[Event] = []
    summarizer = Summarizer(store, SMALL, model, events.append)
    refused: set[str] = set()
    [first, second] = await summarizer.upgrade(uuid, most=2, refused=refused)
    assert first.end_turn_index > second.end_turn_index
    created = [event.summary.uuid for event in events if isinstance(event, SummaryCreated)]
    assert created == [first.uuid, second.uuid]
    assert (await store.conversations.get(uuid)).summary == "About retries, by a model." != about
    while await summarizer.upgrade(uuid, most=3, refused=refused):
        pass
    after = await store.summaries.of(uuid)
    assert {s.made_by for s in after} == {model.name}
    assert [(s.uuid, s.parent, s.parent_summaries) for s in after] == [
        (s.uuid, s.parent, s.parent_summaries) for s in before
    ]
    assert [topic.name.casefold() for topic in await store.topics.search(conversation_id=uuid)] == ["retry policy"]
    asked = len(model.requests)
    assert await summarizer.upgrade(uuid, most=3, refused=refused) == []
    assert len(model.requests) == asked
    assert refused == set()


@ONE_BACKEND
async def test_an_extract_the_model_cannot_better_is_asked_for_once(graph: Graph) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(5))
    [extract] = await Summarizer(store, SMALL, None, quiet).run_due(uuid)
    model = Late(lambda messages: "{")
    refused: set[str] = set()
    model.late = True
    summarizer = Summarizer(store, SMALL, model, quiet)
    assert await summarizer.upgrade(uuid, most=3, refused=refused) == []
    assert refused == set()
    model.late = False
    for _ in range(2):
        assert await summarizer.upgrade(uuid, most=3, refused=refused) == []
        assert refused == {extract.uuid, uuid}
        assert len(model.requests) == 4
    assert (await store.summaries.of(uuid))[0] == extract
    nobody = Summarizer(store, SMALL, OfflineAssistant(), quiet)
    assert await nobody.upgrade(uuid, most=3, refused=set()) == []


@ONE_BACKEND
async def test_a_models_text_on_the_conversation_outlives_its_failure(graph: Graph) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(5))
    model = Late(lambda messages: answer([1]) if "JSON" in messages[0]["content"] else "About retries, by a model.")
    summarizer = Summarizer(store, SMALL, model, quiet)
    await summarizer.run_due(uuid)
    await summarizer.upgrade(uuid, most=1, refused=set())
    model.late = True
    with pytest.raises(ModelError, match="kept"):
        await summarizer.summarize_conversation(uuid)
    assert await Summarizer(store, SMALL, None, quiet).summarize_conversation(uuid) == "About retries, by a model."
    assert (await store.conversations.get(uuid)).summary == "About retries, by a model."


async def test_the_text_on_a_conversation_is_not_asked_for_after_each_summary(graph: Graph) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(8))

    def write(messages: list[dict[str, Any]]) -> str:
        if "JSON" in messages[0]["content"]:
            return answer([first_turn(messages)])
        return f"Text {len(model.requests)}."

    model = WritingModel(write)
    summarizer = Summarizer(store, SMALL, model, quiet)
    made = await summarizer.run_due(uuid)
    assert len(model.requests) == len(made) > 1
    extract = (await store.conversations.get(uuid)).summary
    assert extract
    for _ in range(2):
        # Once while idle is enough, until there is another summary.
        await summarizer.upgrade(uuid, most=1, refused=set())
        assert len(model.requests) == len(made) + 1
    assert (await store.conversations.get(uuid)).summary == f"Text {len(made) + 1}."
    for n in range(5):
        await one_turn(store, uuid, f"more {n}")
    more = await summarizer.run_due(uuid)
    assert more
    await summarizer.upgrade(uuid, most=1, refused=set())
    assert len(model.requests) == len(made) + 1 + len(more) + 1


async def test_shared_turns_of_a_branch_are_summarised_once(graph: Graph) -> None:
    store = Store(graph)
    parent = await imported(store, exchanges(8))
    branch = (await store.conversations.create(conversation(branch_of=parent, branch_turn=8))).uuid
    model = WritingModel(lambda messages: answer([first_turn(messages)]))
    locks: Locks = WeakValueDictionary()
    events: dict[str, list[Event]] = {parent: [], branch: []}
    both = {uuid: Summarizer(store, SMALL, model, events[uuid].append, locks) for uuid in events}
    made = await asyncio.gather(*(both[uuid].run_due(uuid, known=()) for uuid in (branch, parent)))
    tree = await store.summaries.of(parent)
    assert shape(tree) == planned(8)
    assert await store.summaries.of(branch) == tree
    assert {one.conversation_id for one in tree} == {parent}
    assert len(model.requests) == len(tree) == sum(map(len, made))
    for told in events.values():
        assert {one.summary.uuid for one in told if isinstance(one, SummaryCreated)} == {one.uuid for one in tree}
    # Each goes its own way from there.
    for uuid in (branch, parent):
        for n in range(6):
            await one_turn(store, uuid, f"own {n} of {uuid}")
        await both[uuid].run_due(uuid)
    own = [one for one in await store.summaries.of(branch) if one.conversation_id == branch]
    assert own and all(one.end_turn_index > 8 for one in own)


async def test_cancelling_leaves_nothing_half(graph: Graph, script: Script) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(14))
    script.script([*steps_for([(1, 1, 3)]), Step(when="plain", stall=True, text="{")])
    events: list[Event] = []
    summarizer = Summarizer(store, SMALL, model_of(script), events.append)
    running = asyncio.create_task(summarizer.run_due(uuid))
    while len(script.chats()) < 2:
        await asyncio.sleep(0.02)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert shape(await store.summaries.of(uuid)) == [(1, 1, 3)]
    assert isinstance(events[-1], SummaryFailed)
    script.script([*steps_for(planned(14)), Step(when="plain", text="About retries.")])
    await summarizer.run_due(uuid)
    assert shape(await store.summaries.of(uuid)) == planned(14)
    assert {s.made_by for s in await store.summaries.of(uuid)} == {"openai/scripted"}


@pytest.mark.http
@pytest.mark.parametrize("at", [1, *(pytest.param(at, marks=pytest.mark.slow) for at in (4, 9))])
async def test_a_killed_process_is_taken_up_where_it_was(
    graph: Graph,
    graph_target: GraphTarget,
    graph_paths: Paths,
    server: OpenAIServer,
    at: int,
) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(26))
    wanted = planned(26)
    server.script(steps_for(wanted, duration=0.05))
    run = Run(target=graph_target, paths=graph_paths, conversation_id=uuid, settings=SMALL, base_url=server.base_url)
    process = await asyncio.to_thread(start_warm, main, msgspec.json.encode(run))
    try:
        while len(server.chats()) < at:
            assert process.exitcode is None
            await asyncio.sleep(0.005)
    finally:
        process.kill()
        await asyncio.to_thread(process.join)
    half = await store.summaries.of(uuid)
    assert set(shape(half)) <= set(wanted)
    assert len(half) <= at
    edges = await rows_of(graph, "MATCH (:Summary {level: 1})-[r:SUMMARIZES]->(:Message) RETURN r")
    assert edges == 2 * len(covered([s for s in half if s.level == 1]))
    server.script(steps_for(wanted))
    await Summarizer(store, SMALL, scripted_model(server.base_url), quiet).run_due(uuid)
    assert shape(await store.summaries.of(uuid)) == wanted


@pytest.mark.parametrize("extracted", [False, True])
async def test_findings_are_stored_after_the_program_died_between_them_and_their_summary(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, extracted: bool
) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(5), workspace="/w")
    [point] = await store.findings.add([new_finding(uuid, "/w", 1, "open", "Write the docs of the parser.")])
    model = WritingModel(lambda messages: answer([first_turn(messages)], closes=[{"known": 1, "turn": 3}]))
    by_model = Summarizer(store, SMALL, model, quiet)
    if extracted:
        await Summarizer(store, SMALL, None, quiet).run_due(uuid)

    async def dies(*_: object) -> bool:
        raise KeyError("killed")

    with monkeypatch.context() as patched, pytest.raises(KeyError):
        patched.setattr(FindingKeeper, "noted", dies)
        await (by_model.upgrade(uuid, most=1, refused=set()) if extracted else by_model.run_due(uuid))
    [made] = await store.summaries.of(uuid)
    assert made.made_by == model.name and len(made.key_findings) == 3
    for _ in range(2):
        assert await Summarizer(store, SMALL, model, quiet).run_due(uuid) == []
        kept = {one.text: one.state for one in await store.findings.of_conversation(uuid)}
        assert made.key_findings[0].text in kept and kept[point.text] == "done"
        assert await store.findings.unkept(uuid) == []


async def test_two_at_once_leave_one_tree(graph: Graph) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(40))
    events: list[Event] = []

    def write(messages: list[dict[str, Any]]) -> str:
        return answer([first_turn(messages)])

    both = [Summarizer(store, SMALL, WritingModel(write), events.append) for _ in range(2)]
    made = await asyncio.gather(*(summarizer.run_due(uuid) for summarizer in both))
    tree = await store.summaries.of(uuid)
    assert shape(tree) == planned(40)
    assert {s.uuid for one in made for s in one} == {s.uuid for s in tree}
    assert await rows_of(graph, "MATCH (s:Summary) RETURN s.uuid") == len(tree)


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    chars=st.lists(st.integers(0, 400), min_size=1, max_size=30),
    chosen=st.builds(
        SummarizationSettings,
        every_turns=st.integers(1, 6),
        every_chars=st.integers(100, 2_000),
        keep_recent_turns=st.integers(0, 3),
        level_chars=st.integers(1, 1_500),
    ),
    cuts=st.lists(st.floats(0.0, 0.3), max_size=3),
    writers=st.integers(1, 3),
)
async def test_interrupted_and_concurrent_writers_partition_the_turns(
    graph: Graph, chars: list[int], chosen: SummarizationSettings, cuts: list[float], writers: int
) -> None:
    store = Store(graph)
    uuid = await imported(store, [("q", "word " * (size // 5)) for size in chars])
    for seconds in cuts:
        running = asyncio.create_task(Summarizer(store, chosen, None, quiet).run_due(uuid))
        await asyncio.sleep(seconds)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    await asyncio.gather(*(Summarizer(store, chosen, None, quiet).run_due(uuid) for _ in range(writers)))
    tree = await store.summaries.of(uuid)
    sizes = await store.summaries.turn_sizes(uuid, start=1)
    reached = max((s.end_turn_index for s in tree), default=0)
    assert covered(frontier(tree)) == list(range(1, reached + 1))
    for level in range(1, max((s.level for s in tree), default=0) + 1):
        of_level = [s for s in tree if s.level == level]
        assert covered(of_level) == list(range(1, of_level[-1].end_turn_index + 1))
        assert not of_level[-1].parent
    firsts = [s for s in shape(tree) if s[0] == 1]
    assert firsts == [s for s in shape(grown(sizes, chosen, [1])) if s[0] == 1]
    [row] = await graph.query_readonly(
        f"MATCH (c:Conversation {{uuid: '{uuid}'}}) RETURN coalesce(c.watermarks, []) AS w, c.summary_sequence AS n"
    )
    ends = {s.level: s.end_turn_index for s in tree}
    assert row == {"w": [ends[level] for level in sorted(ends)], "n": len(tree) or None}
    assert await rows_of(graph, f"MATCH (s:Summary {{conversation_id: '{uuid}'}}) RETURN s.uuid") == len(tree)


async def test_switched_off_nothing_is_written(graph: Graph) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(20))
    off = Summarizer(store, SummarizationSettings(enabled=False), None, quiet)
    assert await off.run_due(uuid) == []
    assert await off.pending(uuid) == []
    assert await store.summaries.of(uuid) == []
    assert [p.level for p in await Summarizer(store, SMALL, None, quiet).pending(uuid)] == [1]
