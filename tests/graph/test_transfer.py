"""Export, import and purge: lossless, once, and without leftovers."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from ragforge_tui.graph import Graph, Store
from ragforge_tui.shared.errors import GraphError, GraphUnavailableError, NotFoundError
from ragforge_tui.shared.export_records import ConversationExport
from ragforge_tui.shared.records import FileAccess, ToolCall, ToolResult, Turn, Usage, now
from tests.support.records import add_reply, call_of, conversation, finish_reply, message, one_turn, rows_of, supersede

_NODES = "MATCH (n) WHERE NOT n:RagforgeSchema AND NOT n:RagforgeMigration RETURN n.uuid"


@pytest.fixture
def store(graph: Graph) -> Store:
    return Store(graph)


def with_result(call: ToolCall, text: str, *paths: str) -> ToolCall:
    """The call, finished."""
    result = ToolResult(
        uuid=str(uuid.uuid4()),
        tool_call_id=call.uuid,
        success=False,
        result=msgspec.json.encode({"text": text}).decode(),
        error="failed",
        timestamp=now(),
        result_size_bytes=len(text) + 100,
    )
    files = [FileAccess(path=path, access="read") for path in paths]
    return msgspec.structs.replace(call, success=False, duration_ms=3, result=result, files=files)


async def filled(store: Store, **fields: object) -> str:
    """A conversation with a bit of everything."""
    c = await store.conversations.create(conversation(title="T", tags=["é"], workspace="/w", **fields))
    for n in range(3):
        asked = await store.messages.begin_turn(message(c.uuid, content=f"question {n}"))
        answer = message(
            c.uuid, role="assistant", turn_index=asked.turn_index, reasoning="r", usage=Usage(input_tokens=n)
        )
        answer = await add_reply(store, answer)
        for ordinal in range(2):
            call = call_of(answer.uuid, ordinal=ordinal, reasoning="why")
            await store.tool_calls.start(call, c.uuid)
            await store.tool_calls.finish(with_result(call, f"result {n}", "shared.py", f"{c.uuid}-{n}.py"), "/w")
        await finish_reply(store, msgspec.structs.replace(answer, content=f"answer {n}", state="complete"))
        await store.messages.store_persona(answer.uuid, "Ada", "digest", "text")
        await store.contexts.store(answer.uuid, "[]", 1, f"d{n}")
    await supersede(store, c.uuid, 3)
    await add_reply(store, message(c.uuid, role="assistant", turn_index=3, content="y" * 1_200_000))
    return c.uuid


def through_json(e: ConversationExport) -> ConversationExport:
    """As it comes back from a file."""
    return msgspec.json.decode(msgspec.json.encode(e), type=ConversationExport)


async def test_export_import_export_is_equal_and_twice_is_once(store: Store, graph: Graph) -> None:
    uuid = await filled(store)
    first = await store.transfer.export(uuid)
    assert [t.turn_index for t in first.turns] == [1, 2, 3]
    await store.purges.purge(uuid)
    for _ in range(2):
        await store.transfer.import_(through_json(first))
        assert await store.transfer.export(uuid) == first
    nodes = await rows_of(graph, _NODES)
    relationships = await rows_of(graph, "MATCH ()-[r]->() RETURN 1 AS one")
    await store.transfer.import_(first)
    assert await rows_of(graph, _NODES) == nodes
    assert await rows_of(graph, "MATCH ()-[r]->() RETURN 1 AS one") == relationships
    assert [hit.turn_index for hit in await store.search.turns("answer 1", limit=1)] == [2]
    more = await store.messages.begin_turn(message(uuid, content="and on"))
    assert more.turn_index == 4


def told(turns: int) -> ConversationExport:
    """A conversation of many turns that all touch one file."""
    c = conversation(title="long", workspace="/w")
    c.next_turn, c.message_count = turns + 1, 2 * turns
    export = ConversationExport(conversation=c, turns=[])
    for index in range(1, turns + 1):
        asked = message(c.uuid, content=f"question {index}", turn_index=index)
        answer = message(c.uuid, role="assistant", content=f"answer {index}", turn_index=index, position=1)
        answer.tool_calls = [with_result(call_of(answer.uuid), f"result {index}", "shared.py", f"{index}.py")]
        for m in (asked, answer):
            m.char_count = len(m.content)
            c.total_chars += m.char_count
        export.turns.append(Turn(turn_index=index, messages=[asked, answer]))
    return export


async def test_more_than_a_statement_holds_is_imported_whole(store: Store, graph: Graph) -> None:
    export = told(600)
    await store.transfer.import_(export)
    assert await store.transfer.export(export.conversation.uuid) == export
    assert await rows_of(graph, "MATCH (:ToolCall)-[r:ACCESSED]->(:File {path: 'shared.py'}) RETURN r.ordinal") == 600
    assert await rows_of(graph, "MATCH (m:Message) WHERE m.lex_key CONTAINS 'answer' RETURN m.uuid") == 600


async def test_an_import_cut_short_continues(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    export = told(300)
    answer = export.turns[299].messages[1]
    export.conversation.total_chars += 1_200_000 - answer.char_count
    answer.content, answer.char_count = "y" * 1_200_000, 1_200_000
    for allowed in range(1, 40):
        left = allowed

        async def write(work: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise GraphUnavailableError("cut")
            return await Graph.write(store.graph, work, **options)

        monkeypatch.setattr(store.graph, "write", write)
        try:
            await store.transfer.import_(export)
            break
        except GraphUnavailableError:
            continue
    assert allowed > 1
    assert await store.transfer.export(export.conversation.uuid) == export


async def test_two_importing_the_same_leave_it_once(store: Store, graph: Graph) -> None:
    for _ in range(5):
        export = told(40)
        await asyncio.gather(*(store.transfer.import_(export) for _ in range(3)))
        assert await store.transfer.export(export.conversation.uuid) == export
    assert await rows_of(graph, "MATCH ()-[r:ACCESSED]->() RETURN 1 AS one") == 5 * 80


@pytest.mark.parametrize("next_turn", [1, 4, 900])
async def test_counters_that_do_not_fit_the_turns_are_counted(store: Store, next_turn: int) -> None:
    honest, claimed = told(12), told(0)
    claimed.turns = msgspec.convert(msgspec.to_builtins(honest.turns), list[Turn])
    claimed.conversation = msgspec.structs.replace(
        honest.conversation, next_turn=next_turn, message_count=3, total_chars=999_999
    )
    claimed.turns[4].messages[0].char_count = 0
    assert (await store.transfer.import_(claimed)).conversation.next_turn == 13
    assert await store.transfer.export(honest.conversation.uuid) == honest
    assert (await store.messages.begin_turn(message(honest.conversation.uuid))).turn_index == 13


async def test_counters_grow_with_what_is_added_and_never_shrink(store: Store) -> None:
    whole = told(9)
    uuid = whole.conversation.uuid
    beginning = ConversationExport(conversation=whole.conversation, turns=whole.turns[:4])
    assert (await store.transfer.import_(beginning)).conversation.next_turn == 5
    assert (await store.transfer.import_(whole, merge=True)).conversation.next_turn == 10
    assert (await store.transfer.import_(beginning)).conversation == whole.conversation
    await store.conversations.update(uuid, status="deleted", deleted_at=now())
    assert (await store.transfer.import_(beginning)).conversation == whole.conversation
    assert [turn.turn_index for turn in await store.turns.between(uuid, start=1, end=99)] == list(range(1, 10))


async def test_counters_of_a_branch_continue_where_it_left_its_parent(store: Store) -> None:
    root = await store.conversations.create(conversation())
    for n in range(1, 6):
        await one_turn(store, root.uuid, f"root {n}")
    child = await store.conversations.create(conversation(branch_of=root.uuid, branch_turn=4))
    export = through_json(await store.transfer.export(child.uuid))
    await store.purges.purge(child.uuid)
    await store.purges.purge(root.uuid)
    wrong = msgspec.structs.replace(export.conversation, next_turn=2, message_count=1, total_chars=0)
    got = await store.transfer.import_(ConversationExport(conversation=wrong, turns=export.turns))
    assert got.conversation == export.conversation
    assert (await store.messages.begin_turn(message(child.uuid))).turn_index == 5
    stub = await store.conversations.get(root.uuid)
    assert (stub.next_turn, stub.message_count) == (5, 8)


async def test_import_brings_back_what_was_deleted(store: Store) -> None:
    c = await store.conversations.create(conversation())
    await one_turn(store, c.uuid, "q")
    kept = await store.transfer.export(c.uuid)
    await store.conversations.update(c.uuid, status="deleted", deleted_at=now())
    assert (await store.transfer.import_(kept)).conversation.status == "active"
    assert (await store.conversations.get(c.uuid)).deleted_at is None


async def test_import_refuses_another_conversation_in_the_same_places(store: Store) -> None:
    c = await store.conversations.create(conversation())
    await one_turn(store, c.uuid, "q")
    kept = await store.transfer.export(c.uuid)
    kept.turns[0].messages[0].uuid = str(uuid.uuid4())
    with pytest.raises(GraphError, match="already"):
        await store.transfer.import_(kept)
    assert (await store.turns.between(c.uuid, start=1, end=2))[0].messages[0].content == "q"


async def test_a_branch_travels_with_the_turns_it_shares(store: Store) -> None:
    root = await store.conversations.create(conversation(title="root"))
    for n in range(1, 4):
        await one_turn(store, root.uuid, f"root {n}")
    child = await store.conversations.create(conversation(branch_of=root.uuid, branch_turn=2))
    await one_turn(store, child.uuid, "child 3")
    whole_root, whole_child = await store.transfer.export(root.uuid), await store.transfer.export(child.uuid)
    await store.purges.purge(child.uuid)
    await store.purges.purge(root.uuid)
    await store.transfer.import_(through_json(whole_child))
    assert await store.transfer.export(child.uuid) == whole_child
    await store.transfer.import_(through_json(whole_root))
    assert await store.transfer.export(root.uuid) == whole_root
    assert await store.transfer.export(child.uuid) == whole_child


async def test_purge_leaves_no_orphans_and_keeps_what_others_use(store: Store, graph: Graph) -> None:
    one, two = await filled(store), await filled(store)
    await store.purges.purge(one)
    with pytest.raises(NotFoundError):
        await store.conversations.get(one)
    left = await store.transfer.export(two)
    assert len(left.turns) == 3
    assert left.turns[0].messages[1].tool_calls[0].files[0].path == "shared.py"
    assert await rows_of(graph, _NODES.replace("WHERE", "WHERE NOT (n)--() AND")) == 0
    assert await rows_of(graph, "MATCH (f:File) RETURN f.path") == 4
    await store.purges.purge(two)
    assert await rows_of(graph, _NODES) == 0


async def test_conversations_deleted_long_ago_are_purged(store: Store) -> None:
    old, fresh, active = [await store.conversations.create(conversation()) for _ in range(3)]
    await one_turn(store, old.uuid, "x")
    await store.conversations.update(old.uuid, status="deleted", deleted_at=now() - timedelta(days=8))
    await store.conversations.update(fresh.uuid, status="deleted", deleted_at=now() - timedelta(days=6))
    assert await store.purges.expired() == [old.uuid]
    await store.purges.purge(old.uuid)
    assert await store.purges.expired() == []
    assert (await store.conversations.get(fresh.uuid)).status == "deleted"
    assert (await store.conversations.get(active.uuid)).status == "active"
    with pytest.raises(NotFoundError):
        await store.conversations.get(old.uuid)
