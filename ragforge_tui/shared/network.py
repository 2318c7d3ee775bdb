"""Requests to servers: this machine directly, other hosts by the proxies that the environment names.

A proxy is for other hosts, and would swallow requests to this machine. Every HTTP client of the program gets its
transport here, also those inside of libraries, so that one host is reached alike by a message, a list of models and an
MCP server, and a variable that prevents a request is named instead of the server.
"""

from __future__ import annotations

import ipaddress
import os
import re
import ssl
from types import ModuleType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ragforge_tui.shared.errors import NetworkError

_SCHEMES = ("http", "https", "socks5", "socks5h")
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERTIFICATE")
"""Variables with certificates that one of the libraries reads."""
_PROXY_REFUSED = 407


class Proxy(NamedTuple):
    """A proxy, and the variable that names it."""

    address: str
    named_by: str


def is_this_machine(host: str) -> bool:
    """Return whether a host is this machine, by its name or a loopback address."""
    host = host.strip("[]").rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


def proxy_for(scheme: str, host: str, port: int | None = None) -> Proxy | None:
    """Return the proxy for a host, None for a direct connection.

    Raises:
        NetworkError: The environment names one that cannot be used.
    """
    from urllib.request import getproxies  # the environment, else the system's settings

    proxies = getproxies()
    kind = next((kind for kind in (scheme, "all") if proxies.get(kind)), "")
    if not kind or is_this_machine(host) or _is_excepted(host, port, proxies.get("no", "")):
        return None
    named_by = next((name for name in os.environ if name.lower() == f"{kind}_proxy"), "the system's settings")
    address = re.sub(r"^(?:(socks)://|(?!\w+://))", lambda form: "socks5://" if form[1] else "http://", proxies[kind])
    try:
        parts = urlsplit(address)
        usable = parts.scheme in _SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise NetworkError(
            f"{named_by} names no usable proxy.", todo=f"Set {named_by} to http://HOST:PORT, or unset it."
        )
    return Proxy(address, named_by)


def _is_excepted(host: str, port: int | None, exceptions: str) -> bool:
    """Return whether NO_PROXY names a host: by its name, a domain, an address, a network, with or without a port."""
    host = host.strip("[]").lower()
    for entry in re.split(r"[,\s]+", exceptions.lower()):
        name = entry.partition("://")[2] or entry
        name, _, wanted = name.rpartition(":") if re.fullmatch(r"(?:[^:]+|\[.*\]):\d+", name) else (name, "", "")
        name = name.strip("[]").removeprefix("*").strip(".")
        if entry == "*" or (name and wanted in ("", str(port)) and _is_within(host, name)):
            return True
    return False


def _is_within(host: str, name: str) -> bool:
    if host == name or host.endswith(f".{name}"):
        return True
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(name, strict=False)
    except ValueError:
        return False


def certificate_error() -> NetworkError | None:
    """Return the error for certificates that the environment names and that cannot be read; None if there are none."""
    for name in _CERTIFICATES:
        if value := os.environ.get(name):
            folder = os.path.isdir(value)  # noqa: PTH112 - any text may stand there
            try:
                ssl.create_default_context(cafile=None if folder else value, capath=value if folder else None)
            except (OSError, ValueError):
                return NetworkError(f"{name} names no readable certificates.", todo=f"Correct {name}, or unset it.")
    return None


def transport(http: ModuleType, **options: Any) -> Any:
    """Return a transport for the clients of an HTTP library.

    Args:
        http: The library: httpx, or httpx2 with the same names.
        options: As its own transport takes them.
    """
    ways: dict[tuple[str, str], Any] = {}

    def way_by(scheme: str, proxy: Proxy | None) -> Any:
        key = (scheme, proxy.address if proxy else "")
        if key not in ways:
            # Certificates take a while to load, and a connection without encryption needs none.
            plain = {"verify": False} if scheme == "http" and proxy is None else {}
            try:
                ways[key] = http.AsyncHTTPTransport(**options | plain, proxy=proxy.address if proxy else None)
            except ImportError as error:
                raise NetworkError(
                    f"{proxy and proxy.named_by} names a SOCKS proxy, which needs the Python package socksio.",
                    todo="Install it next to ragforge-chat, or name an HTTP proxy.",
                ) from error
            except OSError as error:
                raise certificate_error() or error from error
        return ways[key]

    class Network(http.AsyncBaseTransport):  # type: ignore[name-defined,misc]  # the library is known when it runs
        """Transport that connects directly or by a proxy."""

        async def handle_async_request(self, request: Any) -> Any:
            proxy = proxy_for(request.url.scheme, request.url.host, request.url.port)
            try:
                response = await way_by(request.url.scheme, proxy).handle_async_request(request)
            except (http.ConnectError, http.ConnectTimeout, http.ProxyError) as error:
                if proxy is None or isinstance(error.__context__, ssl.SSLError):
                    raise
                raise _refused(proxy, str(error)) from error
            if proxy is not None and response.status_code == _PROXY_REFUSED:
                await response.aclose()
                raise _refused(proxy, "it asks for a password")
            return response

        async def aclose(self) -> None:
            for way in ways.values():
                await way.aclose()

    return Network()


def _refused(proxy: Proxy, reason: str) -> NetworkError:
    parts = urlsplit(proxy.address)
    where = f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)
    return NetworkError(
        f"The proxy {where}, which {proxy.named_by} names, did not connect: {reason.rstrip('.') or 'no reason given'}.",
        todo=f"Start it, correct {proxy.named_by}, or name the server's host in NO_PROXY.",
    )
