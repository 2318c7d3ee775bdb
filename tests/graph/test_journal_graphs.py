"""A journal belongs to one graph: it waits for it, and never goes into another one."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragforge_tui.graph import Graph, GraphTarget, Journal, JournalFolders, Store, move_journal
from ragforge_tui.settings.schema import Paths
from ragforge_tui.shared.errors import GraphUnavailableError
from tests.conftest import open_graph
from tests.support.records import conversation, message, one_turn, rows_of

A, B = "bolt://a:7687", "bolt://b:7687"
_SAID = "MATCH (m:Message) RETURN m.uuid"


@pytest.fixture
def store(graph: Graph) -> Iterator[Store]:
    real = graph.identity
    yield Store(graph)
    graph.identity = real


def said_to(root: Path, address: str) -> str:
    """Journal a conversation of one turn for the graph at an address; its id."""
    c = conversation()
    journal = Journal(root, address)
    journal.append("create_conversation", c)
    journal.append("begin_turn", message(c.uuid, content="said while away", turn_index=1))
    journal.close()
    return c.uuid


async def test_the_identity_stays_and_is_given_to_a_graph_without(
    graph: Graph, graph_target: GraphTarget, graph_paths: Paths
) -> None:
    assert uuid.UUID(graph.identity)

    async def forget(tx) -> None:  # type: ignore[no-untyped-def]
        await tx.run("MATCH (v:RagforgeSchema) SET v.identity = null")

    await graph.write(forget)
    assert await graph.identify() == ""
    opened = await asyncio.gather(*(open_graph(graph_target, graph_paths) for _ in range(3)))
    assert {each.identity for each in opened} == {await graph.identify()} != {""}
    for each in opened:
        await each.close()


async def test_records_for_a_graph_never_reached_wait_under_its_address(store: Store, tmp_path: Path) -> None:
    said = said_to(tmp_path, A)
    assert await Journal(tmp_path, B).drain(store) == 0
    (info,) = JournalFolders(tmp_path).waiting()
    assert (info.identity, info.address, info.records) == ("", A, 2)
    assert info.since is not None
    assert "not reached yet" in info.name
    store.graph.identity = uuid.uuid4().hex
    assert await Journal(tmp_path, A).drain(store) == 2
    assert JournalFolders(tmp_path).waiting() == []
    assert len(await store.turns.between(said, start=1, end=9)) == 1
    assert await Journal(tmp_path, A).drain(store) == 0


async def test_it_follows_the_graph_to_another_address(store: Store, tmp_path: Path) -> None:
    await Journal(tmp_path, A).drain(store)
    said = said_to(tmp_path, A)
    (info,) = JournalFolders(tmp_path).waiting()
    assert info.identity == store.graph.identity
    assert await Journal(tmp_path, B).drain(store) == 2
    assert len(await store.turns.between(said, start=1, end=9)) == 1


async def test_another_graph_at_the_same_address_does_not_get_it(store: Store, graph: Graph, tmp_path: Path) -> None:
    first = graph.identity
    await Journal(tmp_path, A).drain(store)
    said_to(tmp_path, A)
    graph.identity = uuid.uuid4().hex
    journal = Journal(tmp_path, A)
    assert await journal.drain(store) == 0
    assert await rows_of(graph, _SAID) == 0
    assert [(info.identity, info.address) for info in journal.left_behind()] == [(first, A)]
    mine = conversation()
    journal.append("create_conversation", mine)
    journal.close()
    assert {info.identity for info in JournalFolders(tmp_path).waiting()} == {first, graph.identity}
    assert await journal.drain(store) == 1, "what is said from now on is the new graph's"
    graph.identity = first
    assert await Journal(tmp_path, A).drain(store) == 2
    assert await rows_of(graph, _SAID) == 1


async def test_an_unbound_journal_is_bound_when_the_graph_is_reached_and_stays_so(
    store: Store, graph: Graph, tmp_path: Path
) -> None:
    first = graph.identity
    said_to(tmp_path, A)
    with pytest.raises(GraphUnavailableError):
        await Journal(tmp_path, A).drain(leaving(store))
    graph.identity = uuid.uuid4().hex
    assert await Journal(tmp_path, A).drain(store) == 0
    assert await rows_of(graph, _SAID) == 0
    graph.identity = first
    assert await Journal(tmp_path, B).drain(store) == 2


def leaving(store: Store) -> Store:
    """Return a store whose graph goes away at the first record."""

    async def create(_: object) -> None:
        raise GraphUnavailableError("away")

    gone = Store(store.graph)
    gone.conversations.create = create  # type: ignore[method-assign, assignment]
    return gone


async def test_a_process_keeps_to_the_graph_it_began_with(store: Store, graph: Graph, tmp_path: Path) -> None:
    journal = Journal(tmp_path, A)
    await journal.drain(store)
    graph.identity = uuid.uuid4().hex
    with pytest.raises(GraphUnavailableError, match="not the one this chat started with") as told:
        await journal.drain(store)
    assert told.value.info.kind == "graph_replaced"
    assert "graph journal" in told.value.info.todo


async def test_moving_makes_the_conversations_that_only_the_other_graph_has(store: Store, tmp_path: Path) -> None:
    elsewhere = conversation()
    journal = Journal(tmp_path, A)
    journal.append("begin_turn", message(elsewhere.uuid, content="said to A", turn_index=7))
    busy = Journal(tmp_path, A)
    busy.append("create_conversation", conversation())
    journal.close()
    (info,) = JournalFolders(tmp_path).waiting()
    moved = await move_journal(tmp_path, info.key, store, workspace="/w")
    assert (moved.written, moved.refused, moved.busy, moved.conversations) == (1, 0, 1, 1)
    (turn,) = await store.turns.between(elsewhere.uuid, start=1, end=99)
    assert (turn.turn_index, turn.messages[0].content) == (1, "said to A")
    assert (await store.conversations.get(elsewhere.uuid)).workspace == "/w"
    busy.close()
    assert (await move_journal(tmp_path, info.key, store, workspace="/w")).written == 1


async def test_refused_records_are_listed_and_can_be_retried(store: Store, tmp_path: Path) -> None:
    journal = Journal(tmp_path, A)
    asked = message(conversation().uuid)
    journal.append("finish_message", asked, turn_id=asked.uuid)
    await journal.drain(store)
    (info,) = JournalFolders(tmp_path).waiting()
    assert (info.records, info.refused) == (0, 1)
    (aside,) = JournalFolders(tmp_path).files(info.key)
    with aside.open("ab") as file:
        file.write(b"no record at all\n")
    moved = await move_journal(tmp_path, info.key, store, workspace="/w")
    assert (moved.written, moved.refused, moved.conversations) == (1, 1, 1)
    assert aside.read_bytes() == b"no record at all\n"
    assert JournalFolders(tmp_path).waiting()[0].refused == 1


async def test_a_purge_here_leaves_the_words_for_another_graph(store: Store, graph: Graph, tmp_path: Path) -> None:
    c = await store.conversations.create(conversation())
    await one_turn(store, c.uuid, "an imported copy")
    there = Journal(tmp_path, A)
    there.append("begin_turn", message(c.uuid, content="for the original"))
    there.close()
    here = Journal(tmp_path, B)
    await here.drain(store)
    assert here.forget(c.uuid) == 0
    assert sum(info.records for info in JournalFolders(tmp_path).waiting()) == 1
