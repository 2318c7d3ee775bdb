"""The web server of `serve`: pages and sockets of textual-serve behind a secret, on 127.0.0.1 alone.

A chat runs commands, so nobody else may reach it. The address printed at the start holds a secret, which the browser
exchanges for a cookie; every other request needs that cookie. A page of another site cannot use it: the cookie stays
with this site, a socket must come from this page, and the name in the address must be this machine's, whatever a name
server says. The page loads nothing from elsewhere.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import signal
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress

import aiohttp_jinja2
import jinja2
from aiohttp import web
from textual_serve.server import Server

from ragforge_tui.shared.errors import RagforgeError

HOST = "127.0.0.1"
_NAMES = (HOST, "localhost")
_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; font-src 'self' data:; "
    "img-src 'self' data:; connect-src 'self' {socket}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class WebServer:
    """Server of chats in a browser.

    Args:
        command: Shell command that starts a chat.
        port: Port on 127.0.0.1; 0 for any free one.

    Attributes:
        address: Address to open, with the secret.

    Raises:
        RagforgeError: The port is taken.
    """

    def __init__(self, command: str, port: int) -> None:
        self._socket = _bound(port)
        self._port: int = self._socket.getsockname()[1]
        self._secret = secrets.token_urlsafe(32)
        self._cookie = f"ragforge-{self._port}"  # Cookies do not tell ports apart.
        site = f"http://{HOST}:{self._port}"
        self.address = f"{site}/?token={self._secret}"
        self._server = Server(command, host=HOST, port=self._port, title="ragforge-chat", public_url=site)

    def run(self) -> None:
        """Serve until ctrl+c or SIGTERM; chats that are open then end, and their answers are finished."""
        logging.getLogger("textual-serve").setLevel(logging.ERROR)
        asyncio.run(self._run())
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # A second ctrl+c would print a traceback while Python ends.

    async def _run(self) -> None:
        ended = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        runner = web.AppRunner(self._app(), shutdown_timeout=5.0)
        await runner.setup()
        try:
            await web.SockSite(runner, self._socket).start()
            await ended.wait()
        finally:
            await runner.cleanup()

    def _app(self) -> web.Application:
        """Return the application; the names of its routes are those that the page of textual-serve asks for."""
        server = self._server
        app = web.Application(middlewares=[self._guard])
        aiohttp_jinja2.setup(app, loader=jinja2.FileSystemLoader(server.templates_path))
        app.add_routes(
            [
                web.get("/", server.handle_index, name="index"),
                web.get("/ws", server.handle_websocket, name="websocket"),
                web.get("/download/{key}", server.handle_download, name="download"),
                web.static("/static", server.statics_path, name="static"),
            ]
        )
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Let a request pass that names this machine and has the secret; exchange the secret for the cookie."""
        hosts = [f"{name}:{self._port}" for name in _NAMES]
        origin = request.headers.get("Origin")
        if request.host not in hosts or (origin is not None and origin not in [f"http://{host}" for host in hosts]):
            raise web.HTTPForbidden(text="This address is not served.")
        if request.path == "/" and (given := request.query.get("token")) is not None:
            self._check(given)
            answer = web.HTTPSeeOther(f"http://{HOST}:{self._port}/")
            answer.set_cookie(self._cookie, self._secret, httponly=True, samesite="Strict", path="/")
            raise answer
        self._check(request.cookies.get(self._cookie, ""))
        response = await handler(request)
        if not response.prepared:
            response.headers["Content-Security-Policy"] = _POLICY.format(socket=f"ws://{HOST}:{self._port}")
            response.headers["Referrer-Policy"] = "no-referrer"
        return response

    def _check(self, given: str) -> None:
        if not secrets.compare_digest(given.encode(), self._secret.encode()):
            raise web.HTTPForbidden(text="Open the address that `ragforge-chat serve` has printed.")


def _bound(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
        listening.listen()
    except OSError as error:
        with suppress(OSError):
            listening.close()
        raise RagforgeError(
            f"Port {port} of this machine cannot be used: {error.strerror}.", todo="Name another one with --port."
        ) from error
    return listening
