"""Rehearsed questions: as many as it takes until an answer is quick, and only while nothing urgent happens."""

from __future__ import annotations

import asyncio

import pytest

from ragforge_tui.graph import Store
from ragforge_tui.memory.recall import Recall, rehearsal
from ragforge_tui.memory.recall.rehearsal import MOST_QUESTIONS, rehearse
from ragforge_tui.settings.schema import MemorySettings
from ragforge_tui.shared.pace import Pace
from tests.conftest import ONE_BACKEND
from tests.support.fake_embedder import FakeEmbedder
from tests.support.recall_conversations import ready, recall_of, talked

pytestmark = ONE_BACKEND
WORKSPACE = "/w"


def of_nobody(store: Store) -> Recall:
    async def opened() -> Store:
        return store

    return Recall(opened, MemorySettings(), FakeEmbedder(), conversation_id="", workspace=WORKSPACE)


async def zebras(store: Store) -> None:
    talk = (("Tell me of the zebra farm.", "It keeps forty zebras."),)
    await ready(recall_of(store, await talked(store, talk, title="Zebra farm", workspace=WORKSPACE), FakeEmbedder()))


async def test_it_ends_once_an_answer_is_quick(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await zebras(store)
    monkeypatch.setattr(rehearsal, "QUICK_SECONDS", 60.0)
    assert await rehearse(of_nobody(store), store, WORKSPACE, Pace()) == 1
    monkeypatch.setattr(rehearsal, "QUICK_SECONDS", 0.0)
    assert await rehearse(of_nobody(store), store, WORKSPACE, Pace()) == MOST_QUESTIONS


async def test_it_asks_nothing_where_there_is_nothing_to_find(store: Store) -> None:
    await zebras(store)
    assert await rehearse(of_nobody(store), store, "/elsewhere", Pace()) == 0


async def test_it_waits_while_a_request_is_prepared(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await zebras(store)
    monkeypatch.setattr(rehearsal, "QUICK_SECONDS", 60.0)
    pace = Pace()
    with pace.urgent():
        rehearsed = asyncio.create_task(rehearse(of_nobody(store), store, WORKSPACE, pace))
        done, _ = await asyncio.wait({rehearsed}, timeout=0.5)
        assert not done
    assert await rehearsed == 1
