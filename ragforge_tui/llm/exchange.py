"""HTTP exchange of one request, read before LiteLLM, which drops unknown fields.

LiteLLM maps finish reasons it does not know to ``stop``, drops fields, ends an answer at a line that is no JSON, and
sends a refused request again by itself. So the client's requests are listened to: a refusal becomes a `ServerRefusal`
with the server's own words, and the events of an OpenAI-compatible answer are kept as they arrived, while LiteLLM gets
a sign of life for each. Of other answers only the finish reason is read. Imports httpx, so it is imported late.
"""

from __future__ import annotations

import codecs
import json
import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import httpx

from ragforge_tui.llm.provider_errors import ServerRefusal

_MOST_PENDING = 1_000_000
"""Characters of an answer that is not one event to a line: a whole answer, or a page."""
_FIELD = re.compile(r"(?:event|id|retry)\s*:|:")
_ENDED = re.compile(r'"(?:finish_?[rR]eason|stop_reason|done_reason)"\s*:\s*"([^"\\]+)"')
_TAIL = 120
"""Characters that hold any finish reason, for one that is cut by the end of a piece."""
_current: ContextVar[Exchange | None] = ContextVar("exchange", default=None)


class Exchange:
    """Answer of the server itself to one request.

    Attributes:
        refusal: The answer, if it was none or an error.
        read_here: Whether `take` returns the events of the answer; otherwise LiteLLM's chunks hold it.
        finish_reason: The server's last word on why the answer ended, of an answer that is not read here.
    """

    def __init__(self) -> None:
        self.refusal: ServerRefusal | None = None
        self.read_here = False
        self.finish_reason = ""
        self._events: deque[dict[str, Any]] = deque()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Listen to the requests that are sent inside the context."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def take(self) -> Iterator[dict[str, Any]]:
        """Yield the events that arrived since the last call."""
        while self._events:
            yield self._events.popleft()

    async def receive(self, response: httpx.Response, *, streamed: bool) -> None:
        """Take in an answer.

        Args:
            streamed: Whether its body is not read yet.

        Raises:
            ServerRefusal: The server answered with an error.
        """
        if response.status_code >= 400:
            await response.aread()
            raise self._refused(response, response.text)
        if not streamed:
            return
        # httpx decodes the transfer for us: the copy reads the bytes, the original gets what is read from them.
        inner = httpx.Response(response.status_code, headers=response.headers, stream=response.stream)
        self.read_here = response.request.url.path.endswith("/chat/completions")
        pieces = self._signs(inner) if self.read_here else self._overheard(inner)
        response.stream = _Body(pieces, inner.aclose)
        for header in ("content-encoding", "content-length"):
            response.headers.pop(header, None)

    def _refused(self, response: httpx.Response, body: Any, status: int = 0) -> ServerRefusal:
        self.refusal = ServerRefusal(status or response.status_code, response.headers, body)
        return self.refusal

    async def _signs(self, response: httpx.Response) -> AsyncIterator[bytes]:
        """Keep the events of an answer, and yield one of LiteLLM's own for each."""
        found = False
        async for event in read_events(response.aiter_bytes()):
            if isinstance(event, str):
                if not found:
                    raise self._refused(response, event)
                continue
            if _is_error(event):
                raise self._refused(response, event, _stated_status(event))
            found = found or bool(event.get("choices"))
            self._events.append(event)
            yield _sign({"content": str(len(self._events) % 10)})
        yield _sign({}, "stop")
        yield b"data: [DONE]\n\n"

    async def _overheard(self, response: httpx.Response) -> AsyncIterator[bytes]:
        tail = ""
        async for piece in response.aiter_bytes():
            tail += piece.decode("utf-8", "replace")
            for match in _ENDED.finditer(tail):
                self.finish_reason = match[1]
            tail = tail[-_TAIL:]
            yield piece


class _Body(httpx.AsyncByteStream):
    def __init__(self, pieces: AsyncIterator[bytes], close: Callable[[], Awaitable[None]]) -> None:
        self._pieces = pieces
        self._close = close

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces

    async def aclose(self) -> None:
        await self._close()


def listen() -> None:
    """Make all HTTP clients pass the answers of a request to the `Exchange` that listens to it."""
    send: Callable[..., Awaitable[httpx.Response]] = httpx.AsyncClient.send

    async def heard(client: httpx.AsyncClient, request: httpx.Request, **options: Any) -> httpx.Response:
        response = await send(client, request, **options)
        exchange = _current.get()
        if exchange is not None:
            await exchange.receive(response, streamed=bool(options.get("stream")))
        return response

    httpx.AsyncClient.send = heard  # type: ignore[assignment,method-assign]


async def read_events(pieces: AsyncIterator[bytes]) -> AsyncIterator[dict[str, Any] | str]:
    """Yield the JSON objects of an answer, whether it is an event stream, lines of JSON, or one object.

    Lines that are no JSON are skipped; a text that is left over is yielded last.
    """
    pending, named = "", ""
    async for line in _lines(pieces):
        line = line.strip().lstrip("\ufeff")
        data = line.removeprefix("data:").strip()
        if data == "[DONE]":
            return
        if not pending and _FIELD.match(line):
            named = line.partition(":")[2].strip() if line.startswith("event") else named
            continue
        # A line of an object over several lines may be an object too.
        alone = [] if pending and data == line else _objects(data)
        if found := alone or (_objects(pending + data) if pending and data[-1:] in ("}", "]") else []):
            pending = ""
            for event in found:
                yield {"error": event} if named == "error" and "error" not in event else event
            named = ""
        elif data and len(pending) < _MOST_PENDING:
            pending += f"{data}\n"
    if pending:
        yield pending


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    rest = ""
    async for piece in pieces:
        *lines, rest = re.split(r"\r\n|\n|\r", rest + decoder.decode(piece))
        for line in lines:
            yield line
    if rest := rest + decoder.decode(b"", final=True):
        yield rest


def _objects(text: str) -> list[dict[str, Any]]:
    """Return the object that a text is, or those of a list; nothing if it is neither."""
    if text[:1] not in ("{", "["):
        return []
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return []
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict)]


def _is_error(event: dict[str, Any]) -> bool:
    """Return whether an event is an error, not a piece of the answer or a sign of life."""
    return bool(event.get("error")) or ("choices" not in event and bool(event.keys() & {"message", "detail", "msg"}))


def _stated_status(event: dict[str, Any]) -> int:
    """Return the status that an error names, 500 if it names none."""
    error = event.get("error")
    for place in (error, event):
        for name in ("code", "status_code", "status", "http_status"):
            value = place.get(name) if isinstance(place, dict) else None
            if str(value).isdigit() and 400 <= int(str(value)) < 600:
                return int(str(value))
    return 500


def _sign(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    sign = {"id": "s", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(sign).encode() + b"\n\n"
