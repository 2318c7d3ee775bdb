"""Models that write summaries as a test wants them, and a process that summarises until it is killed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ragforge_tui.graph import Graph, GraphTarget, Store
from ragforge_tui.llm import LiteLLMModel, ModelChoice
from ragforge_tui.memory.summaries import Summarizer
from ragforge_tui.settings.schema import ModelSettings, Paths, SummarizationSettings
from ragforge_tui.shared.records import Usage
from tests.support.openai_server import Step
from tests.support.sizes import DIMENSION, HEAP_MB, LINGER

CONVERSATION_CHARS = 450
FINDINGS_CHARS = 150


def answer(turns: Sequence[int], **changes: Any) -> str:
    """A good answer to a request for a summary, `CONVERSATION_CHARS + FINDINGS_CHARS` characters of text."""
    body: dict[str, Any] = {
        "conversation_summary": f"The person asked about turn {turns[0]}, so I answered. ".ljust(
            CONVERSATION_CHARS, "x"
        ),
        "actions_summary": "",
        "key_findings": [{"text": f"{name} ".ljust(FINDINGS_CHARS // 3, "y"), "turns": [turns[0]]} for name in "abc"],
        "files_mentioned": [],
        "topics": [{"name": "Retry policy", "confidence": 0.9}, "Waiting"],
    }
    return json.dumps({**body, **changes})


class WritingModel:
    """A model that answers requests for summaries by a function."""

    name = "openai/writer"
    context_window = 32_000
    offline = False
    takes_reasoning = False
    takes_images = False
    destination = "nowhere"
    server = "nowhere"

    def __init__(self, write: Callable[[list[dict[str, Any]]], str]) -> None:
        self.write = write
        self.requests: list[list[dict[str, Any]]] = []

    async def complete(self, messages: list[dict[str, Any]], *, max_tokens: int | None = None) -> tuple[str, Usage]:
        self.requests.append(messages)
        await asyncio.sleep(0)
        return self.write(messages), Usage()

    def stream(self, messages: Any, *, tools: Any, cache_marks: Any = ()) -> Any:
        raise AssertionError("summaries are never streamed")


def scripted_model(base_url: str) -> LiteLLMModel:
    """A real client of the scripted server."""
    choice = ModelChoice(name="openai/scripted", origin="test", destination="the test server", api_base=base_url)
    return LiteLLMModel(choice, ModelSettings(name="openai/scripted", retries=0), backoff=0.01)


def steps_for(shape: Sequence[tuple[int, int, int]], **fields: Any) -> list[Step]:
    """Answers for exactly the summaries of this tree: (level, first turn, last turn), in any order."""
    steps = []
    for level, start, end in shape:
        below = [s for s in shape if s[0] == level - 1 and s[1] == start]
        match = f"Turn {start} (" if level == 1 else f"Turns {start} to {below[0][2]}:"
        cited = range(start, end + 1) if level == 1 else [start]
        steps.append(Step(when="plain", match=match, text=answer(list(cited)), chunk=2_000, **fields))
    return steps


class Run(msgspec.Struct):
    """What the process does."""

    target: GraphTarget
    paths: Paths
    conversation_id: str
    settings: SummarizationSettings
    base_url: str = ""


async def run(what: Run) -> None:
    """Make all that is due."""
    graph = await Graph.open(
        what.target, what.paths, heap_mb=HEAP_MB, linger_seconds=LINGER, embedding_dimension=DIMENSION
    )
    try:
        model = scripted_model(what.base_url) if what.base_url else None
        await Summarizer(Store(graph), what.settings, model, lambda event: None).run_due(what.conversation_id)
    finally:
        await graph.close()


def main(encoded: bytes) -> None:
    """Make all that is due in a process of its own, told by the JSON of a `Run`."""
    asyncio.run(run(msgspec.json.decode(encoded, type=Run)))
