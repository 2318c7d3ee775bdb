"""Attempts in the graph: stored once, found by what they are about, hidden where private, and carried with turns."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ragforge_tui.export import from_json, to_json
from ragforge_tui.graph import Graph, Store
from ragforge_tui.graph.store.records import derived
from ragforge_tui.shared.attempt_records import Attempt
from ragforge_tui.shared.errors import GraphError
from tests.support.attempts import undone
from tests.support.records import rows_of
from tests.support.turns import exchanges, imported


@pytest.fixture
def store(graph: Graph) -> Store:
    return Store(graph)


async def attempt_in(store: Store, conversation: str, **fields: Any) -> Attempt:
    """An attempt of the first turn of a conversation, stored."""
    message = (await store.turns.between(conversation, start=1, end=2))[0].messages[0].uuid
    made = undone(conversation, message, **fields)
    await store.attempts.add([made])
    return made


async def test_it_is_stored_once_with_its_edges_until_it_is_over(store: Store, graph: Graph) -> None:
    uuid = await imported(store, exchanges(3), workspace="/w", title="Waits")
    made = await attempt_in(store, uuid)
    await store.attempts.add([made])
    assert await store.attempts.of_conversation(uuid) == [made]
    [known] = await store.attempts.about("/w", ["src/app.py", "other.py"], asking="")
    assert (known.attempt, known.title) == (made, "Waits")
    assert await store.attempts.about("/elsewhere", ["src/app.py"], asking="") == []
    assert await store.attempts.about("/w", ["src/app.py"], asking="", elsewhere=False) == []
    assert await rows_of(graph, "MATCH (:Attempt)-[r:`IN`]->(:Message {turn_index: 1}) RETURN r") == 1
    assert await rows_of(graph, "MATCH (:Attempt)-[r:ABOUT]->(:File {path: 'src/app.py'}) RETURN r") == 1
    await store.attempts.add([msgspec.structs.replace(made, why="another reason")])
    assert [one.why for one in await store.attempts.of_conversation(uuid)] == [made.why]
    await store.attempts.redone(uuid, [1])
    assert await store.attempts.about("/w", ["src/app.py"], asking="") == []
    await store.attempts.add([made])
    assert [one.over for one in await store.attempts.of_conversation(uuid)] == [True]
    other = await attempt_in(store, uuid, uuid=derived("b"), key="pytest", outcome="needed", marks=[], instead="-p 1")
    await store.attempts.set_over([other.uuid])
    assert await store.attempts.about("/w", ["pytest"], asking=uuid) == []


async def test_private_and_deleted_conversations(store: Store, graph: Graph) -> None:
    uuid = await imported(store, exchanges(1), workspace="/w", private=True)
    made = await attempt_in(store, uuid)
    assert await store.attempts.about("/w", ["src/app.py"], asking="another") == []
    assert [one.attempt for one in await store.attempts.about("/w", ["src/app.py"], asking=uuid)] == [made]
    gone = await imported(store, exchanges(1), workspace="/w")
    await attempt_in(store, gone, key="b.py")
    await store.conversations.update(gone, status="deleted")
    assert await store.attempts.about("/w", ["b.py"], asking="") == []
    await store.purges.purge(gone)
    assert await rows_of(graph, "MATCH (a:Attempt) RETURN a") == 1


async def test_how_far_a_conversation_was_examined(store: Store) -> None:
    uuid = await imported(store, exchanges(3), workspace="/w")
    assert [(one.conversation_id, one.through, one.last) for one in await store.attempts.unexamined("/w")] == [
        (uuid, 0, 3)
    ]
    await store.attempts.set_through(uuid, 3)
    await store.attempts.set_through(uuid, 2)
    assert await store.attempts.through(uuid) == 3
    assert await store.attempts.unexamined("/w") == []


async def test_export_and_import(store: Store) -> None:
    uuid = await imported(store, exchanges(2), workspace="/w")
    made = await attempt_in(store, uuid)
    exported = await store.transfer.export(uuid)
    assert exported.memory.attempts == [made]
    await store.purges.purge(uuid)
    read = from_json(to_json(exported))
    for _ in range(2):
        await store.transfer.import_(read)
    assert await store.attempts.of_conversation(uuid) == [made]
    wrong = msgspec.structs.replace(made, conversation_id="00000000-0000-4000-8000-000000000000")
    read.memory.attempts = [wrong]
    with pytest.raises(GraphError, match="attempt"):
        await store.transfer.import_(read)
