"""Backups of whole graphs: complete, checked before they are used, and restored into either backend."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import pytest

from ragforge_tui.graph import Graph, GraphTarget, Store
from ragforge_tui.graph.backup import backup_file, snapshot
from ragforge_tui.graph.backup import restore as restoring
from ragforge_tui.graph.backup.backup_file import Nodes, check, new_backup
from ragforge_tui.graph.backup.restore import Restored, restore
from ragforge_tui.graph.backup.snapshot import back_up
from ragforge_tui.graph.content_files import Reference
from ragforge_tui.graph.dialect import ArcadeDialect, Dialect
from ragforge_tui.graph.labels import ALL, SCHEMA_LABELS
from ragforge_tui.graph.schema.migrate import MIGRATIONS, VERSION, Migration, record_embedding
from ragforge_tui.graph.store.findings import new_finding
from ragforge_tui.graph.store.insights import insight_uuid
from ragforge_tui.graph.values import plain
from ragforge_tui.settings.schema import Paths
from ragforge_tui.shared.code_records import IndexedFile, Scope
from ragforge_tui.shared.code_records import Reference as CodeReference
from ragforge_tui.shared.errors import GraphError, GraphUnavailableError
from ragforge_tui.shared.records import Finding, Insight, Usage, now
from ragforge_tui.shared.usage_records import BackgroundRequest
from tests.conftest import EMBEDDED, empty, open_graph
from tests.support.attempts import undone
from tests.support.fake_embedder import FakeEmbedder
from tests.support.recall_conversations import ready, recall_of
from tests.support.records import conversation, message, one_turn
from tests.support.sizes import DIMENSION, paths_under
from tests.support.stored_memory import remembered, talk

ROOT = Path(__file__).parents[2]


async def contents_of(graph: Graph) -> tuple[list[str], list[str]]:
    """Every node and relationship with all properties, as sorted lines; texts of files in place of their references."""

    async def work(tx: Any) -> tuple[list[Any], list[Any]]:
        nodes = [plain(record["n"]) async for record in await tx.run("MATCH (n) RETURN n")]
        found = await tx.run("MATCH (a)-[r]->(b) RETURN a, r, b")
        return nodes, [[plain(record[name]) for name in "arb"] async for record in found]

    nodes, edges = await graph.read(work)
    lines = []
    for node in nodes:
        if set(node["labels"]) & set(SCHEMA_LABELS):
            continue
        properties = node["properties"]
        files = {name: value for name, value in properties.items() if name.endswith("_file") and value}
        assert all(Reference.decode(value).folder == graph.contents.folder_id for value in files.values())
        texts = await graph.contents.read(list(files.values()))
        properties |= {name: str(texts[value]) for name, value in files.items()}
        lines.append(msgspec.json.encode(node).decode())

    def name_of(node: dict[str, Any]) -> Any:
        found = node["properties"]
        return found.get("uuid") or (found["workspace"], found["path"])

    return sorted(lines), sorted(msgspec.json.encode((name_of(a), r, name_of(b))).decode() for a, r, b in edges)


async def everything(graph: Graph) -> str:
    """Fill a graph with all that the program stores, and return the id of a conversation."""
    store = Store(graph)
    uuid = await remembered(store)
    await ready(recall_of(store, await store.conversations.get(uuid), FakeEmbedder()))
    branch = await store.conversations.create(conversation(branch_of=uuid, branch_turn=4, workspace="/w", private=True))
    await talk(store, branch.uuid, "another way: Größe 大 \u2028", ("b.py", "read"))
    large = await store.messages.begin_turn(message(branch.uuid, content="é" * 700_000))
    finding = Finding(text="It waits", turns=[2], kind="decision")
    await store.insights.store(
        Insight(
            uuid=insight_uuid(uuid),
            conversation_id=uuid,
            main_topic="Retries",
            key_findings=[finding],
            created_at=now(),
        )
    )
    kept = [new_finding(uuid, "/w", turn, "decision", f"Wait {turn} s", files=["src/app.py"]) for turn in (1, 2)]
    await store.attempts.add([undone(uuid, (await store.turns.between(uuid, start=1, end=2))[0].messages[0].uuid)])
    await store.findings.add(kept[:1])
    await store.findings.replace(kept[0].uuid, kept[1])
    await store.spending.add(
        BackgroundRequest(
            uuid="spent",
            conversation_id=uuid,
            purpose="title",
            model="m",
            timestamp=now(),
            usage=Usage(input_tokens=90, output_tokens=5, cost_usd=0.25, reasoning_tokens=2),
        )
    )
    scopes = [
        Scope(uuid=f"s{n}", name=f"f{n}", kind="function", file="src/app.py", start_line=n + 1, end_line=n + 1)
        for n in range(3)
    ]
    file = IndexedFile(path="src/app.py", digest="digest", language="python", scopes=scopes, parsed=b"\x00parsed\xff")
    await store.code.replace_files("/w", [file])
    references = [
        CodeReference(source="s0", target="s1", kind="call", line=3, confidence=0.5),
        CodeReference(source="s0", target="s1", kind="type", line=4, confidence=1.0),
    ]
    await store.code.replace_references("/w", ["src/app.py"], references, [])
    await store.code.link_message(large.uuid, ["s1"])
    await store.code.store_totals(await store.code.count("/w"))
    await store.code.search.vectors.store_words("/w", "fake", ["wait", "retry"], np.eye(2, DIMENSION, dtype=np.float32))
    await graph.run(
        "MATCH (m:Message {uuid: $uuid}) MERGE (k:Commit {uuid: 'k'}) SET k.hash = 'abc', k.committed_at = $at "
        "MERGE (m)-[:PRODUCED]->(k)",
        uuid=large.uuid,
        at=now(),
    )
    return uuid


@pytest.fixture
def other_place(graph_target: GraphTarget, request: pytest.FixtureRequest, home: Path) -> tuple[GraphTarget, Paths]:
    """The backend that `graph` is not of, and folders of another machine."""
    if not graph_target.embedded:
        return EMBEDDED, request.getfixturevalue("embedded_paths")
    server = request.getfixturevalue("neo4j_server")
    target = GraphTarget(uri=server.uri, username=server.username, password=server.password, adopt=True)
    return target, paths_under(home)


@pytest.fixture
async def other(other_place: tuple[GraphTarget, Paths]) -> AsyncIterator[Graph]:
    """An open, empty graph of the backend that `graph` is not of."""
    opened = await open_graph(*other_place)
    try:
        await empty(opened)
        yield opened
        await empty(opened)
    finally:
        await opened.close()


async def restored(graph: Graph, file: Path, **options: Any) -> Restored:
    return await restore(graph, file, keep=file.with_name("kept"), **options)


def test_a_backup_knows_every_label_of_the_schema() -> None:
    class Recording(ArcadeDialect):
        async def declare(self, label: str, prop: str, kind: str = "STRING") -> None:
            labels.add(label)

    async def run(statement: str) -> None: ...

    labels: set[str] = set()
    dialect = Recording(run)
    for step in MIGRATIONS:
        asyncio.run(step.apply(dialect, DIMENSION))
    assert labels == {*ALL, *SCHEMA_LABELS}


@pytest.mark.slow
@pytest.mark.parametrize("contents", ["graph", "hybrid"])
async def test_a_graph_goes_to_the_other_backend_and_back_unchanged(
    graph: Graph, other: Graph, tmp_path: Path, contents: Literal["graph", "hybrid"]
) -> None:
    for each in (graph, other):
        each.contents.writes = contents == "hybrid"
    if contents == "hybrid":
        await graph.prepare_contents()
    uuid = await everything(graph)
    before = await contents_of(graph)
    # Large texts are pieces in the graph, or whole in files.
    stored = {msgspec.json.decode(line)["labels"][0] for line in before[0]}
    assert stored | {"Part"} == set(ALL) and ("Part" in stored) == (contents == "graph")
    exported = await Store(graph).transfer.export(uuid)
    identity = graph.identity
    info = await back_up(graph, tmp_path / "first.backup")
    assert (info.lost, info.texts > 0) == (0, contents == "hybrid")
    assert sum(info.nodes.values()) == len(before[0]) and info.relationships == len(before[1])
    assert (tmp_path / "first.backup").stat().st_mode & 0o777 == 0o600

    done = await restored(other, tmp_path / "first.backup")
    assert (done.dropped, done.kept, done.backup.nodes) == (0, "", info.nodes)
    assert await contents_of(other) == before
    store = Store(other)
    assert await store.transfer.export(uuid) == exported
    assert [hit.turn_index for hit in await store.search.turns("question 2", conversation_id=uuid)][:1] == [2]
    assert await store.vectors.model() == await Store(graph).vectors.model()
    await one_turn(store, uuid, "the next turn fits")

    await back_up(other, tmp_path / "second.backup")
    changed = await contents_of(other)
    again = await restored(graph, tmp_path / "second.backup", replace=True)
    assert await contents_of(graph) == changed
    assert (await graph.identify(), await graph.being_restored()) == (identity, "")
    await restored(graph, Path(again.kept), replace=True)
    assert await contents_of(graph) == before
    for each in (graph, other):
        await record_embedding(each, "", DIMENSION)


async def test_a_file_that_is_no_whole_backup_changes_nothing(graph: Graph, tmp_path: Path) -> None:
    await remembered(Store(graph))
    file = tmp_path / "good.backup"
    await back_up(graph, file)
    await Store(graph).conversations.create(conversation())
    before = await contents_of(graph)
    good = file.read_bytes()
    bad = {
        "empty": b"",
        "foreign": b"SQLite format 3\x00" + bytes(500),
        "header": good[: len(backup_file.MAGIC) + 9],
        "cut": good[: len(good) // 2],
        "end": good[:-1],
        "longer": good + b"x",
        "changed": good[: len(good) // 2] + bytes([good[len(good) // 2] ^ 1]) + good[len(good) // 2 + 1 :],
    }
    for name, data in bad.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(GraphError, match=r"not a backup|cut off or was changed"):
            await restored(graph, tmp_path / name, replace=True)
    with pytest.raises(GraphError, match="cannot be read"):
        await restored(graph, tmp_path / "missing", replace=True)
    with pytest.raises(GraphError, match="not empty"):
        await restored(graph, file)
    header, end = check(file)
    newer = msgspec.structs.replace(header, schema_version=VERSION + 1)
    with new_backup(tmp_path / "newer", newer) as writer:
        writer.finish(end)
    with pytest.raises(GraphError, match="schema version"):
        await restored(graph, tmp_path / "newer", replace=True)
    with new_backup(tmp_path / "names", header) as writer:
        writer.put(Nodes("Topic) DETACH DELETE n //", [{"uuid": "x"}]))
        writer.finish(end)
    with pytest.raises(GraphError, match="was changed"):
        await restored(graph, tmp_path / "names", replace=True)
    assert await contents_of(graph) == before
    assert not (tmp_path / "kept").exists()
    with pytest.raises(GraphError, match="is not a backup"):
        await back_up(graph, tmp_path / "foreign")
    assert (tmp_path / "foreign").read_bytes() == bad["foreign"]
    assert not await asyncio.to_thread(lambda: list(tmp_path.glob("*.part")))


async def test_data_of_an_earlier_schema_is_brought_up_to_date(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uuid = await remembered(Store(graph))
    await back_up(graph, tmp_path / "old.backup")
    titles: list[str] = []

    async def later(dialect: Dialect, dimension: int) -> None:
        titles.append((await Store(graph).conversations.get(uuid)).title)

    monkeypatch.setattr(restoring, "MIGRATIONS", (*MIGRATIONS, Migration(VERSION + 1, "later", later)))
    await restored(graph, tmp_path / "old.backup", replace=True)
    assert titles == [(await Store(graph).conversations.get(uuid)).title]


@pytest.mark.parametrize(("attempts", "pause"), [(20, 0.15), (1, 0.0)])
async def test_a_backup_while_a_chat_writes_fits_together(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attempts: int, pause: float
) -> None:
    """With one attempt and without a pause the chat is faster than the backup."""
    monkeypatch.setattr(snapshot, "_ATTEMPTS", attempts)
    store = Store(graph)
    uuid = await remembered(store)
    begun, stopped = asyncio.Event(), asyncio.Event()

    async def write() -> int:
        turns = 0
        while not stopped.is_set():
            await one_turn(store, uuid, f"while it is read {turns}")
            turns += 1
            begun.set()
            await asyncio.sleep(pause)
        return turns

    writing = asyncio.create_task(write())
    await begun.wait()
    await back_up(graph, tmp_path / "live.backup")
    stopped.set()
    assert await writing > 0
    await restored(graph, tmp_path / "live.backup", replace=True)
    c = await store.conversations.get(uuid)
    turns = await store.turns.between(uuid, start=1, end=999)
    assert [turn.turn_index for turn in turns] == list(range(1, c.next_turn))
    assert sum(len(turn.messages) for turn in turns) == c.message_count
    asked = await one_turn(store, uuid, "it goes on")
    assert asked.turn_index == c.next_turn


@pytest.mark.slow
async def test_a_restore_that_is_killed_is_noticed_and_repeated(
    graph: Graph, graph_target: GraphTarget, graph_paths: Paths, tmp_path: Path
) -> None:
    await remembered(Store(graph))
    before = await contents_of(graph)
    file = tmp_path / "good.backup"
    await back_up(graph, file)
    await one_turn(Store(graph), (await Store(graph).conversations.create(conversation())).uuid, "later")
    await graph.close()
    given = msgspec.json.encode((graph_target, graph_paths)) + b"\n"
    for batches in (2, 12):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.support.restoring", str(file), str(batches)),
            stdin=asyncio.subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        await process.communicate(given)
        assert process.returncode == -signal.SIGKILL
        with pytest.raises(GraphUnavailableError, match=r"is being restored from good\.backup"):
            await open_graph(graph_target, graph_paths)
    (file_kept,) = (tmp_path / "kept").iterdir()
    kept, _ = check(file_kept)
    assert kept.schema_version == VERSION
    again = await Graph.open(graph_target, graph_paths, embedding_dimension=DIMENSION, restoring=True)
    try:
        await restored(again, file)
        assert await contents_of(again) == before
    finally:
        await again.close()
    await (await open_graph(graph_target, graph_paths)).close()


async def test_a_graph_that_a_chat_uses_is_backed_up_but_not_restored(
    graph: Graph, graph_target: GraphTarget, graph_paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await remembered(Store(graph))
    code = (
        "import asyncio, sys, msgspec\n"
        "from ragforge_tui.graph import GraphTarget\n"
        "from ragforge_tui.settings.schema import Paths\n"
        "from tests.conftest import open_graph\n"
        "async def main():\n"
        "    given = msgspec.json.decode(sys.stdin.buffer.readline(), type=tuple[GraphTarget, Paths])\n"
        "    graph = await open_graph(*given)\n"
        "    print('open', flush=True)\n"
        "    await asyncio.to_thread(sys.stdin.buffer.readline)\n"
        "    await graph.close()\n"
        "asyncio.run(main())\n"
    )
    chat = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert chat.stdin is not None and chat.stdout is not None
    chat.stdin.write(msgspec.json.encode((graph_target, graph_paths)) + b"\n")
    assert await chat.stdout.readline() == b"open\n"
    file = tmp_path / "live.backup"
    await back_up(graph, file)
    before = await contents_of(graph)
    with pytest.raises(GraphError, match="A chat uses the graph"):
        await restored(graph, file, replace=True)
    assert await contents_of(graph) == before
    # It opened the graph while the backup of what is there was written.
    answers = iter([False, True])

    async def used() -> bool:
        return next(answers)

    with monkeypatch.context() as patch:
        patch.setattr(graph, "used_by_others", used)
        with pytest.raises(GraphError, match="A chat uses the graph"):
            await restored(graph, file, replace=True)
    assert (await contents_of(graph), await graph.being_restored()) == (before, "")
    chat.stdin.write(b"\n")
    assert await chat.wait() == 0
    await restored(graph, file, replace=True)
    assert await contents_of(graph) == before
