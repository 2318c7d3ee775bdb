"""The memory in outline, on both backends: headlines of the tree, how turns begin, the requests of a turn."""

from __future__ import annotations

import msgspec
import pytest

from ragforge_tui.graph import Graph, Store
from ragforge_tui.graph.store.summaries import HEADLINE_CHARS
from ragforge_tui.graph.store.turns import LINE_CHARS
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.records import ContextRecord, now
from tests.support.records import add_reply, conversation, message
from tests.support.stored_memory import remembered, summary, talk


@pytest.fixture
def store(graph: Graph) -> Store:
    return Store(graph)


async def test_the_outline_is_the_tree_with_headlines(store: Store) -> None:
    uuid = await remembered(store)
    whole, outline = await store.summaries.of(uuid), await store.summaries.outline(uuid)
    assert [node.uuid for node in outline] == [made.uuid for made in whole]
    assert [node.parent for node in outline] == [made.parent for made in whole]
    assert [(n.level, n.start_turn_index, n.end_turn_index) for n in outline] == [(1, 1, 2), (1, 3, 4), (2, 1, 4)]
    assert outline[0].headline == whole[0].conversation_summary
    assert outline[0].topics == whole[0].topics
    assert [(node.title, node.created_at) for node in outline] == [(made.title, made.created_at) for made in whole]


async def test_a_headline_is_short(store: Store) -> None:
    made = await store.conversations.create(conversation())
    await talk(store, made.uuid, "one")
    await store.summaries.store(summary(made.uuid, 1, 1, 1, conversation_summary="é" * 500))
    assert [node.headline for node in await store.summaries.outline(made.uuid)] == ["é" * HEADLINE_CHARS]


async def test_an_outline_of_nothing_is_an_error(store: Store) -> None:
    with pytest.raises(NotFoundError):
        await store.summaries.outline("nobody")
    with pytest.raises(NotFoundError):
        await store.turns.lines("nobody", 1, 3)


async def test_turns_begin_as_they_were_written_in_a_branch_too(store: Store) -> None:
    parent = await store.conversations.create(conversation())
    for n in range(1, 5):
        await talk(store, parent.uuid, f"question {n}\nsecond line")
    branch = await store.conversations.create(conversation(branch_of=parent.uuid, branch_turn=2, next_turn=3))
    await talk(store, branch.uuid, "x" * 1000)
    lines = await store.turns.lines(branch.uuid, 2, 9)
    assert [(line.turn_index, line.text) for line in lines] == [
        (2, "question 2\nsecond line"),
        (3, "x" * LINE_CHARS),
    ]
    assert [line.turn_index for line in await store.turns.lines(parent.uuid, 0, 2)] == [1, 2]


async def test_a_message_kept_in_parts_has_a_beginning(store: Store) -> None:
    made = await store.conversations.create(conversation())
    await store.messages.begin_turn(message(made.uuid, content="large " * 400_000))
    assert (await store.turns.lines(made.uuid, 1, 1))[0].text.startswith("large large")


async def test_requests_of_a_turn_in_their_order_those_alike_once(store: Store) -> None:
    made = await store.conversations.create(conversation())
    await store.messages.begin_turn(message(made.uuid))
    for position, digest in enumerate(("first", "first", "second"), start=1):
        reply = await add_reply(store, message(made.uuid, role="assistant", turn_index=1, content=f"r{position}"))
        record = ContextRecord(conversation_id=made.uuid, turn_index=1, model=digest, created_at=now())
        await store.contexts.store(reply.uuid, msgspec.json.encode(record).decode(), 1, digest)
    found = await store.contexts.of_turn(made.uuid, 1)
    assert [(one.record.model, one.replies) for one in found] == [("first", 2), ("second", 1)]
    assert await store.contexts.of_turn(made.uuid, 2) == []


async def test_unreadable_nodes_are_left_out(store: Store) -> None:
    made = await store.conversations.create(conversation())
    await store.messages.begin_turn(message(made.uuid))
    reply = await add_reply(store, message(made.uuid, role="assistant", turn_index=1))
    await store.contexts.store(reply.uuid, '{"turn": 1}', 1, "d")
    assert await store.contexts.of_turn(made.uuid, 1) == []
