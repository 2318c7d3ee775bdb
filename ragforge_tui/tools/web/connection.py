"""Requests to the public web alone: the address that is connected to is the one that was checked."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import zlib
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urljoin, urlsplit

from ragforge_tui.shared.errors import ToolError
from ragforge_tui.shared.sanitize import visible

if TYPE_CHECKING:
    import httpx

MOST_BYTES = 5_000_000
MOST_SECONDS = 30.0
_LOCATION = "location"
_OTHER_SOURCE = "Try another source."
_ANY_HEADER = zlib.MAX_WBITS | 32
"""Lets zlib tell gzip from deflate by the header."""
_MOST_REDIRECTS = 5
_PORTS = {"http": 80, "https": 443}
_UPGRADE = (("http", 80), ("https", 443))
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_NOT_PUBLIC = [*map(ipaddress.ip_network, ("192.0.0.0/24", "64:ff9b:1::/48", "fec0::/10", "::/96", "100:0:0:1::/64"))]
"""Networks of single providers, sites and machines that Python's table calls global, or leaves out."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

reached_by_tests: set[str] = set()
"""Addresses that are reached although they are not public; empty but in tests, which serve pages on loopback."""


class Page(NamedTuple):
    """Answer of a server."""

    url: str
    status: int
    media_type: str
    charset: str
    body: bytes


class Body:
    """Content of an answer, decompressed with a limit: the client would decompress each piece whole.

    Args:
        coding: As the server names it. Nothing was asked for, but many servers compress all the same.

    Raises:
        ToolError: It is more than a single compression that this program knows.
    """

    def __init__(self, coding: str) -> None:
        self.content = bytearray()
        coding = coding.strip().lower()
        if coding not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise ToolError(f"The page is compressed as {visible(coding[:80])}; it was not read.", todo=_OTHER_SOURCE)
        self._decoder = zlib.decompressobj(_ANY_HEADER) if coding not in ("", "identity") else None

    def add(self, piece: bytes) -> None:
        """Add the next piece as it was sent.

        Raises:
            ToolError: The content is too large, or is not compressed as the server says.
        """
        if self._decoder is not None:
            try:
                piece = self._decoder.decompress(piece, MOST_BYTES + 1 - len(self.content))
            except zlib.error as error:
                raise ToolError("The page is not compressed as its server says.", todo=_OTHER_SOURCE) from error
        self.content += piece
        if len(self.content) > MOST_BYTES:
            raise ToolError(
                f"The page is larger than {MOST_BYTES // 1_000_000} MB; none of it was kept.",
                todo="Look for a smaller page on it.",
            )


def host_of(url: str) -> str:
    """Return the host of an address on the web, in its ASCII form.

    Raises:
        ToolError: It is none that may be fetched.
    """
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".").encode("idna").decode("ascii").lower()
        _ = parts.port
    except ValueError:
        host = ""
    if not host or parts.scheme not in ("http", "https") or any(ord(sign) < 33 or ord(sign) == 127 for sign in url):
        raise ToolError("Only whole addresses that begin with http:// or https:// can be fetched.", todo="Give one.")
    if parts.username is not None or parts.password is not None:
        raise ToolError("The address contains a user name or password; it was not fetched.", todo="Leave it out.")
    return host


def is_public(address: Address) -> bool:
    """Return whether an address is of the public internet, also one that another form of address embeds."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
    return address.is_global and not address.is_multicast and not any(address in network for network in _NOT_PUBLIC)


async def checked_addresses(host: str, port: int) -> list[str]:
    """Return the addresses of a host, once all are known to be public.

    Raises:
        ToolError: The host is unknown, or one of its addresses is private.
    """
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ToolError(f"The host {host} was not found.", todo="Check the address.", kind="not_found") from error
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    for text in addresses:
        if text not in reached_by_tests and not is_public(ipaddress.ip_address(text.partition("%")[0])):
            raise ToolError(
                f"{host} is {text}, which is not on the public internet; nothing was sent.",
                todo="For a server on this machine or network use run_command, with curl for example.",
            )
    return addresses


async def fetch(url: str) -> Page:
    """Fetch a page; redirects are followed within its host.

    Raises:
        ToolError: It cannot be fetched; the message tells the model what to do.
    """
    try:
        async with asyncio.timeout(MOST_SECONDS):
            return await _followed(url)
    except TimeoutError as error:
        raise ToolError(f"No answer within {MOST_SECONDS:g} s.", todo="Try again later, or another source.") from error


async def _followed(url: str) -> Page:
    host = host_of(url)
    for _ in range(_MOST_REDIRECTS + 1):
        page, target = await _answer(url, host)
        if not target:
            return page
        before, url = url, _joined(url, target)
        if (other := host_of(url)) != host:
            raise ToolError(
                f"The page redirects to another host, {other}, which was not asked: {visible(url)}",
                todo="Fetch that address if it is the right one; the user is asked about its host.",
            )
        if _service(url) != _service(before) and (_service(before), _service(url)) != _UPGRADE:
            raise ToolError(
                f"The page redirects to another service of its host, which was not asked: {visible(url)}",
                todo="Fetch that address if it is the right one.",
            )
    raise ToolError(f"The page redirected more than {_MOST_REDIRECTS} times.", todo="Try another source.")


def _joined(url: str, target: str) -> str:
    try:
        return urljoin(url, target)
    except ValueError as error:
        what = f"The page redirects to something that is no address: {visible(target[:200])}."
        raise ToolError(what, todo="Try another source.") from error


def _service(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.scheme, parts.port or _PORTS[parts.scheme]


async def _take_location(response: httpx.Response) -> None:
    """Take a redirect out of an answer before the client reads it: the client refuses other hosts in its own words."""
    if response.status_code in _REDIRECTS and _LOCATION in response.headers:
        response.extensions[_LOCATION] = response.headers.pop(_LOCATION)


async def _answer(url: str, host: str) -> tuple[Page, str]:
    """Return the answer of a server, and where it redirects to; empty for nowhere."""
    import httpx

    parts = urlsplit(url)
    port = _service(url)[1]
    addresses = await checked_addresses(host, port)
    named = f"[{host}]" if ":" in host else host
    headers = {
        "Host": named if parts.port is None else f"{named}:{port}",
        "User-Agent": "Mozilla/5.0 (compatible; ragforge-chat)",
        "Accept": "text/html, text/*, application/json;q=0.9, */*;q=0.1",
        "Accept-Encoding": "identity",
    }
    problem: Exception | None = None
    # Proxies of the environment would resolve the name again, and .netrc would add passwords.
    async with httpx.AsyncClient(
        trust_env=False, follow_redirects=False, timeout=MOST_SECONDS, event_hooks={"response": [_take_location]}
    ) as client:
        for address in addresses[:3]:
            place = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
            target = parts._replace(netloc=place, fragment="").geturl()
            try:
                async with client.stream("GET", target, headers=headers, extensions={"sni_hostname": host}) as response:
                    if location := response.extensions.get(_LOCATION):
                        return Page(url, response.status_code, "", "", b""), location
                    body = Body(response.headers.get("content-encoding", ""))
                    async for chunk in response.aiter_raw():
                        body.add(chunk)
                    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
                    charset = response.charset_encoding or ""
                    return Page(url, response.status_code, media_type, charset, bytes(body.content)), ""
            except httpx.ConnectError as error:
                problem = error
            except httpx.HTTPError as error:
                problem = error
                break
    what = visible(str(problem)) or type(problem).__name__
    raise ToolError(f"{host} could not be reached: {what}.", todo="Check the address, or try another source.")
