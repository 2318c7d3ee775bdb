"""Finding a piece of text in one conversation, wherever in a turn it stands."""

from __future__ import annotations

import msgspec
import pytest

from ragforge_tui.errors import NotFoundError
from ragforge_tui.graph import Graph, Store
from tests.graph.test_transfer import with_result
from tests.support.records import call_of, conversation, message, one_turn


@pytest.fixture
def store(graph: Graph) -> Store:
    return Store(graph)


async def test_every_part_of_a_turn_is_looked_at(store: Store) -> None:
    c = await store.create_conversation(conversation())
    other = await store.create_conversation(conversation())
    await one_turn(store, c.uuid, "a Zebra crossing")
    await one_turn(store, other.uuid, "another zebra")
    asked = await store.begin_turn(message(c.uuid, content="plain"))
    reply = message(c.uuid, role="assistant", turn_index=asked.turn_index, reasoning="think of an Okapi", content="…")
    reply = await store.add_message(reply)
    call = call_of(reply.uuid, arguments='{"path":"say \\"hello\\".py"}')
    await store.start_tool_call(call, c.uuid)
    await store.finish_tool_call(with_result(call, "two\nlines of a Quagga"), "/w")
    await store.finish_message(msgspec.structs.replace(reply, state="complete"))
    await one_turn(store, c.uuid, "x" * 1_300_000 + " the far Wombat " + "y" * 1_000)
    assert await store.find_text(c.uuid, "zEBRA cross") == [1]
    assert await store.find_text(c.uuid, "okapi") == [2]
    assert await store.find_text(c.uuid, 'say "HELLO"') == [2]
    assert await store.find_text(c.uuid, "two\nlines") == [2]
    assert await store.find_text(c.uuid, "far wombat") == [3]
    assert await store.find_text(c.uuid, "p") == [2]
    assert await store.find_text(c.uuid, "nowhere") == []
    assert await store.find_text(c.uuid, "") == []
    with pytest.raises(NotFoundError):
        await store.find_text("no such", "text")


async def test_a_branch_is_looked_through_with_what_it_shares_and_without_the_rest(store: Store) -> None:
    root = await store.create_conversation(conversation())
    for text in ("one match", "two", "three match"):
        await one_turn(store, root.uuid, text)
    child = await store.create_conversation(conversation(branch_of=root.uuid, branch_turn=2))
    await one_turn(store, child.uuid, "another MATCH")
    assert await store.find_text(child.uuid, "match") == [1, 3]
    assert await store.find_text(root.uuid, "match") == [1, 3]
    await store.supersede(root.uuid, 3, 0)
    assert await store.find_text(root.uuid, "match") == [1]
