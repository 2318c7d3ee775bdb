"""A request added from outside the package: its class and its handler are enough for both forms of the engine."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator

import msgspec
import pytest

from ragforge_tui.engine import registry
from ragforge_tui.engine.in_process import InProcessEngine
from ragforge_tui.engine.registry import EngineContext, handles
from ragforge_tui.engine.server import PipeServer
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.wire import ReplyLine, Request, RequestLine, Shutdown, response_type


class WordCount(msgspec.Struct):
    """A toy answer."""

    words: dict[str, int]
    workspace: str


class CountWords(Request[WordCount]):
    """A toy request."""

    text: str


@pytest.fixture
def registered() -> Iterator[None]:
    """Register the handler, all that its author would do."""

    @handles(CountWords)
    async def count_words(engine: EngineContext, request: CountWords) -> WordCount:
        words = request.text.split()
        return WordCount({word: words.count(word) for word in words}, engine.loaded.workspace)

    yield
    del registry._HANDLERS[CountWords]


@pytest.fixture
async def engine(loaded: Loaded) -> AsyncIterator[InProcessEngine]:
    engine = InProcessEngine(loaded)
    yield engine
    await engine.close()


@pytest.mark.usefixtures("registered")
async def test_it_is_answered_in_process(engine: InProcessEngine, loaded: Loaded) -> None:
    answer = await engine.request(CountWords(text="to be or not to be"))
    assert answer == WordCount({"to": 2, "be": 2, "or": 1, "not": 1}, loaded.workspace)


async def test_without_a_handler_the_engine_reports_it(engine: InProcessEngine) -> None:
    with pytest.raises(RagforgeError, match="does not support the request CountWords"):
        await engine.request(CountWords(text=""))


@pytest.mark.usefixtures("registered")
async def test_it_crosses_the_pipe_as_json(engine: InProcessEngine, loaded: Loaded) -> None:
    server = PipeServer(engine.agent, loaded)
    read_fd, write_fd = os.pipe()
    requests = asyncio.StreamReader()
    serving = asyncio.create_task(server.run(requests, write_fd))
    sent = CountWords(text="a rose is a rose")
    requests.feed_data(msgspec.json.encode(RequestLine(id=7, request=sent)) + b"\n")
    with os.fdopen(read_fd, "rb") as replies:
        reply = ReplyLine()
        while reply.id is None:
            reply = msgspec.json.decode(await asyncio.to_thread(replies.readline), type=ReplyLine)
        requests.feed_data(msgspec.json.encode(RequestLine(id=8, request=Shutdown())) + b"\n")
        await serving
    assert reply.id == 7
    answer = msgspec.json.decode(reply.result, type=response_type(sent))
    assert answer == WordCount({"a": 2, "rose": 2, "is": 1}, loaded.workspace)
