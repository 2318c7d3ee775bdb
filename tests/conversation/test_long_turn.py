"""Turns and windows: a turn that outgrows the model's window goes on, and a window that is smaller is learned."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.graph import GraphTarget
from ragforge_tui.memory.retrieval.recall import LATE
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.events import Event, ModelChanged, Notice, TurnCompleted, TurnFailed
from ragforge_tui.shared.limits import LIMITS
from tests.conftest import ONE_BACKEND
from tests.support.agents import with_model
from tests.support.model_script import Call, Script, Step, request_tokens
from tests.support.openai_server import OpenAIServer
from tests.support.waiting import until

FEW_CALLS = 40
CALLS = int(os.environ.get("RAGFORGE_TURN_CALLS", FEW_CALLS))
"""Calls of the long turn; the full matrix makes 200, on one backend, since what shortens a request knows no graph."""
LINES = 150
"""Lines of a file, some 3 000 tokens as they are read."""


def write_files(loaded: Loaded, count: int) -> None:
    for number in range(count):
        text = "".join(f"value_{number}_{line} = compute(previous, {line}) + offset\n" for line in range(LINES))
        Path(loaded.workspace, f"part{number}.py").write_text(text, encoding="utf-8")


def reads(count: int) -> list[Step]:
    calls = [[Call(name="read_file", arguments={"path": f"part{number}.py"})] for number in range(count)]
    return [Step(tool_calls=call, chunk=4_000) for call in calls]


@pytest.mark.http
@pytest.mark.slow
@pytest.mark.parametrize("window", [8_000, 32_000])
async def test_a_turn_of_many_calls_stays_within_the_window(
    loaded: Loaded, graph_target: GraphTarget, server: OpenAIServer, window: int
) -> None:
    calls = CALLS if graph_target.embedded else FEW_CALLS
    write_files(loaded, calls)
    server.window = window
    server.script([*reads(calls), Step(text="All read.")])
    settings = with_model(loaded, context_window=window, max_iterations=calls + 50)
    async with ConversationAgent(settings) as agent:
        conversation = await agent.create_conversation()
        answer = await conversation.send_message("Read all the parts and compare them")
        (turn,) = await conversation.get_history()
    assert answer.content == "All read."
    assert server.too_long == []
    chats = server.chats()
    assert len(chats) == calls + 1
    # What is read next is sent whole where the window has room for it.
    last = chats[-1]["messages"][-1]
    assert last["role"] == "tool"
    assert (f"value_{calls - 1}_{LINES // 2} =" in last["content"]) is (window == 32_000)
    assert "open_turn(1, call " in str(chats[-1]["messages"])
    # The graph holds every result as it was read: whole, or as much of the file as a small window has room for.
    end = f"_{LINES - 1} = " if window == 32_000 else "continue with start_line="
    results = [call.result for message in turn.messages for call in message.tool_calls]
    assert len(results) == calls
    assert all(result is not None and end in result.result for result in results)


@pytest.mark.http
@ONE_BACKEND
@pytest.mark.parametrize("stated", [True, False])
async def test_a_window_smaller_than_assumed_is_learned(
    loaded: Loaded, server: OpenAIServer, stated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(loaded, 12)
    server.window = 9_000
    if not stated:
        monkeypatch.setattr("ragforge_tui.llm.provider_errors._stated_window", lambda detail: None)
    server.script([*reads(12), Step(text="All read."), Step(text="Again.")])
    settings = with_model(loaded, context_window=32_000)
    async with ConversationAgent(settings) as agent:
        conversation = await agent.create_conversation()
        changes: list[Event] = []
        agent.services.events.listen(changes.append)
        events = [event async for event in conversation.stream("Read all the parts")]
    windows = [event.context_window for event in changes if isinstance(event, ModelChanged)]
    assert isinstance(events[-1], TurnCompleted)
    notices = [event.text for event in events if isinstance(event, Notice)]
    assert any("reads fewer tokens than assumed" in text for text in notices)
    assert windows[-1] <= 9_000, "the gauge shows the window assumed before"
    rejected = len(server.too_long)
    assert 1 <= rejected <= (1 if stated else 6)
    async with ConversationAgent(settings) as agent:
        await (await agent.load_conversation()).send_message("And again")
        assert agent.model_state.context_window == windows[-1]
    assert len(server.too_long) == rejected, "the window was not remembered"
    assert max(request_tokens(body) for body in server.chats()[-2:]) <= 9_000


@pytest.mark.http
@ONE_BACKEND
async def test_a_learned_window_is_never_below_the_one_that_the_provider_named(
    loaded: Loaded, server: OpenAIServer
) -> None:
    """The server refuses requests that we take to fit, each time with the same number."""
    too_long = Step(
        when="tools",
        status=400,
        code="context_length_exceeded",
        message="This model's maximum context length is 8192 tokens, your messages have more.",
    )
    server.script([too_long, too_long, Step(text="Hello."), Step(text="Again.")])
    settings = with_model(loaded, context_window=32_000)
    async with ConversationAgent(settings) as agent:
        conversation = await agent.create_conversation()
        events = [event async for event in conversation.stream("Hello " + "word " * 12_000)]
        learned = agent.model_state
    assert isinstance(events[-1], TurnCompleted)
    shortened = [event.text for event in events if isinstance(event, Notice) and "fewer tokens" in event.text]
    assert len(shortened) == 1, "the same refusal is told once"
    assert (learned.context_window, learned.window_learned is not None) == (8_192, True)
    async with ConversationAgent(settings) as agent:
        await (await agent.load_conversation()).send_message("And again")
        assert (agent.model_state.context_window, agent.model_state.window_learned) == (8_192, learned.window_learned)
        reset = await agent.services.model.change(learned.name)
        assert (reset.context_window, reset.window_learned) == (32_000, None)
    async with ConversationAgent(settings) as agent:
        await agent.services.model.model()
        assert agent.model_state.context_window == 32_000


@pytest.mark.http
@ONE_BACKEND
async def test_a_request_that_cannot_be_shortened_fails_with_advice(loaded: Loaded, server: OpenAIServer) -> None:
    server.window = 200  # less than the instructions
    async with ConversationAgent(with_model(loaded, context_window=32_000)) as agent:
        conversation = await agent.create_conversation()
        events = [event async for event in conversation.stream("Hello")]
    assert isinstance(events[-1], TurnFailed)
    assert events[-1].error.kind == "context_too_long"
    assert "model.context_window" in events[-1].error.todo and "instructions and tools" in events[-1].error.what
    assert len(server.too_long) == len(set(server.too_long)) <= 2, "the same request was sent again"


@pytest.mark.http
@ONE_BACKEND
async def test_a_tokenizer_that_counts_more_is_allowed_for(loaded: Loaded, server: OpenAIServer) -> None:
    write_files(loaded, 12)
    server.script([*reads(12), Step(text="All read.")])
    server.window, server.token_scale = 16_000, 1.4
    async with ConversationAgent(with_model(loaded, context_window=16_000)) as agent:
        conversation = await agent.create_conversation()
        answer = await conversation.send_message("Read all the parts")
    assert answer.content == "All read."
    assert server.too_long == []


@pytest.mark.http
@ONE_BACKEND
async def test_the_server_is_asked_for_its_window(loaded: Loaded, server: OpenAIServer) -> None:
    """It is asked in the background and remembered; until it has told it, the window is said to be assumed."""
    settings = with_model(loaded)
    async with ConversationAgent(settings) as agent:
        await agent.services.model.model()
        await until(lambda: len(server.questions) >= 4)
        state = agent.model_state
        assert (state.context_window, state.window_assumed) == (32_768, True)
    server.about["/v1/models"] = {"data": [{"id": "scripted", "max_model_len": 12_000}]}
    async with ConversationAgent(settings) as agent:
        await agent.services.model.model()
        await until(lambda: agent.model_state.context_window == 12_000)
        assert not agent.model_state.window_assumed
    server.about.clear()
    async with ConversationAgent(settings) as agent:
        model = await agent.services.model.model()
        assert model.context_window == agent.model_state.context_window == 12_000


@ONE_BACKEND
async def test_that_nothing_had_to_be_recalled_is_told_once(loaded: Loaded, server: Script) -> None:
    server.script([Step(text=f"Answer {number}.") for number in range(5)])
    async with ConversationAgent(with_model(loaded, context_window=32_000)) as agent:
        conversation = await agent.create_conversation()
        whole = "All 2 earlier turns were sent whole; once they no longer fit, what matters is recalled."
        told: list[int] = []
        for turn in range(1, 6):
            events = [event async for event in conversation.stream(f"What is {turn} times the harbour?")]
            notices = [event.text for event in events if isinstance(event, Notice)]
            told += [turn for text in notices if text == whole]
    assert told == [3]


@ONE_BACKEND
async def test_a_memory_that_came_too_late_is_told(
    loaded: Loaded, server: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script([Step(text=f"Answer {number}.") for number in range(4)])
    told = []
    async with ConversationAgent(with_model(loaded, context_window=32_000)) as agent:
        await (await agent.create_conversation()).send_message("Our harbour is called Bluebird.")
        conversation = await agent.create_conversation()
        for limit in (0.0, 30.0):
            monkeypatch.setattr(LIMITS, "first_recall", limit)
            monkeypatch.setattr(LIMITS, "recall", 30.0)
            events = [event async for event in conversation.stream("What is our harbour called?")]
            told.append([event.text for event in events if isinstance(event, Notice)])
    assert told == [[f"{LATE} Ask again to search them."], []]
