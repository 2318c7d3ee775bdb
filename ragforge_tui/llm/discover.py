"""Choice of the model: from the settings, the last connection, keys in the environment, servers here, else offline.

The program never asks before the first prompt: something always answers. Used by the engine before the first turn
and for lists of models.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

import msgspec

from ragforge_tui.llm.base import OFFLINE_NAME, THIS_MACHINE, ChatModel, KnownServers, ModelChoice
from ragforge_tui.llm.client import LiteLLMModel
from ragforge_tui.llm.connections import Connection, Connections
from ragforge_tui.llm.listing import list_names
from ragforge_tui.llm.offline import OfflineAssistant
from ragforge_tui.llm.providers import (
    LOCAL_SERVERS,
    PROVIDERS,
    LocalServer,
    Provider,
    destination_of,
    host_of,
    provider_of,
)
from ragforge_tui.settings.schema import ModelSettings
from ragforge_tui.shared.errors import ModelError

logger = logging.getLogger(__name__)

_LOCAL_TIMEOUT = 0.3
NAMED_TIMEOUT = 5.0


class ListedModel(msgspec.Struct, frozen=True):
    """A model that can be chosen.

    Attributes:
        name: As LiteLLM names it.
        provider: The connection it is chosen from, with its `url`; empty if the name says it all.
    """

    name: str
    provider: str = ""
    url: str = ""


async def choose_model(
    settings: ModelSettings,
    env: Mapping[str, str],
    *,
    connections: Connections | None = None,
    local_servers: Sequence[LocalServer] = LOCAL_SERVERS,
) -> ModelChoice:
    """Return the model that answers; the offline assistant if nothing else does.

    Args:
        connections: Addresses and keys that the user stored; None to use none.

    Raises:
        ModelError: kind ``no_network`` if `settings.api_base` is given without a name and no server answers there;
            ``bad_key`` if the keyring does not return a stored key.
    """
    if settings.name:
        return await _named(settings, env, connections)
    if settings.api_base:
        return await _first_at(settings)
    if connections is not None and (last := connections.last()) is not None:
        named = msgspec.structs.replace(settings, name=last.model, api_base=last.url)
        chosen = await _named(named, env, connections)
        return msgspec.structs.replace(chosen, origin="chosen last with /connect or /model")
    for provider in PROVIDERS:
        if env.get(provider.key, "").strip():
            return ModelChoice(
                name=provider.model,
                origin=f"{provider.key} in the environment",
                destination=destination_of(provider.model, "", env),
                api_key=settings.api_key,
            )
    if connections is not None:
        for provider in PROVIDERS:
            if (stored := connections.get(provider.prefix, "")) is not None and stored.kept_in:
                return await _named(msgspec.structs.replace(settings, name=provider.model), env, connections)
    for server, names in await ask_local(local_servers):
        return _local_choice(server, names[0])
    return _offline("no model configured and none found")


async def list_models(
    settings: ModelSettings,
    env: Mapping[str, str],
    *,
    connections: Connections | None = None,
    local_servers: Sequence[LocalServer] = LOCAL_SERVERS,
) -> list[ListedModel]:
    """Return the models available with settings, connections and servers; the offline assistant is always the last."""
    found: list[ListedModel] = [ListedModel(settings.name)] if settings.name else []
    if settings.api_base:
        try:
            names = await list_names(settings.api_base, "openai", settings.api_key, NAMED_TIMEOUT)
            found += [ListedModel(f"openai/{name}") for name in names]
        except ModelError as error:
            logger.info("No list of models: %s", error.info.what)
    found += [ListedModel(provider.model) for provider in PROVIDERS if env.get(provider.key, "").strip()]
    if connections is not None:
        listed = await asyncio.gather(*(_connected(one, connections, env) for one in connections.all()))
        found += [model for models in listed for model in models]
    for server, names in await ask_local(local_servers):
        found += [ListedModel(model_name(server.id or server.kind, name), server.id, server.api) for name in names]
    by_name: dict[str, ListedModel] = {}
    for model in found:
        if model.name != OFFLINE_NAME:
            by_name.setdefault(model.name, model)
    return [*by_name.values(), ListedModel(OFFLINE_NAME)]


async def _connected(connection: Connection, connections: Connections, env: Mapping[str, str]) -> list[ListedModel]:
    """Return the models of a connection; only the one chosen last if its server does not list them."""
    try:
        names = await connection_names(connection, connections, env)
    except ModelError as error:
        logger.info("No list of models: %s", error.info.what)
        names = [connection.model] if connection.model else []
    return [ListedModel(name, connection.provider, connection.url) for name in names]


async def connection_names(connection: Connection, connections: Connections, env: Mapping[str, str]) -> list[str]:
    """Return the full names of the models that the server of a connection lists.

    Raises:
        ModelError: The server or the keyring does not answer, or the key is refused.
    """
    provider = next((one for one in PROVIDERS if one.prefix == connection.provider), None)
    if provider is None:
        key, api = await connections.key(connection), connection.url
    else:
        key, api = provider.key_in(env) or await connections.key(connection), provider.address(env)
    return await server_names(connection.provider, api, key)


async def server_names(provider_id: str, api: str, key: str, seconds: float = NAMED_TIMEOUT) -> list[str]:
    """Return the full names of the models that a provider, or a server of a kind, lists at an address.

    Raises:
        ModelError: The server does not answer, or refuses the key.
    """
    kinds = {one.prefix: one.kind for one in PROVIDERS} | {one.id: one.kind for one in LOCAL_SERVERS}
    names = await list_names(api, kinds.get(provider_id, "openai"), key, seconds)
    return [model_name(provider_id, name) for name in names]


def model_name(provider_id: str, name: str) -> str:
    """Return how LiteLLM names a model of a provider, or of a server with the API of OpenAI."""
    known = {"ollama"} | {one.prefix for one in PROVIDERS}
    return f"{provider_id if provider_id in known else 'openai'}/{name}"


def make_model(
    choice: ModelChoice,
    settings: ModelSettings,
    live: Callable[[], ModelSettings] | None = None,
    known: KnownServers | None = None,
) -> ChatModel:
    """Return the model for a choice, ready for requests; for `live` and `known` see `LiteLLMModel`."""
    return OfflineAssistant() if choice.offline else LiteLLMModel(choice, settings, live=live, known=known)


async def _named(settings: ModelSettings, env: Mapping[str, str], connections: Connections | None) -> ModelChoice:
    if settings.name == OFFLINE_NAME:
        return _offline("settings")
    base, key, origin = settings.api_base, settings.api_key, "settings"
    if not key and connections is not None:
        stored = _stored_for(settings, env, connections)
        if stored is not None:
            base, key = stored.url or base, await connections.key(stored)
            origin = f"connected; its key is in {connections.place(stored)}" if stored.kept_in else "connected"
    return ModelChoice(
        name=settings.name,
        origin=origin,
        destination=destination_of(settings.name, base, env),
        api_base=base,
        api_key=key,
    )


def _stored_for(settings: ModelSettings, env: Mapping[str, str], connections: Connections) -> Connection | None:
    """Return the connection whose address and key serve a model; None if the settings or the environment do."""
    if settings.api_base:
        return next((one for one in connections.all() if one.url == settings.api_base), None)
    provider = provider_of(settings.name)
    if provider is not None and provider.key_variable(env):
        return None
    return connections.for_model(settings.name)


def missing_key(choice: ModelChoice, env: Mapping[str, str]) -> Provider | None:
    """Return the provider of a model whose key is neither stored nor configured; None if nothing is missing."""
    if choice.offline or choice.api_base or choice.api_key:
        return None
    provider = provider_of(choice.name)
    return provider if provider is not None and not provider.key_variable(env) else None


async def _first_at(settings: ModelSettings) -> ModelChoice:
    names = await list_names(settings.api_base, "openai", settings.api_key, NAMED_TIMEOUT)
    if not names:
        raise ModelError(
            f"{settings.api_base} lists no model.", kind="unknown_model", todo="Name one with --model or model.name."
        )
    return ModelChoice(
        name=f"openai/{names[0]}",
        origin=f"the first model of {host_of(settings.api_base)}",
        destination=host_of(settings.api_base),
        api_base=settings.api_base,
        api_key=settings.api_key,
    )


def _offline(origin: str) -> ModelChoice:
    return ModelChoice(name=OFFLINE_NAME, origin=origin, destination=THIS_MACHINE, offline=True)


def _local_choice(server: LocalServer, name: str) -> ModelChoice:
    return ModelChoice(
        name=model_name(server.id or server.kind, name),
        origin=f"{server.title} on this machine",
        destination=THIS_MACHINE,
        api_base=server.api,
    )


async def ask_local(servers: Sequence[LocalServer] = LOCAL_SERVERS) -> list[tuple[LocalServer, list[str]]]:
    """Return the servers of this machine that list at least one model, in the given order."""

    async def ask(server: LocalServer) -> list[str]:
        try:
            return await list_names(server.api, server.kind, "", _LOCAL_TIMEOUT)
        except ModelError:
            # No server listening there is the usual case.
            return []

    found = await asyncio.gather(*(ask(server) for server in servers))
    return [(server, names) for server, names in zip(servers, found, strict=True) if names]
