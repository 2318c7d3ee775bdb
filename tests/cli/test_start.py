"""The chat's own options, read without Typer: the same as Typer reads them, or left to it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ragforge_tui.cli.app import with_text
from ragforge_tui.cli.start import ChatFlags, Shared, chat_flags
from ragforge_tui.shared.daemon import daemon_environment


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ([], ChatFlags(shared=Shared())),
        (["-c"], ChatFlags(shared=Shared(), continue_last=True)),
        (["--resume"], ChatFlags(shared=Shared(), resume="")),
        (["-r", "1f3a"], ChatFlags(shared=Shared(), resume="1f3a")),
        (["--resume", "ask"], ChatFlags(shared=Shared(), resume="ask")),
        (["-r", "--model", "offline"], ChatFlags(shared=Shared(model="offline"), resume="")),
        (
            ["--graph", "bolt://h", "--persona", "Ada", "--workspace", "/w", "--config", "f"],
            ChatFlags(shared=Shared(graph="bolt://h", persona="Ada", workspace="/w", config="f")),
        ),
        (["why does it fail?"], ChatFlags(shared=Shared(), text="why does it fail?")),
        (
            ["-c", "go on, please", "--model", "x"],
            ChatFlags(shared=Shared(model="x"), continue_last=True, text="go on, please"),
        ),
        (["-r", "1f3a", "and now?"], ChatFlags(shared=Shared(), resume="1f3a", text="and now?")),
    ],
)
def test_the_options_of_the_chat_are_read(args: list[str], expected: ChatFlags) -> None:
    assert chat_flags(args) == expected


@pytest.mark.parametrize(
    "args",
    [
        ["ask", "hi"],
        ["--help"],
        ["--modle", "x"],
        ["--model"],
        ["--model", "-c"],
        ["-c", "-r"],
        ["--model=x"],
        ["word"],
        ["two words", "and more"],
        ["two words", "-r"],
    ],
)
def test_anything_else_is_left_to_typer(args: list[str]) -> None:
    assert chat_flags(args) is None


@pytest.mark.parametrize(
    ("args", "named"),
    [
        (["why", "does", "it", "fail"], ["--text=why does it fail"]),
        (["--model", "sessions", "hello", "-c"], ["--model", "sessions", "-c", "--text=hello"]),
        (["hello", "sessions"], ["--text=hello sessions"]),
        (["sessions", "-n", "hello"], ["sessions", "-n", "hello"]),
        (["sesions"], ["sesions"]),
        (["--model", "x"], ["--model", "x"]),
    ],
)
def test_words_that_are_no_command_are_the_first_message(args: list[str], named: list[str]) -> None:
    assert with_text(args, ["sessions", "ask"]) == named


def test_the_way_to_the_chat_loads_no_more_than_it_needs() -> None:
    code = (
        "import sys; import ragforge_tui.cli.start, ragforge_tui.settings.load; "
        "import ragforge_tui.engine.process, ragforge_tui.tui.app; "
        "print([n for n in ('typer', 'yaml', 'markdown_it', 'pygments', 'litellm', 'neo4j', "
        "'ragforge_tui.tui.transcript.markdown') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("python_path", [":", ".", ":/nowhere"])
def test_modules_of_the_current_folder_are_not_run(
    python_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leading and trailing colons are common slips in PYTHONPATH."""
    for name in ("msgspec", "yaml", "typer", "click", "textual"):
        (tmp_path / f"{name}.py").write_text("open('was_run', 'w').close()\nraise SystemExit(3)\n")
    monkeypatch.setenv("PYTHONPATH", python_path)
    program = Path(sys.executable).with_name("ragforge-chat")
    done = subprocess.run([program, "config", "path"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert not (tmp_path / "was_run").exists()
    assert daemon_environment()["PYTHONPATH"].split(os.pathsep)[1:] == [
        part for part in python_path.split(":") if part.startswith("/")
    ]


@pytest.mark.parametrize(
    ("closed", "arguments", "status", "shown"),
    [
        ("<&-", "", 2, "needs a terminal"),
        (">&-", "", 1, "output is closed"),
        (">&- <&- 2>&-", "", 1, ""),
        (">&-", "config path", 1, "output is closed"),
        ("<&-", "config path", 0, ""),
        ("2>&-", "config path", 0, ""),
    ],
)
def test_closed_streams_end_in_a_sentence(closed: str, arguments: str, status: int, shown: str) -> None:
    command = f"exec {shlex.quote(sys.executable)} -m ragforge_tui {arguments} {closed}"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True)
    assert done.returncode == status
    assert shown in done.stderr
    assert done.stderr.count("\n") <= 1, "a sentence, no traceback"
