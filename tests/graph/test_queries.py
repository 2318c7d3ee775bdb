"""The queries of the manual run on both backends, and find what the page says they find."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ragforge_tui.graph import Graph, Store
from ragforge_tui.graph.dialect import ArcadeDialect, Neo4jDialect
from ragforge_tui.graph.schema.m010_initial import _FULLTEXT, _VECTOR
from ragforge_tui.graph.values import plain
from ragforge_tui.memory.retrieval import catch_up
from ragforge_tui.shared.records import Usage
from tests.graph.test_backup import everything
from tests.support.fake_embedder import FakeEmbedder
from tests.support.records import message

PAGE = (Path(__file__).parents[2] / "docs" / "queries.md").read_text("utf-8")
_QUERY = re.compile(r"(?:^<!-- on: (\w+) -->\n)?^```cypher\n(.*?)^```", re.M | re.S)
QUERIES = [(match[1], match[2]) for match in _QUERY.finditer(PAGE)]


@pytest.mark.slow
async def test_every_query_of_the_page_finds_something(graph: Graph) -> None:
    store = Store(graph)
    uuid = await everything(graph)
    row = await graph.one("MATCH (m:Message {conversation_id: $id, turn_index: 1, position: 0}) RETURN m", id=uuid)
    assert row is not None
    said = str(row["m"]["turn_text"])
    await store.conversations.update(uuid, summary=said, tags=["auth"])
    reply = message(uuid, role="assistant", turn_index=1, content="Counted.", usage=Usage(input_tokens=9))
    await store.messages.add(reply, (await store.turns.between(uuid, start=1, end=2))[0].messages[0].uuid)
    embedder = FakeEmbedder()
    await catch_up(store, embedder)
    vector = (await embedder.embed([said]))[0].tolist()
    parameters = {
        "uuid": uuid,
        "status": "active",
        "tags": ["auth"],
        "limit": 20,
        "workspace": "/w",
        "path": "src/app.py",
        "name": "f1",
        "vector": vector,
    }
    assert len(QUERIES) >= 24
    empty = []
    for backend, query in QUERIES:
        if backend in (None, "embedded" if graph.embedded else "neo4j"):
            rows = [plain(row) for row in await graph.rows(query, **parameters)]
            if not rows:
                empty.append(query)
            elif "cosine" in rows[0]:
                assert all(-1.0001 <= row["cosine"] <= 1.0001 for row in rows) and rows[0]["turn"] == 1
    assert empty == []


def test_the_page_names_every_index() -> None:
    async def run(statement: str) -> None:
        raise AssertionError(statement)

    for dialect in (Neo4jDialect(run), ArcadeDialect(run)):
        names = [dialect.vector_index(label, prop) for label, prop in _VECTOR]
        spoken = ("lex_key", "lex_key_fr", "text")  # what recall makes of turns, for itself
        names += [dialect.fulltext_index(label, props) for label, props, _ in _FULLTEXT if props[0] not in spoken]
        assert [name for name in names if f"`{name}`" not in PAGE] == []
