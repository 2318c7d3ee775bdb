"""Compacting: smaller, and everything is found as before, on both backends."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragforge_tui.graph import Graph, Store
from ragforge_tui.graph.compact import _is_gone, compact
from ragforge_tui.graph.content_files import Reference, Text
from ragforge_tui.graph.schema.migrate import record_embedding
from tests.support.fake_embedder import FakeEmbedder
from tests.support.recall_conversations import ready, recall_of, talked
from tests.support.records import conversation, one_turn
from tests.support.sizes import DIMENSION


async def test_words_and_vectors_are_found_after_the_indexes_were_built_again(graph: Graph) -> None:
    store = Store(graph)
    c = await talked(store)
    embedder = FakeEmbedder()
    await ready(recall_of(store, c, embedder))
    others = await store.other_conversations.scope([], "/w")
    [vector] = await embedder.embed(["Who teaches violin?"])

    async def found() -> list[tuple[int, ...]]:
        index = graph.dialect.vector_index("Message")
        rows = await graph.rows(
            "CALL db.index.vector.queryNodes($index, 3, $vector) YIELD node RETURN node.turn_index AS turn",
            index=index,
            vector=vector.tolist(),
        )
        by_words = await store.other_conversations.turns(others, ["violins"], None, "")
        searched = await store.search.turns("teaching violin")
        return [
            tuple(row["turn"] for row in rows),
            tuple(sorted(turn.turn_index for turn in by_words)),
            tuple(hit.turn_index for hit in searched),
        ]

    try:
        before = await found()
        assert all(before)
        done = await compact(graph)
        assert (done.rebuilt, done.in_use, done.indexes_dropped) == (graph.embedded, False, [])
        assert await found() == before
        # A turn stored later is in the indexes too.
        await one_turn(store, c.uuid, "Is the bassoon in tune?")
        assert len(await store.search.turns("bassoon")) == 1
    finally:
        await record_embedding(graph, "", DIMENSION)


async def test_files_are_rewritten_only_while_nobody_else_uses_the_graph(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.contents.writes = True
    await graph.prepare_contents()
    store = Store(graph)
    c = await store.conversations.create(conversation())
    await graph.contents.append(c.uuid, [Text("o", "content", "replaced " * 1_000)])
    await one_turn(store, c.uuid, "first", "one")
    await graph.contents.append(c.uuid, [Text("o", "content", "undone " * 1_000)])
    await one_turn(store, c.uuid, "second", "first")
    size = await graph.contents.size()

    async def used() -> bool:
        return True

    with monkeypatch.context() as patch:
        patch.setattr(graph, "used_by_others", used)
        done = await compact(graph)
    assert (done.in_use, done.rebuilt, done.contents_after) == (True, False, size)
    done = await compact(graph)
    assert (done.in_use, done.contents_before, done.contents_after < 1_500) == (False, size, True)
    turns = await store.turns.between(c.uuid, start=1, end=9)
    assert [m.content for turn in turns for m in turn.messages] == ["first", "one", "second", "first"]
    rows = await graph.rows("MATCH (m:Message) RETURN m.content_file AS file")
    folder = graph.contents.root / c.uuid
    data = (folder / "texts.jsonl").read_bytes()
    for reference in (Reference.decode(row["file"]) for row in rows):
        line = data[reference.offset : reference.offset + reference.length]
        assert reference.sha256.encode() in line and line.endswith(b"\n")
    await one_turn(store, c.uuid, "third")
    assert [lost async for lost in store.contents.check()] == []
    assert (await compact(graph)).contents_before == (await compact(graph)).contents_after


def test_a_folder_counts_as_gone_only_if_its_parent_is_here(tmp_path: Path) -> None:
    there, empty = tmp_path / "there", tmp_path / "mount"
    there.mkdir()
    empty.mkdir()
    assert not _is_gone(str(there))
    assert _is_gone(str(tmp_path / "removed"))
    assert not _is_gone(str(empty / "not mounted"))
    assert not _is_gone("/no/such/disk/project")
    assert not _is_gone("/")
