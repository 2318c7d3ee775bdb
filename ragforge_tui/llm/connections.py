"""Providers that the user connected with /connect: their addresses, their keys, and the model chosen last.

A key is in the system's keyring, or, where there is none, in this file, which only its owner can read. The library for
keyrings is imported when a key is stored or needed. A key in the environment or the settings precedes a stored one, so
it is not read then.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from ragforge_tui.llm.providers import provider_prefix
from ragforge_tui.settings.schema import Paths
from ragforge_tui.shared.errors import ModelError, RagforgeError
from ragforge_tui.shared.files import STATE_BYTES, atomic_write, locked, make_private, read_regular
from ragforge_tui.shared.keys_in_use import usable_key

log = logging.getLogger(__name__)

FILE = "connections.json"
KEYRING_SECONDS = 60.0
"""Longest wait for a keyring, which may ask the user to unlock it."""

T = TypeVar("T")


class Connection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One provider or server.

    Attributes:
        provider: Id of a provider or of a kind of local server, or ``custom``.
        url: Address of a server; empty for a provider's own.
        model: The model chosen last, as it is named in LiteLLM; empty for none.
        kept_in: Where its key is; empty for none.
        key: The key, if it is kept in the file.
    """

    provider: str
    url: str = ""
    model: str = ""
    kept_in: Literal["", "keyring", "file"] = ""
    key: str = ""

    def __repr__(self) -> str:
        return f"Connection({self.provider!r}, {self.url!r}, {self.model!r}, kept_in={self.kept_in!r})"

    @property
    def account(self) -> str:
        """Its name in the keyring."""
        return f"{self.provider} {self.url}".strip()

    def of(self, provider: str, url: str) -> bool:
        """Return whether it is the one of this provider at this address."""
        return (self.provider, self.url) == (provider, url)


class _Contents(msgspec.Struct):
    connections: list[Connection] = []


class Connections:
    """The stored connections, the one used last first. Whatever may wait for a keyring is a coroutine."""

    def __init__(self, paths: Paths) -> None:
        self.file = Path(paths.state, FILE)
        # Under RAGFORGE_HOME everything is apart from the user's own, keys too.
        own = Path(paths.data).parent == Path(paths.config)
        self._service = f"ragforge-chat {paths.config}" if own else "ragforge-chat"

    def all(self) -> list[Connection]:
        """Return all connections; none if the file is missing or not to be used."""
        try:
            return msgspec.json.decode(read_regular(self.file, STATE_BYTES), type=_Contents).connections
        except FileNotFoundError:
            return []
        except (OSError, msgspec.MsgspecError) as error:
            log.warning("%s cannot be used: %s", self.file, type(error).__name__)
            return []

    def get(self, provider: str, url: str) -> Connection | None:
        """Return the connection of a provider at an address."""
        return next((one for one in self.all() if one.of(provider, url)), None)

    def for_model(self, name: str) -> Connection | None:
        """Return the connection that a model's name leads to: the one it was chosen from, else its provider's."""
        stored, prefix = self.all(), provider_prefix(name)
        chosen = (one for one in stored if one.model == name)
        own = (one for one in stored if not one.url and one.provider == prefix)
        return next(chosen, None) or next(own, None)

    def last(self) -> Connection | None:
        """Return the connection whose model was chosen last."""
        return next((one for one in self.all() if one.model), None)

    def choose(self, provider: str, url: str, model: str) -> None:
        """Remember the model that was chosen from a connection; blocks.

        Raises:
            RagforgeError: It cannot be written.
        """
        old = self.get(provider, url) or Connection(provider=provider, url=url)
        self._put(msgspec.structs.replace(old, model=model))

    async def key(self, connection: Connection) -> str:
        """Return the stored key, empty if there is none.

        Raises:
            ModelError: The keyring does not return it, or it cannot be sent.
        """
        if connection.kept_in != "keyring":
            return usable_key(connection.key, str(self.file))
        try:
            key = await _apart(lambda: _keyring().get_password(self._service, connection.account))
        except Exception as error:
            log.warning("the keyring failed: %s", type(error).__name__)
            raise ModelError(
                f"The system keyring did not return the key of {connection.provider}.",
                kind="bad_key",
                todo="Unlock it, or enter the key again with /connect.",
            ) from None
        return usable_key(str(key or ""), f"the system keyring for {connection.provider}")

    async def save(self, provider: str, url: str, key: str) -> Connection:
        """Store a connection with its key, in the keyring if there is one that works, and return it.

        Raises:
            RagforgeError: It cannot be written.
        """
        old = self.get(provider, url) or Connection(provider=provider, url=url)
        if not key:
            await asyncio.to_thread(self._put, old)
            return old
        kept = await self._keep_in_keyring(old.account, key)
        fresh = msgspec.structs.replace(old, kept_in="keyring" if kept else "file", key="" if kept else key)
        await asyncio.to_thread(self._put, fresh)
        return fresh

    async def remove(self, connection: Connection) -> None:
        """Remove a connection with its key; its entry stays if the keyring does not let go of the key.

        Raises:
            RagforgeError: The keyring failed, or the file cannot be written.
        """
        if connection.kept_in == "keyring":
            try:
                await _apart(lambda: _delete(self._service, connection.account))
            except Exception as error:
                log.warning("the keyring failed: %s", type(error).__name__)
                raise RagforgeError(
                    "The system keyring did not remove the key.", kept="Nothing was changed.", todo="Unlock it first."
                ) from None
        same = connection.provider, connection.url
        await asyncio.to_thread(self._change, lambda stored: [one for one in stored if not one.of(*same)])

    def place(self, connection: Connection) -> str:
        """Return where the key of a connection is, in words; empty if it has none."""
        return {"": "", "keyring": "the system keyring", "file": f"{self.file}, readable by you alone"}[
            connection.kept_in
        ]

    async def _keep_in_keyring(self, account: str, key: str) -> bool:
        """Store a key; return whether the keyring gives it back, which some only pretend."""

        def keep() -> bool:
            keyring = _keyring()
            if keyring.get_keyring().priority <= 0:
                return False
            keyring.set_password(self._service, account, key)
            return bool(keyring.get_password(self._service, account) == key)

        try:
            return await _apart(keep)
        except Exception as error:
            log.info("no keyring to use: %s", type(error).__name__)
            return False

    def _put(self, connection: Connection) -> None:
        """Write a connection as the first one."""
        same = connection.provider, connection.url
        self._change(lambda stored: [connection, *(one for one in stored if not one.of(*same))])

    def _change(self, change: Callable[[list[Connection]], list[Connection]]) -> None:
        try:
            make_private(self.file.parent)
            with locked(self.file.with_suffix(".lock")):
                data = msgspec.json.encode(_Contents(change(self.all())))
                atomic_write(self.file, data, mode=0o600)
        except OSError as error:
            raise RagforgeError(
                f"{self.file} cannot be written: {error.strerror}.", kept="Nothing was changed.", kind="storage"
            ) from error


def _keyring() -> Any:
    import keyring  # finds its backends among all installed packages, which takes a while

    return keyring


def _delete(service: str, account: str) -> None:
    keyring = _keyring()
    if keyring.get_password(service, account) is not None:
        keyring.delete_password(service, account)


async def _apart(work: Callable[[], T]) -> T:
    """Return the result of a blocking call, made in a thread that nothing waits for at the end of the process.

    Raises:
        TimeoutError: It took too long.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def finish(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]  # there is a result unless there is an error

    def run() -> None:
        result: T | None = None
        failure: Exception | None = None
        try:
            result = work()
        except Exception as error:
            failure = error
        with suppress(RuntimeError):  # the program ended meanwhile
            loop.call_soon_threadsafe(finish, result, failure)

    threading.Thread(target=run, daemon=True, name="keyring").start()
    async with asyncio.timeout(KEYRING_SECONDS):
        return await future
