"""What /help says, and in which columns."""

from __future__ import annotations

import pytest
from textual.containers import VerticalScroll

from ragforge_tui.tui.command_registry import Registry
from ragforge_tui.tui.commands import all_commands
from ragforge_tui.tui.dialogs.help_screen import FRAME, HelpScreen, help_text
from tests.tui.conftest import ChatRunner


@pytest.mark.parametrize("screen", [76, 80, 120])
def test_descriptions_stay_in_their_column(screen: int) -> None:
    registry = Registry(all_commands())
    lines = help_text(registry, {}, screen=screen).plain.splitlines()
    assert max(map(len, lines)) <= screen - FRAME
    column = next(line for line in lines if line.startswith("  /help ")).index("Show commands and keys")
    goes_on = [line for line in lines if line.startswith("   ")]
    assert all(len(line) - len(line.lstrip()) == column for line in goes_on)
    assert goes_on


def test_the_keys_are_on_top() -> None:
    lines = help_text(Registry(all_commands()), {}, screen=80).plain.splitlines()
    assert lines[0] == "Keys"
    assert lines.index("Tools of the agent") > next(at for at, line in enumerate(lines) if line.startswith("  /help "))


def test_on_a_narrow_screen_it_is_below_the_command_at_one_column() -> None:
    lines = help_text(Registry(all_commands()), {}, screen=60).plain.splitlines()
    assert max(map(len, lines)) <= 60 - FRAME
    assert {len(line) - len(line.lstrip()) for line in lines if line.startswith("   ")} == {4}


async def test_it_scrolls_at_once_and_says_how_to_leave(run_chat: ChatRunner) -> None:
    async with run_chat(size=(80, 24)) as chat:
        await chat.ready()
        await chat.press("f1")
        await chat.until(lambda: isinstance(chat.app.screen, HelpScreen))
        rows = [strip.text for strip in chat.app.screen._compositor.render_strips()]
        assert (rows[0][0], rows[0][-1], rows[-1][0], rows[-1][-1]) == ("╭", "╮", "╰", "╯")
        assert "esc back" in rows[-2]
        await chat.press("down")
        await chat.until(lambda: chat.app.screen.query_one(VerticalScroll).scroll_y)
        await chat.press("escape")
        await chat.until(lambda: not isinstance(chat.app.screen, HelpScreen))
