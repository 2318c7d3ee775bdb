"""What /help says, and in which columns."""

from __future__ import annotations

import pytest

from ragforge_tui.tui.command_registry import Registry
from ragforge_tui.tui.commands import all_commands
from ragforge_tui.tui.dialogs.help_screen import FRAME, help_text


@pytest.mark.parametrize("screen", [76, 80, 120])
def test_what_a_command_does_stays_in_its_column(screen: int) -> None:
    registry = Registry(all_commands())
    lines = help_text(registry, "1", {}, screen=screen).plain.splitlines()
    assert max(map(len, lines)) <= screen - FRAME
    column = next(line for line in lines if line.startswith("  /help ")).index("Show commands and keys")
    goes_on = [line for line in lines if line.startswith("   ")]
    assert all(len(line) - len(line.lstrip()) == column for line in goes_on)
    assert goes_on


def test_on_a_narrow_screen_it_is_below_the_command_at_one_column() -> None:
    lines = help_text(Registry(all_commands()), "1", {}, screen=60).plain.splitlines()
    assert max(map(len, lines)) <= 60 - FRAME
    assert {len(line) - len(line.lstrip()) for line in lines if line.startswith("   ")} == {4}
