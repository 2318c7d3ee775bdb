"""Questions of the agent: answered by the user, stored with the call, and never waited for where nobody is."""

from __future__ import annotations

import json
from typing import Any

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.conversation.turn.environment import PLANNING
from ragforge_tui.graph import Graph, Store
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.events import ApprovalResolved, QuestionAsked, TurnCancelled
from ragforge_tui.shared.records import STOPPED
from ragforge_tui.tools.asking import NO_ANSWER
from tests.support.model_script import Script

ASK: dict[str, Any] = {
    "tool_calls": [
        {
            "name": "ask_user",
            "arguments": {
                "question": "Which type?",
                "choices": [{"label": "Decimal", "description": "exact"}, "float"],
            },
        }
    ]
}


async def test_the_answer_reaches_the_model_and_stays(graph: Graph, loaded: Loaded, server: Script) -> None:
    server.script([ASK, {"text": "Decimal, then."}, {"text": "As you said."}])
    async with ConversationAgent(loaded, interactive=True) as agent:
        conversation = await agent.create_conversation()
        async for event in conversation.stream("Fix the rounding."):
            if isinstance(event, QuestionAsked):
                assert [choice.label for choice in event.choices] == ["Decimal", "float"]
                agent.services.approvals.answer(event.approval_id, "once", "Decimal, with [two] digits")
    async with ConversationAgent(loaded) as agent:
        resumed = await agent.load_conversation(conversation.record.uuid)
        await resumed.send_message("Why?")
    first, second, third = server.chats()
    names = [schema["function"]["name"] for schema in first["tools"]]
    assert "ask_user" in names and "notify_user" not in names and "ask_user" in PLANNING
    assert second["messages"][-1]["content"] == "The user answered: Decimal, with [two] digits"
    # The first message tells when the session began.
    assert third["messages"][2 : len(second["messages"])] == second["messages"][2:]
    (turn, _) = await Store(graph).turns.between(conversation.record.uuid, start=1, end=3)
    (call,) = turn.messages[1].tool_calls
    assert call.result is not None
    assert json.loads(call.result.result)["answer"] == "Decimal, with [two] digits"


async def test_without_a_user_it_is_answered_in_words_at_once(loaded: Loaded, server: Script) -> None:
    server.script([ASK, {"text": "I assume Decimal."}])
    async with ConversationAgent(loaded, approve_all=True) as agent:
        conversation = await agent.create_conversation()
        seen = [event async for event in conversation.stream("Fix the rounding.")]
    assert not any(isinstance(event, QuestionAsked) for event in seen)
    assert server.chats()[-1]["messages"][-1]["content"] == NO_ANSWER


async def test_a_stop_ends_the_question(graph: Graph, loaded: Loaded, server: Script) -> None:
    server.script([ASK, {"text": "never"}])
    async with ConversationAgent(loaded, interactive=True) as agent:
        conversation = await agent.create_conversation()
        seen = []
        async for event in conversation.stream("Fix the rounding."):
            seen.append(event)
            if isinstance(event, QuestionAsked):
                conversation.cancel()
    assert any(isinstance(event, ApprovalResolved) for event in seen) and isinstance(seen[-1], TurnCancelled)
    (turn,) = await Store(graph).turns.between(conversation.record.uuid, start=1, end=2)
    result = turn.messages[1].tool_calls[0].result
    assert result is not None and result.error == STOPPED
    assert len(server.chats()) == 1
