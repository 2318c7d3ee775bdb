"""The agent loop end to end: real graph, real LiteLLM, scripted server, real files."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.conversation.limits import CONVERSATION
from ragforge_tui.engine.other_processes import interrupted_turn
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.errors import NotFoundError, RagforgeError
from ragforge_tui.shared.events import (
    ApprovalRequested,
    MessageFinished,
    ModelWaiting,
    Notice,
    TextDelta,
    ToolCallFinished,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
)
from ragforge_tui.shared.records import ConversationFilter
from tests.conftest import ONE_BACKEND
from tests.support.agents import contents, with_model
from tests.support.model_script import Script
from tests.support.openai_server import OpenAIServer

EDIT = {"path": "greeting.py", "old_string": '"hello"', "new_string": '"good day"', "reason": "as asked"}


async def test_a_message_is_answered_and_kept(loaded: Loaded, server: Script) -> None:
    server.script([{"reasoning": "they greet", "text": "Good day, Ada."}])
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation(tags=["first"])
        answer = await conversation.send_message("Greet Ada.\nHow are you?")
        assert answer.content == "Good day, Ada."
        assert answer.reasoning == "they greet"
        assert answer.turn_index == 1
        assert answer.usage.output_tokens > 0
    async with ConversationAgent(loaded) as again:
        resumed = await again.load_conversation(conversation.record.uuid[:8])
        assert resumed.record.title == "Greet Ada"
        assert resumed.record.tags == ["first"]
        assert resumed.record.message_count == 2
        (turn,) = await resumed.get_history()
        assert [(m.role, m.content, m.state) for m in turn.messages] == [
            ("user", "Greet Ada.\nHow are you?", "complete"),
            ("assistant", "Good day, Ada.", "complete"),
        ]
        assert turn.messages[1].persona == "Assistant"
        hits = await (await again.store()).search.turns("good day")
        assert [hit.conversation_id for hit in hits] == [conversation.record.uuid]


@ONE_BACKEND
async def test_the_system_part_is_stable_and_the_past_is_sent(loaded: Loaded, server: Script) -> None:
    server.script([{"text": "one"}, {"text": "two"}])
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        await conversation.send_message("first")
        await conversation.send_message("second")
    first, second = server.chats()
    system = [m for m in first["messages"] if m["role"] == "system"]
    assert second["messages"][: len(system)] == system
    assert any("Ada" in m["content"] and "<luciform" in m["content"] for m in system)
    assert contents(second, "user", "assistant") == ["first", "one", "second"]
    assert {tool["function"]["name"] for tool in second["tools"]} >= {"read_file", "edit_file", "run_command"}


async def test_tools_run_and_their_results_reach_the_model(loaded: Loaded, server: Script) -> None:
    server.script(
        [
            {
                "text": "I look first.",
                "tool_calls": [
                    {"name": "read_file", "arguments": {"path": "greeting.py"}},
                    {"name": "grep_files", "arguments": {"pattern": "greet"}},
                ],
                "chunk": 3,
            },
            {"tool_calls": [{"name": "edit_file", "arguments": EDIT}]},
            {"text": "Done."},
        ]
    )
    async with ConversationAgent(loaded, approve_all=True) as agent:
        conversation = await agent.create_conversation()
        answer = await conversation.send_message("Make it more formal.")
        assert answer.content == "Done."
        assert [call.tool_name for call in answer.tool_calls] == ["read_file", "grep_files", "edit_file"]
        assert all(call.success and call.result is not None for call in answer.tool_calls)
        stored = await conversation.get_tool_calls()
        assert [call.uuid for call in stored] == [call.uuid for call in answer.tool_calls]
        assert stored[0].reasoning == "I look first."
        assert stored[2].reasoning == "as asked"
        assert stored[2].result is not None
        assert "good day" in json.loads(stored[2].result.result)["diff"]
        assert [(f.path, f.access) for f in stored[2].files] == [("greeting.py", "write")]
    assert "good day" in (Path(loaded.workspace) / "greeting.py").read_text(encoding="utf-8")
    last = server.chats()[-1]["messages"]
    assert [m["role"] for m in last[-5:]] == ["assistant", "tool", "tool", "assistant", "tool"]
    assert "hello" in last[-4]["content"]


@ONE_BACKEND
@pytest.mark.parametrize(
    ("step", "text", "said"),
    [
        ({"text": "The first half", "finish": "length"}, "The first half", "reached its length limit"),
        ({"text": "I may not", "finish": "content_filter"}, "I may not", "content filter"),
        ({"finish": "stop"}, "", "an empty answer"),
        ({"reasoning": "Hm.", "finish": "stop"}, "", "an empty answer"),
    ],
    ids=["length", "filter", "empty", "thoughts only"],
)
async def test_an_answer_that_falls_short_reports_it(
    loaded: Loaded, server: Script, step: dict[str, str], text: str, said: str
) -> None:
    server.script([step])
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        *_, finished, end = [event async for event in conversation.stream("Go on.")]
        assert isinstance(finished, MessageFinished) and isinstance(end, TurnCompleted) and end.text == text
        assert said in finished.message.error and finished.message.error.endswith("Use /retry to ask again.")
        assert ("The partial answer is stored." in finished.message.error) == bool(text)
    async with ConversationAgent(loaded) as again:
        (turn,) = await (await again.load_conversation(conversation.record.uuid)).get_history()
        reply = turn.messages[1]
        assert (reply.state, reply.content, reply.error) == ("interrupted", text, finished.message.error)
        assert interrupted_turn([turn]) == 1, "a resume offers a retry"


@ONE_BACKEND
async def test_calls_cut_off_by_the_limit_are_reported_and_the_turn_continues(loaded: Loaded, server: Script) -> None:
    call = {"name": "read_file", "arguments": '{"path": "greet'}
    server.script([{"tool_calls": [call], "finish": "length"}, {"text": "Shorter, then."}])
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        events = [event async for event in conversation.stream("Go on.")]
    assert any(isinstance(event, Notice) and "reached its length limit" in event.text for event in events)
    assert isinstance(events[-1], TurnCompleted) and events[-1].text == "Shorter, then."


@pytest.mark.http
@ONE_BACKEND
async def test_an_answer_whose_server_died_is_kept_and_the_turn_fails(loaded: Loaded, server: OpenAIServer) -> None:
    server.script([{"text": "Half of an answer", "bare": True, "cut": True}])
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        *_, end = [event async for event in conversation.stream("Go on.")]
        assert isinstance(end, TurnFailed) and end.text == "Half of an answer"
        assert "no finish reason. 4 words of the answer are stored. Use /retry to ask again." in end.error.sentence()
        (turn,) = await conversation.get_history()
        assert (turn.messages[1].state, turn.messages[1].content) == ("failed", "Half of an answer")


@pytest.mark.http
@ONE_BACKEND
async def test_a_silent_model_is_waited_for_and_the_wait_is_reported(
    loaded: Loaded, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CONVERSATION, "silence", 1.5)
    monkeypatch.setattr(CONVERSATION, "checkpoint", 0.05)
    server.script([{"text": "Loaded.", "gate": "model"}])
    waits = []
    async with ConversationAgent(with_model(loaded, first_token_timeout=None, token_timeout=1.0)) as agent:
        conversation = await agent.create_conversation()
        async for event in conversation.stream("Hello?"):
            if isinstance(event, ModelWaiting):
                waits.append(event)
                server.release("model")
    assert waits and waits[0].sentence().startswith(f"127.0.0.1:{server.port} has not answered for")
    assert isinstance(event, TurnCompleted) and event.text == "Loaded."
    assert len(server.chats()) == 1


@pytest.mark.http
@ONE_BACKEND
async def test_a_time_out_changed_in_a_running_chat_holds_from_the_next_request_on(
    loaded: Loaded, server: OpenAIServer
) -> None:
    server.script([{"text": "one"}, {"stall": True}])
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        await conversation.send_message("first")
        agent.change_model_settings({"first_token_timeout": 0.4})
        *_, end = [event async for event in conversation.stream("second")]
        assert isinstance(end, TurnFailed) and "within 0.4 s" in end.error.what


@ONE_BACKEND
async def test_a_refused_call_is_reported_and_the_turn_continues(loaded: Loaded, server: Script) -> None:
    server.script(
        [
            {"tool_calls": [{"name": "run_command", "arguments": {"command": "touch made"}}]},
            {"text": "I leave it."},
        ]
    )
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        seen = [event async for event in conversation.stream("make it")]
        asked = [event for event in seen if isinstance(event, ApprovalRequested)]
        assert [(event.kind, event.detail) for event in asked] == [("command", "touch made")]
        assert isinstance(seen[-1], TurnCompleted)
        (call,) = await conversation.get_tool_calls()
        assert call.success is False
        assert "The user refused this call" in json.loads(call.result.result)["text"] if call.result else False
    assert not (Path(loaded.workspace) / "made").exists()


@ONE_BACKEND
async def test_a_session_grant_is_asked_once(loaded: Loaded, server: Script) -> None:
    write = {"name": "write_file", "arguments": {"path": "a.txt", "content": "1"}}
    other = {"name": "write_file", "arguments": {"path": "b.txt", "content": "2"}}
    server.script([{"tool_calls": [write]}, {"tool_calls": [other]}, {"text": "both"}])
    async with ConversationAgent(loaded, interactive=True) as agent:
        conversation = await agent.create_conversation()
        asked = 0
        async for event in conversation.stream("write two files"):
            if isinstance(event, ApprovalRequested):
                asked += 1
                assert "+1" in event.detail
                agent.services.approvals.answer(event.approval_id, "session")
        assert asked == 1
    assert (Path(loaded.workspace) / "b.txt").read_text(encoding="utf-8") == "2"


@pytest.mark.http
@ONE_BACKEND
async def test_a_connection_cut_in_mid_answer_is_reported_as_that(loaded: Loaded, server: OpenAIServer) -> None:
    server.script([{"text": "Half of an answer", "cut": True}])
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        failed = [event async for event in conversation.stream("go") if isinstance(event, TurnFailed)]
        said = failed[0].error.sentence()
        assert "broke during the answer. 4 words of the answer are stored. Use /retry to ask again." in said
        assert "No connection" not in said
        stored = (await conversation.get_history())[-1].messages[-1]
        assert (stored.content, stored.state) == ("Half of an answer", "failed") and "4 words" in stored.error


@ONE_BACKEND
async def test_idle_repetition_is_refused_at_the_third_time(loaded: Loaded, server: Script) -> None:
    call = {"tool_calls": [{"name": "list_directory", "arguments": {"path": "."}}]}
    server.script([call, call, call, {"text": "enough"}])
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        answer = await conversation.send_message("look")
        assert [each.success for each in answer.tool_calls] == [True, True, False]
        assert answer.content == "enough"


@ONE_BACKEND
async def test_the_iteration_limit_ends_in_an_answer(loaded: Loaded, server: Script) -> None:
    calls = [{"tool_calls": [{"name": "glob_files", "arguments": {"pattern": f"*{n}"}}]} for n in range(2)]
    server.script([*calls, {"text": "what I know"}])
    async with ConversationAgent(with_model(loaded, max_iterations=2)) as agent:
        conversation = await agent.create_conversation()
        answer = await conversation.send_message("search")
        assert answer.content == "what I know"
    assert server.chats()[-1]["tools"]
    assert server.chats()[-1]["messages"][-1]["role"] == "user"


async def test_cancelling_keeps_what_came(loaded: Loaded, server: Script) -> None:
    server.script([{"text": "a long answer " * 50, "delay": 0.02}, {"text": "fresh"}])
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        end = None
        async for event in conversation.stream("talk"):
            if isinstance(event, TextDelta):
                conversation.cancel()
            end = event
        assert isinstance(end, TurnCancelled)
        (turn,) = await conversation.get_history()
        assert turn.messages[1].state == "interrupted"
        assert turn.messages[1].content.startswith("a long")
        await conversation.send_message("go on")
        assert "interrupted here" in server.chats()[-1]["messages"][-2]["content"]


@ONE_BACKEND
async def test_cancelling_a_command_ends_it_and_leaves_no_dangling_call(loaded: Loaded, server: Script) -> None:
    server.script([{"tool_calls": [{"name": "run_command", "arguments": {"command": "sleep 60"}}]}, {"text": "ok"}])
    async with ConversationAgent(loaded, approve_all=True) as agent:
        conversation = await agent.create_conversation()
        await conversation.submit("sleep")
        while not (turn := conversation.active_turn) or not await conversation.get_tool_calls():
            await asyncio.sleep(0.02)
        conversation.cancel()
        await conversation.wait_idle()
        (call,) = await conversation.get_tool_calls()
        assert turn == 1
        assert (await conversation.get_history())[0].messages[-1].state == "interrupted"
        assert call.success is False
        assert call.result is not None
        answer = await conversation.send_message("and now?")
        assert answer.content == "ok"


@pytest.mark.http
async def test_provider_errors_become_sentences_and_are_kept(loaded: Loaded, server: OpenAIServer) -> None:
    server.script([{"status": 401, "message": "bad key"}, {"text": "better"}])
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        with pytest.raises(RagforgeError) as caught:
            await conversation.send_message("hello?")
        assert caught.value.info.kind == "bad_key"
        assert caught.value.info.todo
        (turn,) = await conversation.get_history()
        assert turn.messages[1].state == "failed"
        assert turn.messages[1].error
        await conversation.retry()
        await conversation.wait_idle()
        (turn,) = await conversation.get_history()
        assert [(m.state, m.content) for m in turn.messages[1:]] == [("superseded", ""), ("complete", "better")]


async def test_a_retry_begins_its_turn_again_and_can_be_stopped(loaded: Loaded, server: Script) -> None:
    server.script([{"text": "one"}, {"text": "word " * 2_000, "delay": 0.05}])
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        await conversation.send_message("hi")
        with agent.subscribe() as events:
            index = await conversation.retry()
            seen = []
            while not seen or not isinstance(seen[-1], TextDelta):
                seen.append(await events.get())
            begun = [event for event in seen if isinstance(event, TurnStarted)]
            assert [(event.turn_index, event.message.content) for event in begun] == [(index, "hi")]
            conversation.cancel()
            await conversation.wait_idle()
        (turn,) = await conversation.get_history()
        assert [m.state for m in turn.messages] == ["complete", "superseded", "interrupted"]


async def test_messages_sent_while_busy_wait_their_turn(loaded: Loaded, server: Script) -> None:
    server.script([{"text": "first answer", "delay": 0.05}, {"text": "second answer"}])
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        with agent.subscribe() as events:
            assert await conversation.submit("one", "id-1") == 1
            assert await conversation.submit("two", "id-2") == 0
            assert await conversation.submit("two", "id-2") in (0, 1)
            ends = 0
            while ends < 2:
                ends += isinstance(await asyncio.wait_for(events.get(), 30), TurnCompleted | TurnFailed)
        history = await conversation.get_history()
        assert [[m.content for m in turn.messages] for turn in history] == [
            ["one", "first answer"],
            ["two", "second answer"],
        ]


async def test_two_messages_at_once_are_two_turns_one_after_the_other(loaded: Loaded, server: Script) -> None:
    server.script([{"text": "first answer", "delay": 0.02}, {"text": "second answer"}])
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        with agent.subscribe() as events:
            assert await asyncio.gather(conversation.submit("one"), conversation.submit("two")) == [1, 0]
            names: list[str] = []
            while names.count("TurnCompleted") < 2:
                names.append(type(await asyncio.wait_for(events.get(), 60)).__name__)
        assert names.index("TurnCompleted") < len(names) - 1 - names[::-1].index("TurnStarted")
        history = await conversation.get_history()
        assert [turn.messages[1].content for turn in history] == ["first answer", "second answer"]


async def test_closing_in_the_middle_stores_the_turn_as_interrupted(loaded: Loaded, server: Script) -> None:
    server.script([{"text": "words " * 200, "delay": 0.02}])
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        with agent.subscribe() as events:
            await conversation.submit("talk")
            while not isinstance(await events.get(), TextDelta):
                pass
    async with ConversationAgent(loaded) as again:
        (turn,) = await (await again.load_conversation(conversation.record.uuid)).get_history()
        assert turn.messages[1].state == "interrupted"
        assert turn.messages[1].content.startswith("words")


async def test_secrets_are_masked_before_they_are_kept(loaded: Loaded, server: Script) -> None:
    key = "sk-ant-api03-" + "a1B2c3" * 8
    server.script([{"text": f"your key is {key}"}])
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        await conversation.send_message(f"my key is {key}")
        assert key not in str(await (await agent.store()).transfer.export(conversation.record.uuid))


async def test_hostile_text_goes_through(loaded: Loaded, server: Script) -> None:
    server.script([{"text": "\x1b[31mred\x00 \ud800"}])
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        answer = await conversation.send_message("nul \x00 and half a pair \ud83d")
        assert "red" in answer.content
        (turn,) = await conversation.get_history()
        assert turn.messages[0].content == "nul \u2400 and half a pair \ufffd"


async def test_conversations_are_listed_archived_deleted_and_restored(loaded: Loaded, server: Script) -> None:
    async with ConversationAgent(loaded) as agent:
        one = await agent.create_conversation(title="one")
        two = await agent.create_conversation(title="two")
        assert {each.title for each in await agent.list_conversations()} == {"one", "two"}
        await agent.archive_conversation(one.record.uuid)
        assert [each.title for each in await agent.list_conversations(ConversationFilter(status="archived"))] == ["one"]
        await agent.delete_conversation(two.record.uuid)
        assert await agent.list_conversations() == []
        with pytest.raises(NotFoundError):
            await agent.load_conversation(two.record.uuid)
        assert (await agent.restore_conversation(two.record.uuid[:8])).status == "active"
        await agent.delete_conversation(two.record.uuid, immediately=True)
        with pytest.raises(NotFoundError):
            await agent.restore_conversation(two.record.uuid)


async def test_events_tell_the_whole_story(loaded: Loaded, server: Script) -> None:
    todos = [{"content": "look", "status": "in_progress"}]
    server.script([{"text": "plan", "tool_calls": [{"name": "update_todos", "arguments": {"todos": todos}}]}, {}])
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        names = [type(event).__name__ async for event in conversation.stream("plan it")]
        deltas = [name for name in names if name == "TextDelta"]
        assert deltas
        assert [name for name in names if name not in ("TextDelta", "ConversationChanged")] == [
            "TurnStarted",
            "MessageStarted",
            "MessageFinished",
            "ToolCallStarted",
            "ToolCallFinished",
            "TodosUpdated",
            "MessageStarted",
            "MessageFinished",
            "TurnCompleted",
        ]


async def test_finished_events_carry_the_stored_records(loaded: Loaded, server: Script) -> None:
    server.script([{"tool_calls": [{"name": "read_file", "arguments": "{not json"}]}, {"text": "sorry"}])
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        seen = [event async for event in conversation.stream("read")]
        (finished,) = [event for event in seen if isinstance(event, ToolCallFinished)]
        assert finished.call.success is False
        replies = [event.message for event in seen if isinstance(event, MessageFinished)]
        (turn,) = await conversation.get_history()
        assert [reply.uuid for reply in replies] == [message.uuid for message in turn.messages[1:]]
        assert turn.messages[1].tool_calls == [finished.call]
