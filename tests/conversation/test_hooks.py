"""Hooks with Claude Code's names and JSON, in held conversations: they refuse, allow, add, and never break a turn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.settings.load import load
from ragforge_tui.settings.schema import HookCommand, HookMatcher, HookSettings, Loaded
from ragforge_tui.shared.errors import ConfigError, RagforgeError
from ragforge_tui.shared.events import ApprovalRequested, Event, Notice
from tests.support.model_script import Script


def hook(command: str, matcher: str = "", timeout: float = 30.0) -> list[HookMatcher]:
    return [HookMatcher(matcher=matcher, hooks=[HookCommand(command=command, timeout=timeout)])]


def says(answer: dict[str, Any]) -> str:
    return f"printf '%s' '{json.dumps(answer)}'"


def lines_of(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


def with_hooks(loaded: Loaded, **hooks: list[HookMatcher]) -> Loaded:
    settings = msgspec.structs.replace(loaded.settings, hooks=HookSettings(**hooks))
    return msgspec.structs.replace(loaded, settings=settings)


def running(command: str) -> dict[str, Any]:
    return {"tool_calls": [{"name": "run_command", "arguments": {"command": command}}]}


def results_of(request: dict[str, Any]) -> list[str]:
    return [message["content"] for message in request["messages"] if message["role"] == "tool"]


async def test_calls_are_allowed_refused_and_commented(loaded: Loaded, server: Script) -> None:
    log = Path(loaded.workspace, "log.jsonl")
    allow = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}}
    noting = "cat > in.json; cat in.json >> log.jsonl; echo >> log.jsonl"
    refusing = "if grep -q forbidden in.json; then echo 'not this one' >&2; exit 2; fi"
    added = {"hookSpecificOutput": {"additionalContext": "\x1b[31mformatted"}}
    settings = with_hooks(
        loaded,
        PreToolUse=hook(f"{noting}; {refusing}; {says(allow)}", "Bash"),
        PostToolUse=hook(says(added), "run_command|Edit"),
    )
    server.script([running("echo fine"), running("echo forbidden"), {"text": "done"}, {"text": "still here"}])
    seen: list[Event] = []
    async with ConversationAgent(settings) as agent:
        agent.services.events.listen(seen.append)
        conversation = await agent.create_conversation()
        assert (await conversation.send_message("Run them.")).content == "done"
        await conversation.memory.settle()
    fine, forbidden = results_of(server.chats()[2])
    assert "fine" in fine and "formatted" in fine and "\x1b" not in fine and "Said by a hook" in fine
    assert "A hook of the user refused this call: not this one." in forbidden
    assert not any(isinstance(event, ApprovalRequested) for event in seen), "the hook allowed it"
    first = json.loads(lines_of(log)[0])
    assert first["hook_event_name"] == "PreToolUse" and first["tool_name"] == "Bash"
    assert first["tool_input"]["command"] == "echo fine" and first["session_id"] == conversation.record.uuid
    async with ConversationAgent(settings) as agent:
        resumed = await agent.load_conversation(conversation.record.uuid)
        assert (await resumed.send_message("Still there?")).content == "still here"


async def test_messages_sessions_and_ends(loaded: Loaded, server: Script) -> None:
    workspace = Path(loaded.workspace)
    block = says({"decision": "block", "reason": "Run the tests first."})
    settings = with_hooks(
        loaded,
        SessionStart=hook("echo The week is frozen."),
        UserPromptSubmit=hook("if grep -q secret; then echo 'no secrets' >&2; exit 2; fi"),
        Stop=hook(f"if grep -q 'stop_hook_active\":false'; then {block}; fi"),
        SessionEnd=hook("cat > ended.json"),
    )
    server.script([{"text": "I am done."}, {"text": "Tests are green."}, {"text": "again"}, {"text": "Fine."}])
    async with ConversationAgent(settings) as agent:
        conversation = await agent.create_conversation()
        with pytest.raises(RagforgeError, match="no secrets"):
            await conversation.send_message("Here is a secret.")
        assert server.chats() == []
        assert (await conversation.send_message("Work.")).content == "Tests are green."
        await conversation.memory.settle()
    second = server.chats()[1]
    assert "Run the tests first." in second["messages"][-1]["content"]
    assert second["messages"][-2]["content"] == "I am done."
    assert json.loads(lines_of(workspace / "ended.json")[0])["hook_event_name"] == "SessionEnd"
    async with ConversationAgent(settings) as agent:
        resumed = await agent.load_conversation(conversation.record.uuid)
        assert (await resumed.send_message("And now?")).content == "Fine."
    assert "The week is frozen." in server.chats()[-1]["messages"][-3]["content"]


async def test_a_hook_that_fails_is_told_and_changes_nothing(loaded: Loaded, server: Script) -> None:
    settings = with_hooks(
        loaded,
        PreToolUse=hook("echo broken >&2; exit 1"),
        PostToolUse=hook("sleep 60 & sleep 60", timeout=0.5),
        UserPromptSubmit=hook("printf '{not json'"),
    )
    server.script([running("echo fine"), {"text": "done"}])
    seen: list[Event] = []
    async with ConversationAgent(settings, approve="all") as agent:
        agent.services.events.listen(seen.append)
        answer = await (await agent.create_conversation()).send_message("Run it.")
    assert answer.content == "done" and "fine" in results_of(server.chats()[1])[0]
    told = " ".join(event.text for event in seen if isinstance(event, Notice))
    assert "ended with status 1: broken" in told and "was ended after 0.5 s" in told


async def test_a_hook_asks_about_a_call_that_needs_no_approval(loaded: Loaded, server: Script) -> None:
    asks = says({"hookSpecificOutput": {"permissionDecision": "ask", "permissionDecisionReason": "look first"}})
    settings = with_hooks(loaded, PreToolUse=hook(asks, "Read"), Notification=hook("cat > told.json"))
    server.script([{"tool_calls": [{"name": "read_file", "arguments": {"path": "greeting.py"}}]}, {"text": "refused"}])
    seen: list[Event] = []
    async with ConversationAgent(settings) as agent:
        agent.services.events.listen(seen.append)
        await (await agent.create_conversation()).send_message("Read it.")
    (question,) = [event for event in seen if isinstance(event, ApprovalRequested)]
    assert "look first" in question.question and "greeting.py" in question.detail
    assert "refused" in results_of(server.chats()[1])[0]


def test_a_project_may_set_none(tmp_path: Path) -> None:
    project = tmp_path / ".ragforge" / "config.yaml"
    project.parent.mkdir()
    project.write_text("hooks: {Stop: [{hooks: [{command: evil}]}]}", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"hooks\.Stop cannot be set here"):
        load(workspace=str(tmp_path))
