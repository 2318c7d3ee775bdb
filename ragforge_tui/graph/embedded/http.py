"""Requests to the embedded server's HTTP endpoint, for the few things Bolt cannot do.

The server asks itself which port is which; the ArcadeDB dialect creates indexes that Cypher cannot, and checks
that a statement only reads. Loopback only, never through a proxy, and with a password only to the server's own port.
"""

from __future__ import annotations

import base64
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import Any

import msgspec

from ragforge_tui.graph.embedded.ports import ForeignPortError, ServerPorts
from ragforge_tui.shared.json_text import decode_json

_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class HttpError(Exception):
    """The endpoint answered with an error."""

    def __init__(self, status: int, message: str, exception: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.exception = exception
        """The server's own name of the error, such as ``QueryNotIdempotentException``."""


class _Failure(msgspec.Struct):
    error: str = ""
    detail: str = ""
    exception: str = ""


class Login(msgspec.Struct, frozen=True):
    """The server's HTTP port and login."""

    ports: ServerPorts
    port: int
    username: str
    password: str


def request(login: Login, path: str, payload: Any = None, *, timeout: float = 10.0) -> Any:
    """Ask ``/api/v1/<path>``: POST when there is a payload, else GET. Blocks.

    Raises:
        HttpError: The server answered with an error.
        ForeignPortError: The port is not the server's; nothing was sent.
        OSError: It did not answer.
    """
    if not login.ports.holds(login.port):
        raise ForeignPortError(f"port {login.port} is not that of server {login.ports.pid}")
    token = base64.b64encode(f"{login.username}:{login.password}".encode()).decode()
    asked = urllib.request.Request(
        f"http://127.0.0.1:{login.port}/api/v1/{path}",
        data=None if payload is None else msgspec.json.encode(payload),
        headers={"Authorization": f"Basic {token}", "Content-Type": "application/json"},
    )
    try:
        with _OPENER.open(asked, timeout=timeout) as answer:
            body = answer.read()
    except urllib.error.HTTPError as error:
        raise _failure(error) from None
    return decode_json(body) if body else None


def status(port: int, path: str, *, timeout: float = 2.0) -> int:
    """Ask ``/api/v1/<path>`` without logging in and return the HTTP status, 0 without an answer. Blocks."""
    try:
        with _OPENER.open(f"http://127.0.0.1:{port}/api/v1/{path}", timeout=timeout) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except (OSError, HTTPException):
        return 0


def _failure(error: urllib.error.HTTPError) -> HttpError:
    try:
        said = decode_json(error.read(), _Failure)
    except msgspec.MsgspecError:
        return HttpError(error.code, error.reason)
    return HttpError(error.code, said.detail or said.error, said.exception.rpartition(".")[2])
