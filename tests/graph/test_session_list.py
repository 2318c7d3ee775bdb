"""What a list of conversations asks the store: how each begins and ends, and what changed."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from ragforge_tui.graph import Graph, Store
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.records import now
from tests.support.records import add_reply, conversation, message


@pytest.fixture
def store(graph: Graph) -> Store:
    return Store(graph)


async def said(store: Store, uuid: str, question: str, *answers: str) -> None:
    """One turn."""
    asked = await store.messages.begin_turn(message(uuid, content=question))
    for answer in answers:
        await add_reply(store, message(uuid, role="assistant", turn_index=asked.turn_index, content=answer))


async def test_how_a_conversation_begins_and_ends(store: Store) -> None:
    c = await store.conversations.create(conversation(title="T"))
    assert (await store.conversations.peek(c.uuid)).first == ""
    await said(store, c.uuid, "Why twice?", "Let me look.", "")
    await said(store, c.uuid, "And now? " + "x" * 500, "", "It is the lock. " + "y" * 500, "")
    peek = await store.conversations.peek(c.uuid, chars=20)
    assert (peek.first, peek.last, peek.last_role) == ("Why twice?", "It is the lock. yyyy", "assistant")
    assert peek.conversation.message_count == 7
    branch = await store.conversations.create(conversation(branch_of=c.uuid, branch_turn=1))
    assert (await store.conversations.peek(branch.uuid)).last == "Let me look."
    await said(store, branch.uuid, "Another way?")
    peek = await store.conversations.peek(branch.uuid)
    assert (peek.first, peek.last, peek.last_role) == ("Why twice?", "Another way?", "user")
    with pytest.raises(NotFoundError):
        await store.conversations.peek("nope")


async def test_changes_since_a_time(store: Store) -> None:
    old = now() - timedelta(days=1)
    folder = f"/w/{conversation().uuid}"
    made = [
        await store.conversations.create(conversation(workspace=folder, updated_at=old + timedelta(hours=n)))
        for n in range(3)
    ]
    found = await store.conversations.changed(old, workspace=folder)
    assert [c.uuid for c in found.changed] == [c.uuid for c in reversed(made)] and found.count == 3
    found = await store.conversations.changed(old + timedelta(hours=2), workspace=folder)
    assert [c.uuid for c in found.changed] == [made[2].uuid] and found.count == 3
    await store.conversations.update(made[0].uuid, status="deleted", deleted_at=now())
    found = await store.conversations.changed(old + timedelta(hours=3), workspace=folder)
    assert [(c.uuid, c.status) for c in found.changed] == [(made[0].uuid, "deleted")] and found.count == 3
    assert msgspec.structs.asdict(found.changed[0])["deleted_at"] is not None
    assert (await store.conversations.changed(old)).count >= 3
