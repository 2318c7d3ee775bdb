"""What stored summaries hold: tools and files, topics, what a branch shares, the conversation's own summary."""

from __future__ import annotations

from typing import Any

from ragforge_tui.graph import Graph, Store
from ragforge_tui.memory.summaries import Summarizer
from ragforge_tui.memory.summaries.plan import frontier
from ragforge_tui.settings.schema import SummarizationSettings
from ragforge_tui.shared.events import ConversationChanged, Event, SummaryCreated, SummaryFailed
from ragforge_tui.shared.records import FileAccess, ToolResult, now
from tests.conftest import ONE_BACKEND
from tests.memory.test_plan import covered
from tests.support.records import add_reply, call_of, conversation, message, one_turn, rows_of
from tests.support.summaries import WritingModel, answer
from tests.support.turns import exchanges, imported

SMALL = SummarizationSettings(level_chars=1_500)


def quiet(event: Event) -> None:
    """Nobody listens."""


@ONE_BACKEND
async def test_tool_actions_and_their_files_are_reported(graph: Graph) -> None:
    store = Store(graph)
    uuid = (await store.conversations.create(conversation(workspace="/w"))).uuid
    for n in range(1, 6):
        await store.messages.begin_turn(message(uuid, content=f"Où est la fonction {n} ?"))
        reply = await add_reply(store, message(uuid, role="assistant", turn_index=n))
        call = call_of(
            reply.uuid, arguments='{"path": "src/a.py"}', reasoning="Pour la lire", success=True, duration_ms=3
        )
        call.files = [FileAccess(path="src/a.py", access="read")]
        call.result = ToolResult(
            uuid=f"{call.uuid}-r",
            tool_call_id=call.uuid,
            success=True,
            result='{"text": "     1\\tx"}',
            timestamp=now(),
        )
        await store.tool_calls.start(call, uuid)
        await store.tool_calls.finish(call, "/w")
        await add_reply(
            store,
            message(uuid, role="assistant", turn_index=n, content=f"La fonction {n} est dans src/a.py, ligne {n}."),
        )
    model = WritingModel(lambda messages: answer([1], files_mentioned=["src/a.py", "invented.py"]))
    [made] = await Summarizer(store, SMALL, model, quiet).run_due(uuid)
    assert made.files_mentioned == ["src/a.py"]
    assert made.tools_used == ["read_file"]
    assert made.actions_summary == "Lu `src/a.py` (lignes 1–1) (3 fois) : Pour la lire."
    request = model.requests[0]
    assert [m["role"] for m in request] == ["system", "user"]
    assert "Où est" not in request[0]["content"]
    assert "Write in French." in request[0]["content"]
    assert "Reason: Pour la lire\n  Tool: read_file" in request[1]["content"]
    assert await rows_of(graph, "MATCH (:Summary)-[:MENTIONS_FILE]->(f:File {path: 'src/a.py'}) RETURN f.path") == 1


@ONE_BACKEND
async def test_a_higher_level_shows_which_topics_are_the_same(graph: Graph) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(14), workspace="/w")

    def write(messages: list[dict[str, Any]]) -> str:
        if "same_topics" not in messages[0]["content"]:
            first = messages[1]["content"].split("Turn ", 1)[1].split(" ", 1)[0]
            return answer([int(first)], topics=[f"Topic {first}", "Retries"])
        same = [
            {"a": "Topic 1", "b": "Topic 4", "confidence": 0.95, "reason": "one subject"},
            {"a": "Retries", "b": "Topic 7", "confidence": 0.5, "reason": "near"},
        ]
        return answer([1], topics=["Retries", "Waiting"], same_topics=same)

    model = WritingModel(write)
    settled = SummarizationSettings(level_chars=2_400)
    await Summarizer(store, settled, model, quiet).run_due(uuid)
    assert max(s.level for s in await store.summaries.of(uuid)) == 2
    joined = next(r for r in model.requests if "same_topics" in r[0]["content"])
    assert '"Topic 1"' in joined[1]["content"]
    first = await store.topics.get("Topic 4")
    assert (first.name, first.aliases) == ("Topic 1", ["Topic 4"])
    near = [(r.name, r.confidence) for r in (await store.topics.get("Retries")).related if r.relation == "related"]
    assert near == [("Topic 7", 0.5)]


@ONE_BACKEND
async def test_a_branch_does_not_pay_again(graph: Graph) -> None:
    store = Store(graph)
    parent = await imported(store, exchanges(14))
    await Summarizer(store, SMALL, None, quiet).run_due(parent)
    before = await store.summaries.of(parent)
    branch = (await store.conversations.create(conversation(branch_of=parent, branch_turn=14))).uuid
    assert await Summarizer(store, SMALL, None, quiet).run_due(branch) == []
    for n in range(6):
        await one_turn(store, branch, f"What is own part {n} about?", f"Own part {n} is about waiting {n} seconds.")
    made = await Summarizer(store, SMALL, None, quiet).run_due(branch)
    assert made
    assert min(s.start_turn_index for s in made if s.level == 1) == 13
    tree = await store.summaries.of(branch)
    assert {s.uuid for s in tree} == {s.uuid for s in [*before, *made]}
    assert covered(frontier(tree)) == list(range(1, 19))


@ONE_BACKEND
async def test_a_private_conversation_keeps_its_topics_to_itself(graph: Graph) -> None:
    store = Store(graph)
    public = await imported(store, exchanges(5), workspace="/w")
    private = await imported(store, exchanges(5), workspace="/w", private=True)
    model = WritingModel(lambda messages: answer([1], topics=["Takeover", "Retries"]))
    await Summarizer(store, SMALL, model, quiet).run_due(private)
    model = WritingModel(lambda messages: answer([1], topics=["Retries", "Waiting"]))
    await Summarizer(store, SMALL, model, quiet).run_due(public)
    assert "Takeover" not in str(model.requests)
    assert {t.name for t in await store.topics.search(workspace="/w")} == {"Retries", "Waiting"}
    # A private one may know what its folder is about, not the other way round.
    assert {t.name for t in await store.topics.search(conversation_id=private)} == {"Takeover", "Retries"}


@ONE_BACKEND
async def test_the_conversation_is_summarised_on_demand(graph: Graph) -> None:
    store = Store(graph)
    uuid = (await store.conversations.create(conversation())).uuid
    assert await Summarizer(store, SMALL, None, quiet).summarize_conversation(uuid) == ""
    await one_turn(store, uuid, "How do retries wait?", "Retries wait a second at most before the next try.")
    events: list[Event] = []
    text = await Summarizer(store, SMALL, None, events.append).summarize_conversation(uuid)
    assert "Retries wait a second at most" in text
    assert [type(event) for event in events] == [ConversationChanged]
    model = WritingModel(lambda messages: "It is about \x1b[31mretries\x1b[0m.\nDone: " + "nothing, " * 200)
    text = await Summarizer(store, SMALL, model, quiet).summarize_conversation(uuid)
    assert text.startswith("It is about retries. Done: nothing,")
    assert len(text) <= 500
    assert (await store.conversations.get(uuid)).summary == text


@ONE_BACKEND
async def test_a_tree_that_does_not_fit_its_watermarks_is_given_up(graph: Graph) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(9))
    await Summarizer(store, SMALL, None, quiet).run_due(uuid)

    async def damage(tx) -> None:  # type: ignore[no-untyped-def]  # tests need not import the driver
        await tx.run("MATCH (s:Summary {conversation_id: $id, level: 1}) DETACH DELETE s", id=uuid)

    await graph.write(damage)
    events: list[Event] = []
    assert await Summarizer(store, SMALL, None, events.append).run_due(uuid) == []
    assert any(isinstance(event, SummaryFailed) for event in events)


@ONE_BACKEND
async def test_who_comes_second_shows_what_is_there(graph: Graph) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(6))
    wide = SummarizationSettings(every_turns=6)

    def write(messages: list[dict[str, Any]]) -> str:
        return answer([1])

    class Overtaken(WritingModel):
        async def complete(self, messages: Any, *, max_tokens: int | None = None) -> Any:
            if not self.requests:
                await Summarizer(store, SMALL, None, quiet).run_due(uuid)
            return await super().complete(messages, max_tokens=max_tokens)

    events: list[Event] = []
    assert await Summarizer(store, wide, Overtaken(write), events.append).run_due(uuid) == []
    [first] = await store.summaries.of(uuid)
    told = [event.summary for event in events if isinstance(event, SummaryCreated)]
    assert [summary.uuid for summary in told] == [first.uuid]
    assert (first.made_by, first.end_turn_index) == ("extractive", 3)
