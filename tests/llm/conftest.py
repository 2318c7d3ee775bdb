"""What the tests of the models room share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from ragforge_tui.llm import LiteLLMModel, ModelChoice, ModelPart, Retrying
from ragforge_tui.settings.schema import ModelSettings
from tests.support.openai_server import OpenAIServer

MakeModel = Callable[..., LiteLLMModel]


@pytest.fixture
async def server() -> AsyncIterator[OpenAIServer]:
    async with OpenAIServer(turns_only=False) as running:
        yield running


@pytest.fixture
def make(server: OpenAIServer) -> MakeModel:
    """Models that ask the scripted server."""

    def build(name: str = "openai/scripted", *, key: str = "", **settings: object) -> LiteLLMModel:
        choice = ModelChoice(
            name=name, origin="test", destination="the test server", api_base=server.base_url, api_key=key
        )
        return LiteLLMModel(choice, ModelSettings(name=name, **settings), backoff=0.01)  # type: ignore[arg-type]

    return build


async def collect(model: LiteLLMModel, text: str = "hello", **arguments: object) -> list[ModelPart]:
    """All parts of an answer, retries included."""
    messages = [{"role": "user", "content": text}]
    parts: list[ModelPart] = []
    async for part in model.stream(messages, tools=arguments.pop("tools", None), **arguments):  # type: ignore[arg-type]
        parts.append(part)
    return parts


def retries(parts: list[ModelPart]) -> list[Retrying]:
    return [part for part in parts if isinstance(part, Retrying)]
