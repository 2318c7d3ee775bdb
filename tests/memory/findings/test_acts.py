"""What the user does with what is remembered: pinned, edited, confirmed, forgotten, taken back, removed for good."""

from __future__ import annotations

import msgspec
import pytest

from ragforge_tui.graph import Graph, Store
from ragforge_tui.graph.compact import compact
from ragforge_tui.graph.store.findings import new_finding
from ragforge_tui.graph.store.insights import insight_uuid
from ragforge_tui.memory.findings.acts import act_on, undo
from ragforge_tui.shared.errors import NotFoundError, RagforgeError
from ragforge_tui.shared.finding_records import KeptFinding
from ragforge_tui.shared.records import ContextItem, ContextRecord, ContextSection, Finding, Insight, now
from tests.support.records import rows_of
from tests.support.stored_memory import summary
from tests.support.turns import exchanges, imported

WISH = "Never use getattr loops in tests."


@pytest.fixture
def store(graph: Graph) -> Store:
    return Store(graph)


async def a_wish(store: Store, uuid: str, **fields: object) -> KeptFinding:
    [stored] = await store.findings.add([new_finding(uuid, "/w", 2, "wish", WISH, **fields)])
    return stored


async def texts_of(store: Store) -> list[tuple[str, str]]:
    return sorted((one.text, one.state) for one in await store.findings.of_folder("/w", current=False))


async def test_each_act_is_taken_back_the_newest_first(store: Store) -> None:
    uuid = await imported(store, exchanges(3), workspace="/w")
    wish = await a_wish(store, uuid)
    [point] = await store.findings.add([new_finding(uuid, "/w", 1, "open", "Write the docs")])
    pinned = await act_on(store, wish, "pin")
    assert pinned.pinned
    edited = await act_on(store, pinned, "edit", "Never use  getattr\nin tests.")
    assert (edited.text, edited.pinned, edited.made_by, edited.turn_index) == (
        "Never use getattr in tests.",
        True,
        "user",
        2,
    )
    done = await act_on(store, point, "confirm")
    assert (done.state, done.closed_by) == ("done", "confirmed by the user")
    with pytest.raises(RagforgeError, match="Only an open point"):
        await act_on(store, done, "confirm")
    with pytest.raises(RagforgeError, match="no longer holds"):
        await act_on(store, done, "pin")
    with pytest.raises(RagforgeError, match="unchanged"):
        await act_on(store, edited, "edit", edited.text)
    assert await texts_of(store) == [
        ("Never use getattr in tests.", "valid"),
        (WISH, "replaced"),
        ("Write the docs", "done"),
    ]
    assert [(await undo(store)).act for _ in range(3)] == ["confirm", "edit", "pin"]
    assert await store.findings.of_folder("/w") == [point, wish] or await store.findings.of_folder("/w") == [
        wish,
        point,
    ]
    with pytest.raises(RagforgeError, match="no act"):
        await undo(store)
    assert [(act.act, act.undone) for act in await store.memory_acts.newest()] == [
        ("confirm", True),
        ("edit", True),
        ("pin", True),
    ]
    # The same edit once more holds again.
    again = await act_on(store, wish, "edit", "Never use getattr in tests.")
    assert again.state == "valid"


async def test_forgetting_reaches_summaries_insights_and_search_and_is_taken_back(store: Store) -> None:
    uuid = await imported(store, exchanges(4), workspace="/w")
    wish = await a_wish(store, uuid)
    said = [Finding(text=f"{WISH[:-1]}", turns=[2], kind="preference"), Finding(text="Waiting helps", turns=[1])]
    made = summary(uuid, 1, 1, 3, key_findings=said, conversation_summary=f"The user said: {WISH} Then we went on.")
    await store.summaries.store(made)
    await store.insights.store(
        Insight(uuid=insight_uuid(uuid), conversation_id=uuid, main_topic="t", key_findings=said, created_at=now())
    )

    async def state() -> tuple[list[str], str, list[str], int]:
        [stored] = await store.summaries.of(uuid)
        found = (await store.insights.of([uuid]))[uuid]
        searched = await rows_of(store.graph, "MATCH (s:Summary) WHERE s.findings_text CONTAINS 'getattr' RETURN s")
        texts = [one.text for one in stored.key_findings]
        return texts, stored.conversation_summary, [one.text for one in found.key_findings], searched

    before = await state()
    assert before[3] == 1
    forgotten = await act_on(store, wish, "forget")
    assert forgotten.state == "forgotten" and forgotten.until is not None
    assert await state() == (["Waiting helps"], "The user said: […] Then we went on.", ["Waiting helps"], 0)
    assert await store.findings.of_folder("/w") == []
    with pytest.raises(RagforgeError, match="forgotten already"):
        await act_on(store, forgotten, "pin")
    assert (await undo(store)).text == WISH
    assert await state() == before
    assert await store.findings.of_folder("/w") == [wish]


async def test_compacting_removes_what_was_forgotten_for_good(store: Store, graph: Graph) -> None:
    uuid = await imported(store, exchanges(3), workspace="/w")
    wish, kept = await a_wish(store, uuid), "Always sail at noon."
    await store.findings.add([new_finding(uuid, "/w", 1, "wish", kept)])
    items = [ContextItem(kind="finding", text=f"- {text}") for text in (WISH, kept)]
    section = ContextSection(name="wishes", title="Your wishes", items=items)
    record = ContextRecord(conversation_id=uuid, turn_index=3, created_at=now(), sections=[section])
    reply = (await store.turns.between(uuid, start=3, end=4))[0].messages[-1]
    await store.contexts.store(reply.uuid, msgspec.json.encode(record).decode(), 9, "digest")
    assert (await compact(graph)).forgotten == 0
    await act_on(store, wish, "forget")
    assert (await compact(graph)).forgotten == 1
    assert await texts_of(store) == [(kept, "valid")]
    [stored] = await store.contexts.of_turn(uuid, 3)
    assert [item.text for item in stored.record.sections[0].items] == ["", f"- {kept}"]
    for label in ("Finding", "Context", "Summary"):
        assert await rows_of(graph, f"MATCH (n:{label}) WHERE toString(n.items) CONTAINS 'getattr' RETURN n") == 0
    with pytest.raises(RagforgeError, match="no act"):
        await undo(store)
    # Its turn is read again, as after a retry.
    assert await store.findings.add([wish]) == []
    assert await texts_of(store) == [(kept, "valid")]
    [other] = await store.findings.of_folder("/w")
    edited = await act_on(store, other, "edit", WISH)
    assert (edited.text, edited.state) == (WISH, "valid"), "said by the user once more"


async def test_private_findings_are_found_by_their_own_conversation_only(store: Store) -> None:
    uuid = await imported(store, exchanges(2), workspace="/w")
    await store.conversations.update(uuid, private=True)
    wish = await a_wish(store, uuid)
    for asking, found in (("", []), (uuid, [wish])):
        assert await store.memory_acts.findings(None, None, current=True, asking=asking) == found
    with pytest.raises(NotFoundError):
        await store.memory_acts.find(wish.uuid)
    assert await store.memory_acts.find(wish.uuid[:9], asking=uuid) == wish
