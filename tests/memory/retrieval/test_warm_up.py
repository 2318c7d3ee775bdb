"""Warm-up of the search: it ends once a search is quick, and waits while something urgent is prepared."""

from __future__ import annotations

import asyncio

import pytest

from ragforge_tui.graph import Store
from ragforge_tui.memory.retrieval import Questions, Recall
from ragforge_tui.memory.retrieval import warm_up as module
from ragforge_tui.memory.retrieval.warm_up import MAX_SEARCHES, warm_up
from ragforge_tui.settings.schema import MemorySettings
from ragforge_tui.shared.pace import Pace
from tests.conftest import ONE_BACKEND
from tests.support.fake_embedder import FakeEmbedder
from tests.support.recall_conversations import ready, recall_of, talked

pytestmark = ONE_BACKEND
WORKSPACE = "/w"


def recall_without_turns(store: Store) -> Recall:
    async def opened() -> Store:
        return store

    questions = Questions(opened, FakeEmbedder(), MemorySettings().recall, WORKSPACE)
    return Recall(questions, MemorySettings(), conversation_id="", workspace=WORKSPACE)


async def zebras(store: Store) -> None:
    talk = (("Tell me of the zebra farm.", "It keeps forty zebras."),)
    await ready(recall_of(store, await talked(store, talk, title="Zebra farm", workspace=WORKSPACE), FakeEmbedder()))


async def test_it_ends_once_a_search_is_quick(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await zebras(store)
    monkeypatch.setattr(module, "QUICK_SECONDS", 60.0)
    assert await warm_up(recall_without_turns(store), store, WORKSPACE, Pace()) == 1
    monkeypatch.setattr(module, "QUICK_SECONDS", 0.0)
    assert await warm_up(recall_without_turns(store), store, WORKSPACE, Pace()) == MAX_SEARCHES


async def test_nothing_is_searched_in_a_folder_without_conversations(store: Store) -> None:
    await zebras(store)
    assert await warm_up(recall_without_turns(store), store, "/elsewhere", Pace()) == 0


async def test_it_waits_while_a_request_is_prepared(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await zebras(store)
    monkeypatch.setattr(module, "QUICK_SECONDS", 60.0)
    pace = Pace()
    with pace.urgent():
        warming = asyncio.create_task(warm_up(recall_without_turns(store), store, WORKSPACE, pace))
        done, _ = await asyncio.wait({warming}, timeout=0.5)
        assert not done
    assert await warming == 1
