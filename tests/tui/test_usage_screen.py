"""The screen of what models took: groupings, places and times by key, what a narrow screen leaves out."""

from __future__ import annotations

import pytest

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.requests.past import FetchUsage
from ragforge_tui.tui.past.usage_screen import UsageScreen
from ragforge_tui.tui.session.state import Spent
from tests.support.calls_scene import calls_engine
from tests.tui.conftest import NOON, Chat, ChatRunner


async def usage(chat: Chat) -> UsageScreen:
    """The screen with its first table."""
    await chat.until(lambda: chat.app.chat.session.state.conversation)
    chat.app.chat.session.state.spent = Spent(input_tokens=900, output_tokens=10)
    await chat.type("/usage")
    await chat.until(lambda: isinstance(chat.app.screen, UsageScreen) and "2026-11-03" in chat.app.screen.text)
    screen = chat.app.screen
    assert isinstance(screen, UsageScreen)
    return screen


async def test_keys_choose_the_grouping_the_place_and_the_time(run_chat: ChatRunner) -> None:
    engine = calls_engine()
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        screen = await usage(chat)
        assert "900 tokens sent" in str(screen._said.render())
        assert "41 200" in screen.text and "$0.12" in screen.text and "█" in screen.text
        midnight = NOON.replace(hour=0, minute=0, second=0, microsecond=0)
        since = engine.asked(FetchUsage)[0].since
        assert since is not None and (midnight - since).days == 30
        await chat.press("5")
        await chat.until(lambda: "In the background" in screen.text)
        assert "estimated" in screen.text and "the price of 1 requests is unknown" in screen.text
        await chat.press("right")
        await chat.until(lambda: engine.asked(FetchUsage)[-1].by == "day")
        await chat.press("left", "2")
        await chat.until(lambda: "openai/" in screen.text)
        assert "\x1b" not in screen.text
        await chat.press("w")
        await chat.until(lambda: engine.asked(FetchUsage)[-1].workspace == "/w")
        await chat.press("w")
        await chat.until(lambda: engine.asked(FetchUsage)[-1].conversation_id.startswith("00000001"))
        await chat.press("t", "t", "t")
        await chat.until(lambda: engine.asked(FetchUsage)[-1].since is None)
        await chat.press("4")
        await chat.until(lambda: "No request to a model is stored" in screen.text)
        await chat.press("escape")
        await chat.until(lambda: not isinstance(chat.app.screen, UsageScreen))


@pytest.mark.parametrize("width", [40, 64])
async def test_a_narrow_screen_keeps_what_was_sent_and_the_price(run_chat: ChatRunner, width: int) -> None:
    async with run_chat(calls_engine(), resume="00000001", size=(width, 30)) as chat:
        screen = await usage(chat)
        assert "41 200" in screen.text and "$0.12" in screen.text and "█" not in screen.text
        assert max(map(len, screen.text.splitlines()[:2])) <= screen._table.container_size.width


async def test_a_request_that_fails_changes_no_title(run_chat: ChatRunner) -> None:
    engine = calls_engine()
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        screen = await usage(chat)
        before = str(screen._title.render()), screen.text
        for key in ("5", "w", "t"):
            engine.failures[FetchUsage] = RagforgeError("The sums are out of order.")
            await chat.press(key)
            await chat.until(lambda: "The sums are out of order." in str(screen._keys.render()))
            assert (str(screen._title.render()), screen.text) == before
        await chat.press("2")
        await chat.until(lambda: "by model" in str(screen._title.render()))
        assert (
            "openai/" in screen.text and engine.asked(FetchUsage)[-1].workspace == engine.asked(FetchUsage)[0].workspace
        )
