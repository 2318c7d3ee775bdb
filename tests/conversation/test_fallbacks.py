"""Fallbacks: another model answers when the chosen one is limited or down, and the chosen one is asked again later."""

from __future__ import annotations

import msgspec
import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.llm import client
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.events import Event, Notice, TurnCompleted, TurnFailed
from tests.conftest import ONE_BACKEND
from tests.support.agents import with_memory, with_model
from tests.support.openai_server import OpenAIServer

pytestmark = ONE_BACKEND
LIMITED = {"status": 429, "message": "slow down", "headers": {"retry-after": "60"}}
READ = {"tool_calls": [{"name": "read_file", "arguments": {"path": "greeting.py"}}]}


def notices(seen: list[Event]) -> list[str]:
    return [event.text for event in seen if isinstance(event, Notice)]


def models(server: OpenAIServer) -> list[str]:
    return [body["model"] for body in server.chats()]


@pytest.mark.http
async def test_a_fallback_answers_the_rest_of_the_turn(loaded: Loaded, server: OpenAIServer) -> None:
    server.script([LIMITED, READ, {"text": "from the second"}, {"text": "from the first"}])
    async with ConversationAgent(with_model(loaded, fallbacks=["openai/second"])) as agent:
        conversation = await agent.create_conversation()
        seen = [event async for event in conversation.stream("hello")]
        assert isinstance(seen[-1], TurnCompleted) and seen[-1].text == "from the second"
        assert models(server) == ["scripted", "second", "second"], "no wait of a minute, and no way back in the turn"
        (told,) = notices(seen)
        assert "is limiting requests" in told and "openai/second answers instead." in told
        assert told.endswith("The next message goes to openai/scripted again.")
        assert (await conversation.send_message("again")).content == "from the first"
        assert models(server)[-1] == "scripted"
        history = await conversation.get_history()
    answers = [message for turn in history for message in turn.messages if message.role == "assistant"]
    assert [message.model for message in answers] == ["openai/second", "openai/second", "openai/scripted"]


@pytest.mark.http
async def test_an_answer_that_has_begun_is_not_begun_again(loaded: Loaded, server: OpenAIServer) -> None:
    server.script([{"text": "half of it", "cut": True}])
    async with ConversationAgent(with_model(loaded, fallbacks=["openai/second"])) as agent:
        conversation = await agent.create_conversation()
        *_, end = [event async for event in conversation.stream("hello")]
    assert isinstance(end, TurnFailed) and models(server) == ["scripted"]


@pytest.mark.http
async def test_a_fallback_that_fails_is_passed_over(
    loaded: Loaded, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "RETRIES_BEFORE_FALLBACK", 0)
    gone = {"status": 404, "message": "The model `second` does not exist"}
    server.script([{"text": "hi"}, {"status": 503, "message": "overloaded"}, gone, {"text": "third time lucky"}])
    settings = with_model(loaded, fallbacks=["openai/second", "openai/third"])
    async with ConversationAgent(settings) as agent:
        conversation = await agent.create_conversation()
        await conversation.send_message("hi")
        assert (await conversation.send_message("hello")).content == "third time lucky"
        assert models(server) == ["scripted", "scripted", "second", "third"]
        refused = {"status": 400, "message": "no such parameter"}
        server.script([refused])
        *_, end = [event async for event in conversation.stream("a wrong request")]
    assert isinstance(end, TurnFailed) and models(server)[-1] == "scripted", "its own fault helps no other model"


@pytest.mark.http
async def test_titles_and_summaries_are_written_by_their_own_model(loaded: Loaded, server: OpenAIServer) -> None:
    summaries = msgspec.structs.replace(loaded.settings.agent.memory.summarization, model="openai/fast", every_turns=1)
    settings = with_memory(loaded, summarization=summaries)
    async with ConversationAgent(settings) as agent:
        conversation = await agent.create_conversation()
        for text in ("one", "two", "three", "four"):
            await conversation.send_message(text)
        await conversation.memory.settle()
    asked = {bool(request.body.get("tools")): request.body["model"] for request in server.requests if request.body}
    assert asked == {True: "scripted", False: "fast"}


@pytest.mark.http
async def test_effort_reaches_the_next_request(loaded: Loaded, server: OpenAIServer) -> None:
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        for effort in (None, "low", "none", None):
            agent.change_model_settings({"reasoning_effort": effort})
            await conversation.send_message("hello")
            assert server.chats()[-1].get("reasoning_effort") == effort
        agent.change_model_settings({"reasoning_effort": "high"})
        state = await agent.services.model.effort()
        assert (state.model, state.effort, state.taken) == ("openai/scripted", "high", True)
        await agent.set_model("offline")
        assert not (await agent.services.model.effort()).taken
