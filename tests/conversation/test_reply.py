"""A reply: the model is asked while its message is stored, and nothing of it is shown or lost before that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any

import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.conversation.conversation import Conversation
from ragforge_tui.conversation.storage.recorder import Recorder
from ragforge_tui.llm import Finished, LeftOut, ModelPart, TextPart, ThoughtEnded
from ragforge_tui.llm.base import Messages
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.errors import GraphError
from ragforge_tui.shared.events import Event, MessageStarted, Notice, TextDelta, TurnFailed
from ragforge_tui.shared.limits import LIMITS
from ragforge_tui.shared.records import Message
from tests.conftest import ONE_BACKEND
from tests.support.model_script import Script
from tests.support.scripted_model import ScriptedModel, model_of
from tests.support.waiting import PATIENCE, until

pytestmark = ONE_BACKEND


class HeldStore:
    """`Recorder.add_message` that waits to be let go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gate = asyncio.Event()
        self.error: Exception | None = None
        stored = Recorder.add_message

        async def held(recorder: Recorder, message: Message, turn_id: str) -> Message:
            await self.gate.wait()
            if self.error is not None:
                raise self.error
            return await stored(recorder, message, turn_id)

        monkeypatch.setattr(Recorder, "add_message", held)


@pytest.fixture
async def conversation(loaded: Loaded) -> AsyncIterator[Conversation]:
    async with ConversationAgent(loaded) as agent:
        yield await agent.create_conversation("t")


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> HeldStore:
    return HeldStore(monkeypatch)


async def until_asked(server: Script) -> None:
    await until(lambda: server.requests)


async def watched(conversation: Conversation) -> list[Event]:
    return [event async for event in conversation.stream("Hello")]


async def test_an_answer_that_is_quick_is_not_held_back_by_the_head_start(
    conversation: Conversation, server: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LIMITS, "head_start", PATIENCE)
    server.script([{"text": "Hello."}, {"status": 400, "message": "no"}])
    async with asyncio.timeout(PATIENCE / 2):
        events = await watched(conversation)
        assert [event.text for event in events if isinstance(event, TextDelta)] == ["Hello."]
        assert any(isinstance(event, TurnFailed) for event in await watched(conversation))


async def test_the_model_is_asked_before_its_message_is_stored(
    conversation: Conversation, server: Script, held: HeldStore
) -> None:
    server.script([{"text": "Hi."}])
    turn = asyncio.create_task(watched(conversation))
    await until_asked(server)
    assert not turn.done()
    held.gate.set()
    kinds = [type(event) for event in await turn]
    assert kinds.index(MessageStarted) < kinds.index(TextDelta)
    [stored] = await conversation.get_history()
    assert [(message.position, message.content) for message in stored.messages] == [(0, "Hello"), (1, "Hi.")]


async def test_a_turn_stopped_meanwhile_is_stored_as_interrupted(
    conversation: Conversation, server: Script, held: HeldStore
) -> None:
    server.script([{"text": "Hi.", "stall": True}])
    turn = asyncio.create_task(watched(conversation))
    await until_asked(server)
    conversation.cancel()
    await asyncio.sleep(0.05)
    held.gate.set()
    await turn
    [stored] = await conversation.get_history()
    assert [message.state for message in stored.messages] == ["complete", "interrupted"]


async def test_a_message_that_cannot_be_stored_fails_the_turn(
    conversation: Conversation, server: Script, held: HeldStore
) -> None:
    server.script([{"text": "Hi."}])
    held.error = GraphError("The disk is full.", kind="disk")
    held.gate.set()
    events = await watched(conversation)
    [end] = [event for event in events if isinstance(event, TurnFailed)]
    assert end.error.what == "The disk is full."
    assert not any(isinstance(event, TextDelta) for event in events)


@pytest.mark.parametrize(
    ("reason", "state", "words"),
    [
        ("stop", "complete", ""),
        ("length", "interrupted", "length limit"),
        ("refusal", "interrupted", "refused to answer"),
        ("insufficient_resource", "interrupted", "“insufficient_resource”"),
        ("\x1b[2J" + "x" * 500, "interrupted", "ended the answer early"),
    ],
)
async def test_a_reply_that_ends_for_another_reason_is_cut_short_in_the_providers_word(
    loaded: Loaded, server: Script, monkeypatch: pytest.MonkeyPatch, reason: str, state: str, words: str
) -> None:
    """A thought without a beginning is reasoning, and what the server refuses is told."""

    async def stream(
        model: ScriptedModel, messages: Messages, *, tools: Any, cache_marks: Sequence[int] = ()
    ) -> AsyncGenerator[ModelPart, None]:
        for part in (LeftOut("It refuses tools."), TextPart("Let me see.\n"), ThoughtEnded(), TextPart("Yes.")):
            yield part
        yield Finished(reason=reason)

    monkeypatch.setattr(ScriptedModel, "stream", stream)
    async with ConversationAgent(loaded, model=model_of(server)) as agent:
        conversation = await agent.create_conversation("t")
        events = await watched(conversation)
        (turn,) = await conversation.get_history()
    reply = turn.messages[-1]
    assert (reply.content, reply.reasoning, reply.state) == ("Yes.", "Let me see.", state)
    assert words in reply.error and len(reply.error) < 300 and "\x1b" not in reply.error
    assert [event.text for event in events if isinstance(event, Notice)][:1] == ["It refuses tools."]
