"""Alt with a letter, as terminals without the Kitty protocol send it."""

from __future__ import annotations

import pytest
from textual import events
from textual._xterm_parser import XTermParser

from ragforge_tui.tui.alt_keys import teach_alt_keys
from tests.tui.conftest import ChatRunner


def parsed(data: str) -> list[str]:
    return [event.key for event in XTermParser().feed(data) if isinstance(event, events.Key)]


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        ("\x1bs", ["alt+s"]),
        ("\x1bs\x1bs\x1bs", ["alt+s"] * 3),
        ("\x1brnew", ["alt+r", "n", "e", "w"]),
        ("\x1b\r", ["ctrl+j"]),
        ("\x1bf\x1b[A", ["ctrl+right", "up"]),
    ],
)
def test_they_are_recognized_at_once(sent: str, keys: list[str]) -> None:
    teach_alt_keys()
    assert parsed(sent) == keys


async def test_a_letter_close_after_escape_is_typed(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.press("alt+h", "i")
        assert chat.app.chat.prompt.text == "hi"
