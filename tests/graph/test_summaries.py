"""Summaries in the graph: whole or not at all, never overlapping, on both backends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
import numpy as np
import pytest

from ragforge_tui.graph import Graph, Store, writer_id
from ragforge_tui.graph.schema.migrate import record_embedding
from ragforge_tui.graph.store.summaries import TYPED_CHARS
from ragforge_tui.graph.store.summary_tree import finding_from, finding_text, summary_uuid
from ragforge_tui.graph.store.topic_names import ProposedTopic
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.records import EXTRACTIVE, FileAccess, Finding, Summary, ToolResult, now
from tests.support.records import add_reply, call_of, conversation, finish_reply, message, one_turn, rows_of, supersede
from tests.support.sizes import DIMENSION
from tests.support.turns import exchanges, imported


def summary(conversation_id: str, start: int, end: int, *, level: int = 1, over: Sequence[Summary] = ()) -> Summary:
    return Summary(
        uuid=summary_uuid(conversation_id, level, start, end),
        conversation_id=conversation_id,
        level=level,
        ordinal=1,
        title="Why it waits",
        conversation_summary=f"Turns {start} to {end}.",
        actions_summary="Read a file.",
        key_findings=[Finding(text="It [really] waits", turns=[start, end]), Finding(text="no turns", kind="open")],
        files_mentioned=["src/a.py", "b.py"],
        tools_used=["read_file"],
        topics=["Retries", "Waiting"],
        start_turn_index=start,
        end_turn_index=end,
        turn_count=end - start + 1,
        parent_summaries=[child.uuid for child in over],
        made_by="test",
        created_at=now(),
    )


TOPICS = [ProposedTopic(name="Retries", confidence=0.9), ProposedTopic(name="Waiting")]


async def test_a_summary_is_stored_with_its_edges_topics_and_watermark(graph: Graph) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(6), workspace="/w")
    stored = await store.summaries.store(summary(uuid, 1, 3), TOPICS)
    assert stored is not None
    [read] = await store.summaries.of(uuid)
    assert read == stored
    assert read.title == "Why it waits"
    assert (read.key_findings, read.topics) == (summary(uuid, 1, 3).key_findings, ["Retries", "Waiting"])
    [row] = await graph.query_readonly(
        "MATCH (c:Conversation)-[:HAS_SUMMARY]->(s:Summary) "
        "RETURN s.level AS level, s.key_findings AS findings, c.watermarks AS watermarks"
    )
    assert row == {"level": 1, "findings": ["It [really] waits [t1, t3]", "open: no turns"], "watermarks": [3]}
    assert await rows_of(graph, "MATCH (:Summary)-[r:SUMMARIZES]->(m:Message) RETURN r") == 6
    assert await rows_of(graph, "MATCH (:Summary)-[:MENTIONS_FILE]->(f:File {workspace: '/w'}) RETURN f.path") == 2
    [near] = await graph.query_readonly(
        "MATCH (:Summary)-[h:HAS_TOPIC]->(t:Topic {name: 'Retries'}) RETURN h.confidence AS confidence"
    )
    assert near == {"confidence": 0.9}


async def test_the_same_again_changes_nothing(graph: Graph) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(6))
    first = await store.summaries.store(summary(uuid, 1, 3), TOPICS)
    again = summary(uuid, 1, 3)
    again.conversation_summary = "Somebody else wrote this."
    assert await store.summaries.store(again, [ProposedTopic(name="Other")]) == first
    assert await rows_of(graph, "MATCH (s:Summary) RETURN s.uuid") == 1
    assert await rows_of(graph, "MATCH (:Summary)-[h:HAS_TOPIC]->() RETURN h") == 2


@pytest.mark.parametrize("range_", [(1, 2), (1, 5), (3, 5), (5, 6), (2, 3)])
async def test_a_summary_that_leaves_a_gap_is_refused(graph: Graph, range_: tuple[int, int]) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(8))
    await store.summaries.store(summary(uuid, 1, 3))
    assert await store.summaries.store(summary(uuid, *range_)) is None
    assert await store.summaries.store(summary(uuid, 1, 4, level=2)) is None
    assert [(s.start_turn_index, s.end_turn_index) for s in await store.summaries.of(uuid)] == [(1, 3)]
    assert await rows_of(graph, "MATCH (:Summary)-[r:SUMMARIZES]->(m:Message) RETURN r") == 6


async def test_levels_have_watermarks_of_their_own(graph: Graph) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(8))
    below = [await store.summaries.store(summary(uuid, *r)) for r in ((1, 2), (3, 5), (6, 7))]
    children = [s for s in below if s]
    assert await store.summaries.store(summary(uuid, 1, 5, level=2, over=children[:2])) is not None
    tree = await store.summaries.of(uuid)
    assert [bool(s.parent) for s in tree] == [True, True, False, False]
    assert await rows_of(graph, "MATCH (:Summary {level: 2})-[r:SUMMARIZES]->(s:Summary {level: 1}) RETURN r") == 2
    [row] = await graph.query_readonly("MATCH (c:Conversation) RETURN c.watermarks AS watermarks")
    assert row == {"watermarks": [7, 5]}


async def test_writers_at_once_leave_one_chain(graph: Graph) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(30))

    async def writer(size: int) -> int:
        stored = 0
        while True:
            tree = await store.summaries.of(uuid)
            start = max((s.end_turn_index for s in tree), default=0) + 1
            if start > 24:
                return stored
            stored += await store.summaries.store(summary(uuid, start, start + size - 1), TOPICS) is not None

    counts = await asyncio.gather(*(writer(size) for size in (1, 2, 3, 2)))
    tree = await store.summaries.of(uuid)
    covered = [turn for s in tree for turn in range(s.start_turn_index, s.end_turn_index + 1)]
    assert covered == list(range(1, covered[-1] + 1))
    assert await rows_of(graph, "MATCH (s:Summary) RETURN s.uuid") == len(tree) <= sum(counts)
    [row] = await graph.query_readonly("MATCH (c:Conversation) RETURN c.watermarks AS w, c.summary_sequence AS n")
    assert row == {"w": [covered[-1]], "n": len(tree)}
    assert await rows_of(graph, "MATCH (t:Topic) RETURN t.uuid") == 2


async def test_a_branch_has_the_summaries_of_the_turns_it_shares(graph: Graph) -> None:
    store = Store(graph)
    parent = await imported(store, exchanges(12))
    children = [s for r in ((1, 3), (4, 6)) if (s := await store.summaries.store(summary(parent, *r)))]
    branch = (await store.conversations.create(conversation(branch_of=parent, branch_turn=8))).uuid
    for n in range(5):
        await one_turn(store, branch, f"own {n}")
    assert [s.end_turn_index for s in await store.summaries.of(branch)] == [3, 6]
    # What the parent summarises later counts too, as long as the branch has none there and it is within its prefix.
    await store.summaries.store(summary(parent, 7, 8))
    await store.summaries.store(summary(parent, 9, 11))
    assert [s.end_turn_index for s in await store.summaries.of(branch)] == [3, 6, 8]
    assert await store.summaries.store(summary(branch, 7, 10)) is None
    own = await store.summaries.store(summary(branch, 9, 10))
    assert own is not None
    assert await rows_of(graph, f"MATCH (s:Summary {{uuid: '{own.uuid}'}})-[:SUMMARIZES]->(m) RETURN m.uuid") == 4
    # Over summaries of the parent, while the parent itself goes another way.
    inherited = (await store.summaries.of(branch))[:3]
    above = await store.summaries.store(summary(branch, 1, 8, level=2, over=inherited))
    assert above is not None
    await store.summaries.store(summary(parent, 1, 6, level=2, over=children))
    tree = await store.summaries.of(branch)
    assert [(s.level, s.end_turn_index, bool(s.parent)) for s in tree] == [
        (1, 3, True),
        (1, 6, True),
        (1, 8, True),
        (1, 10, False),
        (2, 8, False),
    ]
    assert [(s.level, s.end_turn_index) for s in await store.summaries.of(parent)] == [
        (1, 3),
        (1, 6),
        (1, 8),
        (1, 11),
        (2, 6),
    ]


async def test_a_branch_with_own_summaries_keeps_them_when_the_parent_catches_up(graph: Graph) -> None:
    store = Store(graph)
    parent = await imported(store, exchanges(12))
    await store.summaries.store(summary(parent, 1, 3))
    branch = (await store.conversations.create(conversation(branch_of=parent, branch_turn=10))).uuid
    await one_turn(store, branch, "own")
    mine = await store.summaries.store(summary(branch, 4, 8))
    assert mine is not None
    below = [s for r in ((4, 6), (7, 9)) if (s := await store.summaries.store(summary(parent, *r)))]
    first = (await store.summaries.of(parent))[0]
    await store.summaries.store(summary(parent, 1, 6, level=2, over=[first, below[0]]))
    assert [(s.level, s.end_turn_index) for s in await store.summaries.of(branch)] == [(1, 3), (1, 8)]
    [shared] = await graph.query_readonly(
        f"MATCH (s:Summary {{uuid: '{mine.uuid}'}})-[:SUMMARIZES]->(m:Message) RETURN count(m) AS messages"
    )
    assert shared == {"messages": 10}


async def test_sizes_count_what_was_written_and_not_what_tools_gave(graph: Graph) -> None:
    store = Store(graph)
    uuid = (await store.conversations.create(conversation())).uuid
    asked = await store.messages.begin_turn(message(uuid, content="12345"))
    wrong = await add_reply(store, message(uuid, role="assistant", turn_index=1, content="superseded"))
    await supersede(store, uuid, 1)
    said = await add_reply(store, message(uuid, role="assistant", turn_index=1, content="123"))
    call = call_of(said.uuid, files=[FileAccess(path="a.py", access="read")])
    await store.tool_calls.start(call, uuid)
    [size] = await store.summaries.turn_sizes(uuid, start=1)
    assert (size.chars, size.finished) == (8, False)
    await add_reply(store, message(uuid, role="assistant", turn_index=1, content="1"))
    await store.messages.begin_turn(message(uuid, content="not answered"))
    first, second = await store.summaries.turn_sizes(uuid, start=1)
    assert (first.chars, first.finished) == (9, True)
    assert (second.chars, second.finished) == (12, False)
    streaming = message(
        uuid, role="assistant", turn_index=2, content="12", state="streaming", writer=writer_id(), lease_until=now()
    )
    await add_reply(store, streaming)
    assert not (await store.summaries.turn_sizes(uuid, start=2))[0].finished
    gone = message(
        uuid, role="assistant", turn_index=2, state="streaming", writer="elsewhere|x|1|1", lease_until=asked.timestamp
    )
    gone.lease_until = asked.timestamp.replace(year=2020)
    await finish_reply(store, streaming)
    await supersede(store, uuid, 2)
    await add_reply(store, gone)
    assert (await store.summaries.turn_sizes(uuid, start=2))[0].finished
    assert wrong.turn_index == 1
    with pytest.raises(NotFoundError):
        await store.summaries.turn_sizes("nobody", start=1)


async def test_a_pasted_text_is_told_from_what_was_typed(graph: Graph) -> None:
    store = Store(graph)
    uuid = (await store.conversations.create(conversation())).uuid
    await store.messages.begin_turn(message(uuid, content="Why?\n" + "x" * 9_000))
    await add_reply(store, message(uuid, role="assistant", turn_index=1, content="y" * 3_000))
    [size] = await store.summaries.turn_sizes(uuid, start=1)
    assert (size.chars, size.said) == (12_005, TYPED_CHARS + 3_000)


async def test_a_command_of_the_users_ends_its_turn_when_it_has_ended(graph: Graph) -> None:
    store = Store(graph)
    uuid = (await store.conversations.create(conversation())).uuid
    await store.messages.begin_turn(message(uuid, content="!make"))
    doing = await add_reply(store, message(uuid, role="system", turn_index=1))
    assert not (await store.summaries.turn_sizes(uuid, start=1))[0].finished
    call = call_of(doing.uuid, tool_name="run_command")
    await store.tool_calls.start(call, uuid)
    assert not (await store.summaries.turn_sizes(uuid, start=1))[0].finished
    call.result = ToolResult(uuid="r", tool_call_id=call.uuid, success=True, result="{}", timestamp=doing.timestamp)
    call.success = True
    await store.tool_calls.finish(call, "/w")
    [size] = await store.summaries.turn_sizes(uuid, start=1)
    assert size.finished and size.own
    await store.messages.begin_turn(message(uuid, content="!sleep 30"))
    await add_reply(store, message(uuid, role="system", turn_index=2, state="interrupted"))
    assert (await store.summaries.turn_sizes(uuid, start=2))[0].finished


async def test_a_conversation_summary_is_no_use_of_the_conversation(graph: Graph) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(1))
    before = await store.conversations.get(uuid)
    after = await store.summaries.set_conversation_summary(uuid, "About retries.", made_by="test")
    assert (after.summary, after.updated_at) == ("About retries.", before.updated_at)
    with pytest.raises(NotFoundError):
        await store.summaries.set_conversation_summary("nobody", "x", made_by="test")
    with pytest.raises(NotFoundError):
        await store.summaries.of("nobody")
    with pytest.raises(NotFoundError):
        await store.summaries.store(summary("nobody", 1, 2))


async def test_a_models_summary_replaces_only_an_extract(graph: Graph) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(9), workspace="/w")
    extracts = [
        msgspec.structs.replace(summary(uuid, start, start + 2), made_by=EXTRACTIVE, topics=["short", "Waiting"])
        for start in (1, 4)
    ]
    for extract in extracts:
        assert await store.summaries.store(extract, [ProposedTopic(name="short"), ProposedTopic(name="Waiting")])
    above = await store.summaries.store(summary(uuid, 1, 6, level=2, over=extracts), TOPICS)
    assert above is not None
    await store.vectors.claim_model("fake", DIMENSION)
    model, _ = await store.vectors.model()
    unembedded = await store.vectors.missing("Summary", model, limit=9, conversation_id=uuid)
    vector = np.eye(DIMENSION, dtype=np.float32)[0]
    assert await store.vectors.store("Summary", model, [(node, vector) for node in unembedded])
    stamp, pulse = await store.memory_exporter.stamp(uuid), await store.conversations.pulse(uuid)
    written = msgspec.structs.replace(
        summary(uuid, 1, 3), conversation_summary="They chose to wait.", files_mentioned=["b.py", "c.py"]
    )
    stored = await store.summaries.store(written, TOPICS)
    assert stored == msgspec.structs.replace(written, created_at=stored.created_at if stored else now())
    tree = await store.summaries.of(uuid)
    assert [(s.uuid, s.made_by, s.parent) for s in tree] == [
        (extracts[0].uuid, "test", above.uuid),
        (extracts[1].uuid, EXTRACTIVE, above.uuid),
        (above.uuid, "test", ""),
    ]
    topics = await graph.query_readonly(
        f"MATCH (:Summary {{uuid: '{written.uuid}'}})-[:HAS_TOPIC]->(t:Topic) RETURN t.name AS name ORDER BY name"
    )
    assert [row["name"] for row in topics] == ["Retries", "Waiting"]
    files = await graph.query_readonly(
        f"MATCH (:Summary {{uuid: '{written.uuid}'}})-[:MENTIONS_FILE]->(f:File) RETURN f.path AS path ORDER BY path"
    )
    assert [row["path"] for row in files] == ["b.py", "c.py"]
    assert (
        await rows_of(graph, f"MATCH (s:Summary {{uuid: '{written.uuid}'}})-[r:SUMMARIZES]->(:Message) RETURN r") == 6
    )
    left = await store.vectors.missing("Summary", model, limit=9, conversation_id=uuid)
    assert [node.uuid for node in left] == [written.uuid]
    await record_embedding(graph, "", DIMENSION)
    # Who follows the conversation, and its live export, see that something changed.
    assert await store.memory_exporter.stamp(uuid) != stamp
    assert await store.conversations.pulse(uuid) != pulse
    # Neither an extract nor another model's text comes over what a model wrote.
    for made_by in (EXTRACTIVE, "another"):
        late = msgspec.structs.replace(written, conversation_summary="Late.", made_by=made_by)
        kept = await store.summaries.store(late, TOPICS)
        assert kept is not None
        assert kept.conversation_summary == "They chose to wait."


async def test_two_that_replace_an_extract_leave_one_text_with_its_own_topics(graph: Graph) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(6))
    await store.summaries.store(msgspec.structs.replace(summary(uuid, 1, 3), made_by=EXTRACTIVE), TOPICS)
    both = [
        msgspec.structs.replace(summary(uuid, 1, 3), made_by=name, conversation_summary=name, topics=[name])
        for name in ("one", "two")
    ]
    made = await asyncio.gather(*(store.summaries.store(s, [ProposedTopic(name=s.made_by)]) for s in both))
    [left] = await store.summaries.of(uuid)
    assert left.made_by in ("one", "two")
    assert {s.made_by for s in made if s} == {left.made_by}
    assert (left.conversation_summary, left.topics) == (left.made_by, [left.made_by])
    assert await rows_of(graph, "MATCH (:Summary)-[h:HAS_TOPIC]->(:Topic) RETURN h") == 1


async def test_an_extract_is_not_stored_over_a_models_text_on_a_conversation(graph: Graph) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(6))

    async def told(text: str, made_by: str) -> str:
        return (await store.summaries.set_conversation_summary(uuid, text, made_by=made_by, up_to=3)).summary

    assert not await store.summaries.has_stale_summary(uuid, 3)
    assert await told("An extract.", EXTRACTIVE) == "An extract."
    assert await store.summaries.has_stale_summary(uuid, 3)
    assert await told("A newer extract.", EXTRACTIVE) == "A newer extract."
    assert await told("A model's.", "model") == "A model's."
    assert await told("An extract.", EXTRACTIVE) == "A model's."
    assert not await store.summaries.has_stale_summary(uuid, 3)
    assert await store.summaries.has_stale_summary(uuid, 6)
    assert await told("A newer one.", "model") == "A newer one."


async def test_purge_leaves_no_summary_and_no_topic_no_one_has(graph: Graph) -> None:
    store = Store(graph)
    one, other = [await imported(store, exchanges(6), workspace="/w") for _ in range(2)]
    await store.summaries.store(summary(one, 1, 3), [*TOPICS, ProposedTopic(name="Only here")])
    await store.summaries.store(summary(other, 1, 3), TOPICS[:1])
    topics = {topic.name: topic.uuid for topic in await store.topics.search()}
    await store.topics.merge(topics["Waiting"], topics["Only here"])
    await store.topics.relate(topics["Retries"], topics["Waiting"], confidence=0.5)
    await store.purges.purge(one)
    assert await rows_of(graph, "MATCH (s:Summary) RETURN s.uuid") == 1
    assert [row["name"] for row in await graph.query_readonly("MATCH (t:Topic) RETURN t.name AS name")] == ["Retries"]
    await store.purges.purge(other)
    for label in ("Summary", "Topic", "File", "Message", "Conversation"):
        assert await rows_of(graph, f"MATCH (n:{label}) RETURN n.uuid") == 0


@pytest.mark.parametrize(
    "finding",
    [
        Finding(text="x"),
        Finding(text="x", turns=[3]),
        Finding(text="a [t1] b", turns=[3, 14]),
        Finding(text="Decision: x", turns=[3]),
        Finding(text="decision: x", kind="decision"),
        Finding(text="x", turns=[3, 14], kind="open"),
    ],
)
def test_findings_are_read_back_as_they_were(finding: Finding) -> None:
    assert finding_from(finding_text(finding)) == finding


async def test_a_summary_of_an_earlier_release_has_no_title_and_its_findings_no_kind(graph: Graph) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(6))
    assert await store.summaries.store(summary(uuid, 1, 3))
    await graph.run("MATCH (s:Summary) SET s.title = NULL, s.key_findings = ['Blue: a colour [t2]', 'no turns']")
    [read] = await store.summaries.of(uuid)
    assert read.title == ""
    assert read.key_findings == [Finding(text="Blue: a colour", turns=[2]), Finding(text="no turns")]
    [node] = await store.summaries.outline(uuid)
    assert (node.title, node.headline) == ("", "Turns 1 to 3.")
