"""The chat as lines: answers, questions, commands and the end, without a screen."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ragforge_tui.cli.inline import InlineChat, Lines, Opening
from ragforge_tui.shared.events import (
    ApprovalRequested,
    AskedChoice,
    Event,
    QuestionAsked,
    TextDelta,
    TurnCancelled,
    TurnCompleted,
)
from ragforge_tui.shared.records import Conversation, ToolCall
from ragforge_tui.shared.requests.turns import CancelTurn, SendMessage
from ragforge_tui.shared.requests.work import AnswerApproval, RunShell, SetMode
from tests.support.fake_engine import CLOCK, FakeEngine, conversation, turn
from tests.support.waiting import until

PROGRAM = Path(sys.executable).with_name("ragforge-chat")


class Typed(Lines):
    """Lines that are typed when they are wanted."""

    def __init__(self, *lines: str) -> None:
        super().__init__()
        self.left = list(lines)

    async def read(self, prompt: str) -> str | None:
        return self.left.pop(0) if self.left else None


async def chat(engine: FakeEngine, *lines: str, **flags: Any) -> InlineChat:
    """Chat until the lines end."""
    inline = InlineChat(engine, Typed(*lines), "/w", Opening(**flags))
    await inline.run()
    return inline


def asking(*questions: ApprovalRequested | QuestionAsked) -> Any:
    """A turn that asks and ends when everything is answered."""

    async def script(engine: FakeEngine, owner: Conversation, index: int, text: str) -> AsyncIterator[Event]:
        where: dict[str, Any] = {"conversation_id": owner.uuid, "turn_index": index}
        for number, question in enumerate(questions, 1):
            yield msgspec.structs.replace(question, conversation_id=owner.uuid)
            await until(lambda number=number: len(engine.asked(AnswerApproval)) == number)
        yield TextDelta(message_id="m", text="Done\x1b[2J.", **where)
        yield TurnCompleted(text="Done.", **where)

    return script


def command_approval(key: str) -> ApprovalRequested:
    call = ToolCall(
        uuid=key, message_id="m", tool_name="run_command", arguments='{"reason": "To see"}', timestamp=CLOCK
    )
    return ApprovalRequested(
        conversation_id="x",
        turn_index=1,
        approval_id=key,
        call=call,
        kind="command",
        question="Run this command?",
        detail="make \x1b[31mall",
        session_scope="exactly this command",
        always=["make"],
    )


async def test_a_message_is_answered_and_the_conversation_named(capsys: pytest.CaptureFixture[str]) -> None:
    engine = FakeEngine()
    inline = await chat(engine, "Hello", "first \\", "second", "/quit", "never sent")
    assert [request.text for request in engine.asked(SendMessage)] == ["Hello", "first \nsecond"]
    assert inline.conversation_id
    out = capsys.readouterr().out
    assert "Ragnarök:\nYou said: Hello\n" in out
    assert "\x1b" not in out


async def test_the_first_message_comes_from_the_command_line() -> None:
    engine = FakeEngine()
    await chat(engine, text="why?")
    assert [request.text for request in engine.asked(SendMessage)] == ["why?"]


@pytest.mark.parametrize(
    ("typed", "decision", "feedback"),
    [
        ("y", "once", ""),
        ("s", "session", ""),
        ("a", "always", ""),
        ("n", "no", ""),
        ("", "no", ""),
        ("not on Fridays", "no", "not on Fridays"),
    ],
)
async def test_an_approval_is_a_line(
    capsys: pytest.CaptureFixture[str], typed: str, decision: str, feedback: str
) -> None:
    engine = FakeEngine(script=asking(command_approval("a1")))
    await chat(engine, "go", typed)
    answer = engine.asked(AnswerApproval)[0]
    assert (answer.approval_id, answer.decision, answer.feedback) == ("a1", decision, feedback)
    out = capsys.readouterr().out
    assert "make all\n? Run this command? (To see)\n" in out
    assert "Done." in out
    assert "\x1b" not in out


async def test_what_was_not_offered_is_refused() -> None:
    question = command_approval("a1")
    question.session_scope, question.always = "", []
    engine = FakeEngine(script=asking(question, question))
    await chat(engine, "go", "s", "a")
    assert [answer.decision for answer in engine.asked(AnswerApproval)] == ["no", "no"]


async def test_a_question_of_the_agent_takes_a_number_or_words() -> None:
    asked = QuestionAsked(
        conversation_id="x",
        turn_index=1,
        approval_id="q1",
        call=command_approval("c").call,
        question="Which one?",
        choices=[AskedChoice(label="Red"), AskedChoice(label="Blue", description="like the sea")],
    )
    engine = FakeEngine(script=asking(asked, asked))
    await chat(engine, "go", "2", "Green")
    assert [answer.feedback for answer in engine.asked(AnswerApproval)] == ["Blue", "Green"]


async def test_ctrl_c_stops_the_answer_and_the_chat_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    inline: InlineChat

    async def script(engine: FakeEngine, owner: Conversation, index: int, text: str) -> AsyncIterator[Event]:
        where: dict[str, Any] = {"conversation_id": owner.uuid, "turn_index": index}
        yield TextDelta(message_id="m", text="Half", **where)
        if text == "stop me":
            inline.interrupt()
            await until(lambda: engine.asked(CancelTurn))
            yield TurnCancelled(text="Half", **where)
        yield TurnCompleted(text="Half", **where)

    engine = FakeEngine(script=script)
    inline = InlineChat(engine, Typed("stop me", "again"), "/w", Opening())
    await inline.run()
    assert len(engine.asked(CancelTurn)) == 1
    assert len(engine.asked(SendMessage)) == 2
    assert "stopped" in capsys.readouterr().out


async def test_a_turn_that_ends_takes_its_question_along(capsys: pytest.CaptureFixture[str]) -> None:
    """What is typed then is the next message, and not an answer to a question that nobody waits for."""
    ended = asyncio.Event()

    class Late(Typed):
        async def read(self, prompt: str) -> str | None:
            if prompt == "? ":
                await ended.wait()
            return await super().read(prompt)

    async def script(engine: FakeEngine, owner: Conversation, index: int, text: str) -> AsyncIterator[Event]:
        where: dict[str, Any] = {"conversation_id": owner.uuid, "turn_index": index}
        if text == "go":
            yield msgspec.structs.replace(command_approval("a1"), conversation_id=owner.uuid)
            yield TurnCancelled(text="", **where)
            asyncio.get_running_loop().call_soon(ended.set)
        yield TurnCompleted(text="Done.", **where)

    engine = FakeEngine(script=script)
    inline = InlineChat(engine, Late("go", "next message"), "/w", Opening())
    await inline.run()
    assert engine.asked(AnswerApproval) == []
    assert [request.text for request in engine.asked(SendMessage)] == ["go", "next message"]


async def test_a_conversation_is_listed_resumed_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    engine = FakeEngine()
    owner = conversation(7, "Retries")
    engine.store(owner, turn(owner, 1, "What about retries?", "They wait longer."))
    inline = await chat(engine, "/resume 1", resume="")
    assert inline.conversation_id == owner.uuid
    out = capsys.readouterr().out
    assert "  1  2026-11-03" in out
    assert "> What about retries?\n\nRagnarök:\nThey wait longer." in out


async def test_commands(capsys: pytest.CaptureFixture[str]) -> None:
    engine = FakeEngine()
    await chat(engine, "/mode plan", "/nope", "/help", "/resume nowhere", "/new", "/mode edits", "hello", "!ls")
    out = capsys.readouterr().out
    assert "mode: plan" in out
    assert "There is no command /nope here" in out
    assert "/sessions" in out
    assert [request.mode for request in engine.asked(SetMode)] == ["edits"]
    assert [request.command for request in engine.asked(RunShell)] == ["ls"]


async def test_only_a_plan_is_asked_about(capsys: pytest.CaptureFixture[str]) -> None:
    async def planned(engine: FakeEngine, owner: Conversation, index: int, text: str) -> AsyncIterator[Event]:
        answer = "Hello! What shall I plan?" if text == "hello" else "- Change `retry.py`.\n- Run its tests."
        yield TurnCompleted(text=answer, conversation_id=owner.uuid, turn_index=index)

    engine = FakeEngine(script=planned)
    await chat(engine, "/mode plan", "hello", "longer waits", "y")
    assert capsys.readouterr().out.count("Carry out this plan?") == 1
    assert [request.text for request in engine.asked(SendMessage)] == ["hello", "longer waits", "Carry out the plan."]
    assert [request.mode for request in engine.asked(SetMode)] == ["plan", "ask"]


@pytest.mark.slow
def test_lines_from_a_pipe(tmp_path: Path) -> None:
    environment = {**os.environ, "RAGFORGE_HOME": str(tmp_path / "home"), "RAGFORGE_KEEP_WARM_MINUTES": "0"}
    done = subprocess.run(
        [PROGRAM, "--inline", "--model", "offline", "--workspace", str(tmp_path)],
        input="What can you do?\n!echo counted: $((6*7))\n",
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert "I am the offline assistant" in done.stdout
    assert "counted: 42" in done.stdout
    assert f"Resume: {shlex.quote(str(PROGRAM))} --resume " in done.stdout
