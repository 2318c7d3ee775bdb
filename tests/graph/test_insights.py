"""Insights in the graph: one a conversation, replaced by the right ones only, exported, imported and purged with it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from ragforge_tui.export import from_json, to_json, to_markdown
from ragforge_tui.graph import Graph, Store
from ragforge_tui.graph.store.insights import insight_uuid
from ragforge_tui.shared.errors import GraphError, NotFoundError
from ragforge_tui.shared.records import EXTRACTIVE, ConversationFilter, Finding, Insight, fingerprint, now
from tests.conftest import ONE_BACKEND
from tests.support.records import conversation, rows_of
from tests.support.stored_memory import talk
from tests.support.turns import exchanges, imported


@pytest.fixture
def store(graph: Graph) -> Store:
    return Store(graph)


def insight(conversation_id: str, **changes: Any) -> Insight:
    """An insight of two turns."""
    values: dict[str, Any] = {
        "main_topic": "How long leases last",
        "key_findings": [Finding(text="Leases last 30 seconds.", turns=[1, 2], kind="decision")],
        "action_items": [Finding(text="Write the backup.", turns=[2], kind="open"), Finding(text="Ask Ada.")],
        "made_by": "openai/x",
        "up_to_turn": 2,
        "fingerprint": "2.4.80",
    }
    return Insight(
        uuid=insight_uuid(conversation_id), conversation_id=conversation_id, created_at=now(), **values | changes
    )


async def test_it_is_stored_once_and_read_as_it_was(store: Store, graph: Graph) -> None:
    uuid = await imported(store, exchanges(2))
    made = insight(uuid)
    for _ in range(2):
        assert await store.insights.store(made) == made
    assert await store.insights.of([uuid, "unknown"]) == {uuid: made}
    assert await rows_of(graph, "MATCH (:Conversation)-[r:HAS_INSIGHT]->(:Insight) RETURN r") == 1
    with pytest.raises(NotFoundError):
        await store.insights.store(insight("00000000-0000-4000-8000-000000000000"))


async def test_a_models_replaces_an_extract_and_never_the_other_way(store: Store) -> None:
    uuid = await imported(store, exchanges(3))
    extract = insight(uuid, made_by=EXTRACTIVE, tried="openai/bad")
    await store.insights.store(extract)
    later = insight(uuid, made_by=EXTRACTIVE, up_to_turn=3)
    assert await store.insights.store(later) == later
    written = insight(uuid, main_topic="Leases", up_to_turn=2)
    assert await store.insights.store(written) == written
    assert await store.insights.store(later) == written
    # What has read less came later only because it was slower.
    assert await store.insights.store(insight(uuid, up_to_turn=1)) == written
    newer = insight(uuid, up_to_turn=3, key_findings=[], action_items=[])
    assert await store.insights.store(newer) == newer
    assert await store.insights.of([uuid]) == {uuid: newer}


async def test_it_goes_round_without_loss_and_is_purged(store: Store, graph: Graph) -> None:
    uuid = await imported(store, exchanges(2))
    before = await store.memory_exporter.stamp(uuid)
    made = await store.insights.store(insight(uuid, fingerprint=fingerprint(await store.conversations.get(uuid))))
    assert await store.memory_exporter.stamp(uuid) != before
    whole = to_json(await store.transfer.export(uuid))
    assert from_json(whole).memory.insight == made
    assert "## Insight" in to_markdown(from_json(whole))
    await store.purges.purge(uuid)
    assert await rows_of(graph, "MATCH (i:Insight) RETURN i.uuid") == 0
    for _ in range(2):
        await store.transfer.import_(from_json(whole))
        assert to_json(await store.transfer.export(uuid)) == whole
    # It is still an insight of the same conversation: nothing is to be made again.
    assert made.fingerprint == fingerprint(await store.conversations.get(uuid))


async def test_one_that_is_here_stays(store: Store) -> None:
    uuid = await imported(store, exchanges(2))
    export = await store.transfer.export(uuid)
    export.memory.insight = insight(uuid)
    with pytest.raises(GraphError, match="1 insight"):
        await store.transfer.import_(export)
    await store.transfer.import_(export, merge=True)
    export.memory.insight = insight(uuid, main_topic="Another")
    await store.transfer.import_(export, merge=True)
    assert (await store.insights.of([uuid]))[uuid].main_topic == "How long leases last"


@pytest.mark.parametrize(
    "wrong", [{"up_to_turn": 3}, {"up_to_turn": 0}, {"conversation_id": "00000000-0000-4000-8000-000000000000"}]
)
@ONE_BACKEND
async def test_a_foreign_one_is_refused(store: Store, wrong: dict[str, Any]) -> None:
    uuid = await imported(store, exchanges(2))
    export = await store.transfer.export(uuid)
    export.memory.insight = msgspec.structs.replace(insight(uuid), **wrong)
    with pytest.raises(GraphError, match="insight"):
        await store.transfer.import_(export, merge=True)


async def test_a_branch_has_none_until_its_own_is_made(store: Store) -> None:
    root = await imported(store, exchanges(2))
    await store.insights.store(insight(root))
    child = await store.conversations.create(conversation(branch_of=root, branch_turn=1))
    await talk(store, child.uuid, "another way")
    assert (await store.transfer.export(child.uuid)).memory.insight is None
    assert list(await store.insights.of([root, child.uuid])) == [root]


async def test_conversations_of_some_days(store: Store) -> None:
    moment = now()
    days = [moment - timedelta(days=n) for n in range(4)]
    made = [await store.conversations.create(conversation(created_at=day, updated_at=day)) for day in days]
    found = await store.conversations.matching(ConversationFilter(since=days[2], until=days[0]))
    assert [one.uuid for one in found] == [made[1].uuid, made[2].uuid]


async def test_turns_of_some_days(store: Store) -> None:
    start = now()
    early = await imported(store, exchanges(2), title="early")
    private = await imported(store, exchanges(1), private=True)
    child = await store.conversations.create(conversation(branch_of=early, branch_turn=2, workspace="/w"))
    middle = now()
    await talk(store, early, "again")
    await talk(store, child.uuid, "else")
    end = now() + timedelta(seconds=1)
    found = await store.activity.turns(middle, end)
    assert [(one.conversation.uuid, one.first, one.last) for one in found] == [(child.uuid, 3, 3), (early, 3, 3)]
    assert [one.first for one in await store.activity.turns(start, end) if one.conversation.uuid == early] == [1]
    assert [one.conversation.uuid for one in await store.activity.turns(start, end, workspace="/w")] == [child.uuid]
    assert private in {one.conversation.uuid for one in await store.activity.turns(start, end, private=private)}
    await store.conversations.update(early, status="deleted", deleted_at=now())
    assert [one.conversation.uuid for one in await store.activity.turns(start, end)] == [child.uuid]
