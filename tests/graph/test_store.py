"""The store on both backends: what is written is read back, once, in order, whole."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from ragforge_tui.graph import Graph, Store, writer_id
from ragforge_tui.graph.connection import READ_SECONDS, Work
from ragforge_tui.graph.store.vectors import OPENING_SECONDS
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.records import (
    ConversationFilter,
    FileAccess,
    ToolResult,
    Turn,
    Usage,
    now,
)
from tests.support.records import add_reply, call_of, conversation, finish_reply, message, one_turn, rows_of, supersede


@pytest.fixture
def store(graph: Graph) -> Store:
    return Store(graph)


async def test_conversation_round_trip(store: Store) -> None:
    made = conversation(title="Élan 🚀", tags=["a", "b"], workspace="/w", private=True, persona="Ada", model="m/x")
    assert await store.conversations.create(made) == made
    assert await store.conversations.get(made.uuid) == made
    again = msgspec.structs.replace(made, title="other")
    assert await store.conversations.create(again) == made, "the second creation finds the first"


async def test_unknown_conversation(store: Store) -> None:
    with pytest.raises(NotFoundError):
        await store.conversations.get("nope")
    with pytest.raises(NotFoundError):
        await store.messages.begin_turn(message("nope", content="x"))
    with pytest.raises(NotFoundError):
        await store.conversations.update("nope", title="x")
    with pytest.raises(NotFoundError):
        await store.turns.between("nope", start=1, end=5)


async def test_a_whole_turn_round_trips(store: Store) -> None:
    c = await store.conversations.create(conversation())
    asked = await store.messages.begin_turn(message(c.uuid, content="Fix \x00 it \ud83d"))
    assert (asked.turn_index, asked.position) == (1, 0)
    answer = message(c.uuid, role="assistant", turn_index=1, state="streaming", writer=writer_id(), persona="Ada")
    answer = await add_reply(store, answer)
    assert answer.position == 1
    assert await store.messages.checkpoint(answer.uuid, content="Wor", reasoning="hm", lease_until=now())
    usage = Usage(input_tokens=10, output_tokens=5, cached_tokens=2, cost_usd=0.25)
    done = msgspec.structs.replace(
        answer, content="Working on it", reasoning="hmm", state="complete", usage=usage, token_count=5, error="e"
    )
    await finish_reply(store, done)
    call = call_of(answer.uuid, arguments='{"n": 123456789012345678901234567890, "s": "\\u0000"', reasoning="why")
    await store.tool_calls.start(call, c.uuid)
    running = (await store.turns.between(c.uuid, start=1, end=2))[0].messages[1].tool_calls
    assert running == [call]
    finished = msgspec.structs.replace(
        call,
        success=True,
        duration_ms=12,
        files=[FileAccess(path="src/b.py", access="write"), FileAccess(path="a.py", access="read")],
        result=ToolResult(
            uuid=str(uuid.uuid4()),
            tool_call_id=call.uuid,
            success=True,
            result='{"text":"ok"}',
            timestamp=now(),
            result_size_bytes=13,
        ),
    )
    await store.tool_calls.finish(finished, "/w")
    await store.tool_calls.finish(finished, "/w")
    [turn] = await store.turns.between(c.uuid, start=1, end=100)
    assert turn.messages[0].content == "Fix ␀ it �"
    stored = turn.messages[1]
    assert stored.tool_calls == [finished]
    assert msgspec.structs.replace(stored, tool_calls=[]) == msgspec.structs.replace(done, char_count=13)
    counted = await store.conversations.get(c.uuid)
    assert (counted.message_count, counted.next_turn) == (2, 2)
    assert counted.total_chars == len("Fix \x00 it \ud83d") + len("Working on it")
    assert await store.turns.range(c.uuid) == (1, 1)


async def test_writing_twice_is_writing_once(store: Store, graph: Graph) -> None:
    c = await store.conversations.create(conversation())
    asked = message(c.uuid, content="hello")
    answer = message(c.uuid, role="assistant", content="hi", turn_index=1)
    call = call_of(answer.uuid)
    for _ in range(2):
        assert (await store.messages.begin_turn(asked)).turn_index == 1
        assert (await add_reply(store, answer)).position == 1
        await store.tool_calls.start(call, c.uuid)
        await finish_reply(store, answer)
        await store.messages.store_persona(answer.uuid, "Ada", "d1", "text")
        await store.contexts.store(answer.uuid, "[]", 3, "digest")
    counted = await store.conversations.get(c.uuid)
    assert (counted.message_count, counted.total_chars, counted.next_turn) == (2, 7, 2)
    assert await rows_of(graph, "MATCH (n) WHERE NOT n:RagforgeSchema AND NOT n:RagforgeMigration RETURN n.uuid") == 6
    assert await rows_of(graph, "MATCH ()-[r]->() RETURN 1 AS one") == 5


async def test_a_conversation_names_the_model_that_was_used_last(store: Store) -> None:
    c = await store.conversations.create(conversation(model="first"))

    async def used() -> str:
        [listed] = await store.conversations.matching(ConversationFilter())
        return listed.model

    asked = await store.messages.begin_turn(message(c.uuid, content="Hi"))
    assert await used() == "first"
    answer = message(c.uuid, role="assistant", turn_index=1, state="streaming", writer=writer_id(), model="second")
    answer = await store.messages.add(answer, asked.uuid)
    assert await used() == "second"
    await store.messages.finish(msgspec.structs.replace(answer, state="complete", model="fallback"), asked.uuid)
    assert await used() == "fallback"


async def test_finishing_an_unseen_message_stores_it(store: Store) -> None:
    c = await store.conversations.create(conversation())
    await store.messages.begin_turn(message(c.uuid, content="q"))
    await finish_reply(store, message(c.uuid, role="assistant", content="a", turn_index=1))
    [turn] = await store.turns.between(c.uuid, start=1, end=2)
    assert [m.content for m in turn.messages] == ["q", "a"]


async def test_order_is_by_index_not_by_clock(store: Store) -> None:
    c = await store.conversations.create(conversation())
    late = now()
    for n in range(5):
        stamp = late - timedelta(minutes=n)
        await store.messages.begin_turn(msgspec.structs.replace(message(c.uuid, content=str(n)), timestamp=stamp))
    turns = await store.turns.between(c.uuid, start=1, end=6)
    assert [t.messages[0].content for t in turns] == ["0", "1", "2", "3", "4"]
    assert [t.turn_index for t in await store.turns.between(c.uuid, start=4, end=10**9)] == [4, 5]


async def test_concurrent_writers_share_one_row_of_indexes(store: Store) -> None:
    c = await store.conversations.create(conversation())
    begun = await asyncio.gather(*(store.messages.begin_turn(message(c.uuid, content=f"m{n}")) for n in range(12)))
    assert sorted(m.turn_index for m in begun) == list(range(1, 13))
    added = await asyncio.gather(
        *(add_reply(store, message(c.uuid, role="assistant", turn_index=1, content=f"a{n}")) for n in range(6))
    )
    assert sorted(m.position for m in added) == list(range(1, 7))
    counted = await store.conversations.get(c.uuid)
    assert (counted.message_count, counted.next_turn) == (18, 13)


async def test_same_message_sent_by_two_at_once_is_one(store: Store) -> None:
    c = await store.conversations.create(conversation())
    m = message(c.uuid, content="x")
    begun = await asyncio.gather(*(store.messages.begin_turn(m) for _ in range(4)))
    assert {b.turn_index for b in begun} == {1}
    assert (await store.conversations.get(c.uuid)).message_count == 1


@pytest.mark.parametrize(
    ("writer", "lease", "seen"),
    [
        ("", None, "interrupted"),
        ("elsewhere|boot|1|1", timedelta(seconds=-5), "streaming"),
        ("elsewhere|boot|1|1", timedelta(seconds=-30), "interrupted"),
        ("own", timedelta(hours=-1), "streaming"),
        ("own-dead", timedelta(hours=1), "interrupted"),
    ],
)
async def test_streaming_without_its_writer_is_interrupted(
    store: Store, writer: str, lease: timedelta | None, seen: str
) -> None:
    own = writer_id()
    dead = "|".join([*own.split("|")[:2], "4194305", "1"])
    writer = {"own": own, "own-dead": dead}.get(writer, writer)
    c = await store.conversations.create(conversation())
    await store.messages.begin_turn(message(c.uuid, content="q"))
    await add_reply(
        store,
        message(
            c.uuid,
            role="assistant",
            turn_index=1,
            state="streaming",
            writer=writer,
            lease_until=lease and now() + lease,
        ),
    )
    [turn] = await store.turns.between(c.uuid, start=1, end=2)
    assert turn.messages[1].state == seen


async def test_stop_flag_and_retry(store: Store) -> None:
    c = await store.conversations.create(conversation())
    asked = await store.messages.begin_turn(message(c.uuid, content="q"))
    first = await add_reply(store, message(c.uuid, role="assistant", turn_index=1, state="streaming"))
    assert await store.messages.checkpoint(first.uuid, content="a", reasoning="", lease_until=now())
    await store.messages.request_stop(asked.uuid)
    assert await store.messages.stop_requested(asked.uuid)
    assert not await store.messages.checkpoint(first.uuid, content="ab", reasoning="", lease_until=now())
    await finish_reply(store, msgspec.structs.replace(first, content="ab", state="interrupted"))
    await supersede(store, c.uuid, 1)
    assert not await store.messages.stop_requested(asked.uuid)
    await finish_reply(store, msgspec.structs.replace(first, content="ab", state="complete"))
    second = await add_reply(store, message(c.uuid, role="assistant", turn_index=1, content="better"))
    [turn] = await store.turns.between(c.uuid, start=1, end=2)
    assert [(m.position, m.state) for m in turn.messages] == [(0, "complete"), (1, "superseded"), (2, "complete")]
    assert second.position == 2
    # A late checkpoint of a finished message changes nothing.
    await store.messages.checkpoint(first.uuid, content="zombie", reasoning="", lease_until=now())
    assert (await store.turns.between(c.uuid, start=1, end=2))[0].messages[1].content == "ab"


async def test_resolving_ids_and_prefixes(store: Store) -> None:
    one = await store.conversations.create(conversation(uuid="aaaa1111-0000-4000-8000-000000000001"))
    two = await store.conversations.create(conversation(uuid="aaaa2222-0000-4000-8000-000000000002", title="Two"))
    assert (await store.conversations.resolve("AAAA1 ")).uuid == one.uuid
    assert (await store.conversations.resolve(two.uuid)).uuid == two.uuid
    with pytest.raises(NotFoundError, match="Two"):
        await store.conversations.resolve("aaaa")
    with pytest.raises(NotFoundError):
        await store.conversations.resolve("")
    await store.conversations.update(one.uuid, status="deleted", deleted_at=now())
    assert (await store.conversations.resolve("aaaa")).uuid == two.uuid
    assert (await store.conversations.resolve(one.uuid)).status == "deleted"


async def test_listing(store: Store) -> None:
    base = now() - timedelta(minutes=1)
    for n, (title, tags, workspace) in enumerate(
        [("Alpha Beta", ["x"], "/a"), ("beta", ["y"], "/b"), ("gamma", [], "/a")]
    ):
        moment = base + timedelta(seconds=n)
        await store.conversations.create(
            conversation(title=title, tags=tags, workspace=workspace, created_at=moment, updated_at=moment)
        )

    async def titles(**wanted: object) -> list[str]:
        found = await store.conversations.matching(msgspec.convert(wanted, ConversationFilter))
        return [c.title for c in found]

    assert await titles() == ["gamma", "beta", "Alpha Beta"]
    assert await titles(limit=1) == ["gamma"]
    assert await titles(query="BETA") == ["beta", "Alpha Beta"]
    assert await titles(query="beta alpha") == ["Alpha Beta"]
    assert await titles(tags=["x", "y"]) == ["beta", "Alpha Beta"]
    assert await titles(workspace="/a") == ["gamma", "Alpha Beta"]
    assert await titles(status="archived") == []
    latest = await store.conversations.latest("/a")
    assert latest is not None and latest.title == "gamma"
    first = (await store.conversations.matching(ConversationFilter(query="alpha")))[0]
    await store.conversations.update(first.uuid, tags=[], summary="about delta", private=True)
    assert await titles() == ["Alpha Beta", "gamma", "beta"], "a change brings it to the top"
    assert await titles(order="created") == ["gamma", "beta", "Alpha Beta"]
    assert await titles(query="delta") == ["Alpha Beta"]
    changed = await store.conversations.get(first.uuid)
    assert changed.tags == [] and changed.private
    with pytest.raises(ValueError, match="next_turn"):
        await store.conversations.update(first.uuid, next_turn=7)


async def test_a_branch_reads_its_parents_beginning(store: Store) -> None:
    root = await store.conversations.create(conversation())
    for n in range(1, 5):
        await one_turn(store, root.uuid, f"root {n}")
    child = await store.conversations.create(conversation(branch_of=root.uuid, branch_turn=2))
    assert child.next_turn == 3
    await one_turn(store, child.uuid, "child 3")
    grandchild = await store.conversations.create(conversation(branch_of=child.uuid, branch_turn=3))
    await one_turn(store, grandchild.uuid, "grandchild 4")

    def said(turns: list[Turn]) -> list[tuple[int, str]]:
        return [(t.turn_index, t.messages[0].content) for t in turns]

    whole = [(1, "root 1"), (2, "root 2"), (3, "child 3"), (4, "grandchild 4")]
    assert said(await store.turns.between(grandchild.uuid, start=1, end=99)) == whole
    assert said(await store.turns.between(grandchild.uuid, start=2, end=4)) == whole[1:3]
    assert await store.turns.range(grandchild.uuid) == (1, 4)
    assert said(await store.turns.between(root.uuid, start=3, end=9)) == [(3, "root 3"), (4, "root 4")]
    assert await store.turns.range((await store.conversations.create(conversation())).uuid) == (1, 0)


async def test_vector_indexes_are_opened_without_the_deadline_of_a_search(
    graph: Graph, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    deadlines: list[float] = []
    read = graph.read

    async def noted(work: Work[Any], *, deadline: float = READ_SECONDS) -> Any:
        deadlines.append(deadline)
        return await read(work, deadline=deadline)

    monkeypatch.setattr(graph, "read", noted)
    await store.vectors.open_indexes()
    assert deadlines == [OPENING_SECONDS, OPENING_SECONDS]
