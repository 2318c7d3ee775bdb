"""Findings in the graph: stored once, closed, replaced, hidden where they are private, and carried with their turns."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from ragforge_tui.export import from_json, to_json, to_markdown
from ragforge_tui.graph import Graph, Store
from ragforge_tui.graph.store.findings import finding_uuid, new_finding
from ragforge_tui.shared.errors import GraphError, NotFoundError
from ragforge_tui.shared.finding_records import KeptFinding, KeptKind
from ragforge_tui.shared.records import now
from tests.conftest import ONE_BACKEND
from tests.support.records import conversation, rows_of
from tests.support.stored_memory import talk
from tests.support.turns import exchanges, imported

DAY = datetime(2026, 10, 3, 9, 30, tzinfo=UTC)


@pytest.fixture
def store(graph: Graph) -> Store:
    return Store(graph)


def note(uuid: str, turn: int, text: str, kind: KeptKind = "decision", **fields: Any) -> KeptFinding:
    """A finding of a turn of a conversation in /w."""
    return new_finding(uuid, "/w", turn, kind, text, **{"since": DAY.replace(minute=turn), **fields})


async def test_it_is_stored_once_with_its_edges_and_keeps_what_it_became(store: Store, graph: Graph) -> None:
    uuid = await imported(store, exchanges(3), workspace="/w")
    made = [note(uuid, 1, "Wait 30 s", files=["a.py"]), note(uuid, 2, "Write the docs", "open", made_by="model")]
    assert await store.findings.add(made) == made
    moment = now()
    message = (await store.turns.between(uuid, start=3, end=4))[0].messages[0].uuid
    closed = await store.findings.close(made[1].uuid, until=moment, closed_by="t3: they are", message_or_call=message)
    assert closed is not None and (closed.state, closed.closed_by, closed.until) == ("done", "t3: they are", moment)
    assert await store.findings.close(made[1].uuid, until=now(), closed_by="again") is None
    assert await store.findings.add(made) == [made[0], closed]
    assert await store.findings.of_conversation(uuid) == [made[0], closed]
    for edge, count in (
        ("(:Conversation)-[r:HAS_FINDING]->(:Finding)", 2),
        ("(:Finding)-[r:FROM]->(:Message {position: 0})", 2),
        ("(:Finding)-[r:ABOUT]->(:File {path: 'a.py', workspace: '/w'})", 1),
        ("(:Finding)-[r:CLOSED_BY]->(:Message {turn_index: 3})", 1),
    ):
        assert await rows_of(graph, f"MATCH {edge} RETURN r") == count
    reopened = await store.findings.set_state(made[1].uuid, "open", None)
    assert reopened == made[1]
    assert await rows_of(graph, "MATCH (:Finding)-[r:CLOSED_BY]->() RETURN r") == 0
    with pytest.raises(NotFoundError):
        await store.findings.add([note("00000000-0000-4000-8000-000000000000", 1, "Lost")])


async def test_a_replacing_one_leads_on_and_the_old_one_is_history(store: Store, graph: Graph) -> None:
    uuid = await imported(store, exchanges(3), workspace="/w")
    old, new = note(uuid, 1, "Python 3.9 stays", files=["setup.py"]), note(uuid, 3, "Python 3.10 is the least")
    await store.findings.add([old])
    assert [one.text for one in await store.findings.about(["setup.py"], [], "/w")] == ["Python 3.9 stays"]
    for _ in range(2):
        assert await store.findings.replace(old.uuid, new) == new
    [stored] = await store.findings.by_id([old.uuid])
    assert (stored.state, stored.replaced_by, stored.until) == ("replaced", new.uuid, new.since)
    assert await rows_of(graph, "MATCH (:Finding)-[r:REPLACES]->(:Finding {state: 'replaced'}) RETURN r") == 1
    assert await store.findings.of_folder("/w") == [new]
    assert await store.findings.of_folder("/w", current=False) == [new, stored]
    assert await store.findings.about(["setup.py"], [], "/w") == []
    pinned = await store.findings.pin(new.uuid, True)
    assert pinned is not None and pinned.pinned
    assert await store.findings.set_state("unknown", "forgotten", now()) is None
    assert await store.findings.of_folder("/w", kinds=["wish"]) == []


async def test_what_another_writer_forgets_at_the_same_time_stays_forgotten(
    store: Store, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    uuid = await imported(store, exchanges(3), workspace="/w")
    old, new = note(uuid, 1, "Wait 30 s"), note(uuid, 3, "Wait 60 s")
    await store.findings.add([old])
    written, write = asyncio.Event(), graph.write

    async def slowly(work: Any) -> Any:
        async def held(tx: Any) -> Any:
            changed = await work(tx)
            written.set()
            await asyncio.sleep(0.5)
            return changed

        return await write(held)

    with monkeypatch.context() as patched:
        patched.setattr(graph, "write", slowly)
        forgetting = asyncio.create_task(store.findings.set_state(old.uuid, "forgotten", DAY))
        await written.wait()
    replaced = await store.findings.replace(old.uuid, new)
    await forgetting
    # Where nothing locks, what was forgotten is forgotten after it was replaced.
    states = ["forgotten"] if replaced is None else ["forgotten", "valid"]
    assert [one.state for one in await store.findings.of_conversation(uuid)] == states


async def test_places_and_privacy(store: Store) -> None:
    here = await imported(store, exchanges(1), workspace="/w")
    there = await imported(store, exchanges(1), workspace="/elsewhere")
    secret = await imported(store, exchanges(1), workspace="/w", private=True)
    everywhere = new_finding(there, "/elsewhere", 1, "wish", "Answer in French", scope="user", since=DAY)
    only_there = new_finding(there, "/elsewhere", 1, "wish", "Tabs", since=DAY)
    own = note(here, 1, "Only for today", scope="conversation", files=["a.py"])
    hidden = note(secret, 1, "The key is in the safe", files=["a.py"])
    await store.findings.add([everywhere, only_there, own, hidden])
    assert await store.findings.of_folder("/w") == [everywhere]
    assert await store.findings.of_folder("/w", asking=here) == [everywhere, own]
    visible = await store.findings.of_folder("/w", asking=secret)
    assert {one.uuid for one in visible} == {hidden.uuid, everywhere.uuid}
    assert await store.findings.about(["a.py"], [], "/w", asking=here) == [own]
    assert await store.findings.by_id([hidden.uuid, own.uuid]) == [own]
    await store.conversations.update(there, status="deleted", deleted_at=now())
    assert await store.findings.of_folder("/w") == []


async def test_a_branch_shares_those_of_the_turns_it_shares(store: Store) -> None:
    root = await imported(store, exchanges(3), workspace="/w")
    child = await store.conversations.create(conversation(branch_of=root, branch_turn=2, workspace="/w"))
    await talk(store, child.uuid, "another way")
    shared, own, later = note(child.uuid, 2, "Shared"), note(child.uuid, 3, "Own"), note(root, 3, "The parent's")
    stored = await store.findings.add([shared, own, later])
    assert [(one.conversation_id, one.text) for one in stored] == [
        (root, "Shared"),
        (child.uuid, "Own"),
        (root, "The parent's"),
    ]
    assert stored[0].uuid == finding_uuid(root, 2, "decision", "Shared")
    assert [one.text for one in await store.findings.of_conversation(child.uuid)] == ["Shared", "Own"]
    assert [one.text for one in await store.findings.of_conversation(root)] == ["Shared", "The parent's"]


async def test_they_go_round_without_loss_and_are_purged(store: Store, graph: Graph) -> None:
    uuid = await imported(store, exchanges(3), workspace="/w")
    before = await store.memory_exporter.stamp(uuid)
    old, new = note(uuid, 1, "Wait 30 s", files=["a.py"]), note(uuid, 2, "Wait 60 s")
    await store.findings.add([old, note(uuid, 3, "Say so in the docs", "open")])
    await store.findings.replace(old.uuid, new)
    assert await store.memory_exporter.stamp(uuid) != before
    whole = to_json(await store.transfer.export(uuid))
    assert [one.state for one in from_json(whole).memory.findings] == ["replaced", "valid", "open"]
    document = to_markdown(from_json(whole))
    assert "- ~~Decided: Wait 30 s~~ (t1) replaced" in document and "- Open: Say so in the docs (t3)" in document
    edges = await rows_of(graph, "MATCH (:Finding)-[r]->() RETURN r")
    await store.purges.purge(uuid)
    assert await rows_of(graph, "MATCH (f:Finding) RETURN f.uuid") == 0
    for _ in range(2):
        await store.transfer.import_(from_json(whole))
        assert to_json(await store.transfer.export(uuid)) == whole
        assert await rows_of(graph, "MATCH (:Finding)-[r]->() RETURN r") == edges


async def test_an_import_adds_them_only_when_asked_and_changes_none(store: Store) -> None:
    uuid = await imported(store, exchanges(2), workspace="/w")
    export = await store.transfer.export(uuid)
    export.memory.findings = [note(uuid, 1, "Wait 30 s")]
    with pytest.raises(GraphError, match="1 finding"):
        await store.transfer.import_(export)
    await store.transfer.import_(export, merge=True)
    export.memory.findings = [msgspec.structs.replace(note(uuid, 1, "Wait 30 s"), state="forgotten")]
    await store.transfer.import_(export, merge=True)
    assert [one.state for one in await store.findings.of_conversation(uuid)] == ["valid"]


@pytest.mark.parametrize("wrong", [{"turn_index": 3}, {"uuid": "../x"}, {"text": "long" * 9_999}])
@ONE_BACKEND
async def test_a_foreign_one_is_refused(store: Store, wrong: dict[str, Any]) -> None:
    uuid = await imported(store, exchanges(2), workspace="/w")
    export = await store.transfer.export(uuid)
    export.memory.findings = [msgspec.structs.replace(note(uuid, 1, "Wait"), **wrong)]
    with pytest.raises(GraphError, match="finding"):
        await store.transfer.import_(export, merge=True)
    assert await store.findings.of_conversation(uuid) == []


async def test_blame_names_the_decision_of_a_turn(store: Store) -> None:
    uuid = await imported(store, exchanges(2), workspace="/w")
    assert await store.commits.decision(uuid, 1) is None
    await store.findings.add([note(uuid, 1, "Wait 30 s"), note(uuid, 1, "It is slow", "fact"), note(uuid, 2, "Later")])
    assert await store.commits.decision(uuid, 1) == "Wait 30 s"
    await store.findings.set_state(finding_uuid(uuid, 1, "decision", "Wait 30 s"), "forgotten", now())
    assert await store.commits.decision(uuid, 1) is None
