"""Hybrid persistence: texts in files, all else in the graph; moved, checked, and never silently empty."""

from __future__ import annotations

import ast
import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from ragforge_tui.graph import Graph, GraphTarget, Store, writer_id
from ragforge_tui.graph.content_files import FILE
from ragforge_tui.graph.store.contents import KINDS
from ragforge_tui.settings.schema import Paths
from ragforge_tui.shared.export_records import ConversationExport
from ragforge_tui.shared.records import ToolResult, Turn, now
from tests.conftest import open_graph
from tests.support.records import add_reply, call_of, conversation, finish_reply, message, one_turn, rows_of, supersede
from tests.support.stored_memory import remembered, talk

ROOT = Path(__file__).parents[2]
MIB = 1024 * 1024
TEXT_IN_STATEMENT = re.compile(r"\b(m\.content|[mt]\.reasoning|t\.arguments|r\.result)\b")


@pytest.fixture
async def store(graph_target: GraphTarget, graph_paths: Paths, graph: Graph) -> AsyncIterator[Store]:
    """A store on an empty graph of each backend that keeps texts in files."""
    opened = await open_graph(graph_target, graph_paths, contents="hybrid")
    try:
        yield Store(opened)
    finally:
        await opened.close()


@pytest.fixture
async def plain(graph_target: GraphTarget, graph_paths: Paths, graph: Graph) -> AsyncIterator[Store]:
    """A store on the same graph that keeps texts in the graph."""
    opened = await open_graph(graph_target, graph_paths, contents="graph")
    try:
        yield Store(opened)
    finally:
        await opened.close()


async def told(store: Store, turns: int = 3) -> str:
    """A conversation of some turns, each with an answer that wrote a file and read one."""
    c = await store.conversations.create(conversation(workspace="/w"))
    for n in range(1, turns + 1):
        await talk(store, c.uuid, f"question {n}", ("src/app.py", "write"), (f"src/m{n}.py", "read"))
    return c.uuid


async def texts_in_graph(graph: Graph) -> int:
    """Number of nodes with a text of their own."""
    found = [await rows_of(graph, f"MATCH (n:{kind.label}) WHERE {kind.in_graph} RETURN n.uuid") for kind in KINDS]
    return sum(found)


async def turns_of(store: Store, conversation_id: str) -> list[Turn]:
    return await store.turns.between(conversation_id, start=1, end=2**31)


def file_of(store: Store, conversation_id: str) -> Path:
    return store.graph.contents.root / conversation_id / FILE


async def exported(store: Store, conversation_id: str) -> ConversationExport:
    return await store.transfer.export(conversation_id)


async def test_texts_are_in_files_and_all_readers_find_them(store: Store, plain: Store) -> None:
    uuid = await told(store)
    assert await texts_in_graph(store.graph) == 0
    written = file_of(store, uuid).read_text(encoding="utf-8")
    assert all(text in written for text in ("question 2", "answer to question 3", "src/m1.py", "done"))
    for reader in (store, plain):
        turns = await turns_of(reader, uuid)
        assert [turn.messages[0].content for turn in turns] == [f"question {n}" for n in (1, 2, 3)]
        assert [turn.messages[1].reasoning for turn in turns] == ["hm"] * 3
        result = turns[0].messages[1].tool_calls[1].result
        assert result is not None and result.result == '{"text": "done"}'
        assert await reader.search.find_text(uuid, "ANSWER to question 2") == [2]
        assert await reader.search.find_text(uuid, 'path": "src/m3') == [3]
        assert await reader.search.find_text(uuid, "done") == [1, 2, 3]
        [hit] = await reader.search.turns("question 3", conversation_id=uuid, limit=1)
        assert (hit.turn_index, hit.snippet) == (3, "question 3")
        assert [line.text for line in await reader.turns.lines(uuid, 1, 2)] == ["question 1", "question 2"]
        peek = await reader.conversations.peek(uuid)
        assert (peek.first, peek.last) == ("question 1", "answer to question 3")
        calls = (await reader.tool_calls.page(uuid)).calls
        assert [entry.call.arguments for entry in calls][:2] == ['{"path": "src/app.py"}', '{"path": "src/m1.py"}']
        [*writes] = await reader.files.writes(uuid, ["write_it"], "/w")
        assert [write.turn_index for write in writes] == [1, 2, 3]
    assert await exported(store, uuid) == await exported(plain, uuid)


async def test_a_branch_reads_the_texts_of_its_parent(store: Store) -> None:
    parent = await told(store)
    branch = conversation(branch_of=parent, branch_turn=1)
    await store.conversations.create(branch)
    await one_turn(store, branch.uuid, "another way")
    turns = await turns_of(store, branch.uuid)
    assert [turn.messages[0].content for turn in turns] == ["question 1", "another way"]
    assert await store.search.find_text(branch.uuid, "question 1") == [1]


async def test_a_streaming_text_is_in_the_graph_until_it_is_complete(store: Store) -> None:
    c = await store.conversations.create(conversation())
    await store.messages.begin_turn(message(c.uuid, content="q"))
    answer = message(c.uuid, role="assistant", turn_index=1, state="streaming", writer=writer_id())
    answer = await add_reply(store, answer)
    for size in (1, MIB + 10, 2 * MIB):
        await store.messages.checkpoint(answer.uuid, content="x" * size, reasoning="y" * size, lease_until=now())
    assert (await turns_of(store, c.uuid))[0].messages[1].content == "x" * 2 * MIB
    assert file_of(store, c.uuid).stat().st_size < MIB
    moved = await store.contents.move("files")
    assert (moved.nodes, moved.left) == (0, 1)
    done = msgspec.structs.replace(answer, content="x" * 3 * MIB, reasoning="y" * 2 * MIB, state="complete")
    for _ in range(2):
        await finish_reply(store, done)
    stored = (await turns_of(store, c.uuid))[0].messages[1]
    assert (stored.content, stored.reasoning) == (done.content, done.reasoning)
    assert await rows_of(store.graph, "MATCH (p:Part) RETURN p.uuid") == 0
    assert 5 * MIB < file_of(store, c.uuid).stat().st_size < 5 * MIB + 2000


async def test_retry_purge_and_import(store: Store) -> None:
    uuid = await remembered(store)
    await supersede(store, uuid, 2)
    await add_reply(store, message(uuid, role="assistant", turn_index=2, content="a better answer"))
    before = await exported(store, uuid)
    assert [m.content for m in before.turns[1].messages] == ["question 2", "answer to question 2", "a better answer"]
    await store.purges.purge(uuid)
    assert not file_of(store, uuid).parent.exists()
    for _ in range(2):
        await store.transfer.import_(before)
        assert (await exported(store, uuid)).turns == before.turns
    assert await texts_in_graph(store.graph) == 0


async def test_a_call_of_another_process_is_finished(store: Store, graph_target: GraphTarget) -> None:
    c = await store.conversations.create(conversation())
    asked = await store.messages.begin_turn(message(c.uuid, content="q"))
    call = call_of(asked.uuid, arguments='{"path": "a"}')
    answer = await add_reply(store, message(c.uuid, role="assistant", turn_index=1))
    call = msgspec.structs.replace(call, message_id=answer.uuid)
    await store.tool_calls.start(call, c.uuid)
    result = ToolResult(uuid="r", tool_call_id=call.uuid, success=False, result="{}", error="stopped", timestamp=now())
    await Store(store.graph).tool_calls.finish(msgspec.structs.replace(call, result=result), "/w")
    [stored] = (await turns_of(store, c.uuid))[0].messages[1].tool_calls
    assert stored.result is not None
    assert (stored.arguments, stored.result.result, stored.result.error) == ('{"path": "a"}', "{}", "stopped")
    assert await texts_in_graph(store.graph) == 0


async def test_texts_move_there_and_back_while_both_kinds_are_read(store: Store, plain: Store) -> None:
    first = await told(plain)
    large = await plain.conversations.create(conversation())
    await one_turn(plain, large.uuid, "é" * MIB)
    second = await told(store)
    before = [await exported(plain, uuid) for uuid in (first, large.uuid, second)]
    steps: list[tuple[int, int]] = []
    moved = await store.contents.move("files", lambda done, total: steps.append((done, total)))
    assert moved.left == 0
    assert steps[-1] == (moved.nodes, moved.nodes)
    assert await texts_in_graph(store.graph) == 0
    assert await rows_of(store.graph, "MATCH (p:Part) RETURN p.uuid") == 0
    assert [await exported(store, uuid) for uuid in (first, large.uuid, second)] == before
    assert [lost async for lost in plain.contents.check()] == []
    info = await store.contents.info()
    assert (info.in_graph, info.new_texts) == (0, "files")
    assert store.graph.contents.place in info.folders

    back = await plain.contents.move("graph")
    assert (back.nodes, back.left, back.in_use) == (info.in_files, 0, True)
    assert [await exported(store, uuid) for uuid in (first, large.uuid, second)] == before
    await store.graph.close()
    again = await plain.contents.move("graph")
    assert (again.nodes, again.in_use) == (0, False)
    assert not any(file_of(plain, uuid).exists() for uuid in (first, large.uuid, second))
    assert [await exported(plain, uuid) for uuid in (first, large.uuid, second)] == before


@pytest.mark.parametrize("damage", ["changed", "missing"])
async def test_a_lost_text_is_told_where_it_would_stand(store: Store, damage: str) -> None:
    uuid = await told(store)
    other = await told(store)
    path = file_of(store, uuid)
    if damage == "changed":
        path.write_bytes(path.read_bytes().replace(b"answer to question 1", b"answer to question 7"))
    else:
        path.unlink()
    messages = (await turns_of(store, uuid))[0].messages
    assert str(path) in messages[1].content and "doctor" in messages[1].content
    lost = [each async for each in store.contents.check()]
    if damage == "changed":
        assert [(each.conversation_id, each.field, each.loss) for each in lost] == [(uuid, "content", "changed")]
        assert messages[0].content == "question 1"
    else:
        assert {(each.conversation_id, each.loss) for each in lost} == {(uuid, "missing")}
        result = messages[1].tool_calls[0].result
        assert result is not None and str(path) in msgspec.json.decode(result.result)["text"]
    assert (await turns_of(store, other))[0].messages[0].content == "question 1"
    [hit] = await store.search.turns("question 1", conversation_id=uuid, limit=1)
    assert hit.turn_index == 1
    moved = await store.contents.move("graph")
    assert moved.left == len({each.uuid for each in lost})
    assert str(path) in (await turns_of(store, uuid))[0].messages[1].content
    await one_turn(store, uuid, "and on")
    assert (await turns_of(store, uuid))[-1].messages[0].content == "and on"


async def test_another_machine_is_told_whose_texts_are_missing(
    store: Store, graph_target: GraphTarget, graph_paths: Paths, tmp_path: Path
) -> None:
    uuid = await told(store)
    elsewhere = msgspec.structs.replace(graph_paths, data=str(tmp_path))
    if graph_target.embedded:
        (tmp_path / "graph").symlink_to(Path(graph_paths.data, "graph"))
    graph = await open_graph(graph_target, elsewhere, contents="hybrid")
    try:
        other = Store(graph)
        await one_turn(other, uuid, "from the other machine")
        turns = await turns_of(other, uuid)
        assert turns[-1].messages[0].content == "from the other machine"
        assert store.graph.contents.place in turns[0].messages[0].content
        assert {lost.loss async for lost in other.contents.check()} == {"elsewhere"}
        assert (await other.contents.move("graph")).left > 0
    finally:
        await graph.close()
    await store.graph.identify()
    assert (await turns_of(store, uuid))[0].messages[0].content == "question 1"


async def test_a_folder_that_cannot_be_written_leaves_texts_in_the_graph(store: Store, tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file")
    store.graph.contents.root = blocked / "contents"
    c = await store.conversations.create(conversation())
    await one_turn(store, c.uuid, "kept")
    assert (await turns_of(store, c.uuid))[0].messages[0].content == "kept"
    assert await texts_in_graph(store.graph) == 2


@pytest.mark.slow
@pytest.mark.parametrize("to", ["files", "graph"])
async def test_a_move_that_is_killed_goes_on(
    store: Store, plain: Store, graph_target: GraphTarget, graph_paths: Paths, to: str
) -> None:
    """Killed at its third, fifth, … statement, the move leaves all texts readable, and the last one finishes."""
    source = plain if to == "files" else store
    uuid = await told(source)
    await one_turn(source, uuid, "é" * MIB)
    before = await exported(plain, uuid)
    store.graph.contents.close()
    kills = (6, 9, 13, 18, 10_000)
    mover = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.moving", to, *map(str, kills)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert mover.stdin is not None and mover.stdout is not None
    mover.stdin.write(msgspec.json.encode((graph_target, graph_paths)) + b"\n")
    codes = []
    for _ in kills:
        mover.stdin.write(b"\n")
        codes.append(int(await mover.stdout.readline()))
        assert await exported(plain, uuid) == before
        assert await plain.search.find_text(uuid, "question 2") == [2]
    assert await mover.wait() == 0
    assert codes == [-signal.SIGKILL] * 4 + [0]
    in_graph = await texts_in_graph(plain.graph)
    assert in_graph == 0 if to == "files" else in_graph == (await plain.contents.info()).in_graph > 0
    assert (await plain.contents.info()).in_files == (0 if to == "graph" else 20)


def test_statements_that_read_texts_know_of_files() -> None:
    """A statement that returns `content` finds an empty property where texts are in files."""
    for path in (ROOT / "ragforge_tui" / "graph").rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        strings = [
            node.value
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        if any(TEXT_IN_STATEMENT.search(string) for string in strings):
            assert any("_file" in string for string in strings), f"{path.name} reads a text without its file"
