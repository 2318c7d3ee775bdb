"""Removal of conversations that share turns with branches: nothing of theirs is lost, nothing else is left."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ragforge_tui.graph import Graph, Store
from ragforge_tui.graph.store import shared_turns
from ragforge_tui.graph.store.findings import new_finding
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.records import Conversation, now
from tests.support.records import conversation, rows_of
from tests.support.stored_memory import remembered, summary, talk

OWN = "MATCH (n {conversation_id: $id}) RETURN n.uuid"


@pytest.fixture
def store(graph: Graph) -> Store:
    return Store(graph)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few turns need several batches."""
    monkeypatch.setattr(shared_turns, "_MESSAGES", 3)
    monkeypatch.setattr(shared_turns, "_TEXTS", 2)


async def branch(store: Store, parent: str, turn: int, *asked: str, **fields: Any) -> Conversation:
    """A branch that shares the turns up to one, with turns of its own."""
    made = await store.conversations.create(conversation(branch_of=parent, branch_turn=turn, workspace="/w", **fields))
    for text in asked:
        await talk(store, made.uuid, text, (f"{text}.py", "write"))
    return made


async def seen(store: Store, uuid: str) -> list[Any]:
    """What a reader of a conversation sees, without the owners of turns and the ids that follow from them."""
    export = await store.transfer.export(uuid)
    turns = [
        [
            (m.uuid, m.content, [(c.uuid, c.arguments, c.result and c.result.result) for c in m.tool_calls])
            for m in t.messages
        ]
        for t in export.turns
    ]
    summaries = [
        (s.level, s.start_turn_index, s.end_turn_index, s.conversation_summary) for s in export.memory.summaries
    ]
    findings = [(f.turn_index, f.text, f.state) for f in export.memory.findings]
    contexts = [await store.contexts.of_turn(t.messages[0].conversation_id, t.turn_index) for t in export.turns]
    return [turns, summaries, findings, contexts]


@pytest.mark.slow
async def test_a_branch_owns_what_it_shares_and_the_rest_is_gone(store: Store, graph: Graph) -> None:
    parent = await remembered(store, turns=6)
    for turn, text in ((2, "never change it"), (5, "the wombat budget")):
        await store.findings.add([new_finding(parent, "/w", turn, "decision", text)])
    deep = await branch(store, parent, 4, "deep", title="deep")
    flat = await branch(store, parent, 2, "flat")
    below = await branch(store, deep.uuid, 3, "below")
    nothing = await branch(store, parent, 0, "nothing")
    branches = (deep.uuid, flat.uuid, below.uuid, nothing.uuid)
    before = [await seen(store, uuid) for uuid in branches]
    heir = await store.purges.purge(parent)
    assert heir is not None
    assert (heir.conversation.title, heir.turns) == ("deep", 4)
    assert [await seen(store, uuid) for uuid in branches] == before
    found = [await store.conversations.get(uuid) for uuid in branches]
    assert [(one.branch_of, one.branch_turn) for one in found] == [
        (None, None),
        (deep.uuid, 2),
        (deep.uuid, 3),
        (deep.uuid, 0),
    ]
    assert not await graph.rows(OWN, id=parent)
    with pytest.raises(NotFoundError):
        await store.conversations.get(parent)
    stored = repr(await graph.rows("MATCH (n) RETURN properties(n) AS n"))
    assert "question 4" in stored
    assert [text for text in ("question 5", "question 6", "wombat", parent) if text in stored] == []
    # The branch goes on as any conversation: its level of summaries ends where the shared turns had one.
    ends = (await store.summaries.of(deep.uuid))[-1]
    await talk(store, deep.uuid, "later")
    assert await store.summaries.store(summary(deep.uuid, 1, 5, 6), [])
    assert ends.conversation_id == deep.uuid
    await store.purges.purge(deep.uuid)
    assert len((await seen(store, below.uuid))[0]) == 4
    for uuid in (below.uuid, flat.uuid, nothing.uuid):
        await store.purges.purge(uuid)
    left = "MATCH (n) WHERE NOT n:RagforgeSchema AND NOT n:RagforgeMigration RETURN n.uuid"
    assert await rows_of(graph, left) == 0


class KilledError(Exception):
    """The process ended."""


@pytest.mark.slow
async def test_a_purge_that_is_killed_anywhere_is_continued(
    store: Store, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = await remembered(store)
    parent = await branch(store, root, 2, "a", "b", "c")
    heir = await branch(store, parent.uuid, 4, "x")
    other = await branch(store, parent.uuid, 3, "y")
    before = [await seen(store, uuid) for uuid in (root, heir.uuid, other.uuid)]
    real, left = Graph.write, 0

    async def killed(self: Graph, work: Callable[[Any], Awaitable[Any]], **options: Any) -> Any:
        nonlocal left
        if left == 0:
            raise KilledError
        left -= 1
        return await real(self, work, **options)

    monkeypatch.setattr(Graph, "write", killed)
    kills = 0
    while True:
        left = 3 + kills
        try:
            await store.purges.purge(parent.uuid)
            break
        except KilledError:
            kills += 1
            assert [await seen(store, uuid) for uuid in (root, heir.uuid, other.uuid)] == before
            left = 1_000
            assert parent.uuid in await store.purges.expired()
            left = 3 + kills
    assert kills > 3
    assert [await seen(store, uuid) for uuid in (root, heir.uuid, other.uuid)] == before
    found = await store.conversations.get(heir.uuid)
    assert (found.branch_of, found.branch_turn) == (root, 2)
    assert not await graph.rows(OWN, id=parent.uuid)


async def test_what_only_a_removed_turn_had_settled_holds_again(store: Store) -> None:
    parent = await store.conversations.create(conversation(workspace="/w"))
    for text in ("one", "two", "three"):
        await talk(store, parent.uuid, text)
    old = new_finding(parent.uuid, "/w", 1, "decision", "use tabs")
    point = new_finding(parent.uuid, "/w", 1, "open", "write a test")
    settled = new_finding(parent.uuid, "/w", 1, "open", "write docs")
    await store.findings.add([old, point, settled])
    await store.findings.replace(old.uuid, new_finding(parent.uuid, "/w", 3, "decision", "use blanks"))
    closing = [turn.messages[0].uuid for turn in await store.turns.between(parent.uuid, start=1, end=4)]
    await store.findings.close(point.uuid, until=now(), closed_by="t3: three", message_or_call=closing[2])
    await store.findings.close(settled.uuid, until=now(), closed_by="t2: two", message_or_call=closing[1])
    child = await branch(store, parent.uuid, 2)
    await store.purges.purge(parent.uuid)
    found = await store.findings.of_conversation(child.uuid)
    assert {one.text: (one.state, one.closed_by, one.replaced_by) for one in found} == {
        "use tabs": ("valid", "", ""),
        "write a test": ("open", "", ""),
        "write docs": ("done", "t2: two", ""),
    }


async def test_a_helper_goes_with_the_turn_it_worked_for(store: Store) -> None:
    parent = await store.conversations.create(conversation(workspace="/w"))
    for text in ("one", "two"):
        await talk(store, parent.uuid, text, (f"{text}.py", "write"))
    turns = await store.turns.between(parent.uuid, start=1, end=3)
    calls = [turn.messages[-1].tool_calls[0].uuid for turn in turns]
    helpers = [await branch(store, parent.uuid, 0, f"helper {n}", helper_of=call) for n, call in enumerate(calls)]
    child = await branch(store, parent.uuid, 1)
    await store.purges.purge(parent.uuid)
    assert await store.purges.branches(child.uuid, helpers=True) == [helpers[0].uuid]
    with pytest.raises(NotFoundError):
        await store.conversations.get(helpers[1].uuid)


async def test_digests_that_other_texts_name_are_not_only_this_ones(store: Store) -> None:
    mine, shared = "a" * 64, "b" * 64
    one, other = [await store.conversations.create(conversation()) for _ in range(2)]
    await talk(store, one.uuid, f"image {mine} and {shared}")
    await talk(store, other.uuid, f"again {shared}")
    assert await store.purges.digests(one.uuid) == {mine}
