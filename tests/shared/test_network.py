"""Connections to servers: this machine directly, other hosts by the proxies of the environment."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType

import httpx
import httpx2
import pytest

from ragforge_tui.llm.listing import list_names
from ragforge_tui.llm.provider_errors import to_model_error
from ragforge_tui.shared.errors import ModelError, NetworkError
from ragforge_tui.shared.network import certificate_error, is_this_machine, proxy_for, transport

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"):
            monkeypatch.delenv(name)


@asynccontextmanager
async def answering(status: bytes) -> AsyncIterator[int]:
    """The port of a server here that answers every request with a status."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 13\r\nConnection: close\r\n\r\n" + b'{"data": [] }')
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize("host", ["localhost", "a.localhost", "LocalHost.", "127.0.0.1", "127.9.9.9", "::1", "[::1]"])
def test_names_and_addresses_of_this_machine(host: str) -> None:
    assert is_this_machine(host)


@pytest.mark.parametrize("host", ["example.com", "10.0.0.1", "localhost.example.com", "127.example.com", "fe80::1", ""])
def test_other_hosts_are_not_this_machine(host: str) -> None:
    assert not is_this_machine(host)


@pytest.mark.parametrize(
    "value", ["socks://127.0.0.1:1/", "socks4://h:1", "::::", "http://", "http://h:port", "127.0.0.1:9", "ftp://h:1"]
)
@pytest.mark.parametrize("name", ["ALL_PROXY", "all_proxy", "http_proxy", "HTTP_PROXY"])
@pytest.mark.parametrize("http", [httpx, httpx2])
async def test_a_server_here_is_reached_whatever_the_variables_name(
    http: ModuleType, name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    async with answering(b"200 OK") as port, http.AsyncClient(transport=transport(http)) as client:
        assert (await client.get(f"http://127.0.0.1:{port}/")).status_code == 200


@pytest.mark.parametrize("value", ["::::", "http://", "http://h:port", "socks4://h:1", "ftp://h:1", "http://h:0"])
@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
async def test_a_variable_that_names_no_proxy_is_named(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ModelError, match=f"{name} names no usable proxy") as caught:
        await list_names("https://models.example/v1", "openai", "", 5)
    assert caught.value.info.kind == "environment" and not caught.value.transient


@pytest.mark.parametrize(
    ("value", "address"),
    [("h:3128", "http://h:3128"), ("http://u:p@h:1", "http://u:p@h:1"), ("socks://h:1", "socks5://h:1")],
)
def test_short_forms_of_a_proxy_are_understood(value: str, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", value)
    assert proxy_for("https", "models.example") == (address, "ALL_PROXY")


@pytest.mark.parametrize(
    ("exceptions", "host", "excepted"),
    [
        ("*", "models.example", True),
        ("models.example", "models.example", True),
        (".example", "models.example", True),
        ("*.example", "models.example", True),
        ("example", "models.example", True),
        ("amples.example", "models.example", False),
        ("models.example:443", "models.example", True),
        ("models.example:80", "models.example", False),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8 , fd00::/8", "fd00::1", True),
        ("localhost,::1,[fd00::1]", "[fd00::1]", True),
        ("https://models.example", "models.example", True),
        (":::,[,/,,", "models.example", False),
    ],
)
def test_exceptions_from_the_proxy(exceptions: str, host: str, excepted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", NOWHERE)
    monkeypatch.setenv("NO_PROXY", exceptions)
    assert (proxy_for("https", host, 443) is None) == excepted


@pytest.mark.parametrize("address", ["https://models.example", "http://models.example"])
async def test_a_proxy_that_refuses_is_named_as_the_proxy(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with answering(b"407 Proxy Authentication Required") as port:
        for proxy in (NOWHERE, f"http://user:hidden-word@127.0.0.1:{port}"):
            monkeypatch.setenv("ALL_PROXY", proxy)
            async with httpx.AsyncClient(transport=transport(httpx)) as client:
                with pytest.raises(NetworkError, match=r"The proxy 127\.0\.0\.1:\d+, which ALL_PROXY names") as caught:
                    await client.get(address)
            error = to_model_error(caught.value, model="m", destination="models.example")
            assert error.info.what == caught.value.info.what and not error.transient
            assert "hidden-word" not in str(error)


def test_certificates_that_cannot_be_read_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert certificate_error() is None
    file = tmp_path / "no.pem"
    for content in (None, "words", ""):
        if content is not None:
            file.write_text(content)
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        with pytest.raises(NetworkError, match="SSL_CERT_FILE"):
            raise certificate_error() or AssertionError(content)
