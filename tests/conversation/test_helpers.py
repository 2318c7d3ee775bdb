"""Helpers of the agent: contexts of their own that only read, stored, counted, and stopped with their turn."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.graph import Graph, Store
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.events import Event, ToolCallOutput, TurnCancelled, TurnCompleted
from ragforge_tui.shared.records import STOPPED, ToolCall
from tests.support.model_script import Script
from tests.support.waiting import until


def delegated(*tasks: str) -> dict[str, Any]:
    calls = [{"name": "delegate", "arguments": {"kind": "search", "task": task}} for task in tasks]
    return {"match": "Survey", "tool_calls": calls}


READ = {"name": "read_file", "arguments": {"path": "greeting.py"}}
WRITE = {"name": "write_file", "arguments": {"path": "new.txt", "content": "x"}}
USAGE = {"prompt_tokens": 1_000, "completion_tokens": 10, "total_tokens": 1_010}


def data_of(call: ToolCall) -> dict[str, Any]:
    assert call.result is not None
    found: dict[str, Any] = json.loads(call.result.result)
    return found


async def test_several_work_at_once_and_answer_briefly(graph: Graph, loaded: Loaded, server: Script) -> None:
    server.script(
        [
            delegated("find alpha", "find beta"),
            {"match": "find alpha", "tool_calls": [READ, WRITE], "gate": "alpha", "usage": USAGE},
            {"match": "find alpha", "text": "Alpha is in greeting.py:1."},
            {"match": "find beta", "text": "There is no beta."},
            {"match": "Survey", "text": "One of two."},
            {"match": "Survey again", "text": "As before."},
        ]
    )
    seen: list[Event] = []
    async with ConversationAgent(loaded, approve_all=True) as agent:
        conversation = await agent.create_conversation()
        async for event in conversation.stream("Survey the code."):
            seen.append(event)
            if len(server.chats()) == 3:  # beta was asked while alpha still waits
                server.release("alpha")
        listed = await agent.list_conversations(status="any")
    assert [one.uuid for one in listed] == [conversation.record.uuid]
    end = seen[-1]
    assert isinstance(end, TurnCompleted) and end.usage.input_tokens >= USAGE["prompt_tokens"]
    assert any(isinstance(event, ToolCallOutput) and "greeting.py" in event.lines[0] for event in seen)
    store = Store(graph)
    (turn,) = await store.turns.between(conversation.record.uuid, start=1, end=2)
    alpha, beta = turn.messages[1].tool_calls
    assert data_of(alpha)["text"] == "Alpha is in greeting.py:1." and data_of(beta)["text"] == "There is no beta."
    assert len(data_of(alpha)["trace"]) == 3
    helper = await store.conversations.get(data_of(alpha)["helper"])
    assert (helper.helper_of, helper.branch_of, helper.private) == (alpha.uuid, conversation.record.uuid, True)
    (work,) = await store.turns.between(helper.uuid, start=1, end=9)
    assert [call.success for call in work.messages[1].tool_calls] == [True, False], "it only reads"
    asked = next(body for body in server.chats() if "find alpha" in str(body["messages"][-1]))
    names = {schema["function"]["name"] for schema in asked["tools"]}
    assert {"read_file", "grep_files", "run_command"} <= names
    assert not names & {"write_file", "edit_file", "ask_user", "update_todos", "delegate"}
    async with ConversationAgent(loaded) as agent:
        resumed = await agent.load_conversation(conversation.record.uuid)
        await resumed.send_message("Survey again")
        before, after = server.chats()[-2:]
        assert after["messages"][2 : len(before["messages"])] == before["messages"][2:]
        await agent.delete_conversation(conversation.record.uuid, immediately=True)
    with pytest.raises(NotFoundError):
        await store.conversations.get(helper.uuid)


async def test_a_stop_stops_it(graph: Graph, loaded: Loaded, server: Script) -> None:
    server.script([delegated("find alpha"), {"match": "find alpha", "text": "never", "gate": "never"}])
    async with ConversationAgent(loaded, approve_all=True) as agent:
        conversation = await agent.create_conversation()
        with agent.subscribe() as events:
            await conversation.submit("Survey the code.")
            await until(lambda: len(server.chats()) == 2)
            conversation.cancel()
            await conversation.wait_idle()
            ended = [events.get_nowait() for _ in range(events.qsize())]
    assert sum(isinstance(event, TurnCancelled) for event in ended) == 2
    (turn,) = await Store(graph).turns.between(conversation.record.uuid, start=1, end=2)
    (call,) = turn.messages[1].tool_calls
    assert call.result is not None and call.result.error == STOPPED
    (work,) = await Store(graph).turns.between(data_of(call)["helper"], start=1, end=2)
    assert work.messages[-1].state == "interrupted"


async def test_its_budget_ends_it_with_what_it_has(
    loaded: Loaded, server: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragforge_tui.conversation.turn.helpers.MOST_TOKENS", 500)
    server.script(
        [
            delegated("find alpha"),
            {"match": "find alpha", "text": "Alpha may be in greeting.py.", "tool_calls": [READ], "usage": USAGE},
            {"match": "find alpha", "text": "never", "gate": "never"},
            {"match": "Survey", "text": "It did not finish."},
        ]
    )
    async with ConversationAgent(loaded, approve_all=True) as agent:
        answer = await (await agent.create_conversation()).send_message("Survey the code.")
    assert answer.content == "It did not finish."
    told = server.chats()[-1]["messages"][-1]["content"]
    assert "used up its budget" in told and "Alpha may be in greeting.py." in told
