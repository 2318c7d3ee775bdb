"""Examples of the project's specification load, or the error tells what to write instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ragforge_tui.settings.load import load
from ragforge_tui.settings.schema import MemorySettings
from ragforge_tui.shared.errors import ConfigError

YAML_EXAMPLE = """
agent:
  memory:
    enabled: true
    max_context_messages: 20
    summarization:
      enabled: true
      every_n_messages: 10
    embeddings:
      enabled: true
      model: text-embedding-004
      dimension: 768
    persistence:
      type: neo4j  # ou 'files'
      auto_save: true
"""
AGENT_OPTIONS = {
    "maxContextMessages": 20,
    "contextStrategy": "relevant",
    "enableSummarization": True,
    "summarizeEvery": 9,
    "embedMessages": True,
    "exportToFiles": True,
    "exportPath": "./conversations",
    "exportFormat": "json",
    "exportOnEveryMessage": True,
}
CONTEXT_OPTIONS = {
    "summarizeEveryNChars": 8000,
    "recentContextMaxChars": 5000,
    "recentContextMaxTurns": 10,
    "ragMaxSummaries": 4,
    "ragMinScore": 0.7,
    "ragLevelBoost": {1: 1.0, 2: 1.1, 3: 1.2},
    "ragRecencyBoost": True,
    "ragRecencyDecayDays": 7,
}


def memory(folder: Path, text: str) -> MemorySettings:
    """The memory's settings of a file with this text."""
    file = folder / "config.yaml"
    file.write_text(text)
    return load(config_file=str(file), workspace=str(folder), env={}).settings.agent.memory


def options(folder: Path, values: dict[str, Any]) -> MemorySettings:
    return memory(folder, yaml.safe_dump({"agent": {"memory": values}}))


def test_the_yaml_example(tmp_path: Path) -> None:
    loaded = memory(tmp_path, YAML_EXAMPLE)
    assert (loaded.max_context_messages, loaded.summarization.every_turns) == (20, 5)
    assert (loaded.embeddings.model, loaded.embeddings.dimension) == ("text-embedding-004", 768)
    assert loaded.persistence.type == "graph"
    assert memory(tmp_path, YAML_EXAMPLE.replace("neo4j", "files")).persistence.type == "hybrid"


def test_the_options_of_its_agent(tmp_path: Path) -> None:
    loaded = options(tmp_path, AGENT_OPTIONS)
    assert (loaded.max_context_messages, loaded.recall.strategy) == (20, "relevant")
    assert (loaded.summarization.every_turns, loaded.embeddings.enabled) == (5, True)
    assert (loaded.export.enabled, loaded.export.path, loaded.export.format) == (True, "./conversations", "json")


def test_the_options_of_its_context(tmp_path: Path) -> None:
    loaded = options(tmp_path, CONTEXT_OPTIONS)
    assert (loaded.summarization.every_chars, loaded.summarization.level_chars) == (8000, 8000)
    assert (loaded.recent.max_chars, loaded.recent.max_turns) == (5000, 10)
    recall = loaded.recall
    assert (recall.max_summaries, recall.min_score, recall.recency_boost) == (4, 0.7, 0.5)
    assert recall.level_boost == {1: 1.0, 2: 1.1, 3: 1.2}
    assert options(tmp_path, {"ragRecencyBoost": False}).recall.recency_boost == 0.0


def test_the_options_of_its_summarizer(tmp_path: Path) -> None:
    loaded = options(tmp_path, {"maxTurnsBeforeSummarize": 7, "maxCharsBeforeSummarizeSummaries": 9000})
    assert (loaded.summarization.every_turns, loaded.summarization.level_chars) == (7, 9000)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"embeddingProvider": "x"}, "agent.memory.embeddings.model"),
        ({"summarizeEvery": "often"}, "every_turns: expected a whole number"),
        ({"persistence": {"type": "sqlite"}}, "expected one of graph, hybrid"),
        ({"ragMaxSummaries": 4, "recall": {"max_summaries": 5}}, "set twice"),
        ({"ragMaxSumaries": 4}, "ragMaxSumaries is not a setting"),
    ],
)
def test_unknown_settings_are_reported(tmp_path: Path, values: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        options(tmp_path, values)
    assert said in str(caught.value)
