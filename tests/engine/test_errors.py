"""Errors across the pipe: each keeps its class and its message, so that callers catch what they would in process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator

import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.engine import client, registry, server
from ragforge_tui.engine.client import ChildEngine
from ragforge_tui.engine.registry import EngineContext, handles
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared import errors
from ragforge_tui.shared.errors import ModelError, RagforgeError
from ragforge_tui.shared.wire import Empty, Request

RAISED = [
    ModelError("It failed.", kind="rate_limit", todo="Wait.", retry_after=2.0) if kind is ModelError
    else kind("It failed.", todo="Do something.", kept="All is kept.")
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, RagforgeError)
]  # fmt: skip
RAISED.append(errors.NotFoundError("Two match.", kind="ambiguous"))


class Fail(Request[Empty]):
    """A request that always fails."""

    index: int


class _NoProcess:
    """Stands for the process of an engine that runs in this one."""

    pid = os.getpid()
    returncode = 0

    async def wait(self) -> int:
        return 0


@pytest.fixture
def failing() -> Iterator[None]:
    @handles(Fail)
    async def fail(engine: EngineContext, request: Fail) -> Empty:
        raise RAISED[request.index]

    yield
    del registry._HANDLERS[Fail]


@pytest.fixture
async def piped(loaded: Loaded, failing: None) -> AsyncIterator[ChildEngine]:
    """A client whose engine is served by this process."""
    request_read, request_write = os.pipe()
    reply_read, reply_write = os.pipe()
    agent = ConversationAgent(loaded)
    reader = await server._reader(request_read)
    serving = asyncio.create_task(server.PipeServer(agent, loaded).run(reader, reply_write))
    engine = ChildEngine(_NoProcess(), await client._writer(request_write), await client._reader(reply_read))
    yield engine
    await engine.close()
    await serving


async def test_each_error_keeps_its_class_and_message(piped: ChildEngine) -> None:
    for index, raised in enumerate(RAISED):
        with pytest.raises(RagforgeError) as caught:
            await piped.request(Fail(index=index))
        assert (type(caught.value), caught.value.info) == (type(raised), raised.info)
        assert str(caught.value) == str(raised)


def test_a_class_of_a_newer_engine_is_a_plain_error() -> None:
    info = errors.ErrorInfo(kind="new", what="It failed.")
    received = RagforgeError.received("SomeNewError", info)
    assert (type(received), received.info) == (RagforgeError, info)
