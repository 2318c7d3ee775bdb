"""Findings that are stored and changed late: what the user decided meanwhile stays."""

from __future__ import annotations

import pytest

from ragforge_tui.graph import Graph, Store
from ragforge_tui.graph.store.findings import new_finding
from ragforge_tui.memory.findings.acts import act_on
from ragforge_tui.memory.findings.keeper import FindingKeeper, ModelChange
from ragforge_tui.shared.finding_records import FORGOTTEN_BY_USER, KeptFinding
from ragforge_tui.shared.memory_acts import ActKind
from ragforge_tui.shared.records import Finding
from tests.support.turns import exchanges, imported

FLOATS = "Amounts are stored as floats."


@pytest.fixture
def store(graph: Graph) -> Store:
    return Store(graph)


async def decided(store: Store, uuid: str) -> KeptFinding:
    [stored] = await store.findings.add([new_finding(uuid, "/w", 1, "decision", FLOATS)])
    return stored


async def keeper_of(store: Store, uuid: str) -> FindingKeeper:
    return FindingKeeper(store, await store.conversations.get(uuid))


@pytest.mark.parametrize("new", [None, Finding(text="Amounts are stored as cents.", turns=[3], kind="decision")])
@pytest.mark.parametrize(("act", "text"), [("forget", ""), ("edit", "Amounts are stored as decimals.")])
async def test_a_change_that_a_model_reports_late_leaves_what_the_user_decided(
    store: Store, act: ActKind, text: str, new: Finding | None
) -> None:
    uuid = await imported(store, exchanges(3), workspace="/w")
    shown = await decided(store, uuid)
    await act_on(store, shown, act, text)
    before = await store.findings.of_conversation(uuid)
    await (await keeper_of(store, uuid)).noted([], "model", 3, [ModelChange(shown.uuid, 3, new)])
    assert await store.findings.of_conversation(uuid) == before
    forgotten = [one for one in before if one.uuid == shown.uuid and one.closed_by == FORGOTTEN_BY_USER]
    assert len(forgotten) == (act == "forget")
