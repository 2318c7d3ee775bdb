"""What memory says before a call: held conversations, the question to the user and the result for the model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.conversation.limits import CONVERSATION
from ragforge_tui.graph.store.findings import new_finding
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.events import ApprovalRequested
from tests.support.model_script import Script

READ = {"name": "read_file", "arguments": {"path": "wrap.py"}}


@pytest.fixture(autouse=True)
def patient() -> Iterator[None]:
    """Wait for what memory says, however slow the machine is."""
    before = CONVERSATION.reminder
    CONVERSATION.reminder = 60.0
    yield
    CONVERSATION.reminder = before


def edit(old: str, new: str) -> dict[str, Any]:
    return {"name": "edit_file", "arguments": {"path": "wrap.py", "old_string": old, "new_string": new}}


def run(command: str) -> dict[str, Any]:
    return {"name": "run_command", "arguments": {"command": command}}


def results(server: Script) -> list[str]:
    return [m["content"] for m in server.chats()[-1]["messages"] if m["role"] == "tool"]


async def test_a_command_an_undone_edit_and_a_refusal_are_remembered(loaded: Loaded, server: Script) -> None:
    folder = Path(loaded.workspace)
    (folder / "wrap.py").write_text("line_width = 88\n", "utf-8")
    (folder / "check.sh").write_text('[ "$1" = "--offline" ] || { echo "no network"; exit 3; }\n', "utf-8")
    server.script(
        [
            {"tool_calls": [READ, edit("line_width = 88", "line_width = 90")]},
            {"text": "90 now."},
            {"tool_calls": [edit("line_width = 90", "line_width = 88")]},
            {"text": "Back to 88."},
            {"tool_calls": [run("sh check.sh"), run("sh check.sh --offline")]},
            {"text": "Works offline."},
            {"tool_calls": [run("rm -r docs")]},
            {"text": "Kept."},
        ]
    )
    async with ConversationAgent(
        loaded, approve=lambda asked: "the docs are Ana's" if "rm" in asked.detail else True
    ) as a:
        first = await a.create_conversation("Wrapping")
        await first.send_message("make the lines 90 wide")
        await first.send_message("no, revert that: the printer cuts at 88")
        await first.send_message("run the check")
        await first.send_message("tidy up")
        await first.memory.settle()
        store = await a.store()
        kept = await store.attempts.of_conversation(first.record.uuid)
        assert [(one.outcome, one.key, one.turn_index) for one in kept] == [
            ("undone", "wrap.py", 1),
            ("needed", "sh check.sh", 3),
            ("refused", "rm", 4),
        ]

    again = [READ, edit("line_width = 88", "line_width = 90"), run("sh check.sh"), run("rm -r docs")]
    server.script([{"tool_calls": again}, {"text": "Done."}])
    asked: dict[str, str] = {}
    async with ConversationAgent(loaded, interactive=True) as agent:
        second = await agent.create_conversation("Another day")
        async for event in second.stream("do it all again"):
            if isinstance(event, ApprovalRequested):
                asked[event.detail.splitlines()[0]] = event.remembered
                agent.services.approvals.answer(event.approval_id, "once" if "rm" not in event.detail else "no")
    assert asked["sh check.sh"] == "This command needed `--offline` last time (t3 of “Wrapping”)"
    assert asked["rm -r docs"] == "You refused this today (t4 of “Wrapping”): the docs are Ana's"
    told = results(server)[-4:]
    undone = "Tried today and undone (t1 of “Wrapping”): no, revert that: the printer cuts at 88"
    assert asked["--- a/wrap.py"] == undone
    assert told[1].endswith(f"\n[Memory: {undone}.]")
    assert "[Memory: This command needed `--offline`" in told[2]
    assert "The user refused this call" in told[3]
    assert "[Memory: You refused this today" in told[3]
    assert "[Memory:" not in told[0]


async def test_private_conversations_and_the_setting(loaded: Loaded, server: Script) -> None:
    (Path(loaded.workspace) / "check.sh").write_text('[ "$1" = "-x" ] || exit 3\n', "utf-8")
    calls = [{"tool_calls": [run("sh check.sh"), run("sh check.sh -x")]}, {"text": "ok"}]
    server.script([*calls, {"tool_calls": [run("sh check.sh")]}, {"text": "ok"}])
    async with ConversationAgent(loaded, approve_all=True) as agent:
        secret = await agent.create_conversation("Secret")
        await (await agent.store()).conversations.update(secret.record.uuid, private=True)
        await secret.send_message("check")
        await secret.memory.settle()
        other = await agent.create_conversation("Open")
        await other.send_message("check again")
        assert "[Memory:" not in results(server)[-1]
        await other.memory.settle()
        assert await (await agent.store()).attempts.of_conversation(other.record.uuid) == []


async def test_what_takes_too_long_is_not_said(loaded: Loaded, server: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    (Path(loaded.workspace) / "check.sh").write_text('[ "$1" = "-x" ] || exit 3\n', "utf-8")
    calls = [{"tool_calls": [run("sh check.sh"), run("sh check.sh -x")]}, {"text": "ok"}]
    server.script([*calls, {"text": "fine"}, {"tool_calls": [run("sh check.sh")]}, {"text": "ok"}])
    async with ConversationAgent(loaded, approve_all=True) as agent:
        conversation = await agent.create_conversation("Checks")
        await conversation.send_message("check")
        await conversation.send_message("thanks")
        await conversation.memory.settle()
        monkeypatch.setattr(CONVERSATION, "reminder", 0.0)
        await conversation.send_message("check again")
        assert "[Memory:" not in results(server)[-1]


async def test_a_decision_that_an_edit_contradicts_is_said(loaded: Loaded, server: Script) -> None:
    (Path(loaded.workspace) / "wrap.py").write_text("def fold(text, width=88):\n    return text[:width]\n", "utf-8")
    server.script([{"text": "Noted."}, {"tool_calls": [READ, edit("width=88", "width=90")]}, {"text": "Done."}])
    async with ConversationAgent(loaded, interactive=True) as agent:
        first = await agent.create_conversation("Printing")
        await first.send_message("The printer cuts at 90, so the default width of wrap.py stays 88.")
        store = await agent.store()
        decided = "The default width in wrap.py stays 88, because the printer cuts at 90"
        await store.findings.add([new_finding(first.record.uuid, loaded.workspace, 1, "decision", decided)])
        second = await agent.create_conversation("Another day")
        asked = []
        async for event in second.stream("make it wider"):
            if isinstance(event, ApprovalRequested):
                asked.append(event.remembered)
                agent.services.approvals.answer(event.approval_id, "no", "right, keep it")
    line = f"T1 of “Printing” decided: {decided}. This edit changes `88`"
    assert asked == [line]
    assert results(server)[-1].endswith(f"[Memory: {line}.]")


@pytest.mark.slow
async def test_failed_tests_behind_a_pipe_are_the_outcome_everywhere(loaded: Loaded, server: Script) -> None:
    source = "import unittest\n\n\nclass A(unittest.TestCase):\n    def test_a(self):\n        assert False\n"
    (Path(loaded.workspace) / "test_a.py").write_text(source, "utf-8")
    failing, passing = run("python3 -m unittest test_a 2>&1 | tail -3"), run("echo ok")
    server.script(
        [{"tool_calls": [failing]}, {"tool_calls": [passing]}, {"text": "Fixed. All tests pass."}, {"text": "Sure."}]
    )
    async with ConversationAgent(loaded, approve_all=True) as agent:
        conversation = await agent.create_conversation("Tests")
        await conversation.send_message("fix it")
        await conversation.send_message("sure?")
    assert "[Exit status 0 of tail; tests: 1 failed.]" in results(server)[0]
    async with ConversationAgent(loaded) as agent:
        resumed = await agent.load_conversation(conversation.record.uuid)
        first, second = await resumed.get_history()
    assert [call.success for message in first.messages for call in message.tool_calls] == [False, True]
    assert [turn.messages[-1].failed_tests for turn in (first, second)] == ["1 failed", ""]
