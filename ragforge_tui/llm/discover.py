"""Choice of the model: from the settings, keys in the environment, servers on this machine, else offline.

The program never asks before the first prompt: something always answers. Used by the engine before the first turn
and for lists of models. It needs httpx (which LiteLLM brings), imported late.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec

from ragforge_tui.llm.base import OFFLINE_NAME, THIS_MACHINE, ChatModel, ModelChoice
from ragforge_tui.llm.client import LiteLLMModel
from ragforge_tui.llm.offline import OfflineAssistant
from ragforge_tui.settings.schema import ModelSettings
from ragforge_tui.shared.errors import ModelError

logger = logging.getLogger(__name__)

_LOCAL_TIMEOUT = 0.3
_NAMED_TIMEOUT = 5.0


class Provider(msgspec.Struct, frozen=True):
    """Provider whose key may be in the environment.

    Attributes:
        model: Default model, used if none is configured.
        base_variables: Variables in which LiteLLM looks for another address.
    """

    key: str
    prefix: str
    model: str
    host: str
    base_variables: tuple[str, ...] = ()


class LocalServer(msgspec.Struct, frozen=True):
    """Model server that may be running on this machine."""

    title: str
    url: str
    kind: str = "openai"
    """Format of its list of models: ``ollama`` or ``openai``."""


# In the order they are tried. LiteLLM's table lists each of the models without a date of withdrawal.
PROVIDERS: tuple[Provider, ...] = (
    Provider(
        "ANTHROPIC_API_KEY",
        "anthropic",
        "anthropic/claude-sonnet-5",
        "api.anthropic.com",
        ("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"),
    ),
    Provider("OPENAI_API_KEY", "openai", "openai/gpt-5.2", "api.openai.com", ("OPENAI_BASE_URL", "OPENAI_API_BASE")),
    Provider("GEMINI_API_KEY", "gemini", "gemini/gemini-pro-latest", "generativelanguage.googleapis.com"),
    Provider("MISTRAL_API_KEY", "mistral", "mistral/mistral-large-latest", "api.mistral.ai", ("MISTRAL_API_BASE",)),
    Provider(
        "OPENROUTER_API_KEY",
        "openrouter",
        "openrouter/openai/gpt-5.2",
        "openrouter.ai",
        ("OPENROUTER_API_BASE",),
    ),
    Provider("GROQ_API_KEY", "groq", "groq/openai/gpt-oss-120b", "api.groq.com", ("GROQ_API_BASE",)),
    Provider("DEEPSEEK_API_KEY", "deepseek", "deepseek/deepseek-v4-flash", "api.deepseek.com", ("DEEPSEEK_API_BASE",)),
    Provider("XAI_API_KEY", "xai", "xai/grok-4.3", "api.x.ai", ("XAI_API_BASE",)),
)
LOCAL_SERVERS: tuple[LocalServer, ...] = (
    LocalServer("Ollama", "http://127.0.0.1:11434", "ollama"),
    LocalServer("LM Studio", "http://127.0.0.1:1234"),
    LocalServer("llama.cpp", "http://127.0.0.1:8080"),
)


async def choose_model(
    settings: ModelSettings, env: Mapping[str, str], *, local_servers: Sequence[LocalServer] = LOCAL_SERVERS
) -> ModelChoice:
    """Return the model that answers; the offline assistant if nothing else does.

    Raises:
        ModelError: kind ``no_network`` if `settings.api_base` is given without a name and no server answers there.
    """
    if settings.name:
        return _named(settings, env)
    if settings.api_base:
        return await _first_at(settings)
    for provider in PROVIDERS:
        if env.get(provider.key):
            return ModelChoice(
                name=provider.model,
                origin=f"{provider.key} in the environment",
                destination=_destination(provider.model, "", env),
                api_key=settings.api_key,
            )
    for server, names in await _ask_local(local_servers):
        return _local_choice(server, names[0])
    return _offline("no model configured and none found")


async def list_models(
    settings: ModelSettings, env: Mapping[str, str], *, local_servers: Sequence[LocalServer] = LOCAL_SERVERS
) -> list[str]:
    """Return the models available with the settings and servers found; the offline assistant is always the last."""
    names: list[str] = [settings.name] if settings.name else []
    if settings.api_base:
        try:
            found = await _names(_models_url(settings.api_base), "openai", settings.api_key, _NAMED_TIMEOUT)
            names += [f"openai/{name}" for name in found]
        except ModelError as error:
            logger.info("No list of models: %s", error.info.what)
    names += [provider.model for provider in PROVIDERS if env.get(provider.key)]
    for server, found in await _ask_local(local_servers):
        names += [_local_choice(server, name).name for name in found]
    return list(dict.fromkeys([*(name for name in names if name != OFFLINE_NAME), OFFLINE_NAME]))


def make_model(
    choice: ModelChoice, settings: ModelSettings, live: Callable[[], ModelSettings] | None = None
) -> ChatModel:
    """Return the model for a choice, ready for requests; for `live` see `LiteLLMModel`."""
    return OfflineAssistant() if choice.offline else LiteLLMModel(choice, settings, live=live)


def _named(settings: ModelSettings, env: Mapping[str, str]) -> ModelChoice:
    if settings.name == OFFLINE_NAME:
        return _offline("settings")
    return ModelChoice(
        name=settings.name,
        origin="settings",
        destination=_destination(settings.name, settings.api_base, env),
        api_base=settings.api_base,
        api_key=settings.api_key,
    )


async def _first_at(settings: ModelSettings) -> ModelChoice:
    names = await _names(_models_url(settings.api_base), "openai", settings.api_key, _NAMED_TIMEOUT)
    if not names:
        raise ModelError(
            f"{settings.api_base} lists no model.", kind="unknown_model", todo="Name one with --model or model.name."
        )
    return ModelChoice(
        name=f"openai/{names[0]}",
        origin=f"the first model of {_host(settings.api_base)}",
        destination=_host(settings.api_base),
        api_base=settings.api_base,
        api_key=settings.api_key,
    )


def _offline(origin: str) -> ModelChoice:
    return ModelChoice(name=OFFLINE_NAME, origin=origin, destination=THIS_MACHINE, offline=True)


def _local_choice(server: LocalServer, name: str) -> ModelChoice:
    ollama = server.kind == "ollama"
    return ModelChoice(
        name=f"ollama/{name}" if ollama else f"openai/{name}",
        origin=f"{server.title} on this machine",
        destination=THIS_MACHINE,
        api_base=server.url if ollama else f"{server.url}/v1",
    )


def _destination(name: str, api_base: str, env: Mapping[str, str]) -> str:
    """Return where requests for this model go, in words."""
    if api_base:
        return _host(api_base)
    prefix = name.partition("/")[0] if "/" in name else _bare_prefix(name)
    for provider in PROVIDERS:
        if provider.prefix == prefix:
            moved = next((env[variable] for variable in provider.base_variables if env.get(variable)), "")
            return _host(moved) if moved else provider.host
    if prefix in ("ollama", "ollama_chat"):
        return _host(env.get("OLLAMA_API_BASE") or "http://127.0.0.1:11434")
    return prefix


def _bare_prefix(name: str) -> str:
    """Return the provider LiteLLM assumes for a name without one."""
    if name.startswith("claude"):
        return "anthropic"
    return "openai" if name.startswith(("gpt", "o1", "o3", "o4", "chatgpt")) else name


def _host(url: str) -> str:
    host = urlsplit(url if "://" in url else f"http://{url}").hostname or url
    return THIS_MACHINE if host in ("localhost", "::1") or host.startswith("127.") else host


def _models_url(api_base: str) -> str:
    return f"{api_base.rstrip('/')}/models"


async def _ask_local(servers: Sequence[LocalServer]) -> list[tuple[LocalServer, list[str]]]:
    """Return the servers that list at least one model, in the given order."""

    async def ask(server: LocalServer) -> list[str]:
        url = f"{server.url}/api/tags" if server.kind == "ollama" else f"{server.url}/v1/models"
        try:
            return await _names(url, server.kind, "", _LOCAL_TIMEOUT)
        except ModelError:
            # No server listening there is the usual case.
            return []

    found = await asyncio.gather(*(ask(server) for server in servers))
    return [(server, names) for server, names in zip(servers, found, strict=True) if names]


async def _names(url: str, kind: str, key: str, timeout: float) -> list[str]:
    """Return the names of the models a server lists.

    Raises:
        ModelError: The server cannot be reached or its answer is not a list of models.
    """
    import httpx

    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        # A proxy in the environment is for remote hosts; it would swallow requests to this machine.
        trust = _host(url) != THIS_MACHINE
        async with httpx.AsyncClient(timeout=timeout, trust_env=trust, follow_redirects=False) as client:
            response = await client.get(url, headers=headers)
            response.raise_for_status()
            listed = response.json()
    except httpx.HTTPStatusError as error:
        status = error.response.status_code
        raise ModelError(
            f"{_host(url)} does not list its models ({status}).",
            kind="bad_key" if status in (401, 403) else "provider",
            todo="Name the model with --model or model.name, and check the key.",
        ) from None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise ModelError(
            f"No model server answers at {url} ({type(error).__name__}).",
            kind="no_network",
            todo="Check model.api_base (RAGFORGE_API_BASE) and that the server runs.",
            transient=True,
        ) from None
    return _listed_names(listed, kind)


def _listed_names(listed: Any, kind: str) -> list[str]:
    list_key, name_key = ("models", "name") if kind == "ollama" else ("data", "id")
    entries = listed.get(list_key) if isinstance(listed, dict) else None
    if not isinstance(entries, list):
        return []
    names = [str(entry[name_key]) for entry in entries if isinstance(entry, dict) and entry.get(name_key)]
    # Servers list embedding models among the others; those cannot chat.
    return [name for name in names if "embed" not in name.lower()]
