"""`serve`: the chat behind a secret, on this machine alone."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from ragforge_tui.cli.serve import chat_command
from ragforge_tui.cli.start import Shared
from ragforge_tui.cli.web_server import WebServer
from ragforge_tui.shared.errors import RagforgeError
from tests.support.waiting import until

PROGRAM = Path(sys.executable).with_name("ragforge-chat")


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """The address of a running server, which gives every chat a graph and settings of its own."""
    environment = {**os.environ, "RAGFORGE_HOME": str(tmp_path / "home"), "RAGFORGE_KEEP_WARM_MINUTES": "0"}
    process = subprocess.Popen(
        [PROGRAM, "--model", "offline", "--workspace", str(tmp_path), "serve", "--port", "0"],
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    )
    assert process.stdout is not None
    yield process.stdout.readline().removeprefix("Open ").strip()
    process.send_signal(signal.SIGINT)
    assert process.wait() == 0


def site(address: str) -> str:
    return address.partition("?")[0]


@pytest.mark.slow
async def test_a_chat_in_a_browser_takes_keys_and_ends_with_its_page(address: str, tmp_path: Path) -> None:
    drawn = bytearray()
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
        page = await (await browser.get(address)).text()
        assert "textual.js" in page
        async with browser.ws_connect(f"{site(address)}ws?width=100&height=30") as chat:

            async def read() -> None:
                async for message in chat:
                    if message.type == aiohttp.WSMsgType.BINARY:
                        drawn.extend(message.data)

            reading = asyncio.create_task(read())
            await until(lambda: b"commands" in drawn)
            await chat.send_json(["stdin", "hello"])
            await until(lambda: b"hello" in drawn)
            await chat.send_json(["stdin", "\x11"])
            await reading


async def test_nobody_gets_in_without_the_secret(address: str) -> None:
    port = address.rpartition(":")[2].partition("/")[0]
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as stranger:
        for path in ("", "ws", "static/js/textual.js", "?token=", "?token=guess"):
            assert (await stranger.get(f"{site(address)}{path}")).status == 403
        rebound = {"Host": f"example.org:{port}"}
        assert (await stranger.get(address, headers=rebound)).status == 403
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as user:
        answer = await user.get(address)
        assert answer.status == 200
        assert "token" not in str(answer.url)
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        other_page = {"Origin": "http://example.org"}
        assert (await user.get(f"{site(address)}ws", headers=other_page)).status == 403


def test_a_port_that_is_taken() -> None:
    first = WebServer("true", 0)
    port = int(first.address.rpartition(":")[2].partition("/")[0])
    with pytest.raises(RagforgeError, match=f"Port {port} .* cannot be used"):
        WebServer("true", port)


def test_the_chat_gets_the_options() -> None:
    command = chat_command(Shared(workspace="/a b", model="openai/x", plain=True))
    assert shlex.split(command)[1:] == ["-m", "ragforge_tui", "--workspace=/a b", "--model=openai/x", "--plain"]
