"""Requests about providers of models: which there are, and connecting and disconnecting them."""

from __future__ import annotations

import msgspec

from ragforge_tui.shared.wire import Empty, Request


class ProviderInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A provider, or a kind of server, that can be connected.

    Attributes:
        host: Where words go.
        url: Suggested address of a server, empty where the user has to name one; see `asks_url`.
        asks_url: Whether its address is the user's to say.
        needs_key: Whether there is no use without a key; servers may want one or not.
        variable: The provider's own variable for a key.
        key_from: Where its key comes from now, in words; empty for none.
        stored: Whether it has a stored connection.
        running: Whether a server of this kind answers on this machine.
    """

    id: str
    title: str
    host: str = ""
    url: str = ""
    asks_url: bool = False
    needs_key: bool = True
    variable: str = ""
    key_from: str = ""
    stored: bool = False
    running: bool = False


class ListProviders(Request[list[ProviderInfo]]):
    """List the providers and servers that can be connected, with where their keys come from."""


class Connected(msgspec.Struct, frozen=True, kw_only=True):
    """A provider that accepted a key, or a server that answered.

    Attributes:
        url: Address as it is stored, empty for a provider's own.
        models: Names of its models.
        kept: What was stored where, as a sentence.
    """

    provider: str
    url: str = ""
    models: list[str]
    kept: str


class ConnectProvider(Request[Connected]):
    """Check a key with one request, and store it. An earlier check that still waits is cancelled.

    Attributes:
        url: Address of a server; empty for a provider's own.
        key: Empty: the one that is known already, or none.
    """

    provider: str
    url: str = ""
    key: str = ""

    def __repr__(self) -> str:
        return f"ConnectProvider(provider={self.provider!r}, url={self.url!r})"


class CancelConnect(Request[Empty]):
    """Cancel the check that still waits; nothing is stored."""


class DisconnectProvider(Request[str]):
    """Remove a stored connection and its key, and return what was removed as a sentence."""

    provider: str
    url: str = ""
