"""The engine in its own process: it answers while it streams, outlives its screen, and its death is noticed."""

from __future__ import annotations

import asyncio
import os
import signal
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import cast

import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.engine.client import ChildEngine
from ragforge_tui.engine.server import serve
from ragforge_tui.graph import Graph, Store
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.errors import EngineGoneError, RagforgeError
from ragforge_tui.shared.events import ApprovalRequested, Event, TextDelta, TurnCompleted, TurnEnd
from ragforge_tui.shared.records import Message
from ragforge_tui.shared.requests.sessions import ListConversations
from ragforge_tui.shared.requests.turns import (
    CancelTurn,
    CreateConversation,
    FetchTurns,
    OpenConversation,
    RetryTurn,
    SendMessage,
)
from ragforge_tui.shared.requests.work import AnswerApproval
from ragforge_tui.shared.wire import MAX_LINE_BYTES, PROTOCOL_VERSION, Hello
from tests.support import waiting
from tests.support.openai_server import OpenAIServer
from tests.support.waiting import PATIENCE
from tests.support.warm_engine import warm_engines

# The engine is another process, which no script of this one reaches.
pytestmark = pytest.mark.http


@pytest.fixture(autouse=True)
def warm(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fork the engine from a warm process, except where its own start is tested."""
    if request.node.get_closest_marker("cold"):
        yield
    else:
        with warm_engines():
            yield


@pytest.fixture
async def child(loaded: Loaded, warm: None) -> AsyncIterator[ChildEngine]:
    engine = await ChildEngine.start(loaded)
    try:
        yield engine
    finally:
        await engine.close()
        if engine._process.returncode is None:
            engine._process.kill()
            await engine._process.wait()


async def until(engine: ChildEngine, kind: type[Event]) -> list[Event]:
    seen: list[Event] = []
    async with asyncio.timeout(PATIENCE):
        async for event in engine.events():
            seen.append(event)
            if isinstance(event, kind):
                return seen
    raise AssertionError(f"no {kind} among {seen}")


async def send(engine: ChildEngine, conversation_id: str, text: str) -> None:
    await engine.request(SendMessage(conversation_id=conversation_id, message_id=uuid.uuid4().hex, text=text))


async def stored_reply(loaded: Loaded, conversation_id: str) -> Message:
    """The last message of the last turn, as another process reads it, once it is not being written any more."""
    async with ConversationAgent(loaded) as reader:
        conversation = await reader.load_conversation(conversation_id)

        async def ended() -> Message | None:
            message = (await conversation.get_history(1))[0].messages[-1]
            return message if message.role == "assistant" and message.state != "streaming" else None

        return cast(Message, await waiting.until(ended))


@pytest.mark.cold
async def test_it_shows_who_it_is_and_answers_while_a_turn_streams(
    child: ChildEngine, loaded: Loaded, server: OpenAIServer
) -> None:
    server.script([{"text": "words " * 40, "delay": 0.05}])
    hello = await child.request(Hello())
    assert (hello.protocol, hello.pid, hello.workspace) == (PROTOCOL_VERSION, child.pid, loaded.workspace)
    view = await child.request(CreateConversation(title="t"))
    await send(child, view.conversation.uuid, "talk")
    await until(child, TextDelta)
    assert [each.title for each in await child.request(ListConversations())] == ["t"]
    page = await child.request(FetchTurns(conversation_id=view.conversation.uuid, start=1, end=2))
    assert page.turns[0].messages[0].content == "talk"
    events = await until(child, TurnCompleted)
    assert isinstance(events[-1], TurnCompleted)
    assert events[-1].text == "words " * 40


async def test_an_error_crosses_the_pipe_in_words(child: ChildEngine) -> None:
    with pytest.raises(RagforgeError) as caught:
        await child.request(OpenConversation(ref="does-not-exist"))
    assert caught.value.info.kind == "not_found"


async def test_an_approval_is_asked_and_answered_across_the_pipe(
    child: ChildEngine, loaded: Loaded, server: OpenAIServer
) -> None:
    write = {"name": "create_file", "arguments": {"path": "new.txt", "content": "x\n"}}
    server.script([{"tool_calls": [write]}, {"text": "made"}])
    view = await child.request(CreateConversation())
    await send(child, view.conversation.uuid, "make it")
    asked = (await until(child, ApprovalRequested))[-1]
    assert isinstance(asked, ApprovalRequested)
    await child.request(AnswerApproval(approval_id=asked.approval_id, decision="once"))
    await until(child, TurnCompleted)
    assert (Path(loaded.workspace) / "new.txt").exists()


async def test_it_finishes_the_answer_when_the_screen_is_gone(
    child: ChildEngine, loaded: Loaded, server: OpenAIServer
) -> None:
    text = "a whole answer " * 20
    server.script([{"text": text, "duration": 3.0}])
    view = await child.request(CreateConversation())
    await send(child, view.conversation.uuid, "talk")
    await until(child, TextDelta)
    child._stdin.close()
    reply = await stored_reply(loaded, view.conversation.uuid)
    assert (reply.state, reply.content) == ("complete", text)
    async with asyncio.timeout(PATIENCE):
        assert await child._process.wait() == 0


async def test_no_write_starts_once_the_screen_is_gone(
    child: ChildEngine, loaded: Loaded, server: OpenAIServer
) -> None:
    write = {"name": "create_file", "arguments": {"path": "late.txt", "content": "x\n"}}
    server.script([{"text": "first some words", "duration": 2.0, "tool_calls": [write]}, {"text": "not made"}])
    view = await child.request(CreateConversation())
    await send(child, view.conversation.uuid, "make it")
    await until(child, TextDelta)
    child._stdin.close()
    async with asyncio.timeout(PATIENCE):
        await child._process.wait()
    reply = await stored_reply(loaded, view.conversation.uuid)
    assert (reply.state, reply.content) == ("complete", "not made")
    assert not (Path(loaded.workspace) / "late.txt").exists()


async def test_closing_while_busy_stores_the_turn_as_interrupted(
    child: ChildEngine, loaded: Loaded, server: OpenAIServer
) -> None:
    server.script([{"text": "words " * 200, "delay": 0.05}])
    view = await child.request(CreateConversation())
    await send(child, view.conversation.uuid, "talk")
    await until(child, TextDelta)
    await child.close()
    assert (await stored_reply(loaded, view.conversation.uuid)).state == "interrupted"


async def test_a_killed_engine_is_noticed_and_its_turn_is_marked_interrupted(
    child: ChildEngine, loaded: Loaded, server: OpenAIServer, graph: Graph
) -> None:
    server.script([{"text": "words " * 200, "delay": 0.05}, {"text": "again"}])
    view = await child.request(CreateConversation())
    await send(child, view.conversation.uuid, "talk")
    await until(child, TextDelta)
    store = Store(graph)

    async def stored() -> bool:
        turns = await store.turns.between(view.conversation.uuid, start=1, end=2)
        return len(turns[0].messages) > 1 and turns[0].messages[-1].content.startswith("words words")

    await waiting.until(stored)
    os.kill(child.pid, signal.SIGKILL)
    with pytest.raises((EngineGoneError, AssertionError)):
        await until(child, TurnEnd)  # type: ignore[arg-type]  # a union stands for its members in isinstance
    with pytest.raises(EngineGoneError):
        await child.request(Hello())
    reply = await stored_reply(loaded, view.conversation.uuid)
    assert reply.state == "interrupted"
    assert reply.content.startswith("words words")
    second = await ChildEngine.start(loaded)
    try:
        resumed = await second.request(OpenConversation(ref=view.conversation.uuid[:8]))
        assert (resumed.active_turn, resumed.interrupted_turn) == (None, 1)
    finally:
        await second.close()


async def test_a_turn_of_another_process_is_followed_and_can_be_stopped(
    child: ChildEngine, loaded: Loaded, server: OpenAIServer
) -> None:
    server.script([{"text": "words " * 400, "delay": 0.05}])
    view = await child.request(CreateConversation())
    await send(child, view.conversation.uuid, "talk")
    await until(child, TextDelta)
    child._stdin.close()
    second = await ChildEngine.start(loaded)
    try:
        resumed = await second.request(OpenConversation(ref=view.conversation.uuid))
        assert resumed.active_turn == 1
        with pytest.raises(RagforgeError, match="Another process"):
            await second.request(RetryTurn(conversation_id=view.conversation.uuid))
        await second.request(CancelTurn(conversation_id=view.conversation.uuid))
        assert (await stored_reply(loaded, view.conversation.uuid)).state == "interrupted"
    finally:
        await second.close()


async def test_a_very_long_message_crosses_the_pipe_and_returns(child: ChildEngine, server: OpenAIServer) -> None:
    server.script([{"text": "read"}])
    text = "0123456789" * 300_000
    view = await child.request(CreateConversation())
    await send(child, view.conversation.uuid, text)
    await until(child, TurnCompleted)
    page = await child.request(FetchTurns(conversation_id=view.conversation.uuid, start=1, end=2))
    assert page.turns[0].messages[0].content == text


@pytest.mark.cold
async def test_modules_of_the_workspace_are_not_run(
    loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine is started in the workspace, and what it imports may be the name of a file there."""
    for name in ("msgspec", "neo4j", "json"):
        (tmp_path / f"{name}.py").write_text("open('was_run', 'w').close()\nraise SystemExit(3)\n")
    monkeypatch.chdir(tmp_path)
    engine = await ChildEngine.start(loaded)
    try:
        assert await engine.request(Hello())
    finally:
        await engine.close()
    assert not (tmp_path / "was_run").exists()


async def test_a_chat_that_left_before_the_start_ends_its_engine() -> None:
    requests, chat = os.pipe()
    os.close(chat)
    replies = os.open(os.devnull, os.O_WRONLY)
    try:
        assert await serve(requests, replies) == 0
    finally:
        os.close(replies)


async def test_an_engine_whose_input_never_ends_does_not_start() -> None:
    endless = os.open(os.devnull, os.O_RDWR)
    try:
        assert await serve(endless, endless) == 2
    finally:
        os.close(endless)


async def test_a_first_line_beyond_the_limit_ends_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragforge_tui.engine.server.MAX_LINE_BYTES", 10_000)
    requests, chat = os.pipe()
    replies = os.open(os.devnull, os.O_WRONLY)
    try:
        os.write(chat, b"x" * 30_000)
        assert await serve(requests, replies) == 2
    finally:
        os.close(chat)
        os.close(replies)


async def test_a_request_beyond_the_limit_is_refused_before_it_is_sent(
    child: ChildEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragforge_tui.engine.client.MAX_LINE_BYTES", 10_000)
    with pytest.raises(RagforgeError, match="larger than"):
        await child.request(OpenConversation(ref="x" * 10_000))
    assert await child.request(Hello())


async def test_a_line_beyond_the_limit_ends_the_engine(child: ChildEngine) -> None:
    await child.request(Hello())
    child._stdin.write(b"x" * (MAX_LINE_BYTES + 10_000))
    async with asyncio.timeout(PATIENCE):
        assert await child._process.wait() == 0
