"""The count of each message's tokens: right, in the graph, and no reason to store a message late."""

from __future__ import annotations

import threading

import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.conversation.storage import token_counts
from ragforge_tui.conversation.storage.token_counts import count_imported
from ragforge_tui.llm.tokens import count_tokens
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.export_records import ConversationExport
from ragforge_tui.shared.records import Message
from tests.conftest import ONE_BACKEND
from tests.support.model_script import Script
from tests.support.records import conversation
from tests.support.turns import turn_of

ASKED = "Größenwahn: 大きな問題 — was heißt das? " * 5
SAID = "def f(x):\n    return x ** 2  # quadrat\n" * 9


async def stored_counts(agent: ConversationAgent, uuid: str) -> list[Message]:
    turns = await (await agent.store()).turns.between(uuid, start=1, end=9)
    return [message for turn in turns for message in turn.messages]


async def test_every_message_has_the_count_of_its_tokens(loaded: Loaded, server: Script) -> None:
    server.script([{"tool_calls": [{"name": "read_file", "arguments": {"path": "greeting.py"}}]}, {"text": SAID}])
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        await conversation.send_message(ASKED)
        await conversation.run_command("echo hello")
        await conversation.wait_idle()
        await agent.services.recorder.settle()
        messages = await stored_counts(agent, conversation.record.uuid)
    assert len(messages) == 5
    assert [message.token_count for message in messages] == [count_tokens(message.content) for message in messages]
    assert messages[0].token_count != len(messages[0].content) // 4
    assert messages[2].token_count == count_tokens(SAID)


@ONE_BACKEND
async def test_a_slow_count_does_not_delay_the_message(
    loaded: Loaded, server: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = threading.Event()

    def slow(text: str) -> int:
        assert stored.wait(30)
        return count_tokens(text)

    monkeypatch.setattr(token_counts, "count_tokens", slow)
    server.script([{"text": "yes"}])
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        await conversation.send_message(ASKED)
        before = await stored_counts(agent, conversation.record.uuid)
        assert [message.content for message in before] == [ASKED, "yes"]
        stored.set()
        await agent.services.recorder.settle()
        after = await stored_counts(agent, conversation.record.uuid)
    assert [message.token_count for message in after] == [count_tokens(ASKED), 1]


def test_imported_messages_are_counted() -> None:
    made = conversation()
    turn = turn_of(made.uuid, 1, ASKED, SAID)
    turn.messages[0].token_count = len(ASKED) // 4
    [counted] = count_imported(ConversationExport(conversation=made, turns=[turn])).turns
    assert [message.token_count for message in counted.messages] == [count_tokens(ASKED), count_tokens(SAID)]
