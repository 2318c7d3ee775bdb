"""Migrations: once, forward, and never into a graph that is somebody else's."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator

import msgspec
import pytest

from ragforge_tui.graph import Graph, GraphTarget, Store
from ragforge_tui.graph.dialect import Dialect
from ragforge_tui.graph.schema import migrate as migrating
from ragforge_tui.graph.schema.indexes import MESSAGE_LEX, MESSAGE_TEXT, SUMMARY_TEXT, VECTOR
from ragforge_tui.graph.schema.migrate import (
    MIGRATIONS,
    VERSION,
    Migration,
    migrate,
    record_embedding,
    recorded_embedding,
)
from ragforge_tui.settings.schema import Paths
from ragforge_tui.shared.errors import ForeignGraphError, GraphError
from tests.support.records import add_reply, conversation, message, rows_of
from tests.support.sizes import DIMENSION


async def execute(graph: Graph, cypher: str) -> None:
    """Run a statement that writes."""

    async def work(tx) -> None:  # type: ignore[no-untyped-def]  # tests need not import the driver
        await tx.run(cypher)

    await graph.write(work)


@pytest.fixture
async def unmarked(graph: Graph) -> AsyncIterator[Graph]:
    """A graph without our version node; marked again at the end."""
    await execute(graph, "MATCH (n) WHERE n:RagforgeSchema OR n:RagforgeMigration DELETE n")
    yield graph
    await execute(graph, "MATCH (n) WHERE n:Stranger OR n:RagforgeSchema DELETE n")
    await migrate(graph, adopt=True, embedding_dimension=DIMENSION)


async def test_migrating_again_changes_nothing(graph: Graph) -> None:
    # Tests that ran before in this process may have recorded a model: emptying the graph keeps its version node.
    await record_embedding(graph, "", DIMENSION)
    marks = "MATCH (n) WHERE n:RagforgeSchema OR n:RagforgeMigration RETURN n.name AS name, n.version AS version"
    before = await graph.query_readonly(marks)
    await migrate(graph, adopt=False, embedding_dimension=99)
    assert await graph.query_readonly(marks) == before
    assert await recorded_embedding(graph) == ("", DIMENSION)
    await record_embedding(graph, "some/model", DIMENSION)
    assert await recorded_embedding(graph) == ("some/model", DIMENSION)
    await record_embedding(graph, "", DIMENSION)


async def test_an_interrupted_migration_is_finished(unmarked: Graph) -> None:
    await migrate(unmarked, adopt=False, embedding_dimension=DIMENSION)
    assert await rows_of(unmarked, "MATCH (v:RagforgeSchema) RETURN v.version") == 1
    assert await rows_of(unmarked, "MATCH (v:RagforgeMigration) RETURN v.name") == len(MIGRATIONS)


async def test_a_foreign_graph_is_refused_until_adopted(unmarked: Graph) -> None:
    await execute(unmarked, "CREATE (:Stranger {name: 'theirs'})")
    with pytest.raises(ForeignGraphError):
        await migrate(unmarked, adopt=False, embedding_dimension=DIMENSION)
    assert await rows_of(unmarked, "MATCH (v:RagforgeSchema) RETURN v.version") == 0
    await migrate(unmarked, adopt=True, embedding_dimension=DIMENSION)
    await migrate(unmarked, adopt=False, embedding_dimension=DIMENSION)
    assert await rows_of(unmarked, "MATCH (s:Stranger) RETURN s.name") == 1


async def test_a_newer_schema_is_refused(graph: Graph) -> None:
    await execute(graph, "MATCH (v:RagforgeSchema) SET v.version = v.version + 1")
    try:
        with pytest.raises(GraphError, match="Upgrade"):
            await migrate(graph, adopt=True, embedding_dimension=DIMENSION)
    finally:
        await execute(graph, "MATCH (v:RagforgeSchema) SET v.version = v.version - 1")


async def test_a_graph_gets_the_steps_that_it_lacks_once(unmarked: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    await migrate(unmarked, adopt=False, embedding_dimension=DIMENSION)
    marks = "MATCH (m:RagforgeMigration {name: 'initial'}) RETURN m.applied_at AS at"
    initial = await unmarked.query_readonly(marks)
    ran: list[int] = []

    async def later(dialect: Dialect, dimension: int) -> None:
        ran.append(dimension)

    monkeypatch.setattr(migrating, "MIGRATIONS", (*MIGRATIONS, Migration(VERSION + 1, "later", later)))
    monkeypatch.setattr(migrating, "VERSION", VERSION + 1)
    for _ in range(2):
        await migrate(unmarked, adopt=False, embedding_dimension=DIMENSION)
    assert ran == [DIMENSION]
    assert await unmarked.query_readonly(marks) == initial
    assert await unmarked.query_readonly("MATCH (v:RagforgeSchema) RETURN v.version AS version") == [
        {"version": VERSION + 1}
    ]
    await execute(unmarked, "MATCH (m:RagforgeMigration {name: 'later'}) DELETE m")
    monkeypatch.undo()


async def test_places_are_unique(graph: Graph) -> None:
    await execute(graph, "CREATE (:Message {uuid: 'a', conversation_id: 'c', turn_index: 1, position: 0})")
    for duplicate in ("uuid: 'a', conversation_id: 'd'", "uuid: 'b', conversation_id: 'c'"):
        with pytest.raises(GraphError):
            await execute(graph, f"CREATE (:Message {{{duplicate}, turn_index: 1, position: 0}})")


@pytest.mark.parametrize(("label", "prop"), VECTOR)
async def test_vector_indexes_answer(graph: Graph, label: str, prop: str) -> None:
    index = graph.dialect.vector_index(label, prop)
    vector = [1.0] + [0.0] * (DIMENSION - 1)
    await execute(graph, f"CREATE (:{label} {{uuid: 'v', {prop}: {vector}}})")
    found = await graph.query_readonly(
        f"CALL db.index.vector.queryNodes('{index}', 1, {vector}) YIELD node, score RETURN node.uuid AS uuid"
    )
    assert found == [{"uuid": "v"}]


@pytest.mark.parametrize(
    ("label", "props", "language"),
    [
        ("Message", MESSAGE_TEXT, "en"),
        *(("Message", props, language) for language, props in MESSAGE_LEX.items()),
        ("Summary", SUMMARY_TEXT, "en"),
    ],
)
async def test_fulltext_indexes_answer_with_stems(
    graph: Graph, label: str, props: tuple[str, ...], language: str
) -> None:
    said, asked = {"en": ("running dogs", "run"), "fr": ("les chevaux couraient", "cheval")}[language]
    await execute(graph, f"CREATE (:{label} {{uuid: 't', {props[0]}: '{said}', {props[-1]}: 'x'}})")
    index = graph.dialect.fulltext_index(label, props)
    found = await graph.query_readonly(
        f"CALL db.index.fulltext.queryNodes('{index}', '+{props[0]}:({asked}) +{props[-1]}:x') "
        "YIELD node RETURN node.uuid AS uuid"
    )
    assert found == [{"uuid": "t"}]


_WRITER = """
import asyncio, sys
import msgspec
from ragforge_tui.settings.schema import Paths
from ragforge_tui.graph import GraphTarget, Store
from tests.conftest import open_graph
from tests.support.records import add_reply, message

async def main(target, paths, conversation, name):
    graph = await open_graph(msgspec.json.decode(target, type=GraphTarget), msgspec.json.decode(paths, type=Paths))
    store = Store(graph)
    for n in range(10):
        asked = await store.messages.begin_turn(message(conversation, content=f"{name} {n}"))
        await add_reply(store, message(conversation, role="assistant", turn_index=asked.turn_index, content="a"))
    await graph.close()

asyncio.run(main(*sys.argv[1:]))
"""


async def test_two_processes_share_one_row_of_turns(
    graph: Graph, graph_target: GraphTarget, graph_paths: Paths
) -> None:

    store = Store(graph)
    c = await store.conversations.create(conversation())
    given = [msgspec.json.encode(graph_target).decode(), msgspec.json.encode(graph_paths).decode(), c.uuid]
    writers = [subprocess.Popen([sys.executable, "-c", _WRITER, *given, name]) for name in ("a", "b")]  # noqa: ASYNC220
    for n in range(10):
        asked = await store.messages.begin_turn(message(c.uuid, content=f"own {n}"))
        await add_reply(store, message(c.uuid, role="assistant", turn_index=asked.turn_index, content="a"))
    for writer in writers:
        assert writer.wait(120) == 0
    turns = await store.turns.between(c.uuid, start=1, end=99)
    assert [t.turn_index for t in turns] == list(range(1, 31))
    assert all([m.position for m in t.messages] == [0, 1] for t in turns)
    counted = await store.conversations.get(c.uuid)
    assert (counted.message_count, counted.next_turn) == (60, 31)
    for name in ("a", "b", "own"):
        said = [t.messages[0].content for t in turns if t.messages[0].content.startswith(f"{name} ")]
        assert said == [f"{name} {n}" for n in range(10)]
