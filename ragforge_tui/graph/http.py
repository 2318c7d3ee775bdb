"""The few requests that go to the embedded server's HTTP endpoint instead of Bolt.

Used by the supervisor (is the database there yet) and the ArcadeDB dialect (indexes Cypher cannot make, and a
read-only check). Loopback only, never through a proxy.
"""

from __future__ import annotations

import base64
import urllib.error
import urllib.request
from typing import Any

import msgspec

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


def request(port: int, user: str, password: str, path: str, payload: Any = None, *, timeout: float = 10.0) -> Any:
    """Ask ``/api/v1/<path>``: POST when there is a payload, else GET. Blocks.

    Raises:
        HttpError: The server answered with an error.
        OSError: It did not answer.
    """
    token = base64.b64encode(f"{user}:{password}".encode()).decode()
    asked = urllib.request.Request(
        f"http://127.0.0.1:{port}/api/v1/{path}",
        data=None if payload is None else msgspec.json.encode(payload),
        headers={"Authorization": f"Basic {token}", "Content-Type": "application/json"},
    )
    try:
        with _OPENER.open(asked, timeout=timeout) as answer:
            body = answer.read()
    except urllib.error.HTTPError as error:
        raise _failure(error) from None
    return msgspec.json.decode(body) if body else None


def _failure(error: urllib.error.HTTPError) -> HttpError:
    try:
        said = msgspec.json.decode(error.read(), type=_Failure)
    except msgspec.MsgspecError:
        return HttpError(error.code, error.reason)
    return HttpError(error.code, said.detail or said.error, said.exception.rpartition(".")[2])
