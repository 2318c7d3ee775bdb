"""Connecting a provider: its dialog, the picker of its models, and what happens when a model does not work."""

from __future__ import annotations

import asyncio
from typing import Any

from textual.widgets import Input

from ragforge_tui.shared.errors import ModelError, RagforgeError
from ragforge_tui.shared.events import ModelChanged
from ragforge_tui.shared.requests.models import CancelConnect, ConnectProvider, DisconnectProvider
from ragforge_tui.shared.requests.work import ChangeModelSettings, SetModel
from ragforge_tui.shared.wire import Request
from ragforge_tui.tui.dialogs.connect_screen import ConnectScreen
from ragforge_tui.tui.widgets.key_bar import KeyBar
from ragforge_tui.tui.widgets.list_screen import Picker
from tests.support.fake_engine import FakeEngine
from tests.tui.conftest import Chat, ChatRunner

SECRET = "hunter2-of-no-known-shape"


async def shown(chat: Chat, kind: type[Any]) -> None:
    await chat.until(lambda: isinstance(chat.app.screen, kind), kind.__name__)


def screen_text(chat: Chat) -> str:
    """All that the screen shows now."""
    return "\n".join(strip.text for strip in chat.app.screen._compositor.render_strips())


async def test_a_key_is_entered_unseen_checked_and_its_model_used(run_chat: ChatRunner) -> None:
    engine = FakeEngine()
    engine.model = ModelChanged(phase="ready", name="offline", offline=True)
    async with run_chat(engine) as chat:
        await chat.ready()
        assert "/connect takes a key" in screen_text(chat)
        await chat.type("/connect")
        await shown(chat, Picker)
        await chat.press(*"anthropic", "enter")
        await shown(chat, ConnectScreen)
        await chat.pilot.pause()
        await chat.press(*SECRET)
        assert chat.app.screen.query_one("#connect-key", Input).value == SECRET
        await chat.pilot.pause()
        assert SECRET not in screen_text(chat) and "api.anthropic.com" in screen_text(chat)
        await chat.press("enter")
        await chat.until(lambda: chat.engine.asked(ConnectProvider))
        assert chat.engine.asked(ConnectProvider)[0].key == SECRET
        await shown(chat, Picker)
        await chat.until(lambda: "claude-b" in screen_text(chat))
        await chat.press(*"claude-b", "enter")
        await chat.until(lambda: chat.noticed("anthropic/claude-b (api.example.com) answers"))
        asked = chat.engine.asked(SetModel)[0]
        assert (asked.name, asked.provider) == ("anthropic/claude-b", "anthropic")
        assert SECRET not in repr(chat.engine.requests) and not chat.noticed(SECRET)


async def test_a_refused_key_is_said_in_the_dialog(run_chat: ChatRunner) -> None:
    engine = FakeEngine()
    engine.failures[ConnectProvider] = ModelError("api.openai.com refused the API key (401).", kind="bad_key")
    async with run_chat(engine) as chat:
        await chat.ready()
        await chat.type("/connect openai")
        await shown(chat, ConnectScreen)
        await chat.press("x", "enter")
        await chat.until(lambda: "refused the API key" in screen_text(chat))
        await chat.press("escape")
        await chat.until(lambda: not isinstance(chat.app.screen, ConnectScreen))
        await chat.type("/connect nobody")
        await chat.until(lambda: chat.noticed("There is no provider 'nobody'. /connect takes anthropic, openai"))


class SlowCheck(FakeEngine):
    """Answers a check only once it is cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.cancelled = asyncio.Event()

    async def request(self, request: Request[Any]) -> Any:
        if isinstance(request, CancelConnect):
            self.cancelled.set()
        answer = await super().request(request)
        if isinstance(request, ConnectProvider):
            await self.cancelled.wait()
            raise RagforgeError("The check was cancelled.", kind="cancelled")
        return answer


async def test_escape_cancels_a_check_and_the_dialog_stays(run_chat: ChatRunner) -> None:
    async with run_chat(SlowCheck()) as chat:
        await chat.ready()
        await chat.type("/connect ollama")
        await shown(chat, ConnectScreen)
        await chat.press("enter")
        await chat.until(lambda: "checking" in screen_text(chat))
        await chat.press("escape")
        await chat.until(lambda: "cancelled; nothing was stored" in screen_text(chat))
        keys = chat.app.screen.query_one(KeyBar)
        assert "enter connect" in str(keys.render())
        assert chat.engine.asked(ConnectProvider)[0].url == "http://127.0.0.1:11434"


async def test_a_model_without_a_key_opens_the_dialog(run_chat: ChatRunner) -> None:
    engine = FakeEngine()
    engine.failures[SetModel] = ModelError("There is no API key for Anthropic.", kind="not_configured")
    async with run_chat(engine) as chat:
        await chat.ready()
        await chat.type("/model anthropic/claude-sonnet-5")
        await shown(chat, ConnectScreen)
        assert "There is no API key for Anthropic." in screen_text(chat)


async def test_a_model_that_does_not_answer_may_be_kept(run_chat: ChatRunner) -> None:
    engine = FakeEngine()
    engine.failures[SetModel] = ModelError("this machine did not answer within 5 s.", kind="unreachable")
    async with run_chat(engine) as chat:
        await chat.ready()
        await chat.type("/model openai/mine")
        await chat.until(lambda: chat.app.chat.questions.waiting)
        assert "did not answer within 5 s. Use openai/mine anyway?" in screen_text(chat)
        await chat.press("y")
        await chat.until(lambda: chat.noticed("openai/mine (api.example.com) answers"))
        assert [one.unchecked for one in chat.engine.asked(SetModel)] == [False, True]


async def test_a_stored_key_is_removed(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.type("/disconnect anthropic")
        await chat.until(lambda: chat.noticed("Nothing is stored for 'anthropic'."))
        await chat.type("/disconnect")
        await shown(chat, Picker)
        await chat.press("enter")
        await chat.until(lambda: chat.noticed("Removed openai."))
        assert len(chat.engine.asked(DisconnectProvider)) == 1


async def test_effort_is_set_where_the_model_takes_it(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.type("/effort high")
        await chat.until(lambda: chat.noticed("claude-sonnet thinks with effort high from the next request on."))
        assert chat.engine.asked(ChangeModelSettings)[0].changes == {"reasoning_effort": "high"}
        await chat.type("/effort much")
        await chat.until(lambda: chat.noticed("There is no effort 'much'. /effort takes none, low, medium, high"))
        await chat.type("/effort default")
        await chat.until(lambda: chat.noticed("thinks as much as its provider lets it"))
        await chat.type("/model openai/gpt-5")
        await chat.until(lambda: chat.noticed("openai/gpt-5 (api.example.com) answers"))
        await chat.type("/effort low")
        await chat.until(lambda: chat.noticed("openai/gpt-5 does not take an effort; it thinks as it does. Low is"))
