"""Commands in the background: started, read, given input, listed and ended; and programs that need a terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragforge_tui.settings.schema import ToolSettings
from ragforge_tui.shared.errors import ToolError
from ragforge_tui.tools.base import Ruling
from ragforge_tui.tools.registry import PreparedCall, RestrictedTools, Toolbox
from ragforge_tui.tools.shell.background import MOST_RUNNING
from ragforge_tui.tools.shell.interactive import interactive_program
from tests.support.waiting import until
from tests.tools.conftest import Call
from tests.tools.test_shell import alive, ended, pids_in


async def test_new_output_since_the_last_look(folder: Path, call: Call) -> None:
    first = await call(
        "run_command", command="echo one; until [ -e go ]; do sleep 0.05; done; echo two; exit 3", background=True
    )
    assert first.text == "one\n[Process 1 runs.]" and first.success
    assert (await call("run_command", process=1, timeout=0.01)).text == "[Process 1 runs, no new output.]"
    (folder / "go").touch()
    text = ""
    while "has ended" not in text:
        text += (await call("run_command", process=1, timeout=20)).text
    assert "one" not in text and "two\n" in text and text.endswith("[Process 1 has ended. Exit status 3.]")


async def test_input_is_asked_about_and_read(box: Toolbox, call: Call) -> None:
    await call("run_command", command="read line; echo got $line; sleep 300", background=True)
    prepared = await box.prepare("run_command", json.dumps({"process": 1, "input": "hello"}))
    need = prepared.approval
    assert need is not None and need.kind == "command" and not need.command, "no rule for commands covers an input"
    assert need.question == "Send this input to process 1 (read line; echo got $line; sleep 300)?"
    assert need.detail == "hello"
    text = (await prepared.run()).text
    while "got hello" not in text:
        text += (await call("run_command", process=1, timeout=20)).text


async def test_a_stopped_process_leaves_nothing(folder: Path, box: Toolbox, call: Call) -> None:
    await call("run_command", command="sleep 300 & echo $! >> pids; echo $$ >> pids; wait", background=True)
    pids = await pids_in(folder / "pids", 2)
    assert box.processes.running == 1
    assert (await call("run_command", process=1, stop=True)).text == "[Process 1 has ended. Stopped by the agent.]"
    await ended(pids)
    assert "1  Stopped by the agent.  sleep 300" in (await call("run_command", process=0)).text
    with pytest.raises(ToolError, match="has ended"):
        await box.prepare("run_command", json.dumps({"process": 1, "input": "x"}))
    with pytest.raises(ToolError, match="no process 7"):
        await box.prepare("run_command", json.dumps({"process": 7}))


async def test_the_end_of_the_session_ends_them(folder: Path, box: Toolbox, call: Call) -> None:
    await call("run_command", command="sleep 300 & echo $! >> pids; echo $$ >> pids; wait", background=True)
    pids = await pids_in(folder / "pids", 2)
    await box.close()
    assert not any(alive(pid) for pid in pids)


async def test_a_time_limit_of_its_own(box: Toolbox, call: Call) -> None:
    await call("run_command", command="sleep 300", background=True, timeout=0.2)
    await until(lambda: not box.processes.running)
    assert "Timed out after 0.2 s" in (await call("run_command", process=1)).text


async def test_only_so_many_run_and_output_is_bounded(box: Toolbox, call: Call) -> None:
    await call("run_command", command="yes 0123456789 | head -c 3000000; sleep 300", background=True)
    process = box.processes.get(1)
    await until(lambda: process._recent.size >= 3_000_000)
    assert len(process._fresh._head) + len(process._fresh._tail) < 8 * ToolSettings().max_output_chars
    for _ in range(MOST_RUNNING - 1):
        await call("run_command", command="sleep 300", background=True)
    assert "run in the background already" in (await call("run_command", command="sleep 300", background=True)).text


async def test_the_model_is_told_once_that_one_ended(box: Toolbox, call: Call) -> None:
    await call("run_command", command="sleep 1.5; exit 4", background=True)
    await until(lambda: not box.processes.running)
    (sentence,) = box.processes.take_ended("")
    assert sentence.startswith("[Process 1 (sleep 1.5; exit 4) has ended. Exit status 4.")
    assert box.processes.take_ended("") == []


async def test_reading_and_stopping_is_allowed_while_planning(box: Toolbox, call: Call) -> None:
    async def judge(prepared: PreparedCall) -> Ruling:
        return Ruling()

    await call("run_command", command="sleep 300", background=True)
    planning = RestrictedTools(box, None, "The persona", lambda: "plan", judge)
    assert "runs" in (await (await planning.prepare("run_command", '{"process": 1, "timeout": 0.01}')).run()).text
    with pytest.raises(ToolError, match="not allowed while planning"):
        await planning.prepare("run_command", '{"process": 1, "input": "x"}')
    with pytest.raises(ToolError, match="not allowed while planning"):
        await planning.prepare("run_command", '{"command": "touch x", "background": true}')


async def test_a_call_may_ask_for_more_time_up_to_a_maximum(folder: Path, tmp_path: Path) -> None:
    settings = ToolSettings(command_timeout=0.1)
    box = Toolbox(folder, settings, undo_dir=tmp_path / "undo", state_dir=tmp_path / "state")
    prepared = await box.prepare("run_command", '{"command": "sleep 300", "timeout": 600}')
    assert "Timed out after 0.5 s" in (await prepared.run()).text
    await box.close()


@pytest.mark.parametrize(
    "command",
    [
        "vim notes.txt",
        "cd src && sudo nano x",
        "less README.md",
        "top",
        "python",
        "ls; python3",
        "X=1 git rebase -i HEAD~3",
        "git add -p",
        "ssh host",
        "/usr/bin/vi x",
    ],
)
async def test_programs_that_need_a_terminal_are_refused(box: Toolbox, command: str) -> None:
    with pytest.raises(ToolError, match="needs a terminal") as refused:
        await box.prepare("run_command", json.dumps({"command": command}))
    assert refused.value.info.todo


@pytest.mark.parametrize(
    "command",
    [
        "git log | less",
        "python -c 'print(1)'",
        "python script.py",
        "python <<'E'\nvim\nE",
        "echo 1 | python",
        "python < x.py",
        "top -b -n 1",
        "ssh host ls",
        "echo 'vim; less'",
        "GIT_SEQUENCE_EDITOR=true git rebase -i HEAD~2",
        "git commit -i x -m y",
        "vim --version",
        "bash -c 'ls'",
        'echo "open',
    ],
)
def test_others_are_not(command: str) -> None:
    assert interactive_program(command) == ("", "")
