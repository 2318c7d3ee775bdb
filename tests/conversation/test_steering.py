"""Messages for the running turn: they join it before its next request, stay in it, and are never lost."""

from __future__ import annotations

from typing import Any

import pytest

from ragforge_tui.conversation import Conversation, ConversationAgent
from ragforge_tui.conversation.turn.steering import STEERED
from ragforge_tui.graph import Graph, Store
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.events import Event, MessageStarted, Steered, TextDelta, TurnCancelled, TurnStarted
from ragforge_tui.shared.records import Turn
from tests.support.model_script import Script
from tests.support.waiting import until

READ: dict[str, Any] = {
    "text": "Looking first.",
    "tool_calls": [{"name": "read_file", "arguments": {"path": "greeting.py"}}],
    "gate": "first",
    "gate_at": 1,
}
WISH = "No, use Decimal."


async def steered(conversation: Conversation, server: Script, *wishes: str) -> list[Event]:
    """Talk, and steer as soon as the first reply has begun."""
    seen: list[Event] = []
    async for event in conversation.stream("Fix the rounding."):
        seen.append(event)
        if isinstance(event, TextDelta) and len([one for one in seen if isinstance(one, TextDelta)]) == 1:
            for number, wish in enumerate(wishes):
                assert await conversation.submit(wish, f"wish-{number}", steer=True) == 0
            server.release("first")
    return seen


async def stored(graph: Graph, conversation: Conversation) -> list[Turn]:
    return await Store(graph).turns.between(conversation.record.uuid, start=1, end=9)


async def test_it_joins_the_turn_before_its_next_request_and_keeps_its_place(
    graph: Graph, loaded: Loaded, server: Script
) -> None:
    server.script([READ, {"text": "With Decimal, then."}, {"text": "As agreed."}])
    async with ConversationAgent(loaded, approve_all=True) as agent:
        conversation = await agent.create_conversation()
        seen = await steered(conversation, server, WISH)
        kinds = [type(event) for event in seen if isinstance(event, Steered | MessageStarted)]
        assert kinds == [MessageStarted, Steered, MessageStarted]
    async with ConversationAgent(loaded, approve_all=True) as agent:
        resumed = await agent.load_conversation(conversation.record.uuid)
        await resumed.send_message("And now?")
        assert resumed.record.message_count == 6
        exported = (await resumed.export(format="markdown")).lower()
    (turn, _) = await stored(graph, conversation)
    assert [(one.position, one.role) for one in turn.messages] == [
        (0, "user"),
        (1, "assistant"),
        (2, "user"),
        (3, "assistant"),
    ]
    _, second, third = (body["messages"] for body in server.chats())
    assert second[-1]["role"] == "user" and WISH in second[-1]["content"] and STEERED in second[-1]["content"]
    assert second[-3]["role"] == "tool", "the results come first"
    # The first message tells when the session began.
    assert third[2 : len(second)] == second[2:], "a resumed conversation sends it at the same place"
    assert exported.index("looking first") < exported.index(WISH.lower()) < exported.index("with decimal, then")


async def test_files_named_in_it_are_sent_along(loaded: Loaded, server: Script) -> None:
    server.script([READ, {"text": "With Decimal, then."}])
    async with ConversationAgent(loaded, approve_all=True) as agent:
        await steered(await agent.create_conversation(), server, "As in @greeting.py please.")
    said = server.chats()[1]["messages"][-1]["content"]
    assert STEERED in said and "1\tdef greet():" in said


async def test_what_the_turn_no_longer_asks_for_becomes_the_next_one(
    graph: Graph, loaded: Loaded, server: Script
) -> None:
    server.script([{"text": "All is done.", "gate": "first", "gate_at": 1}, {"text": "Decimal."}, {"text": "Queued."}])
    async with ConversationAgent(loaded, approve_all=True) as agent:
        conversation = await agent.create_conversation()
        with agent.subscribe() as events:
            await conversation.submit("Fix the rounding.")
            await until(lambda: not events.empty() and len(server.chats()) == 1)
            await conversation.submit("Then commit.", "later")
            await conversation.submit(WISH, "wish", steer=True)
            server.release("first")
            await until(lambda: len(server.chats()) == 3 and not conversation.busy)
    turns = await stored(graph, conversation)
    assert [[one.content for one in turn.messages if one.role == "user"] for turn in turns] == [
        ["Fix the rounding."],
        [WISH],
        ["Then commit."],
    ]
    assert all(not turn.messages[0].note.startswith(STEERED) for turn in turns)


async def test_it_survives_a_stop_and_is_asked_again_with_its_turn(
    graph: Graph, loaded: Loaded, server: Script
) -> None:
    server.script([READ, {"text": "Never whole.", "gate": "never", "gate_at": 1}, {"text": "Decimal it is."}])
    async with ConversationAgent(loaded, approve_all=True) as agent:
        conversation = await agent.create_conversation()
        ended: list[Event] = []
        async for event in conversation.stream("Fix the rounding."):
            ended.append(event)
            if isinstance(event, TextDelta) and event.text.startswith("Looking"):
                await conversation.submit(WISH, "wish", steer=True)
                await conversation.submit("dropped", "dropped", steer=True)
                assert conversation.unqueue("dropped")
                server.release("first")
            elif isinstance(event, Steered):
                await until(lambda: len(server.chats()) == 2)
                conversation.cancel()
        assert isinstance(ended[-1], TurnCancelled)
    async with ConversationAgent(loaded, approve_all=True) as agent:
        resumed = await agent.load_conversation(conversation.record.uuid)
        with agent.subscribe() as events:
            await resumed.retry()
            assert isinstance(await events.get(), TurnStarted)
            await until(lambda: len(server.chats()) == 3 and not resumed.busy)
    (turn,) = await stored(graph, conversation)
    kept = [(one.role, one.content) for one in turn.messages if one.state != "superseded"]
    assert kept == [("user", "Fix the rounding."), ("user", WISH), ("assistant", "Decimal it is.")]
    asked = server.chats()[-1]["messages"][-1]["content"]
    assert asked.endswith(WISH) and "Fix the rounding." in asked and "dropped" not in asked


async def test_a_message_stored_before_a_crash_is_not_stored_twice(
    graph: Graph, loaded: Loaded, server: Script
) -> None:
    server.script([READ, {"text": "With Decimal, then."}])
    async with ConversationAgent(loaded, approve_all=True) as agent:
        conversation = await agent.create_conversation()
        await steered(conversation, server, WISH, "And commit.")
    async with ConversationAgent(loaded, approve_all=True) as agent:
        resumed = await agent.load_conversation(conversation.record.uuid)
        with pytest.raises(RagforgeError, match="already started"):
            await resumed.submit(WISH, "wish-0", steer=True)
    (turn,) = await stored(graph, conversation)
    assert [one.content for one in turn.messages if one.role == "user"] == ["Fix the rounding.", WISH, "And commit."]
