"""Links from turns to scopes: what was not examined, names, and what a conversation touched."""

from __future__ import annotations

import pytest

from ragforge_tui.graph import Graph, Store
from ragforge_tui.graph.store.code_links import Unlinked
from tests.graph.test_code import HERE, THERE, fill, scope
from tests.support.records import conversation
from tests.support.turns import exchanges, imported


@pytest.fixture
def store(graph: Graph) -> Store:
    return Store(graph)


async def test_turns_that_were_not_examined_are_found_in_their_workspace(store: Store) -> None:
    ours = await imported(store, exchanges(3), workspace=HERE)
    await imported(store, exchanges(2), workspace=THERE)
    assert await store.code_links.unlinked(HERE) == [Unlinked(ours, 0, 3)]
    await store.code_links.set_through(ours, 2)
    await store.code_links.set_through(ours, 1)
    assert await store.code_links.through(ours) == 2
    assert await store.code_links.unlinked(HERE) == [Unlinked(ours, 2, 3)]
    await store.code_links.set_through(ours, 3)
    assert await store.code_links.unlinked(HERE) == []
    assert await store.code_links.through("unknown") == 0


async def test_a_branch_starts_after_the_turns_it_shares(store: Store) -> None:
    parent = await imported(store, exchanges(3), workspace=HERE)
    branch = conversation(workspace=HERE, branch_of=parent, branch_turn=2)
    await store.conversations.create(branch)
    assert await store.code_links.through(branch.uuid) == 2
    assert branch.uuid not in [one.conversation_id for one in await store.code_links.unlinked(HERE)]


async def test_names_mean_definitions_of_the_workspace_that_are_spelled_the_same(store: Store) -> None:
    gone = scope("send", file="old.py")
    await fill(store, scope("Session.send"), scope("send", workspace=THERE), gone, scope("Send", file="b.py"))
    uuid = await imported(store, exchanges(1))
    first = (await store.turns.between(uuid, start=1, end=2))[0].messages[0].uuid
    await store.code.link_message(first, [gone.uuid])
    await store.code.remove_files(HERE, ["old.py"])
    found = await store.code_links.named(HERE, ["send", "unknown"])
    assert [(one.uuid, one.qualified_name, one.file) for one in found] == [
        (scope("Session.send").uuid, "Session.send", "a.py")
    ]
    assert await store.code_links.existing([gone.uuid, "unknown"]) == {gone.uuid}


async def test_touched_scopes_come_newest_first(store: Store) -> None:
    send, other = scope("send", line=1), scope("other", line=10)
    await fill(store, send, other)
    uuid = await imported(store, exchanges(3))
    firsts = [turn.messages[0].uuid for turn in await store.turns.between(uuid, start=1, end=4)]
    await store.code.link_message(firsts[0], [send.uuid, other.uuid])
    await store.code.link_message(firsts[2], [send.uuid])
    touched = await store.code_links.touched(uuid)
    assert [(one.scope.name, one.turn_index, one.turns, one.scope.text) for one in touched] == [
        ("send", 3, 2, ""),
        ("other", 1, 1, ""),
    ]
    branch = conversation(branch_of=uuid, branch_turn=1)
    await store.conversations.create(branch)
    assert [one.turn_index for one in await store.code_links.touched(branch.uuid)] == [1, 1]
