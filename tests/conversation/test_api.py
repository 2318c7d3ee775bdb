"""The Python API on both backends: what a program passes in, and what conversations give back."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.conversation.conversation import Conversation
from ragforge_tui.conversation.turn.tool_runner import CALLS_AT_ONCE
from ragforge_tui.llm.functions import FunctionModel
from ragforge_tui.memory.context import BuiltContext
from ragforge_tui.settings.load import load
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.errors import ConfigError, ModelError, NotFoundError, RagforgeError
from ragforge_tui.shared.events import ApprovalRequested, ApprovalResolved
from ragforge_tui.shared.records import call_end
from ragforge_tui.tools.functions import tool
from tests.support.agents import with_model
from tests.support.fake_embedder import FakeEmbedder

SUBJECTS = ("harbour", "zebra", "compiler", "violin", "glacier", "teapot")


def echo(messages: list[dict[str, Any]]) -> str:
    """Answer with the last line of the question."""
    return f"Noted: {str(messages[-1]['content']).splitlines()[-1]}"


def calling(name: str, arguments: dict[str, Any]) -> FunctionModel:
    """A model that makes one call in each turn, then answers."""

    def model(messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None) -> dict[str, Any] | str:
        if messages[-1]["role"] == "tool":
            return f"It says: {messages[-1]['content']}"
        call = {"function": {"name": name, "arguments": arguments}}
        return {"reasoning_content": "I should look.", "tool_calls": [call]} if tools else "A title"

    return FunctionModel(model, name="calling")


def weather(city: str) -> str:
    """Tell the weather."""
    return f"Sun over {city}."


async def talked(agent: ConversationAgent) -> Conversation:
    """A conversation with a turn on each subject."""
    conversation = await agent.create_conversation("Subjects")
    for subject in SUBJECTS:
        await conversation.send_message(f"Tell me about the {subject} of Montevideo.")
    return conversation


def sent_turns(context: BuiltContext) -> list[int]:
    return [item.turn_index for section in context.sections for item in section.items if item.kind == "message"]


def recalled_turns(context: BuiltContext) -> list[int]:
    return [item.turn_index for section in context.sections for item in section.items if item.kind == "turn"]


# --- what a program passes in -----------------------------------------------------------------------------------------


async def test_an_answer_carries_reasoning_calls_usage_and_context(loaded: Loaded) -> None:
    model = calling("weather", {"city": "Lyon"})
    async with ConversationAgent(loaded, model=model, tools=[weather]) as agent:
        conversation = await agent.create_conversation("Weather", tags=["sky"])
        answer = await conversation.send_message("How is it in Lyon?")
        assert agent.model_state.origin == "given by the program"
        (stored,) = await conversation.get_history()
    assert (answer.content, answer.reasoning) == ("It says: Sun over Lyon.", "I should look.")
    assert [(call.tool_name, call.success) for call in answer.tool_calls] == [("weather", True)]
    assert answer.usage.input_tokens > 0
    assert answer.context_used is not None
    assert (answer.context_used.turn_index, answer.context_used.sections[0].name) == (1, "system")
    assert [message.model for message in stored.messages[1:]] == ["calling", "calling"]


async def test_a_reply_with_many_calls_runs_some_at_a_time(loaded: Loaded) -> None:
    running = most = 0

    async def look(number: int) -> str:
        """Look at something."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return f"seen {number}"

    count = 3 * CALLS_AT_ONCE

    def reply(messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None) -> dict[str, Any] | str:
        results = [message for message in messages if message["role"] == "tool"]
        if results or not tools:
            return f"{len(results)} results"
        return {"tool_calls": [{"function": {"name": "look", "arguments": {"number": n}}} for n in range(count)]}

    async with ConversationAgent(loaded, model=FunctionModel(reply), tools=[look]) as agent:
        answer = await (await agent.create_conversation()).send_message("Look everywhere.")
    assert answer.content == f"{count} results"
    assert 1 < most <= CALLS_AT_ONCE


async def test_another_model_may_be_chosen_and_the_own_one_again(loaded: Loaded) -> None:
    async with ConversationAgent(loaded, model=echo) as agent:
        conversation = await agent.create_conversation()
        names = [(await agent.model()).name, (await agent.set_model("offline")).name, (await agent.set_model("")).name]
        answer = await conversation.send_message("Still here?")
    assert names == ["echo", "offline", "echo"]
    assert answer.content == "Noted: Still here?"


async def test_what_was_decided_is_kept_when_the_conversation_ends_at_once(loaded: Loaded) -> None:
    async with ConversationAgent(loaded, model=echo) as agent:
        conversation = await agent.create_conversation()
        await conversation.send_message("We decided: the parser skips empty lines.")
        await conversation.end()
        kept = await (await agent.store()).findings.of_conversation(conversation.record.uuid)
    assert [(one.kind, one.text) for one in kept] == [("decision", "the parser skips empty lines.")]


@pytest.mark.http
async def test_a_model_that_cannot_be_used_leaves_the_one_before(loaded: Loaded) -> None:
    async with ConversationAgent(loaded, model=echo) as agent:
        conversation = await agent.create_conversation()
        await agent.model()
        with pytest.raises(ModelError) as failed:
            await agent.set_model("foo/bar")
        answer = await conversation.send_message("Still here?")
        state = agent.model_state
    assert str(failed.value) == (
        "The model foo/bar cannot be used: there is no provider named foo. The model is still echo. "
        "Choose a model with /model; names look like openai/gpt-5.2 or ollama/llama3.2."
    )
    assert (answer.content, state.phase, state.name) == ("Noted: Still here?", "ready", "echo")


@pytest.mark.http
async def test_a_model_that_was_never_usable_fails_the_turn_and_keeps_the_message(loaded: Loaded) -> None:
    async with ConversationAgent(with_model(loaded, name="foo", api_base="")) as agent:
        conversation = await agent.create_conversation()
        with pytest.raises(RagforgeError) as failed:
            await conversation.send_message("Anyone?")
        (stored,) = await conversation.get_history()
    assert "cannot be used" in str(failed.value) and "Your message is kept." in str(failed.value)
    assert [message.content for message in stored.messages][:1] == ["Anyone?"]


@pytest.mark.parametrize(
    ("approve", "end", "told"),
    [
        (None, "refused", "No user is available"),
        ("all", "ok", "Deployed"),
        (lambda question: True, "ok", "Deployed"),
        (lambda question: False, "refused", ""),
        (lambda question: f"Not {question.call.tool_name}!", "refused", "Not deploy!"),
        (lambda question: 1 / 0, "refused", "could not decide"),
    ],
)
async def test_a_program_answers_approvals(loaded: Loaded, approve: Any, end: str, told: str) -> None:
    @tool(access="command")
    async def deploy() -> str:
        return "Deployed."

    async with ConversationAgent(loaded, model=calling("deploy", {}), tools=[deploy], approve=approve) as agent:
        conversation = await agent.create_conversation()
        events = [event async for event in conversation.stream("Deploy it.")]
        (call,) = await conversation.get_tool_calls()
        answer = (await conversation.get_history())[-1].messages[-1].content
    assert (call_end(call), told in answer) == (end, True)
    asked = [event for event in events if isinstance(event, ApprovalRequested | ApprovalResolved)]
    assert [type(event).__name__ for event in asked] == (
        [] if approve == "all" else ["ApprovalRequested", "ApprovalResolved"]
    )


async def test_an_async_function_answers_approvals(loaded: Loaded) -> None:
    asked: list[str] = []

    async def approve(question: ApprovalRequested) -> bool:
        await asyncio.sleep(0)
        asked.append(question.call.arguments)
        return True

    model = calling("write_file", {"path": "new.txt", "content": "x"})
    async with ConversationAgent(loaded, model=model, approve=approve) as agent:
        await (await agent.create_conversation()).send_message("Write it.")
    assert len(asked) == 1
    assert await asyncio.to_thread(Path(loaded.workspace, "new.txt").read_text, "utf-8") == "x"


def test_settings_come_in_any_form_and_short_forms_take_precedence(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGFORGE_MODEL", "openai/from-environment")
    mapping = {"model": {"temperature": 0.5}, "tools": {"enabled": []}}
    agent = ConversationAgent(mapping, workspace=tmp_path, graph="bolt://elsewhere:7687", persona="Dev")
    assert (agent.settings.model.name, agent.settings.model.temperature) == ("openai/from-environment", 0.5)
    assert (agent.settings.graph.uri, agent.settings.personas.default) == ("bolt://elsewhere:7687", "Dev")
    assert (agent.workspace, agent.services.toolbox.schemas()) == (tmp_path.resolve(), [])
    assert ConversationAgent(mapping, model="offline").settings.model.name == "offline"
    assert ConversationAgent(agent.settings).settings == agent.settings
    other = ConversationAgent(load(), home=tmp_path / "own", embedder=FakeEmbedder("mine", 7))
    embeddings = other.settings.agent.memory.embeddings
    assert (embeddings.enabled, embeddings.model, embeddings.dimension) == (True, "mine", 7)
    with pytest.raises(ConfigError, match=r"settings of the program: model\.nme is not a setting"):
        ConversationAgent({"model": {"nme": "x"}})
    for wrong in ({"settings": 3}, {"graph": 3}, {"model": 3}, {"embedder": 3}, {"tools": [3]}):
        with pytest.raises(TypeError):
            ConversationAgent(**wrong)  # type: ignore[arg-type]


async def test_it_starts_with_the_first_call_and_closes_once(loaded: Loaded) -> None:
    agent = ConversationAgent(loaded, model=echo)
    answer = await (await agent.create_conversation()).send_message("Hello")
    agent.start()
    await agent.close()
    await agent.close()
    assert answer.content == "Noted: Hello"
    async with ConversationAgent(loaded, model=echo) as again:
        await again.close()
    unused = ConversationAgent(loaded, model=echo)
    await unused.close()


async def test_messages_sent_at_the_same_time_are_answered_one_after_the_other(loaded: Loaded) -> None:
    async with ConversationAgent(loaded, model=echo) as agent:
        conversation = await agent.create_conversation("Many")
        answers = await asyncio.gather(*(conversation.send_message(text) for text in ("One", "Two", "Three")))
    assert [(answer.turn_index, answer.content) for answer in answers] == [
        (1, "Noted: One"),
        (2, "Noted: Two"),
        (3, "Noted: Three"),
    ]


# --- conversations ----------------------------------------------------------------------------------------------------


async def test_history_leaves_out_what_is_not_wanted(loaded: Loaded) -> None:
    async with ConversationAgent(loaded, model=calling("weather", {"city": "Oslo"}), tools=[weather]) as agent:
        conversation = await agent.create_conversation()
        await conversation.send_message("One")
        await conversation.send_message("Two")
        (newest,) = await conversation.get_history(1, include_tool_calls=False)
        assert [(reply.tool_calls, reply.reasoning) for reply in newest.messages[1:]] == [
            ([], "I should look."),
            ([], ""),
        ]
        (newest,) = await conversation.get_history(1, include_reasoning=False)
        assert [(len(reply.tool_calls), reply.reasoning) for reply in newest.messages[1:]] == [(1, ""), (0, "")]
        data = await conversation.get_full_data()
    assert [turn.messages[0].content for turn in data.turns] == ["One", "Two"]
    assert [len(message.tool_calls) for turn in data.turns for message in turn.messages] == [0, 1, 0, 0, 1, 0]


async def test_tool_calls_by_name_success_and_number(loaded: Loaded) -> None:
    cities = iter(["Oslo", "Nowhere", "Lyon", "Nice"])

    def forecast(city: str) -> str:
        if city == "Nowhere":
            raise ValueError("no such city")
        return "Sun."

    def model(messages: list[dict[str, Any]], tools: Any) -> dict[str, Any] | str:
        if messages[-1]["role"] == "tool":
            return "Done."
        return {"tool_calls": [{"function": {"name": "forecast", "arguments": {"city": next(cities)}}}]}

    quiet = msgspec.structs.replace(loaded, settings=without_summaries(loaded))
    async with ConversationAgent(quiet, model=model, tools=[forecast]) as agent:
        conversation = await agent.create_conversation("Forecasts")
        for _ in range(4):
            await conversation.send_message("Next")

        async def found(*arguments: Any, **options: Any) -> list[str]:
            calls = await conversation.get_tool_calls(*arguments, **options)
            return [msgspec.json.decode(call.arguments)["city"] for call in calls]

        assert await found() == ["Oslo", "Nowhere", "Lyon", "Nice"]
        assert await found("forecast", success=True, limit=2) == ["Lyon", "Nice"]
        assert await found(success=False) == ["Nowhere"]
        assert await found("read_file") == []


def without_summaries(loaded: Loaded) -> Any:
    memory = loaded.settings.agent.memory
    memory = msgspec.structs.replace(memory, summarization=msgspec.structs.replace(memory.summarization, enabled=False))
    agent = msgspec.structs.replace(loaded.settings.agent, memory=memory)
    return msgspec.structs.replace(loaded.settings, agent=agent)


async def test_turns_are_found_by_words_after_loading_too(loaded: Loaded) -> None:
    async with ConversationAgent(loaded, model=echo) as agent:
        conversation = await talked(agent)
        (hit, *_) = await conversation.search_history("zebra", limit=3)
        assert (hit.turn.turn_index, hit.turn.messages[0].content) == (2, "Tell me about the zebra of Montevideo.")
        assert await conversation.search_history("locomotive") == []
        assert len(await conversation.search_history("Montevideo", limit=2)) == 2
    async with ConversationAgent(loaded, model=echo) as again:
        resumed = await again.load_conversation(conversation.id[:13])
        assert [hit.turn.turn_index for hit in await resumed.search_history("violin", limit=1)] == [4]


async def test_recent_files_of_a_loaded_conversation(loaded: Loaded) -> None:
    model = calling("read_file", {"path": "greeting.py"})
    async with ConversationAgent(loaded, model=model) as agent:
        conversation = await agent.create_conversation()
        await conversation.send_message("Read it.")
        files = await conversation.get_recent_files()
    async with ConversationAgent(loaded, model=model) as again:
        assert await (await again.load_conversation(conversation.id)).get_recent_files(limit=5) == files
    assert [(file.group, file.path, file.turn_index) for file in files] == [("read", "greeting.py", 1)]


async def test_each_choice_applies_to_one_context_alone(loaded: Loaded) -> None:
    async with ConversationAgent(loaded, model=echo) as agent:
        conversation = await talked(agent)
        await conversation.memory.settle()
        question = "What did I say about the harbour?"

        async def built(**options: Any) -> BuiltContext:
            return await conversation.build_context(question, **options)

        assert sent_turns(await built()) == [1, 2, 3, 4, 5, 6]
        newest = await built(recent_messages=5)
        assert (sent_turns(newest), recalled_turns(newest)[0]) == ([5, 6], 1)
        assert recalled_turns(await built(recent_messages=5, relevant_messages=0)) == []
        assert len(recalled_turns(await built(recent_messages=0, relevant_messages=2))) <= 2
        none_recent = await built(recent_messages=0, relevant_messages=1)
        assert (sent_turns(none_recent), recalled_turns(none_recent)) == ([], [1])
        relevant = await built(strategy="relevant")
        assert (sent_turns(relevant), recalled_turns(relevant)[0]) == ([5, 6], 1)
        recent = await built(strategy="recent", recent_messages=4)
        assert (sent_turns(recent), recalled_turns(recent)) == ([5, 6], [])
        summarised = {section.name for section in newest.sections} & {"frontier", "summaries", "findings", "topics"}
        bare = await built(recent_messages=5, include_summary=False)
        left = {section.name for section in bare.sections} & {"frontier", "summaries", "findings", "topics"}
        assert summarised and not left
        assert sent_turns(await built()) == [1, 2, 3, 4, 5, 6]


async def test_a_branch_from_a_message_a_turn_or_the_newest(loaded: Loaded) -> None:
    async with ConversationAgent(loaded, model=echo) as agent:
        conversation = await agent.create_conversation("Parent")
        for text in ("One", "Two", "Three"):
            await conversation.send_message(text)
        turns = await conversation.get_history()
        other = await conversation.branch(from_message=turns[1].messages[1].uuid, title="Alternative approach")
        assert (other.title, len(await other.get_history())) == ("Alternative approach", 2)
        again = await other.branch(from_message=turns[0].messages[0].uuid)
        assert (again.title, len(await again.get_history())) == ("Alternative approach", 1)
        assert len(await (await conversation.branch(turn=0)).get_history()) == 0
        assert len(await (await conversation.branch()).get_history()) == 3
        with pytest.raises(NotFoundError, match="no message"):
            await other.branch(from_message=turns[2].messages[0].uuid)
        with pytest.raises(NotFoundError, match="no turn 9"):
            await conversation.branch(turn=9)


async def test_an_export_is_written_and_imported_again(loaded: Loaded, tmp_path: Path) -> None:
    async with ConversationAgent(loaded, model=echo) as agent:
        conversation = await agent.create_conversation("Kept")
        await conversation.send_message("Keep this.")
        exported = await conversation.export(tmp_path)
        file = tmp_path / f"conv-{conversation.id}.json"
        assert await asyncio.to_thread(file.read_text, "utf-8") == exported
        assert "Keep this." in await conversation.export(tmp_path / "kept.md", format="markdown")
        with pytest.raises(RagforgeError, match="does not exist"):
            await conversation.export(tmp_path / "nowhere" / "kept.json")
        assert not (await agent.import_conversation(exported)).created
        await conversation.delete(immediately=True)
        with pytest.raises(NotFoundError):
            await agent.load_conversation(conversation.id)
        assert (await agent.import_conversation(file)).created
        (turn,) = await (await agent.load_conversation(conversation.id)).get_history()
        with pytest.raises(RagforgeError, match="not an exported conversation"):
            await agent.import_conversation("{}")
    assert turn.messages[0].content == "Keep this."


async def test_conversations_are_listed_archived_and_deleted(loaded: Loaded) -> None:
    async with ConversationAgent(loaded, model=echo) as agent:
        one = await agent.create_conversation("one", tags=["auth", "api"])
        two = await agent.create_conversation("two", tags=["api"])
        await one.send_message("Newest by its last message.")

        async def titles(**options: Any) -> list[str]:
            return [record.title for record in await agent.list_conversations(**options)]

        assert await titles() == ["one", "two"]
        assert await titles(order="created") == ["two", "one"]
        assert (await titles(tags=["auth"]), await titles(limit=1), await titles(query="TWO")) == (
            ["one"],
            ["one"],
            ["two"],
        )
        await one.archive()
        assert (one.record.status, await titles(), await titles(status="archived")) == ("archived", ["two"], ["one"])
        await two.delete()
        assert (await titles(), await titles(status="deleted")) == ([], ["two"])
        await agent.restore_conversation(two.id[:8])
        assert await titles() == ["two"]
        (hit,) = await agent.search("newest", limit=1)
        assert (hit.conversation_id, hit.turn_index) == (one.id, 1)


async def test_similar_conversations_by_text_and_by_conversation(loaded: Loaded) -> None:
    async with ConversationAgent(loaded, model=echo, embedder=FakeEmbedder()) as agent:
        made = {}
        for title, text in (
            ("zebras", "The zebra farm needs fences."),
            ("fences", "Fences for the zebra farm."),
            ("parser", "Compiler warnings everywhere."),
        ):
            made[title] = conversation = await agent.create_conversation(title)
            await conversation.send_message(text)
            await conversation.memory.settle()
        found = await agent.find_similar("zebra farm fences", limit=2, min_score=0.2)
        assert {one.conversation.title for one in found} == {"zebras", "fences"}
        (best,) = await agent.find_similar(id=made["zebras"].id[:8], limit=1)
        assert (best.conversation.title, best.score > 0.3) == ("fences", True)
        assert await agent.find_similar("zebra farm fences", min_score=0.999) == []
        spoken = await agent.create_conversation("Size guard for session cookies")
        await spoken.send_message("Compiler errors: which of them are new?")
        await spoken.memory.settle()
        (named,) = await agent.find_similar_conversations("session cookies too large", min_score=None)
        assert (named.conversation.title, round(named.score, 2)) == ("Size guard for session cookies", 0.6)
        assert await agent.find_similar("cookies of a bakery with very large ovens") == []
        with pytest.raises(RagforgeError, match="either a text or a conversation"):
            await agent.find_similar()
    async with ConversationAgent(loaded, model=echo) as without:
        with pytest.raises(RagforgeError, match="switched off"):
            await without.find_similar("zebra")
