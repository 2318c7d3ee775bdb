"""Finding a piece of text in one conversation, wherever in a turn it stands."""

from __future__ import annotations

import msgspec
import pytest

from ragforge_tui.graph import Graph, Store
from ragforge_tui.shared.errors import NotFoundError
from tests.graph.test_transfer import with_result
from tests.support.records import add_reply, call_of, conversation, finish_reply, message, one_turn, supersede


@pytest.fixture
def store(graph: Graph) -> Store:
    return Store(graph)


async def test_every_part_of_a_turn_is_looked_at(store: Store) -> None:
    c = await store.conversations.create(conversation())
    other = await store.conversations.create(conversation())
    await one_turn(store, c.uuid, "a Zebra crossing")
    await one_turn(store, other.uuid, "another zebra")
    asked = await store.messages.begin_turn(message(c.uuid, content="plain"))
    reply = message(c.uuid, role="assistant", turn_index=asked.turn_index, reasoning="think of an Okapi", content="…")
    reply = await add_reply(store, reply)
    call = call_of(reply.uuid, arguments='{"path":"say \\"hello\\".py"}')
    await store.tool_calls.start(call, c.uuid)
    await store.tool_calls.finish(with_result(call, "two\nlines of a Quagga"), "/w")
    await finish_reply(store, msgspec.structs.replace(reply, state="complete"))
    await one_turn(store, c.uuid, "x" * 1_300_000 + " the far Wombat " + "y" * 1_000)
    assert await store.search.find_text(c.uuid, "zEBRA cross") == [1]
    assert await store.search.find_text(c.uuid, "okapi") == [2]
    assert await store.search.find_text(c.uuid, 'say "HELLO"') == [2]
    assert await store.search.find_text(c.uuid, "two\nlines") == [2]
    assert await store.search.find_text(c.uuid, "far wombat") == [3]
    assert await store.search.find_text(c.uuid, "p") == [2]
    assert await store.search.find_text(c.uuid, "nowhere") == []
    assert await store.search.find_text(c.uuid, "") == []
    with pytest.raises(NotFoundError):
        await store.search.find_text("no such", "text")


async def test_a_branch_is_looked_through_with_what_it_shares_and_without_the_rest(store: Store) -> None:
    root = await store.conversations.create(conversation())
    for text, answer in (("one match", "1"), ("two", "2"), ("three", "a match")):
        await one_turn(store, root.uuid, text, answer)
    child = await store.conversations.create(conversation(branch_of=root.uuid, branch_turn=2))
    await one_turn(store, child.uuid, "another MATCH")
    assert await store.search.find_text(child.uuid, "match") == [1, 3]
    assert await store.search.find_text(root.uuid, "match") == [1, 3]
    await supersede(store, root.uuid, 3)
    assert await store.search.find_text(root.uuid, "match") == [1]
