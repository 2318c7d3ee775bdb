"""The terminal that is filmed: what programs draw in it, and its end."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from screenshots.film import Piece
from screenshots.terminal import BACKGROUND, FOREGROUND, Terminal
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.skipif(not shutil.which("bash"), reason="it has a shell")


@pytest.fixture
async def terminal(tmp_path: Path) -> AsyncIterator[Terminal]:
    opened = Terminal(tmp_path, {"PATH": os.environ["PATH"], "PS1": "$ ", "TERM": "xterm-256color"}, patience=PATIENCE)
    await opened.wait_until(lambda shown: shown.startswith("$"), "the prompt")
    yield opened
    opened.close()
    await opened.ended()


async def test_colors_and_marks_are_kept_and_unknown_modes_are_not_drawn(terminal: Terminal) -> None:
    terminal.press(
        "clear; printf '\\033[>1u\\033[?2026$p\\033[1;38;2;1;2;3mbold\\033[0m \\033[31mred\\033[0m plain\\n'\r"
    )
    await terminal.wait_until(lambda shown: shown.startswith("bold red plain"), "the colors")
    assert terminal.frame()[0] == (
        Piece(0, "bold", "#010203", BACKGROUND, "b"),
        Piece(5, "red", "#ff7b72", BACKGROUND, ""),
        Piece(8, " plain" + " " * 86, FOREGROUND, BACKGROUND, ""),
    )


async def test_a_full_screen_program_leaves_the_shell_as_it_was(terminal: Terminal) -> None:
    terminal.press("echo before\r")
    await terminal.wait_until(lambda shown: "\nbefore" in shown, "the first command")
    terminal.press("printf '\\033[?1049h\\033[Hfull'; read; printf '\\033[?1049l'\r")
    await terminal.wait_until(lambda shown: shown.startswith("full") and "before" not in shown, "the program")
    terminal.press("\r")
    await terminal.wait_until(lambda shown: shown.startswith("$ echo before\nbefore\n"), "the shell again")


async def test_what_is_never_drawn_is_named_with_the_screen(tmp_path: Path) -> None:
    opened = Terminal(tmp_path, {"PATH": os.environ["PATH"], "PS1": "$ "}, patience=0.3)
    try:
        with pytest.raises(TimeoutError, match="never drawn: the moon"):
            await opened.wait_until(lambda shown: "moon" in shown, "the moon")
    finally:
        opened.close()
        await opened.ended()
