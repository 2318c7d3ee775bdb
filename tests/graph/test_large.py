"""Texts of any size and content: in parts when large, cut when they are huge tool results."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge_tui.graph import Graph, Store
from ragforge_tui.graph.store.parts import batches, split
from ragforge_tui.graph.store.tool_calls import MAX_RESULT_BYTES, cut_result
from ragforge_tui.shared.records import ToolResult, now
from tests.support.records import add_reply, call_of, conversation, finish_reply, message, rows_of
from tests.support.sizes import CONTENTS

MIB = 1024 * 1024


@given(st.text(alphabet=st.sampled_from("aé漢🚀\n"), max_size=200), st.integers(min_value=4, max_value=40))
def test_split_keeps_every_character(text: str, limit: int) -> None:
    pieces = split(text, limit)
    assert "".join(pieces) == text
    assert all(0 < len(piece.encode()) <= limit for piece in pieces)


def test_batches_are_small_in_bytes_and_number() -> None:
    rows = [{"n": n} for n in range(7)]
    assert [len(batch) for batch in batches(rows, lambda row: 700_000)] == [2, 2, 2, 1]
    assert [len(batch) for batch in batches({"text": "x" * 700_000} for _ in range(7))] == [2, 2, 2, 1]
    assert [len(batch) for batch in batches({"n": n} for n in range(1100))] == [500, 500, 100]
    assert [len(batch) for batch in batches([{"n": 9_000_000}, {"n": 1}], lambda row: row["n"])] == [1, 1]


@pytest.mark.skipif(CONTENTS == "hybrid", reason="is about texts in the graph")
@pytest.mark.parametrize("size", [3, pytest.param(20, marks=pytest.mark.slow)])
async def test_a_message_of_many_mb(graph: Graph, size: int) -> None:
    store = Store(graph)
    c = await store.conversations.create(conversation())
    text = "".join(f"{n:07d} é漢🚀\n" for n in range(size * MIB // 18))
    assert len(text.encode()) > (size - 1) * MIB
    m = message(c.uuid, content=text)
    for _ in range(2):
        assert (await store.messages.begin_turn(m)).turn_index == 1
    [turn] = await store.turns.between(c.uuid, start=1, end=2)
    assert turn.messages[0].content == text
    assert (await store.conversations.get(c.uuid)).total_chars == len(text)
    assert await rows_of(graph, "MATCH (:Message)-[:HAS_PART]->(p:Part) RETURN p.uuid") == len(split(text))
    assert (await store.transfer.export(c.uuid)).turns == [turn]
    await store.purges.purge(c.uuid)
    assert await rows_of(graph, "MATCH (p:Part) RETURN p.uuid") == 0


@pytest.mark.skipif(CONTENTS == "hybrid", reason="is about texts in the graph")
async def test_a_growing_text_sends_only_its_tail_and_leaves_nothing_behind(graph: Graph) -> None:
    store = Store(graph)
    c = await store.conversations.create(conversation())
    await store.messages.begin_turn(message(c.uuid, content="q"))
    answer = await add_reply(store, message(c.uuid, role="assistant", turn_index=1, state="streaming"))
    for size in (1, MIB + 10, MIB + 20, 3 * MIB):
        await store.messages.checkpoint(answer.uuid, content="x" * size, reasoning="y" * size, lease_until=now())
    text = "x" * (3 * MIB + 5)
    thought = "y" * (2 * MIB)
    await finish_reply(store, msgspec.structs.replace(answer, content=text, reasoning=thought, state="complete"))
    [turn] = await store.turns.between(c.uuid, start=1, end=2)
    assert (turn.messages[1].content, turn.messages[1].reasoning) == (text, thought)
    assert await rows_of(graph, "MATCH (p:Part {field: 'content'}) RETURN p.uuid") == 4
    assert await rows_of(graph, "MATCH (p:Part {field: 'reasoning'}) RETURN p.uuid") == 2


async def test_a_huge_tool_result_is_cut_with_a_note_and_its_size(graph: Graph) -> None:
    store = Store(graph)
    c = await store.conversations.create(conversation())
    asked = await store.messages.begin_turn(message(c.uuid, content="q"))
    body = msgspec.json.encode({"text": "é\n" * 4_000_000, "exit_status": 0}).decode()
    call = call_of(asked.uuid, arguments="z" * (MIB + 1))
    answer = await add_reply(store, message(c.uuid, role="assistant", turn_index=1))
    call = msgspec.structs.replace(call, message_id=answer.uuid, success=True)
    call.result = ToolResult(uuid="r1", tool_call_id=call.uuid, success=True, result=body, timestamp=now())
    await store.tool_calls.start(call, c.uuid)
    await store.tool_calls.finish(call, "/w")
    [turn] = await store.turns.between(c.uuid, start=1, end=2)
    stored = turn.messages[1].tool_calls[0]
    assert stored.arguments == call.arguments
    assert stored.result is not None
    kept = msgspec.json.decode(stored.result.result)
    size = len(body.encode())
    assert stored.result.result_size_bytes == kept["truncated"] == size
    assert kept["exit_status"] == 0
    assert f"the whole result is {size} bytes" in kept["text"]
    assert MAX_RESULT_BYTES // 4 < len(stored.result.result.encode()) <= MAX_RESULT_BYTES


@pytest.mark.parametrize(
    "result",
    [
        "x" * 6_000_000,
        '{"text": "' + "\\u0001" * 2_000_000 + '"}',
        msgspec.json.encode({"text": "t" * 4_000_000, "diff": "d" * 4_000_000}).decode(),
        msgspec.json.encode({"text": "", "todos": list(range(1_500_000))}).decode(),
        '"' + "漢" * 3_000_000 + '"',
    ],
    ids=["not json", "escapes", "two long values", "a long list", "not an object"],
)
def test_a_cut_result_is_small_valid_json(result: str) -> None:
    cut = cut_result(ToolResult(uuid="r", tool_call_id="c", success=True, result=result, timestamp=now()))
    assert len(cut.result.encode()) <= MAX_RESULT_BYTES
    assert msgspec.json.decode(cut.result)["truncated"] == cut.result_size_bytes == len(result.encode())


def test_a_small_result_is_left_alone() -> None:
    small = ToolResult(uuid="r", tool_call_id="c", success=True, result='{"text":"é"}', timestamp=now())
    assert cut_result(small).result == small.result
    assert cut_result(small).result_size_bytes == 13
    told = msgspec.structs.replace(small, result_size_bytes=999)
    assert cut_result(told).result_size_bytes == 999
    # What the tool gave is less than its JSON: the trace shows the same after a restart as while it ran.
    told = msgspec.structs.replace(small, result_size_bytes=2)
    assert cut_result(told).result_size_bytes == 2
