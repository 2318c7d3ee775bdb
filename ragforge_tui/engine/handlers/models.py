"""Requests about providers of models: which there are, and connecting and disconnecting them."""

from __future__ import annotations

from ragforge_tui.engine.registry import EngineContext, handles
from ragforge_tui.shared.requests import models as requests
from ragforge_tui.shared.wire import Empty


@handles(requests.ListProviders)
async def list_providers(engine: EngineContext, _: requests.ListProviders) -> list[requests.ProviderInfo]:
    return await engine.agent.services.providers.infos()


@handles(requests.ConnectProvider)
async def connect_provider(engine: EngineContext, request: requests.ConnectProvider) -> requests.Connected:
    return await engine.agent.services.providers.connect(request.provider, request.url, request.key)


@handles(requests.CancelConnect)
async def cancel_connect(engine: EngineContext, _: requests.CancelConnect) -> Empty:
    engine.agent.services.providers.cancel()
    return Empty()


@handles(requests.DisconnectProvider)
async def disconnect_provider(engine: EngineContext, request: requests.DisconnectProvider) -> str:
    return await engine.agent.services.providers.disconnect(request.provider, request.url)
