"""A graph that other programs use too: their nodes of the same labels, and damaged ones, disturb nothing."""

from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ragforge_tui.engine.in_process import InProcessEngine
from ragforge_tui.graph import Graph, Store
from ragforge_tui.graph.backup.restore import restore
from ragforge_tui.graph.backup.snapshot import back_up
from ragforge_tui.graph.compact import compact
from ragforge_tui.graph.foreign_counts import count_foreign_nodes
from ragforge_tui.graph.labels import ALL, fault_of
from ragforge_tui.graph.values import native
from ragforge_tui.memory.retrieval import reembed
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.errors import GraphError, NotFoundError
from ragforge_tui.shared.records import ConversationFilter
from ragforge_tui.shared.requests.turns import OpenConversation
from tests.conftest import empty
from tests.graph.test_backup import contents_of, everything
from tests.support.all_reads import read_everything
from tests.support.fake_embedder import FakeEmbedder
from tests.support.records import conversation, one_turn

# What keeps the copies of a node apart where the schema wants it.
NUMBERED = {"position": 10, "sequence": 1_000, "ordinal": 50, "start_turn_index": 100, "end_turn_index": 100}
NAMED = ("uuid", "path")


def damages(properties: dict[str, Any]) -> list[tuple[str, Any]]:
    """Each property, missing and of another type."""
    return [
        (name, wrong) for name, value in properties.items() for wrong in (None, 7 if isinstance(value, str) else "x")
    ]


class Copied(NamedTuple):
    """A node to copy: its properties, and its relationships as (type, whether outgoing, other node, properties)."""

    properties: dict[str, Any]
    edges: list[tuple[str, bool, str, dict[str, Any]]]


async def first_of(graph: Graph, label: str) -> Copied:
    """Read a node of a label."""

    async def work(tx: Any) -> Copied:
        row = await (await tx.run(f"MATCH (n:{label}) RETURN n, elementId(n) AS id LIMIT 1")).single()
        edges = await tx.run(
            "MATCH (n)-[r]-(m) WHERE elementId(n) = $id RETURN type(r) AS kind, startNode(r) = n AS out, "
            "elementId(m) AS other, r",
            id=row["id"],
        )
        found = [(e["kind"], e["out"], e["other"], native(dict(e["r"]))) async for e in edges]
        return Copied(native(dict(row["n"])), found)

    return await graph.read(work)


async def add_damaged(graph: Graph, label: str, node: Copied) -> int:
    """Add copies of a node with its relationships, each with one damage; the embedded graph refuses some."""
    statement = f"CREATE (n:{label}) SET n = $set "
    given: dict[str, Any] = {}
    for number, (kind, out, other, values) in enumerate(node.edges):
        arrow = f"-[r{number}:{kind}]->" if out else f"<-[r{number}:{kind}]-"
        statement += (
            f"WITH n MATCH (m{number}) WHERE elementId(m{number}) = $other{number} "
            f"CREATE (n){arrow}(m{number}) SET r{number} = $values{number} "
        )
        given |= {f"other{number}": other, f"values{number}": values}
    added = 0
    for n, (name, wrong) in enumerate(damages(node.properties), 1):
        copy = dict(node.properties)
        for key, distance in NUMBERED.items():
            if isinstance(copy.get(key), int):
                copy[key] += distance * n
        for key in NAMED:
            if key in copy:
                copy[key] = f"{copy[key]}-{n}"
        if label == "CodeIndex":
            copy["workspace"] = f"/w{n}"
        copy[name] = wrong
        try:
            row = await graph.write_one(f"{statement} RETURN elementId(n) AS id", set=copy, **given)
        except GraphError:
            continue  # The embedded graph declares the types of some properties.
        assert row is not None
        added += 1
    return added


# The statements of the project's specification, and what else other programs may store.
FOREIGN = (
    "CREATE (c:Conversation {uuid: randomUUID(), created_at: datetime(), status: 'active'})",
    "CREATE (c:Conversation {uuid: 'theirs', title: 'New Conversation', tags: [], created_at: datetime(), "
    "updated_at: datetime(), message_count: 0, status: 'active'})",
    "MATCH (c:Conversation {uuid: 'theirs'}) CREATE (c)-[:HAS_MESSAGE]->(m:Message {uuid: 'm1', "
    "conversation_id: 'theirs', role: 'assistant', content: 'question 2', reasoning: null, timestamp: datetime()}) "
    "SET c.updated_at = datetime(), c.message_count = c.message_count + 1",
    "MATCH (c:Conversation {uuid: $uuid}) CREATE (c)-[:HAS_MESSAGE]->(m:Message {uuid: 'm2', conversation_id: $uuid, "
    "role: 'user', content: 'question 2', timestamp: datetime()})",
    "MATCH (m:Message) WHERE m.uuid IN ['m1', 'm2'] CREATE (m)-[:MADE_TOOL_CALL]->(t:ToolCall {uuid: 't' + m.uuid, "
    "message_id: m.uuid, tool_name: 'search', arguments: '{}', timestamp: datetime(), duration_ms: 0, success: true}) "
    "CREATE (t)-[:PRODUCED_RESULT]->(r:ToolResult {uuid: 'r' + m.uuid, tool_call_id: t.uuid, success: true, "
    "result: '{}', error: null, timestamp: datetime()})",
    "CREATE (s:Summary {uuid: 's', conversation_id: 'theirs', conversation_summary: 'question 2', level: 1})",
    "CREATE (:Topic {name: 'Shared'}) CREATE (:Persona) CREATE (:File {name: 'a'}) CREATE (:Scope {name: 'f1'})",
    "CREATE (:Commit {hash: 'abc'}) CREATE (:CodeIndex) CREATE (:CodeWords) CREATE (:SystemText) CREATE (:Part)",
    "MATCH (c:Conversation {uuid: $uuid})-[:HAS_MESSAGE]->(m:Message {position: 0}) WITH m LIMIT 1 "
    "MATCH (s:Scope {name: 'f1'}) WHERE s.uuid IS NULL CREATE (m)-[:REFERENCES_CODE]->(s)",
)


async def foreign(graph: Graph) -> list[str]:
    """All nodes of other programs, with their properties."""

    async def work(tx: Any) -> list[str]:
        found = []
        for label in ALL:
            result = await tx.run(f"MATCH (n:{label}) RETURN n")
            nodes = [native(dict(record["n"])) async for record in result]
            found += [f"{label} {sorted(node.items())}" for node in nodes if fault_of(label, node)]
        return sorted(found)

    return await graph.read(work)


async def test_nodes_of_other_programs_are_counted_and_kept(graph: Graph, tmp_path: Path) -> None:
    store = Store(graph)
    uuid = (await store.conversations.create(conversation())).uuid
    await one_turn(store, uuid, "question 2")
    before = await contents_of(graph)
    for statement in FOREIGN:
        await graph.run(statement, uuid=uuid)
    theirs = await foreign(graph)
    counted = Counter[str]()
    for kind in await count_foreign_nodes(graph):
        counted[kind.label] += kind.nodes
    assert counted == Counter(node.partition(" ")[0] for node in theirs) and counted.total() > 14
    await compact(graph)
    info = await back_up(graph, tmp_path / "mine.backup")
    assert sum(info.nodes.values()) == len(before[0])
    assert await foreign(graph) == theirs


@pytest.mark.slow
async def test_nodes_of_other_programs_are_left_alone(
    loaded: Loaded, graph: Graph, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(graph)
    uuid = await everything(graph)
    await compact(graph)  # drops the code index of a folder that is gone
    before = await contents_of(graph)
    listed = await store.conversations.matching(ConversationFilter(status="any"))
    for statement in FOREIGN:
        await graph.run(statement, uuid=uuid)
    theirs = await foreign(graph)
    counted = await count_foreign_nodes(graph)
    assert any(each.label == "Conversation" and "next_turn" in each.lacks for each in counted)
    engine = InProcessEngine(loaded)
    try:
        assert await read_everything(engine, store, uuid, tmp_path) == []
        assert await store.conversations.matching(ConversationFilter(status="any")) == listed
        with pytest.raises(NotFoundError):
            await engine.request(OpenConversation(ref="theirs"))
    finally:
        await engine.close()
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
    await reembed(store, FakeEmbedder(), lambda done, total: None)
    assert await foreign(graph) == theirs

    await compact(graph)
    assert await foreign(graph) == theirs
    file = tmp_path / "mine.backup"
    info = await back_up(graph, file)
    asked = info.nodes["BackgroundRequest"] - 1  # the open conversation's memory asked the model
    assert sum(info.nodes.values()) - asked == len(before[0])
    other = await store.conversations.create(conversation())
    await one_turn(store, other.uuid, "gone later")
    await store.purges.purge(other.uuid)
    assert await foreign(graph) == theirs
    await restore(graph, file, replace=True, keep=tmp_path / "kept")
    assert await foreign(graph) == theirs
    for each in await store.conversations.matching(ConversationFilter(status="any")):
        if each.branch_of:
            await store.purges.purge(each.uuid)
    await store.purges.purge(uuid)
    assert await foreign(graph) == theirs
    await empty(graph)
    await graph.run(FOREIGN[0])
    await restore(graph, file, keep=tmp_path / "kept")  # theirs do not make a graph that is not empty
    assert len(await foreign(graph)) == 1


@pytest.mark.slow
async def test_damaged_nodes_disturb_nothing(
    loaded: Loaded, graph: Graph, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    uuid = await everything(graph)
    whole = {label: await first_of(graph, label) for label in ALL}
    assert [label for label, node in whole.items() if not await add_damaged(graph, label, node)] == []
    engine = InProcessEngine(loaded)
    try:
        failed = await read_everything(engine, Store(graph), uuid, tmp_path)
    finally:
        await engine.close()
    assert failed == []
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
