"""The prompt's cursor blinks while the user types and rests after a while."""

from __future__ import annotations

import pytest

from ragforge_tui.tui.limits import SCREEN
from tests.support.calls_scene import calls_engine
from tests.tui.conftest import ChatRunner


async def test_the_cursor_rests_until_the_next_key(run_chat: ChatRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SCREEN, "blink", 0.05)
    async with run_chat(calls_engine()) as chat:
        chat.app.animation_level = "full"  # which the tests have reduced
        chat.app.chat.prompt.cursor_blink = True
        chat.app.chat.prompt._wake()
        await chat.until(lambda: not chat.app.chat.prompt.cursor_blink)
        assert chat.app.chat.prompt._blinking is not None
        chat.app.chat.prompt._blinking.stop()  # or it could rest again before the next line
        await chat.press("a")
        assert chat.app.chat.prompt.cursor_blink


async def test_a_cursor_that_rests_stays_still_once_motion_is_reduced(
    run_chat: ChatRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SCREEN, "blink", 0.05)
    async with run_chat(calls_engine()) as chat:
        chat.app.chat.prompt.cursor_blink = True
        chat.app.chat.prompt._wake()
        await chat.until(lambda: not chat.app.chat.prompt.cursor_blink)
        chat.app.animation_level = "none"
        await chat.press("a")
        assert not chat.app.chat.prompt._rests and not chat.app.chat.prompt.cursor_blink


async def test_a_cursor_that_must_not_blink_stays_so(run_chat: ChatRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SCREEN, "blink", 0.05)
    async with run_chat(calls_engine()) as chat:
        chat.app.chat.prompt.cursor_blink = False
        await chat.pilot.pause(0.2)
        await chat.press("a")
        assert not chat.app.chat.prompt.cursor_blink
