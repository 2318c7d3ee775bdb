"""Which model is chosen, and what can be listed."""

from __future__ import annotations

import pytest

from ragforge_tui.llm import LiteLLMModel, OfflineAssistant, choose_model, list_models, make_model
from ragforge_tui.llm.litellm_loader import load_litellm
from ragforge_tui.llm.providers import PROVIDERS, LocalServer
from ragforge_tui.settings.schema import ModelSettings
from ragforge_tui.shared.errors import ModelError
from tests.support.openai_server import OpenAIServer

NOBODY = (LocalServer("Nobody", "http://127.0.0.1:9"),)


async def test_nothing_configured_and_nothing_found_is_offline() -> None:
    choice = await choose_model(ModelSettings(), {}, local_servers=NOBODY)
    assert (choice.name, choice.destination, choice.offline) == ("offline", "this machine", True)
    assert isinstance(make_model(choice, ModelSettings()), OfflineAssistant)


async def test_the_name_offline_wins_over_keys() -> None:
    choice = await choose_model(ModelSettings(name="offline"), {"OPENAI_API_KEY": "k"}, local_servers=NOBODY)
    assert choice.offline and choice.origin == "settings"


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.key)
async def test_a_key_in_the_environment_names_its_provider(provider: object) -> None:
    key = provider.key  # type: ignore[attr-defined]
    choice = await choose_model(ModelSettings(), {key: "secret-value"}, local_servers=NOBODY)
    assert key in choice.origin and "." in choice.destination and not choice.offline
    assert choice.name.startswith(f"{provider.prefix}/")  # type: ignore[attr-defined]
    assert "secret-value" not in repr(choice)
    table = load_litellm().model_cost
    entry = table.get(choice.name) or table[choice.name.rpartition("/")[2]]
    assert entry["supports_function_calling"] and not entry.get("deprecation_date")


async def test_a_named_model_shows_where_it_goes() -> None:
    cases = {
        ("anthropic/claude-sonnet-4-5", ""): "api.anthropic.com",
        ("gpt-5", ""): "api.openai.com",
        ("ollama/qwen3", ""): "this machine",
        ("openai/x", "http://127.0.0.1:9/v1"): "this machine",
        ("openai/x", "https://models.example.org/v1"): "models.example.org",
    }
    for (name, base), destination in cases.items():
        choice = await choose_model(ModelSettings(name=name, api_base=base), {})
        assert (choice.name, choice.api_base, choice.destination) == (name, base, destination)


async def test_an_address_moved_by_the_environment_is_named() -> None:
    env = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "https://proxy.example.org/v1"}
    assert (await choose_model(ModelSettings(), env)).destination == "proxy.example.org"


async def test_an_address_without_a_name_takes_its_first_model() -> None:
    async with OpenAIServer(models=["text-embedding-1", "qwen3", "other"]) as server:
        settings = ModelSettings(api_base=server.base_url, api_key="the-key-of-it")
        choice = await choose_model(settings, {"OPENAI_API_KEY": "k"})
        assert choice.name == "openai/qwen3" and choice.destination == "this machine"
        assert server.questions[0].headers["authorization"] == "Bearer the-key-of-it"
        listed = await list_models(settings, {}, local_servers=NOBODY)
        assert [model.name for model in listed] == ["openai/qwen3", "openai/other", "offline"]


async def test_an_address_where_no_one_answers_is_an_error() -> None:
    with pytest.raises(ModelError) as caught:
        await choose_model(ModelSettings(api_base="http://127.0.0.1:9/v1"), {})
    assert caught.value.info.kind == "no_network" and "127.0.0.1:9" in str(caught.value)


async def test_servers_of_this_machine_are_found() -> None:
    async with (
        OpenAIServer(ollama_models=["qwen3:8b"]) as ollama,
        OpenAIServer(models=["local"], turns_only=False) as other,
    ):
        servers = (
            *NOBODY,
            LocalServer("Ollama", f"http://127.0.0.1:{ollama.port}", "ollama"),
            LocalServer("llama.cpp", f"http://127.0.0.1:{other.port}"),
        )
        choice = await choose_model(ModelSettings(), {}, local_servers=servers)
        assert (choice.name, choice.origin) == ("ollama/qwen3:8b", "Ollama on this machine")
        listed = await list_models(ModelSettings(), {"GROQ_API_KEY": "k"}, local_servers=servers)
        assert [model.name for model in listed] == [
            "groq/openai/gpt-oss-120b",
            "ollama/qwen3:8b",
            "openai/local",
            "offline",
        ]
        choice = await choose_model(ModelSettings(), {}, local_servers=servers[2:])
        model = make_model(choice, ModelSettings())
        assert isinstance(model, LiteLLMModel)
        assert (await model.complete([{"role": "user", "content": "echo"}]))[0] == "echo"


async def test_something_else_on_the_port_is_passed_over() -> None:
    async with OpenAIServer(models=[]) as empty:
        servers = (LocalServer("Ollama", f"http://127.0.0.1:{empty.port}", "ollama"),)
        assert (await choose_model(ModelSettings(), {}, local_servers=servers)).offline
