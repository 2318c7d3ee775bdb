"""Migrations: once, forward, and never into a graph that is somebody else's."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from ragforge_tui.graph import Graph, GraphTarget, Store, stop_server
from ragforge_tui.graph.dialect import ArcadeDialect, Dialect, Neo4jDialect
from ragforge_tui.graph.schema import indexes, m008_findings, m010_line_changes
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
from ragforge_tui.graph.store.search import quoted
from ragforge_tui.settings.schema import Paths
from ragforge_tui.shared.errors import ForeignGraphError, GraphError
from tests.conftest import EMBEDDED, open_graph
from tests.support.records import add_reply, conversation, message, rows_of
from tests.support.sizes import DIMENSION, paths_under


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


FIRST_RELEASE = Path(__file__).with_name("schema_first_release.txt")
"""Statements of step 1 as the first release ran them, by dialect; with labels and relationships that nothing used."""
UNUSED = re.compile(r"\b(Scope|Insight|HAS_INSIGHT|REFERENCES_CODE|DEFINES|REFERENCES)\b")
LATER_STEPS = {
    "arcadedb": [
        "CREATE VERTEX TYPE SystemText IF NOT EXISTS",
        "CREATE PROPERTY SystemText.uuid IF NOT EXISTS STRING",
        "CREATE EDGE TYPE BEGINS_WITH IF NOT EXISTS",
        "CREATE INDEX IF NOT EXISTS ON SystemText (uuid) UNIQUE",
        "CREATE VERTEX TYPE Summary IF NOT EXISTS",
        "CREATE PROPERTY Summary.sequence IF NOT EXISTS LONG",
        "CREATE INDEX IF NOT EXISTS ON Summary (conversation_id, sequence) UNIQUE",
    ],
    "neo4j": [
        "CREATE CONSTRAINT systemtext_uuid_unique IF NOT EXISTS FOR (n:SystemText) REQUIRE (n.uuid) IS UNIQUE",
        "CALL db.awaitIndexes(120)",
        "CREATE CONSTRAINT summary_conversation_id_sequence_unique IF NOT EXISTS "
        "FOR (n:Summary) REQUIRE (n.conversation_id, n.sequence) IS UNIQUE",
        "CALL db.awaitIndexes(120)",
    ],
}


def first_release(dialect: str) -> list[str]:
    """The statements of step 1 as the first release ran them."""
    section = FIRST_RELEASE.read_text(encoding="utf-8").split(f"[{dialect}]\n")[1]
    return section.split("\n\n")[0].splitlines()


@contextmanager
def first_release_only() -> Iterator[None]:
    """Know no step but that of the first release."""

    async def apply(dialect: Dialect, dimension: int) -> None:
        for statement in first_release(dialect.name):
            await dialect._run(statement)  # type: ignore[attr-defined]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrating, "MIGRATIONS", (Migration(1, "initial", apply),))
        patch.setattr(migrating, "VERSION", 1)
        yield


@pytest.mark.parametrize("dialect", [ArcadeDialect, Neo4jDialect])
async def test_released_steps_do_not_change(
    dialect: type[ArcadeDialect | Neo4jDialect], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    async def run(statement: str) -> None:
        ran.append(statement)

    # What is searched for today, or tomorrow, has no part in them.
    monkeypatch.setattr(indexes, "VECTOR", (*VECTOR, ("Planet", "embedding")))
    monkeypatch.setitem(indexes.MESSAGE_LEX, "it", ("lex_key_it", "conversation_id"))
    recording: Dialect = ArcadeDialect(run, run) if dialect is ArcadeDialect else Neo4jDialect(run)
    initial, *later = MIGRATIONS
    await initial.apply(recording, DIMENSION)
    assert set(ran) == {line for line in first_release(recording.name) if not UNUSED.search(line)}
    ran.clear()
    for step in later[:2]:
        await step.apply(recording, DIMENSION)
    assert ran == LATER_STEPS[recording.name]


async def test_a_graph_of_the_first_release_is_brought_up_to_date(unmarked: Graph) -> None:
    version = "MATCH (v:RagforgeSchema) RETURN v.version AS version"
    with first_release_only():
        await migrate(unmarked, adopt=False, embedding_dimension=DIMENSION)
    assert await unmarked.query_readonly(version) == [{"version": 1}]
    await migrate(unmarked, adopt=False, embedding_dimension=DIMENSION)
    assert await unmarked.query_readonly(version) == [{"version": VERSION}]


async def test_a_server_of_the_first_release_opens_and_has_everything(home: Path) -> None:
    paths = paths_under(home)
    try:
        with first_release_only():
            graph = await open_graph(EMBEDDED, paths)
            await execute(graph, "CREATE (:Scope {uuid: 's', name: 'retry'})")
            await graph.close()
        graph = await open_graph(EMBEDDED, paths)
        await execute(graph, "CREATE (:Summary {uuid: 'a', conversation_id: 'c', sequence: 1, start_turn_index: 1})")
        with pytest.raises(GraphError):
            await execute(
                graph, "CREATE (:Summary {uuid: 'b', conversation_id: 'c', sequence: 1, start_turn_index: 2})"
            )
        await Store(graph).vectors.change_model("another", 2 * DIMENSION)
        for label, prop in VECTOR:
            await execute(
                graph, f"MERGE (n:{label} {{uuid: 'n'}}) SET n.{prop} = {[1.0] + [0.0] * (2 * DIMENSION - 1)}"
            )
        assert await rows_of(graph, "MATCH (s:Scope {name: 'retry'}) RETURN s.uuid") == 1
        # What brings an index for scopes finds none of the old dimension.
        await graph.dialect.create_vector_index("Scope", "embedding", 2 * DIMENSION)
        await execute(graph, f"MATCH (s:Scope) SET s.embedding = {[1.0] * (2 * DIMENSION)}")
        await graph.close()
    finally:
        stop_server(paths)


async def test_summaries_of_earlier_releases_are_found_by_their_findings(graph: Graph) -> None:
    await execute(
        graph,
        "CREATE (:Summary {uuid: 'old', conversation_id: 'c', sequence: 1, start_turn_index: 1, "
        "conversation_summary: 'They talked.', key_findings: ['decision: the quokka won [t3]', 'two'], "
        "files_mentioned: ['zoo/marsupials.md']})",
    )
    await execute(graph, "CREATE (:Summary {uuid: 'bare', conversation_id: 'd', sequence: 1, start_turn_index: 1})")
    await m008_findings.apply(graph.dialect, DIMENSION)
    index = graph.dialect.fulltext_index("Summary", SUMMARY_TEXT)
    for word in ("quokka", "marsupials"):
        found = await graph.query_readonly(
            f"CALL db.index.fulltext.queryNodes('{index}', '+(findings_text:(" + quoted([word]) + "))') YIELD node "
            "RETURN node.uuid AS uuid, node.findings_text AS text"
        )
        assert found == [{"uuid": "old", "text": "decision: the quokka won [t3]\ntwo\nzoo marsupials md\n"}]
    assert await graph.query_readonly("MATCH (s:Summary {uuid: 'bare'}) RETURN s.findings_text AS text") == [
        {"text": ""}
    ]


async def test_guessed_commits_of_earlier_releases_are_dropped(graph: Graph) -> None:
    await execute(
        graph,
        "CREATE (m:Message {uuid: 'm', conversation_id: 'c', turn_index: 1, position: 0}) "
        "CREATE (m)-[:PRODUCED]->(:Commit {uuid: 'made'}) "
        "CREATE (m)-[:PRODUCED {found: true}]->(:Commit {uuid: 'guessed'})",
    )
    await m010_line_changes.apply(graph.dialect, DIMENSION)
    assert await graph.query_readonly("MATCH (k:Commit) RETURN k.uuid AS uuid") == [{"uuid": "made"}]
    assert await rows_of(graph, "MATCH (:Message)-[p:PRODUCED]->(:Commit) RETURN p") == 1


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
