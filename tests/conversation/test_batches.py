"""Calls of one reply that need approval are asked about together; what runs is what was shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.conversation.approvals.pending import Approvals
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.events import ApprovalRequested
from ragforge_tui.shared.records import ToolCall, call_end
from tests.conftest import ONE_BACKEND
from tests.support.model_script import Script


def edit(path: str, old: str, new: str) -> dict[str, object]:
    return {"name": "edit_file", "arguments": {"path": path, "old_string": old, "new_string": new}}


READS = {"tool_calls": [{"name": "read_file", "arguments": {"path": path}} for path in ("a.txt", "b.txt")]}
RUN = {"name": "run_command", "arguments": {"command": "touch made"}}
EDITS = [edit("a.txt", "one", "1"), edit("a.txt", "1\ntwo", "1\n2"), edit("b.txt", "three", "3"), RUN]


@pytest.fixture
def folder(loaded: Loaded) -> Path:
    """The workspace, with two files."""
    folder = Path(loaded.workspace)
    (folder / "a.txt").write_text("one\ntwo\n", "utf-8")
    (folder / "b.txt").write_text("three\n", "utf-8")
    return folder


async def held(loaded: Loaded, answer: Callable[[Approvals, list[ApprovalRequested]], None]) -> list[ToolCall]:
    """Hold a conversation; `answer` gets the questions so far at each new one. Return its changing calls as resumed."""
    async with ConversationAgent(loaded, interactive=True) as agent:
        conversation = await agent.create_conversation()
        asked: list[ApprovalRequested] = []
        async for event in conversation.stream("change them"):
            if isinstance(event, ApprovalRequested):
                asked.append(event)
                answer(agent.services.approvals, asked)
    async with ConversationAgent(loaded) as agent:
        resumed = await agent.load_conversation(conversation.record.uuid)
        return [call for call in await resumed.get_tool_calls() if call.tool_name != "read_file"]


def contents(folder: Path) -> tuple[str, str, bool]:
    return (folder / "a.txt").read_text("utf-8"), (folder / "b.txt").read_text("utf-8"), (folder / "made").exists()


async def test_a_batch_shows_what_each_call_does_after_those_before_it(
    loaded: Loaded, folder: Path, server: Script
) -> None:
    server.script([READS, {"tool_calls": EDITS}, {"text": "Done."}])
    shown: list[ApprovalRequested] = []

    def answer(approvals: Approvals, asked: list[ApprovalRequested]) -> None:
        if len(asked) == 4:
            assert contents(folder) == ("one\ntwo\n", "three\n", False)
            shown.extend(asked)
            for question in reversed(asked):
                approvals.answer(question.approval_id, "once")

    calls = await held(loaded, answer)
    assert [call_end(call) for call in calls] == ["ok"] * 4
    assert contents(folder) == ("1\n2\n", "3\n", True)
    assert len({question.batch for question in shown}) == 1 and shown[0].batch
    assert [question.call.uuid for question in shown] == [call.uuid for call in calls]
    assert "-two\n+2" in shown[1].detail and " 1\n" in shown[1].detail


async def test_a_reason_refuses_the_rest_of_the_reply(loaded: Loaded, folder: Path, server: Script) -> None:
    # The last one can only be prepared once its file has these words, so it is no part of the batch.
    server.script([READS, {"tool_calls": [*EDITS, edit("c.txt", "four", "4")]}, {"text": "I see."}])

    def answer(approvals: Approvals, asked: list[ApprovalRequested]) -> None:
        if len(asked) == 4:
            (folder / "c.txt").write_text("four\n", "utf-8")
            approvals.answer(asked[0].approval_id, "once")
            approvals.answer(asked[1].approval_id, "no", "use words")
        assert len(asked) <= 4

    calls = await held(loaded, answer)
    assert [call_end(call) for call in calls] == ["ok", *["refused"] * 4]
    assert contents(folder) == ("1\ntwo\n", "three\n", False)
    told = [message["content"] for message in server.chats()[-1]["messages"] if message["role"] == "tool"]
    assert sum("use words" in text for text in told) == 4


@ONE_BACKEND
async def test_a_call_that_is_no_longer_what_was_shown_is_asked_about_again(
    loaded: Loaded, folder: Path, server: Script
) -> None:
    server.script([READS, {"tool_calls": EDITS[:2]}, {"text": "Done."}])
    questions: list[ApprovalRequested] = []

    def answer(approvals: Approvals, asked: list[ApprovalRequested]) -> None:
        questions[:] = asked
        if len(asked) == 2:
            # Without the first edit the second does not match; the file is changed by the user so that it does.
            approvals.answer(asked[0].approval_id, "no")
            approvals.answer(asked[1].approval_id, "once")

    calls = await held(loaded, answer)
    assert [call_end(call) for call in calls] == ["refused", "failed"] and len(questions) == 2
    assert contents(folder)[0] == "one\ntwo\n"


@ONE_BACKEND
async def test_another_diff_than_the_shown_one_needs_another_answer(
    loaded: Loaded, folder: Path, server: Script
) -> None:
    change = {"name": "run_command", "arguments": {"command": "echo new > c.txt"}}
    write = {"name": "write_file", "arguments": {"path": "c.txt", "content": "mine\n"}}
    server.script([{"tool_calls": [change, write]}, {"text": "Done."}])
    questions: list[str] = []

    def answer(approvals: Approvals, asked: list[ApprovalRequested]) -> None:
        questions.append(asked[-1].question)
        if len(asked) == 2:
            for question in asked:
                approvals.answer(question.approval_id, "once")
        if len(asked) == 3:
            assert not asked[-1].batch and "-new" in asked[-1].detail
            approvals.answer(asked[-1].approval_id, "no")

    await held(loaded, answer)
    assert questions[1:] == ["Create c.txt?", "Overwrite c.txt?"]
    assert (folder / "c.txt").read_text("utf-8") == "new\n"


@ONE_BACKEND
async def test_a_permission_for_the_session_answers_the_others_that_it_covers(
    loaded: Loaded, folder: Path, server: Script
) -> None:
    server.script([READS, {"tool_calls": EDITS}, {"text": "Done."}])

    def answer(approvals: Approvals, asked: list[ApprovalRequested]) -> None:
        if len(asked) == 4:
            approvals.answer(asked[1].approval_id, "session")
            approvals.answer(asked[3].approval_id, "no")

    calls = await held(loaded, answer)
    assert [call_end(call) for call in calls] == ["ok", "ok", "ok", "refused"]
    assert contents(folder) == ("1\n2\n", "3\n", False)
