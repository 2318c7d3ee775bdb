"""The window that a model's server states."""

from __future__ import annotations

from typing import Any

import pytest

from ragforge_tui.llm import ModelChoice, stated_window
from tests.support.openai_server import OpenAIServer


def choice(name: str, base: str) -> ModelChoice:
    return ModelChoice(name=name, origin="settings", destination="this machine", api_base=base, api_key="the-key")


VLLM = {"data": [{"id": "other", "max_model_len": 4_096}, {"id": "org/qwen", "max_model_len": 65_536}]}
LM_STUDIO = {"data": [{"id": "qwen", "max_context_length": 131_072, "loaded_context_length": 16_384}]}
NOT_LOADED = {"data": [{"id": "qwen", "state": "not-loaded", "max_context_length": 131_072}]}
LENGTHS = {"qwen3.context_length": 262_144, "qwen3.embedding_length": 4_096}


@pytest.mark.parametrize(
    ("name", "path", "answer", "window"),
    [
        ("openai/org/qwen", "/v1/models", VLLM, 65_536),
        ("openai/qwen", "/props", {"default_generation_settings": {"n_ctx": 12_288}}, 12_288),
        ("openai/qwen", "/api/v0/models", LM_STUDIO, 16_384),
        # It will be loaded with a size of the server's choice: no more than is assumed anyway.
        ("openai/qwen", "/api/v0/models", NOT_LOADED, 32_768),
        ("ollama/qwen", "/api/show", {"parameters": "top_k 20\nnum_ctx    65536", "model_info": LENGTHS}, 65_536),
        ("ollama/qwen", "/api/show", {"model_info": {"qwen3.context_length": 8_192}}, 8_192),
        ("ollama/qwen", "/api/show", {"model_info": LENGTHS}, 32_768),
        ("openai/qwen", "/props", {"default_generation_settings": "none"}, None),
        ("openai/qwen", "/api/v0/models", {"data": [{"id": "qwen", "max_context_length": "many"}]}, None),
        ("openai/qwen", "/api/show", {"model_info": ["none"]}, None),
        ("openai/qwen", "/v1/models", {"data": [{"id": "qwen", "max_model_len": 0}]}, None),
    ],
)
async def test_each_kind_of_server_is_understood(name: str, path: str, answer: dict[str, Any], window: int) -> None:
    async with OpenAIServer() as server:
        server.about[path] = answer
        base = server.base_url.removesuffix("/v1") if name.startswith("ollama") else server.base_url
        assert await stated_window(choice(name, base), {}) == window
        assert {request.headers["authorization"] for request in server.questions} == {"Bearer the-key"}


async def test_a_server_that_is_not_there_states_nothing() -> None:
    assert await stated_window(choice("openai/qwen", "http://127.0.0.1:9/v1"), {}) is None


async def test_a_provider_with_an_address_of_its_own_is_not_asked() -> None:
    assert await stated_window(choice("openai/gpt-5", ""), {}) is None
    async with OpenAIServer() as server:
        moved = {"OPENAI_BASE_URL": server.base_url}
        server.about["/v1/models"] = {"data": [{"id": "gpt-5", "max_model_len": 9_000}]}
        assert await stated_window(choice("openai/gpt-5", ""), moved) == 9_000
