"""Table of the providers and local servers that this program knows by name, and where words for a model go. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from ragforge_tui.llm.base import THIS_MACHINE
from ragforge_tui.shared.keys_in_use import usable_key
from ragforge_tui.shared.network import is_this_machine

ListFormat = Literal["openai", "anthropic", "gemini", "openrouter", "ollama"]
"""Form in which a server lists its models, and expects the key for it."""


class Provider(msgspec.Struct, frozen=True):
    """Provider whose key may be in the environment.

    Attributes:
        key: Variable of its key.
        model: Default model, used if none is configured.
        base_variables: Variables in which LiteLLM looks for another address.
        api: Address below which its list of models is.
        other_keys: Further variables in which LiteLLM looks for a key.
    """

    key: str
    prefix: str
    model: str
    host: str
    base_variables: tuple[str, ...] = ()
    title: str = ""
    api: str = ""
    kind: ListFormat = "openai"
    other_keys: tuple[str, ...] = ()

    def key_variable(self, env: Mapping[str, str]) -> str:
        """Return the variable that holds a key, empty for none."""
        return next((name for name in (self.key, *self.other_keys) if env.get(name, "").strip()), "")

    def key_in(self, env: Mapping[str, str]) -> str:
        """Return the key that a variable holds, empty for none.

        Raises:
            ModelError: kind ``bad_key``: it cannot be sent.
        """
        variable = self.key_variable(env)
        return usable_key(env[variable], variable) if variable else ""

    def address(self, env: Mapping[str, str]) -> str:
        """Return where its models are listed: its own address, or the one that the environment names instead."""
        moved = next((env[variable] for variable in self.base_variables if env.get(variable)), "")
        if not moved or self.kind != "anthropic":
            return moved or self.api
        return f"{moved.rstrip('/').removesuffix('/v1')}/v1"


class LocalServer(msgspec.Struct, frozen=True):
    """Model server that may be running on this machine."""

    title: str
    url: str
    kind: ListFormat = "openai"
    id: str = ""

    @property
    def api(self) -> str:
        """Address for requests."""
        return self.url if self.kind == "ollama" else f"{self.url}/v1"


# In the order they are tried. LiteLLM's table lists each of the models without a date of withdrawal.
PROVIDERS: tuple[Provider, ...] = (
    Provider(
        "ANTHROPIC_API_KEY",
        "anthropic",
        "anthropic/claude-sonnet-5",
        "api.anthropic.com",
        ("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"),
        "Anthropic (Claude)",
        "https://api.anthropic.com/v1",
        "anthropic",
        ("ANTHROPIC_AUTH_TOKEN",),
    ),
    Provider(
        "OPENAI_API_KEY",
        "openai",
        "openai/gpt-5.2",
        "api.openai.com",
        ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
        "OpenAI",
        "https://api.openai.com/v1",
    ),
    Provider(
        "GEMINI_API_KEY",
        "gemini",
        "gemini/gemini-pro-latest",
        "generativelanguage.googleapis.com",
        (),
        "Google (Gemini)",
        "https://generativelanguage.googleapis.com/v1beta",
        "gemini",
        ("GOOGLE_API_KEY",),
    ),
    Provider(
        "MISTRAL_API_KEY",
        "mistral",
        "mistral/mistral-large-latest",
        "api.mistral.ai",
        ("MISTRAL_API_BASE",),
        "Mistral",
        "https://api.mistral.ai/v1",
    ),
    Provider(
        "OPENROUTER_API_KEY",
        "openrouter",
        "openrouter/openai/gpt-5.2",
        "openrouter.ai",
        ("OPENROUTER_API_BASE",),
        "OpenRouter",
        "https://openrouter.ai/api/v1",
        "openrouter",
        ("OR_API_KEY",),
    ),
    Provider(
        "GROQ_API_KEY",
        "groq",
        "groq/openai/gpt-oss-120b",
        "api.groq.com",
        ("GROQ_API_BASE",),
        "Groq",
        "https://api.groq.com/openai/v1",
    ),
    Provider(
        "DEEPSEEK_API_KEY",
        "deepseek",
        "deepseek/deepseek-v4-flash",
        "api.deepseek.com",
        ("DEEPSEEK_API_BASE",),
        "DeepSeek",
        "https://api.deepseek.com",
    ),
    Provider("XAI_API_KEY", "xai", "xai/grok-4.3", "api.x.ai", ("XAI_API_BASE",), "xAI (Grok)", "https://api.x.ai/v1"),
)
LOCAL_SERVERS: tuple[LocalServer, ...] = (
    LocalServer("Ollama", "http://127.0.0.1:11434", "ollama", "ollama"),
    LocalServer("LM Studio", "http://127.0.0.1:1234", id="lmstudio"),
    LocalServer("llama.cpp", "http://127.0.0.1:8080", id="llamacpp"),
)
CUSTOM = "custom"
"""Id of any other server with the API of OpenAI."""


def provider_of(name: str) -> Provider | None:
    """Return the provider of a model by its name, None for one that is not in the table."""
    prefix = provider_prefix(name)
    return next((provider for provider in PROVIDERS if provider.prefix == prefix), None)


def provider_prefix(name: str) -> str:
    """Return the provider LiteLLM uses for a model's name."""
    prefix, slash, _ = name.partition("/")
    if slash:
        return prefix
    if name.startswith("claude"):
        return "anthropic"
    return "openai" if name.startswith(("gpt", "o1", "o3", "o4", "chatgpt")) else name


def destination_of(name: str, api_base: str, env: Mapping[str, str]) -> str:
    """Return where requests for this model go, in words."""
    if api_base:
        return host_of(api_base)
    if (provider := provider_of(name)) is not None:
        moved = next((env[variable] for variable in provider.base_variables if env.get(variable)), "")
        return host_of(moved) if moved else provider.host
    if (prefix := provider_prefix(name)) in ("ollama", "ollama_chat"):
        return host_of(env.get("OLLAMA_API_BASE") or "http://127.0.0.1:11434")
    return prefix


def host_of(url: str) -> str:
    """Return the host of an address, in words."""
    host = urlsplit(url if "://" in url else f"http://{url}").hostname or url
    return THIS_MACHINE if is_this_machine(host) else host
