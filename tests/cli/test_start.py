"""The chat's own options, read without Typer: the same as Typer reads them, or left to it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ragforge_tui.cli.start import ChatFlags, Shared, chat_flags


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
    ],
)
def test_anything_else_is_left_to_typer(args: list[str]) -> None:
    assert chat_flags(args) is None


def test_the_way_to_the_chat_loads_no_more_than_it_needs() -> None:
    code = (
        "import sys; import ragforge_tui.cli.start, ragforge_tui.settings.load; "
        "import ragforge_tui.engine.process, ragforge_tui.tui.app; "
        "print([n for n in ('typer', 'yaml', 'markdown_it', 'pygments', 'litellm', 'neo4j', "
        "'ragforge_tui.tui.transcript.markdown') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
