"""What the memory made of a conversation goes out and comes back whole, on both backends."""

from __future__ import annotations

import pytest

from ragforge_tui.export import from_json, to_json
from ragforge_tui.graph import Graph, Store
from ragforge_tui.graph.store.topic_names import ProposedTopic
from ragforge_tui.shared.records import EXTRACTIVE
from tests.support.records import conversation, rows_of
from tests.support.stored_memory import remembered, summary, talk

_NODES = "MATCH (n) WHERE NOT n:RagforgeSchema AND NOT n:RagforgeMigration RETURN n.uuid"
_EDGES = "MATCH ()-[r]->() RETURN 1 AS one"


@pytest.fixture
def store(graph: Graph) -> Store:
    return Store(graph)


async def test_memory_goes_round_without_loss_and_twice_is_once(store: Store, graph: Graph) -> None:
    uuid = await remembered(store)
    first = to_json(await store.transfer.export(uuid))
    export = from_json(first)
    assert [(s.level, s.start_turn_index, s.end_turn_index) for s in export.memory.summaries] == [
        (1, 1, 2),
        (1, 3, 4),
        (2, 1, 4),
    ]
    assert export.memory.summaries[0].parent == export.memory.summaries[2].uuid
    assert {edge.kind for edge in export.memory.topic_edges} == {"has", "merged", "related"}
    assert [context.turn_index for context in export.contexts] == [1, 2, 3, 4, 5, 6]
    assert (len(export.spoken), len(export.memory.personas), len(export.memory.system_texts)) == (6, 1, 1)
    nodes, edges = await rows_of(graph, _NODES), await rows_of(graph, _EDGES)
    await store.purges.purge(uuid)
    assert await rows_of(graph, _NODES) == 0
    for _ in range(2):
        await store.transfer.import_(from_json(first))
        assert to_json(await store.transfer.export(uuid)) == first
        assert (await rows_of(graph, _NODES), await rows_of(graph, _EDGES)) == (nodes, edges)


async def test_an_imported_conversation_continues_where_its_summaries_end(store: Store) -> None:
    uuid = await remembered(store)
    export = from_json(to_json(await store.transfer.export(uuid)))
    await store.purges.purge(uuid)
    await store.transfer.import_(export)
    assert await store.summaries.store(summary(uuid, 1, 3, 5)) is None
    assert await store.summaries.store(summary(uuid, 1, 5, 6)) is not None
    assert await store.memory_exporter.stamp(uuid) != "3 1"


async def test_a_branch_brings_the_summaries_of_the_turns_it_shares(store: Store) -> None:
    root = await remembered(store)
    child = await store.conversations.create(conversation(branch_of=root, branch_turn=4, workspace="/w"))
    await talk(store, child.uuid, "another way", ("b.py", "read"))
    whole_root, whole_child = (
        to_json(await store.transfer.export(root)),
        to_json(await store.transfer.export(child.uuid)),
    )
    assert len(from_json(whole_child).memory.summaries) == 3
    assert len(from_json(whole_child).memory.system_texts) == 1
    await store.purges.purge(child.uuid)
    await store.purges.purge(root)
    await store.transfer.import_(from_json(whole_child))
    assert to_json(await store.transfer.export(child.uuid)) == whole_child
    await store.transfer.import_(from_json(whole_root))
    assert to_json(await store.transfer.export(root)) == whole_root
    assert to_json(await store.transfer.export(child.uuid)) == whole_child


async def test_summaries_that_are_here_stay(store: Store) -> None:
    uuid = await remembered(store)
    export = await store.transfer.export(uuid)
    await store.purges.purge(uuid)
    await store.transfer.import_(type(export)(conversation=export.conversation, turns=export.turns))
    own = await store.summaries.store(summary(uuid, 1, 1, 3))
    assert own is not None
    await store.transfer.import_(export, merge=True)
    kept = await store.summaries.of(uuid)
    assert [(s.level, s.start_turn_index, s.end_turn_index) for s in kept] == [(1, 1, 3)]


@pytest.mark.parametrize("named", [True, False], ids=["author-named", "by-another-program"])
async def test_an_extract_does_not_replace_a_models_text_after_an_import(store: Store, named: bool) -> None:
    uuid = (await store.conversations.create(conversation(workspace="/w"))).uuid
    await talk(store, uuid, "How long?")
    await store.summaries.set_conversation_summary(uuid, "A model's.", made_by="model")
    export = await store.transfer.export(uuid)
    if not named:
        export.conversation.summary_made_by = ""
    await store.purges.purge(uuid)
    await store.transfer.import_(from_json(to_json(export)))
    after = await store.summaries.set_conversation_summary(uuid, "An extract.", made_by=EXTRACTIVE)
    assert after.summary == "A model's."


async def test_an_imported_extract_is_replaced_and_replaces_no_models_text(store: Store) -> None:
    uuid = await remembered(store)
    await store.summaries.set_conversation_summary(uuid, "An extract.", made_by=EXTRACTIVE)
    export = await store.transfer.export(uuid)
    assert export.conversation.summary_made_by == EXTRACTIVE
    export.conversation.summary_made_by = ""  # as another program wrote it
    await store.summaries.set_conversation_summary(uuid, "A model's.", made_by="model")
    await store.conversations.update(uuid, status="deleted")
    await store.transfer.import_(from_json(to_json(export)))
    assert (await store.conversations.get(uuid)).summary == "A model's."
    await store.purges.purge(uuid)
    await store.transfer.import_(from_json(to_json(export)))
    assert (await store.summaries.set_conversation_summary(uuid, "Newer.", made_by=EXTRACTIVE)).summary == "Newer."


async def test_topics_merged_here_stay_merged(store: Store) -> None:
    uuid = await remembered(store)
    export = await store.transfer.export(uuid)
    other = await remembered(store)
    await store.purges.purge(uuid)
    topics = {topic.name: topic for topic in await store.topics.search()}
    await store.topics.merge(topics["Shared"].uuid, topics["Topic 1"].uuid)
    before = {topic.name for topic in await store.topics.search()}
    await store.transfer.import_(export)
    assert {topic.name for topic in await store.topics.search()} == before
    assert {"Shared", "Topic 1"} - before
    assert len(await store.summaries.of(other)) == 3


async def test_purge_removes_topics_no_one_names(store: Store, graph: Graph) -> None:
    one, two = await remembered(store), await store.conversations.create(conversation(workspace="/w"))
    for n in (1, 2):
        await talk(store, two.uuid, str(n))
    await store.summaries.store(summary(two.uuid, 1, 1, 2, made_by="model"), [ProposedTopic(name="Topic 3")])
    await store.purges.purge(one)
    left = await store.topics.search()
    assert [topic.name for topic in left] == ["Topic 3"]
    assert "Shared" not in str(left)
    await store.purges.purge(two.uuid)
    assert await rows_of(graph, _NODES) == 0


async def test_accessed_files(store: Store) -> None:
    root = await store.conversations.create(conversation(workspace="/w"))
    await talk(store, root.uuid, "one", ("a.py", "write"), ("b.py", "read"), ("src", "list"))
    await talk(store, root.uuid, "two", ("a.py", "read"), ("c.py", "search"))
    await talk(store, root.uuid, "three", ("c.py", "read"), ("d.py", "search"))
    found = await store.files.accessed(root.uuid)
    assert [(f.path, f.group, f.tool, f.turn_index, f.count) for f in found] == [
        ("a.py", "modified", "write_it", 1, 2),
        ("c.py", "read", "read_it", 3, 2),
        ("b.py", "read", "read_it", 1, 1),
        ("d.py", "found", "search_it", 3, 1),
    ]
    assert [f.path for f in await store.files.accessed(root.uuid, limit=1)] == ["a.py"]
    assert [f.path for f in await store.files.accessed(root.uuid, before=2)] == ["a.py", "b.py"]
    child = await store.conversations.create(conversation(branch_of=root.uuid, branch_turn=1, workspace="/w"))
    await talk(store, child.uuid, "else", ("e.py", "write"))
    assert [f.path for f in await store.files.accessed(child.uuid)] == ["e.py", "a.py", "b.py"]
    empty = await store.conversations.create(conversation())
    assert await store.files.accessed(empty.uuid) == []
