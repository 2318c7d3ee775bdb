"""Valid settings that do less than a user may expect are remarked on."""

from __future__ import annotations

import pytest

from ragforge_tui.settings.check import remarks
from ragforge_tui.settings.schema import (
    AgentSettings,
    GraphSettings,
    MemorySettings,
    PersistenceSettings,
    Settings,
)


@pytest.mark.parametrize("uri", ["", "bolt://localhost:7687", "bolt://127.0.0.1:7687"])
def test_files_next_to_a_graph_on_this_machine_need_no_remark(uri: str) -> None:
    assert remarks(_hybrid(uri)) == []


def test_files_of_one_machine_for_a_graph_of_many_are_remarked_on() -> None:
    assert remarks(Settings(graph=GraphSettings(uri="neo4j+s://me:secret@graph.example.org"))) == []
    (said,) = remarks(_hybrid("neo4j+s://me:secret@graph.example.org"))
    assert "graph.example.org" in said and "other machines" in said
    assert "secret" not in said


def _hybrid(uri: str) -> Settings:
    memory = MemorySettings(persistence=PersistenceSettings(type="hybrid"))
    return Settings(graph=GraphSettings(uri=uri), agent=AgentSettings(memory=memory))
