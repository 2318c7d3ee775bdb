"""`ask`: one turn without a screen, for people and for programs."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import Popen

import pytest

from ragforge_tui.graph import GraphTarget
from ragforge_tui.settings.schema import Paths
from tests.cli.conftest import Cli
from tests.conftest import EMBEDDED
from tests.support.model_script import Call, Step
from tests.support.openai_server import OpenAIServer


@pytest.fixture
def graph_target(embedded_paths: Paths) -> GraphTarget:
    """The embedded graph alone: no dialect can change how a turn is printed."""
    return EMBEDDED


WRITE = Call(name="create_file", arguments={"path": "note.txt", "content": "hello\n"})


@contextmanager
def ended(process: Popen[bytes]) -> Iterator[Popen[bytes]]:
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_answer_on_stdout_notices_on_stderr(cli: Cli, model: OpenAIServer) -> None:
    model.script([Step(when="tools", reasoning="Thinking.", text="Forty-two.")])
    ran = cli.ok("ask", "What is it?")
    assert ran.out == "Forty-two.\n"
    assert "openai/scripted answers" in ran.err
    assert model.chats()[0]["messages"][-1]["content"].endswith("What is it?")


def test_json_lines_end_with_the_end_of_the_turn(cli: Cli, model: OpenAIServer) -> None:
    model.script([Step(when="tools", text="One."), Step(when="tools", text="Two.")])
    events = cli.ok("ask", "--json", "First").events
    types = [event["type"] for event in events]
    assert types[-1] == "turn_completed"
    assert {"turn_started", "text_delta", "message_finished"} <= set(types)
    last = events[-1]
    assert (last["turn_index"], last["text"]) == (1, "One.")
    assert "".join(event["text"] for event in events if event["type"] == "text_delta") == "One."
    again = cli.ok("ask", "--json", "--resume", last["conversation_id"][:8], "Second").events[-1]
    assert (again["conversation_id"], again["turn_index"], again["text"]) == (last["conversation_id"], 2, "Two.")


def test_an_answer_that_falls_short_is_a_notice_on_stderr(cli: Cli, model: OpenAIServer) -> None:
    model.script([Step(when="tools", text="Half", finish="length"), Step(when="tools", finish="stop")])
    ran = cli.ok("ask", "Go on.")
    assert ran.out == "Half\n" and "reached its length limit" in ran.err
    last = cli.ok("ask", "--json", "Go on.").events
    assert last[-1]["type"] == "turn_completed" and last[-1]["text"] == ""
    [reply] = [event["message"] for event in last if event["type"] == "message_finished"]
    assert reply["state"] == "interrupted" and "an empty answer" in reply["error"]


def test_standard_input(cli: Cli, model: OpenAIServer) -> None:
    model.script([Step(when="tools", text="Read.")])
    assert cli.ok("ask", "-", stdin="from the pipe\n").out == "Read.\n"
    assert "from the pipe" in model.chats()[0]["messages"][-1]["content"]


def test_calls_that_need_approval_are_refused_and_the_turn_continues(cli: Cli, model: OpenAIServer) -> None:
    model.script([Step(when="tools", tool_calls=[WRITE]), Step(when="tools", text="I could not.")])
    ran = cli.ok("ask", "Write a note")
    assert ran.out == "I could not.\n"
    assert "Refused without --yes or --allow" in ran.err
    assert "⊘ Create note.txt refused" in ran.err
    assert not (cli.workspace / "note.txt").exists()
    told = [message for message in model.chats()[1]["messages"] if message["role"] == "tool"]
    assert len(told) == 1


def test_yes_runs_what_needs_approval(cli: Cli, model: OpenAIServer) -> None:
    model.script([Step(when="tools", tool_calls=[WRITE]), Step(when="tools", text="Done.")])
    ran = cli.ok("ask", "--yes", "Write a note")
    assert (cli.workspace / "note.txt").read_text() == "hello\n"
    assert "✓ Create note.txt" in ran.err


def test_allow_runs_what_a_rule_covers(cli: Cli, model: OpenAIServer) -> None:
    run = {"name": "run_command", "arguments": {"command": "touch made"}}
    model.script([Step(when="tools", tool_calls=[WRITE, run]), Step(when="tools", text="Done.")])
    ran = cli.ok("ask", "--allow", "write(*.txt)", "--allow", "@tests", "Write a note")
    assert (cli.workspace / "note.txt").read_text() == "hello\n"
    assert not (cli.workspace / "made").exists() and "Refused without --yes or --allow" in ran.err
    wrong = cli.run("ask", "--allow", "nothing(x)", "Write a note")
    assert wrong.code == 2 and "there is no tool nothing" in wrong.err


def test_a_failed_turn(cli: Cli, model: OpenAIServer) -> None:
    model.script([Step(status=401, message="bad key"), Step(status=401, message="bad key")])
    ran = cli.run("ask", "--json", "Hello")
    assert ran.code == 1
    assert ran.events[-1]["type"] == "turn_failed"
    assert ran.events[-1]["error"]["kind"] == "bad_key"
    ran = cli.run("ask", "Hello")
    assert (ran.code, ran.out) == (1, "")
    assert "key" in ran.err.splitlines()[-1]


def test_an_unknown_conversation(cli: Cli) -> None:
    ran = cli.run("ask", "--json", "--resume", "ffffffff", "Hello")
    assert ran.code == 1
    assert ran.events[-1]["type"] == "turn_failed"
    assert "ffffffff" in ran.err


def test_an_unknown_persona(cli: Cli) -> None:
    ran = cli.run("ask", "--persona", "Nobody", "Hello")
    assert ran.code == 1
    assert "Nobody" in ran.err


def test_escape_sequences_are_not_printed(cli: Cli, model: OpenAIServer) -> None:
    model.script([Step(when="tools", text="safe\x1b[31m red\x1b]0;title\x07 \x9b2J end")])
    out = cli.ok("ask", "Paint it").out
    assert "\x1b" not in out and "\x9b" not in out and "\x07" not in out
    assert out.startswith("safe red")


@pytest.mark.slow
def test_ctrl_c_keeps_what_came(cli: Cli, model: OpenAIServer) -> None:
    model.script([Step(when="tools", text="Half an answer", stall=True)])
    with ended(cli.start("ask", "--json", "Go on")) as process:
        assert process.stdout is not None
        text = ""
        for line in process.stdout:
            if b'"text_delta"' in line:
                text += line.decode()
            if "swer" in text:
                break
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert b"Traceback" not in err
    assert b'"type":"turn_cancelled"' in out.splitlines()[-1]
    shown = cli.ok("show", "--json", cli.ok("sessions", "--json").json[0]["uuid"]).json
    assert shown["messages"][-1]["content"] == "Half an answer"
    assert shown["messages"][-1]["state"] == "interrupted"


def test_nothing_to_ask_is_wrong_usage(bare: Cli) -> None:
    assert bare.run("ask", " ").code == 2
    assert bare.run("ask", "-", stdin="").code == 2
    assert bare.run("ask").code == 2
    assert bare.run("ask", "--resume", "", "Hello").code == 2
