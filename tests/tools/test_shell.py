"""Commands: what they are given, what is told of them, and that none of their processes outlives them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from ragforge_tui.settings.schema import ToolSettings
from ragforge_tui.shared.errors import ToolError
from ragforge_tui.tools.base import ToolOutcome, report_output
from ragforge_tui.tools.registry import Toolbox
from ragforge_tui.tools.shell import process as process_module
from ragforge_tui.tools.shell.confinement import MECHANISMS, probe, supported
from ragforge_tui.tools.shell.output import Output
from ragforge_tui.tools.shell.process import MARK, end_leftovers, scrubbed_environment
from tests.support.waiting import until
from tests.tools.conftest import Call


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def pids_in(path: Path, count: int) -> list[int]:
    """Process ids, as they are here, of processes that wrote the ids they have in their own namespace."""
    await until(lambda: len(numbers_in(path)) >= count)
    own = numbers_in(path)
    await until(lambda: len(processes_in(path.parent, own)) >= count)
    return processes_in(path.parent, own)


def processes_in(folder: Path, own: list[int]) -> list[int]:
    """Process ids of those that work in a folder and have one of some ids in their namespace."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            status = Path(f"/proc/{process.pid}/status")
            line = next(line for line in status.read_text("utf-8").splitlines() if line.startswith("NSpid:"))
            if int(line.split()[-1]) in own and Path(process.cwd()) == folder:
                found.append(process.pid)
    return found


async def ended(pids: list[int]) -> None:
    """Wait until the processes are gone; killed ones need a moment until they are reaped."""
    await until(lambda: not any(alive(pid) for pid in pids))


def numbers_in(path: Path) -> list[int]:
    return [int(word) for word in path.read_text().split()] if path.exists() else []


THREE_GENERATIONS = "bash -c 'sleep 300 & echo $! >> pids; sleep 301' & echo $! >> pids; echo $$ >> pids; "


async def test_output_and_exit_status(call: Call) -> None:
    outcome = await call("run_command", command="echo out; echo err >&2; exit 3")
    assert outcome.text == "out\nerr\n[Exit status 3.]"
    assert outcome.data["exit_status"] == 3
    assert not outcome.success
    fine = await call("run_command", command="pwd")
    assert fine.success
    assert fine.data["exit_status"] == 0


async def test_the_last_lines_are_shown_while_it_runs(call: Call) -> None:
    seen: list[list[str]] = []
    report_output.set(seen.append)
    await call("run_command", command="seq 5; printf half; sleep 0.7; echo; echo end; sleep 0.7")
    assert seen == [["4", "5", "half"], ["5", "half", "end"]]


def test_a_line_cut_at_its_beginning_is_not_shown() -> None:
    output = Output(50_000)
    output.add(b"x" * 5_000 + b"\nlast\n")
    assert output.last_lines() == ["last"]
    output.add(b"y" * 5_000)
    assert output.last_lines() == []


async def test_runs_in_the_workspace_without_input(folder: Path, call: Call) -> None:
    assert str(folder) in (await call("run_command", command="pwd; cat")).text


async def test_approval_shows_the_exact_command_and_what_it_can_reach(box: Toolbox) -> None:
    prepared = await box.prepare("run_command", json.dumps({"command": "echo a\necho \x1b[8mhidden\r"}))
    need = prepared.approval
    assert need is not None
    assert need.kind == "command"
    assert need.question == f"Run this command? {supported().question}"
    assert need.detail == "echo a\necho ␛[8mhidden␍"
    symbol = (await box.prepare("run_command", json.dumps({"command": "echo \u240a\nls"}))).approval
    assert symbol is not None and symbol.detail == "echo \u240a\nls", "the symbol of a line end is none"
    other = (await box.prepare("run_command", '{"command": "echo b"}')).approval
    assert other is not None
    assert other.session_key != need.session_key


async def test_environment_is_scrubbed(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "my_token", "DB_PASSWORD", "AWS_SECRET_ACCESS", "GOOGLE_CREDENTIALS"):
        monkeypatch.setenv(name, "hunter2")
    monkeypatch.setenv("DATABASE_URL", "postgres://me:hunter2@host/db")
    monkeypatch.setenv("HARMLESS", "kept")
    text = (await call("run_command", command="env")).text
    assert "hunter2" not in text
    assert "HARMLESS=kept" in text


SECRET_VARIABLES = {
    **dict.fromkeys(("DB_PASS", "MYSQL_PWD", "GH_PAT", "GITHUB_PAT_RO", "LDAP_BINDPW", "SSHPASS", "NEO4J_AUTH"), "a b"),
    **dict.fromkeys(("DOCKER_AUTH_CONFIG", "AZURE_STORAGE_CONNECTION_STRING", "SENTRY_DSN", "SLACK_WEBHOOK_URL"), "x"),
    "JDBC_URL": "jdbc:postgresql://db/app?user=me&password=hunter2",
    "ODBC": "Server=db;Uid=me;Pwd=hunter2;",
    "MY_THING": "sk-" + "ant-" + "a1B2c3D4" * 6,
    "CACHE": "redis://:hunter2@cache:6379/0",
}
HARMLESS_VARIABLES = {
    "PATH": "/usr/bin:/bin",
    "PWD": "/work",
    "OLDPWD": "/",
    "SSH_AUTH_SOCK": "/tmp/ssh-a1B2c3/agent.77",
    "SSH_ASKPASS": "/usr/bin/askpass",
    "XAUTHORITY": "/home/me/.Xauthority",
    "AUTHOR": "me",
    "PASSENGERS": "2",
    "COMPASS_DIR": "/opt/compass",
    "LS_COLORS": "rs=0:di=01;34:*.tar=01;31:*.key=00;36",
    "LANG": "en_US.UTF-8",
    "VIRTUAL_ENV": "/work/.venv",
}


def test_secrets_leave_the_environment_by_name_and_by_value_and_nothing_else_does() -> None:
    kept = scrubbed_environment({**SECRET_VARIABLES, **HARMLESS_VARIABLES}, "mark")
    assert not SECRET_VARIABLES.keys() & kept.keys()
    assert kept.items() >= HARMLESS_VARIABLES.items()


def test_scrubbing_keeps_urls_without_passwords() -> None:
    kept = scrubbed_environment({"URL": "https://host/a@b", "ODD": "http://[x@", "PATH": "/bin"}, "mark")
    assert kept["URL"] == "https://host/a@b"
    assert kept["ODD"] == "http://[x@"
    assert kept[MARK] == "mark"


async def test_escape_sequences_and_progress_bars_are_stripped(call: Call) -> None:
    outcome = await call(
        "run_command", command=r"printf '\033[31mred\033[0m \033]0;title\007x\n10%%\r100%%\na\0b\xff\n'"
    )
    assert outcome.text.startswith("red x\n100%\nab\ufffd\n")


async def test_huge_output_keeps_head_and_tail(folder: Path, tmp_path: Path) -> None:
    settings = ToolSettings(max_output_chars=2_000)
    box = Toolbox(folder, settings, undo_dir=tmp_path / "undo", state_dir=tmp_path / "state")
    prepared = await box.prepare("run_command", '{"command": "echo first; yes | head -c 20000000; echo last"}')
    outcome = await prepared.run()
    assert outcome.text.startswith("first\n")
    assert "last\n[Exit status 0.]" in outcome.text
    assert "20000011 bytes in total" in outcome.text
    assert outcome.full_size == outcome.data["truncated"] == 20_000_011
    assert len(outcome.text) < 2_200


@pytest.mark.parametrize("size", [0, 1, 10, 11, 100, 1_000])
def test_output_is_whole_or_cut(size: int) -> None:
    output = Output(10)
    text = "".join(chr(ord("a") + number % 26) for number in range(size))
    for start in range(0, size, 7):
        output.add(text[start : start + 7].encode())
    shown, cut = output.text()
    assert cut == (size > 10)
    assert shown == text if not cut else shown.startswith(text[:6]) and shown.endswith(text[-4:])


async def test_time_out_ends_children_of_children(folder: Path, tmp_path: Path) -> None:
    settings = ToolSettings(command_timeout=9.5)
    box = Toolbox(folder, settings, undo_dir=tmp_path / "undo", state_dir=tmp_path / "state")
    command = f"trap '' TERM; {THREE_GENERATIONS} setsid sleep 302 & echo $! >> pids; echo started; sleep 303"
    outcome = await (await box.prepare("run_command", json.dumps({"command": command}))).run()
    assert outcome.text.startswith("started\n[Timed out after 9.5 s")
    assert outcome.data["timed_out"]
    own = numbers_in(folder / "pids")
    assert len(own) == 4
    await until(lambda: not processes_in(folder, own))
    assert not list((tmp_path / "state" / "commands").glob("*.json"))


async def test_cancel_ends_the_group(folder: Path, call: Call) -> None:
    task = asyncio.create_task(_run(call, THREE_GENERATIONS + "sleep 304"))
    pids = await pids_in(folder / "pids", 3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await ended(pids)


async def test_close_ends_what_runs(folder: Path, box: Toolbox, call: Call) -> None:
    task = asyncio.create_task(_run(call, THREE_GENERATIONS + "sleep 305"))
    pids = await pids_in(folder / "pids", 3)
    await box.close()
    await ended(pids)
    outcome = await task
    assert outcome.data["exit_status"] == -signal.SIGTERM
    assert "SIGTERM" in outcome.text


async def test_close_ends_a_command_that_is_just_starting(
    folder: Path, box: Toolbox, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = process_module._piped

    async def slow(*arguments: Any, **named: Any) -> Any:
        running = await real(*arguments, **named)
        await asyncio.sleep(0.5)  # it runs, but is not listed yet
        return running

    monkeypatch.setattr(process_module, "_piped", slow)
    task = asyncio.create_task(_run(call, THREE_GENERATIONS + "sleep 307"))
    pids = await pids_in(folder / "pids", 3)
    await box.close()
    await ended(pids)
    assert (await task).data["exit_status"] == -signal.SIGTERM


async def test_background_processes_do_not_hold_up_the_end(folder: Path, call: Call) -> None:
    outcome = await call("run_command", command="sleep 306 & echo $! > pids; echo done")
    assert outcome.text.startswith("done\n[Exit status 0. Its background processes were ended")
    assert not processes_in(folder, [int((folder / "pids").read_text())])


async def test_frozen_toolbox_starts_nothing(folder: Path, box: Toolbox) -> None:
    calls = [
        await box.prepare("run_command", '{"command": "touch ran"}'),
        await box.prepare("write_file", '{"path": "ran", "content": "x"}'),
        await box.prepare("create_file", '{"path": "ran", "content": "x"}'),
    ]
    box.writes_frozen = True
    for prepared in calls:
        assert not (await prepared.run()).success
    assert not (folder / "ran").exists()
    assert (await (await box.prepare("list_directory", "{}")).run()).success


@pytest.mark.parametrize("command", ["", "  ", "a\0b"])
async def test_commands_that_are_none(box: Toolbox, command: str) -> None:
    with pytest.raises(ToolError):
        await box.prepare("run_command", json.dumps({"command": command}))


ENGINE = """
import asyncio, sys
from pathlib import Path
from ragforge_tui.tools.shell import confinement, process

if sys.argv[4] != "plain":
    confinement.MECHANISMS = (sys.argv[4],)

async def main() -> None:
    state, folder = Path(sys.argv[1]), Path(sys.argv[2])
    confined = None if sys.argv[4] == "plain" else confinement.Confinement(folder, [state])
    running = await process.Commands(state, confinement=confined).start(sys.argv[3], folder)
    await running.process.wait()

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the parent-death signal is Linux's")
@pytest.mark.parametrize("how", ["plain", *MECHANISMS])
async def test_killed_engine_takes_the_command_along(folder: Path, tmp_path: Path, how: str) -> None:
    if how in MECHANISMS and (reason := probe(how)):
        pytest.skip(reason)
    state = tmp_path / "state"
    command = "sleep 307 & echo $! >> pids; setsid sleep 308 & echo $! >> pids; echo $$ >> pids; sleep 309"
    arguments = [sys.executable, "-c", ENGINE, str(state), str(folder), command, how]
    environment = {**os.environ, "PYTHONPATH": str(Path(process_module.__file__).parents[3])}
    engine = await asyncio.create_subprocess_exec(*arguments, env=environment)
    try:
        pids = await pids_in(folder / "pids", 3)
        assert end_leftovers(state) == 0
        assert all(alive(pid) for pid in pids)
    finally:
        engine.kill()
        await engine.wait()
    if how in ("namespaces", "bwrap"):
        await until(lambda: not any(alive(pid) for pid in pids))
    else:
        await until(lambda: sum(alive(pid) for pid in pids) == 2)
        assert end_leftovers(state) >= 2
    await until(lambda: not any(alive(pid) for pid in pids))
    end_leftovers(state)
    assert not list((state / "commands").iterdir())


def test_records_of_no_use_are_dropped_without_ending_anybody(tmp_path: Path) -> None:
    commands = tmp_path / "commands"
    commands.mkdir()
    (commands / "broken.json").write_text("{")
    own = psutil.Process()
    record = {"mark": "none", "owner": own.pid, "owner_started": 1.0, "group": os.getpgrp(), "group_started": 1.0}
    (commands / "old.json").write_text(json.dumps(record))
    assert end_leftovers(tmp_path) == 0
    assert not list(commands.iterdir())


async def _run(call: Call, command: str) -> ToolOutcome:
    return await call("run_command", command=command)
