"""Every request of a long conversation is one that the chat templates of local models take."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ragforge_tui.conversation import Conversation, ConversationAgent
from ragforge_tui.engine.handlers import EngineContext, answer
from ragforge_tui.llm.forms import NO_ANSWER
from ragforge_tui.memory.context.sections import CLOSING
from ragforge_tui.personas.drafts import template
from ragforge_tui.settings.schema import Loaded, SummarizationSettings
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.events import ToolCallFinished, ToolCallStarted
from ragforge_tui.shared.persona_records import PersonaBrief
from ragforge_tui.shared.requests.personas import ImprovePersona
from tests.conftest import ONE_BACKEND
from tests.support.agents import with_memory, with_model
from tests.support.chat_templates import Messages
from tests.support.openai_server import OpenAIServer

# No statement is made here that tests/graph does not run on both backends.
pytestmark = ONE_BACKEND

READ = {"name": "read_file", "arguments": {"path": "greeting.py"}}
LIST = {"name": "list_directory", "arguments": {"path": "."}}
EDIT = {"name": "edit_file", "arguments": {"path": "greeting.py", "old_string": '"hello"', "new_string": '"good day"'}}
SLEEP = {"name": "run_command", "arguments": {"command": "sleep 60"}}
SMALL = 6_000
"""Characters of context, which the conversation outgrows, so that earlier turns are recalled."""
FEW = SummarizationSettings(every_turns=3, every_chars=100_000, keep_recent_turns=1, level_chars=600)
SUMMARY = {
    "when": "plain",
    "match": "<<<material",
    "text": json.dumps(
        {
            "conversation_summary": "Harbours were told of.",
            "key_findings": [{"text": "A harbour has cranes.", "turns": [1]}],
            "topics": ["Harbours", "Piers"],
        }
    ),
}
UNUSABLE = {"when": "plain", "match": "<<<material", "text": "I would rather not."}


@pytest.mark.slow
@pytest.mark.http
async def test_a_long_conversation_is_taken_by_every_template(loaded: Loaded, server: OpenAIServer) -> None:
    loaded = with_model(with_memory(loaded, max_context_chars=SMALL, summarization=FEW), max_iterations=3)
    async with ConversationAgent(loaded, approve_all=True) as agent:
        conversation = await agent.create_conversation()
        await changed_and_undone(conversation, server)
        await stopped_failed_and_limited(conversation, server)
        await conversation.set_persona("Dev")
        await planned(conversation, server)
        await grown(conversation, server)
        branch = await agent.branch_conversation(conversation.record.uuid, 6)
        await asked(branch, server, "On another way?", [{"text": "Another way."}])
        await asked(await agent.create_conversation(), server, "From the beginning?", [{"text": "Yes."}])
        await persona_improved(EngineContext(agent, loaded), server)
    async with ConversationAgent(loaded, approve_all=True) as again:
        resumed = await again.load_conversation(conversation.record.uuid)
        await asked(
            resumed, server, "Where is the deploy key kept?", [{"tool_calls": [READ]}, {"text": "In Bluebird."}]
        )
        server.script([{"text": "In the vault Bluebird."}])
        await resumed.retry()
        await resumed.wait_idle()
        await resumed.memory.settle()

    assert server.refused == []
    sent = [request.body["messages"] for request in server.requests]
    for messages in sent:
        assert [at for at, message in enumerate(messages) if message["role"] == "system"] == [0]
    plain = [body["messages"][0]["content"] for body in bodies(server, tools=False)]
    for task in ("You name a conversation", "You summarise turns", "You describe in two", "You write personas"):
        assert any(text.startswith(task) for text in plain), task
    assert any(messages[-1]["content"].startswith("That cannot be used") for messages in sent)
    texts = [message["content"] for body in bodies(server, tools=True) for message in body["messages"]]
    for told in (CLOSING, NO_ANSWER, "in planning mode", "ended planning", "(/redo)", "used all the steps"):
        assert any(told in text for text in texts), told
    assert any(calls_of(messages) for messages in sent)


def bodies(server: OpenAIServer, *, tools: bool) -> list[dict[str, Any]]:
    return [request.body for request in server.requests if bool(request.body.get("tools")) is tools]


def calls_of(messages: Messages) -> list[Any]:
    return [call for message in messages for call in message.get("tool_calls") or []]


async def asked(
    conversation: Conversation, server: OpenAIServer, text: str, steps: list[dict[str, Any]]
) -> dict[str, Any]:
    """Say something, with summaries to come when they are due; returns the last request."""
    server.script([*steps, UNUSABLE, *[SUMMARY] * 8])
    await conversation.send_message(text)
    await conversation.memory.settle()
    return server.chats()[-1]


async def changed_and_undone(conversation: Conversation, server: OpenAIServer) -> None:
    """An edit after parallel reads, commands of the user's own, undo, redo, and an answer to all of it."""
    await conversation.run_command("echo before anything was said")
    await conversation.wait_idle()
    reads = {"reasoning": "Both matter.", "text": "I look.", "tool_calls": [READ, LIST]}
    request = await asked(conversation, server, "Greet better.", [reads, {"tool_calls": [EDIT]}, {"text": "Done."}])
    assert [m["reasoning_content"] for m in request["messages"] if "reasoning_content" in m] == ["Both matter."]
    await conversation.undo(2)
    await conversation.wait_idle()
    await conversation.undo((await conversation.plan_undo(redo=True)).turn_index)
    await conversation.wait_idle()
    await conversation.run_command("echo one")
    await conversation.run_command("echo two")
    await conversation.wait_idle()
    request = await asked(conversation, server, "What happened?", [{"text": "Much."}])
    assert request["messages"][-1]["content"].endswith("\n\nWhat happened?")
    assert "Both matter." not in str(request), "past turns go without"


async def stopped_failed_and_limited(conversation: Conversation, server: OpenAIServer) -> None:
    """A turn stopped while its tool ran, one that failed without a word, one that used all its steps."""
    server.script([{"tool_calls": [SLEEP]}])
    async for event in conversation.stream("Sleep."):
        if isinstance(event, ToolCallStarted):
            conversation.cancel()
    server.script([{"status": 401, "message": "bad key"}])
    try:
        await conversation.send_message("Nobody answers this.")
    except RagforgeError as error:
        assert error.info.kind == "bad_key"
    steps = [{"tool_calls": [{"name": "glob_files", "arguments": {"pattern": f"*{n}"}}]} for n in range(3)]
    await asked(conversation, server, "Search.", [*steps, {"text": "What I know."}])


async def planned(conversation: Conversation, server: OpenAIServer) -> None:
    """A plan, and planning that ends and begins again while tools run."""
    conversation.mode = "plan"
    await asked(conversation, server, "Plan it.", [{"tool_calls": [READ, EDIT]}, {"text": "The plan."}])
    server.script([{"tool_calls": [READ]}, {"tool_calls": [LIST]}, {"text": "Changed my mind."}])
    async for event in conversation.stream("And now?"):
        if isinstance(event, ToolCallFinished):
            conversation.mode = "ask" if conversation.mode == "plan" else "plan"
    conversation.mode = "ask"


async def grown(conversation: Conversation, server: OpenAIServer) -> None:
    """So much that not all of it can be sent, and a question about the beginning of it."""
    await asked(conversation, server, "The deploy key is kept in the vault called Bluebird.", [{"text": "Noted."}])
    for n in range(5):
        text = f"Tell me about harbour {n}. " + f"The harbour number {n} has cranes, ropes and tides. " * 14
        await asked(conversation, server, text, [{"text": f"Harbour {n} has two piers."}])
    request = await asked(conversation, server, "Where is the deploy key kept?", [{"text": "In Bluebird."}])
    assert "Bluebird" in request["messages"][-1]["content"]


async def persona_improved(engine: EngineContext, server: OpenAIServer) -> None:
    draft = template(PersonaBrief(name="Vera"), "Ada")
    server.script([{"when": "plain", "match": "Write the complete persona", "text": draft}])
    assert "Vera" in (await answer(engine, ImprovePersona(text=draft, name="Vera"))).text
