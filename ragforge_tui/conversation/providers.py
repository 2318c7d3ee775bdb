"""Providers as the user connects them: which there are, one request that checks a key, and where the key is stored.

Used by the requests of `/connect`; the model itself is chosen by `current_model`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from ragforge_tui.llm.connections import Connection, Connections
from ragforge_tui.llm.discover import ask_local, server_names
from ragforge_tui.llm.providers import CUSTOM, LOCAL_SERVERS, PROVIDERS, LocalServer, Provider, host_of
from ragforge_tui.shared.errors import ModelError, RagforgeError
from ragforge_tui.shared.keys_in_use import usable_key
from ragforge_tui.shared.requests.models import Connected, ProviderInfo

CHECK_SECONDS = 15.0
"""Longest wait for the answer to a key."""

T = TypeVar("T")


class ConnectCancelledError(RagforgeError):
    """The user left the dialog, or checked another key."""

    kind = "cancelled"


class ProviderAccess:
    """The providers that one agent can connect."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._check: asyncio.Task[list[str]] | None = None

    async def infos(self) -> list[ProviderInfo]:
        """Return all providers, with where their keys come from; the servers that answer here are marked."""
        running = {server.id for server, _ in await ask_local()}
        stored = self._connections.all()
        infos = [self._provider(provider) for provider in PROVIDERS]
        infos += [self._server(server, running=server.id in running) for server in LOCAL_SERVERS]
        infos += [
            ProviderInfo(
                id=CUSTOM,
                title=one.url,
                host=host_of(one.url),
                url=one.url,
                asks_url=True,
                needs_key=False,
                key_from=self._connections.place(one),
                stored=True,
            )
            for one in stored
            if one.provider == CUSTOM
        ]
        infos.append(ProviderInfo(id=CUSTOM, title="Any OpenAI-compatible server", asks_url=True, needs_key=False))
        return infos

    def _provider(self, provider: Provider) -> ProviderInfo:
        variable = provider.key_variable(os.environ)
        stored = self._connections.get(provider.prefix, "")
        place = self._connections.place(stored) if stored is not None else ""
        return ProviderInfo(
            id=provider.prefix,
            title=provider.title,
            host=provider.host,
            variable=provider.key,
            key_from=f"{variable} in the environment" if variable else place,
            stored=stored is not None,
        )

    def _server(self, server: LocalServer, *, running: bool) -> ProviderInfo:
        stored = next((one for one in self._connections.all() if one.provider == server.id), None)
        url = stored.url if stored is not None else server.api
        return ProviderInfo(
            id=server.id,
            title=server.title,
            host=host_of(url),
            url=url,
            asks_url=True,
            needs_key=False,
            key_from=self._connections.place(stored) if stored is not None else "",
            stored=stored is not None,
            running=running,
        )

    async def connect(self, provider_id: str, url: str, key: str) -> Connected:
        """Check a key, or that a server answers, with a request for its models; store what works.

        Raises:
            ModelError: The key was refused, or the server did not answer in time.
            ConnectCancelledError: It was cancelled.
            RagforgeError: The input is not complete, or the connection cannot be stored.
        """
        provider = next((one for one in PROVIDERS if one.prefix == provider_id), None)
        key = usable_key(key, "the form")
        url = "" if provider is not None else _address(url)
        stored = self._connections.get(provider_id, url)
        used = key
        if not key:
            used = provider.key_in(os.environ) if provider is not None else ""
            used = used or (await self._connections.key(stored) if stored else "")
        if provider is not None and not used:
            raise RagforgeError(f"{provider.title} needs a key.", todo="Paste it, then press Enter.")
        if provider is not None:
            names = await self._checked(server_names(provider_id, provider.address(os.environ), used, CHECK_SECONDS))
        else:
            url, names = await self._server_names(provider_id, url, used)
        if not names:
            raise ModelError(f"{host_of(url)} lists no model.", kind="unknown_model", todo="Load one there first.")
        return await self._stored(provider, provider_id, url, key, names)

    async def _stored(
        self, provider: Provider | None, provider_id: str, url: str, key: str, names: list[str]
    ) -> Connected:
        connection = await self._connections.save(provider_id, url, key)
        place = self._connections.place(connection)
        title = provider.title if provider is not None else url
        kept = f"{title} is connected."
        if key:
            kept = f"{title} accepted the key. It is stored in {place}."
            if connection.kept_in == "file":
                kept += " No system keyring works here."
        variable = provider.key_variable(os.environ) if provider is not None else ""
        if key and variable:
            kept += f" {variable} in the environment is used while it is set."
        return Connected(provider=provider_id, url=url, models=names, kept=kept)

    async def _server_names(self, provider_id: str, url: str, key: str) -> tuple[str, list[str]]:
        """Return the address that answers, with or without /v1, and the models there."""
        try:
            return url, await self._checked(server_names(provider_id, url, key, CHECK_SECONDS))
        except ModelError as error:
            if error.info.kind != "provider" or provider_id == "ollama" or url.endswith("/v1"):
                raise
        url = f"{url}/v1"
        return url, await self._checked(server_names(provider_id, url, key, CHECK_SECONDS))

    async def _checked(self, request: Coroutine[Any, Any, list[str]]) -> list[str]:
        """Return the answer to a check, in place of one that still waits."""
        self.cancel()
        task = self._check = asyncio.create_task(request)
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()
        if task.cancelled():
            raise ConnectCancelledError("The check was cancelled.", kept="Nothing was stored.")
        try:
            return task.result()
        except ModelError as error:
            todo = "Check it and paste it again." if error.info.kind == "bad_key" else "Check the address, then retry."
            error.info = msgspec.structs.replace(error.info, kept="Nothing was stored.", todo=todo)
            raise

    def cancel(self) -> None:
        """Cancel the check that still waits."""
        if self._check is not None:
            self._check.cancel()

    async def disconnect(self, provider_id: str, url: str) -> str:
        """Remove a connection with its key, and return what was removed.

        Raises:
            RagforgeError: There is none, or its key cannot be removed.
        """
        connection = self._connections.get(provider_id, url)
        if connection is None:
            raise RagforgeError("Nothing is stored for it.", todo="/connect lists what is.")
        place = self._connections.place(connection)
        await self._connections.remove(connection)
        provider = next((one for one in PROVIDERS if one.prefix == provider_id), None)
        title = provider.title if provider is not None else _title(connection)
        variable = provider.key_variable(os.environ) if provider is not None else ""
        told = f"The key of {title} was removed from {place}." if place else f"{title} was removed."
        return f"{told} {variable} in the environment is still used." if variable else told


def _title(connection: Connection) -> str:
    return next((one.title for one in LOCAL_SERVERS if one.id == connection.provider), connection.url)


def _address(url: str) -> str:
    """Return an address as it is stored.

    Raises:
        RagforgeError: It is none.
    """
    url = url.strip().rstrip("/").removesuffix("/chat/completions")
    url = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.query
    except ValueError:
        usable = False
    if not usable:
        raise RagforgeError("That is no address of a server.", todo="One looks like http://127.0.0.1:8000/v1.")
    if "@" in parts.netloc:
        raise RagforgeError("The address holds a password.", todo="Enter it as the key instead.")
    return url
