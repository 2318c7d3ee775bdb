"""Interface of the engine: requests with typed responses, and a stream of events.

`Engine` is the whole interface. It has two implementations, in process and behind a pipe (package `engine`); screens,
scripts and tests work with either. On the pipe every line is one JSON object, one of

    {"id": 3, "request": {"type": "send_message", …}}      screen to engine
    {"id": 3, "result": …}                                 engine to screen
    {"id": 3, "error": {…}, "error_class": …}              engine to screen
    {"event": {"type": "text_delta", …}}                   engine to screen

The requests are defined by subject in `requests`; a new one needs its class there and its handler in `engine.handlers`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Generic, Protocol, TypeVar, get_args

import msgspec

from ragforge_tui.shared.errors import ErrorInfo
from ragforge_tui.shared.events import Event, GraphChanged, ModelChanged, _snake
from ragforge_tui.shared.tool_calls import ToolInfo

R = TypeVar("R")
Q = TypeVar("Q")

PROTOCOL_VERSION = 1
MAX_LINE_BYTES = 64 * 1024 * 1024
"""Longest line either side reads; asyncio's default of 64 KiB would raise on a pasted file."""
CLOSE_SECONDS = 10.0
"""Longest wait of a part for the orderly end of the one below it."""


class Empty(msgspec.Struct, frozen=True):
    """An answer without content."""


class Request(msgspec.Struct, Generic[R], kw_only=True, tag_field="type", tag=_snake):
    """A request whose answer is an `R`."""


class EngineState(msgspec.Struct, kw_only=True, frozen=True):
    """State of the engine at the time of the request; events report later changes.

    Attributes:
        tools: Descriptions of all tools, for the calls that are shown.
    """

    protocol: int
    version: str
    pid: int
    workspace: str
    model: ModelChanged
    graph: GraphChanged
    log_file: str
    tools: list[ToolInfo] = []


class Hello(Request[EngineState]):
    """Open a connection; the first request on it."""

    protocol: int = PROTOCOL_VERSION


class Shutdown(Request[Empty]):
    """Shut down cleanly: a turn in progress is stored as interrupted."""


def response_type(request: Request[Any] | type[Request[Any]]) -> Any:
    """Return the type of a request's response: the `R` of its `Request[R]`."""
    cls = request if isinstance(request, type) else type(request)
    return get_args(cls.__orig_bases__[0])[0]  # type: ignore[attr-defined]


class RequestLine(msgspec.Struct, Generic[Q], kw_only=True, frozen=True):
    """Line written by the user interface; the engine decodes it with the union of the requests it handles as `Q`."""

    id: int
    request: Q


class ReplyLine(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """Line written by the engine: a response (`id` with `result` or `error`) or an `event`.

    Attributes:
        error_class: Name of the class of `error`, which the receiver raises again.
    """

    id: int | None = None
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: ErrorInfo | None = None
    error_class: str = ""
    event: Event | None = None


class Engine(Protocol):
    """The engine, in process or behind a pipe."""

    async def request(self, request: Request[R]) -> R:
        """Send a request and wait for its response.

        Raises:
            RagforgeError: The error that the engine raised, or `EngineGoneError` if it ended meanwhile.
        """
        ...

    def events(self) -> AsyncIterator[Event]:
        """Iterate over all events from now on, until the engine ends. Supports a single reader."""
        ...

    async def close(self) -> None:
        """Shut the engine down cleanly; a turn in progress is stored as interrupted."""
        ...
