"""A failed turn: its cause, the provider's words in two lines, and keys that act on the newest turn alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ragforge_tui.llm.provider_errors import to_model_error
from ragforge_tui.shared.errors import ErrorInfo, Told, told
from ragforge_tui.shared.events import Event, ModelRetry, TurnFailed, TurnStarted
from ragforge_tui.shared.records import Conversation, Turn
from ragforge_tui.shared.requests.turns import RetryTurn
from ragforge_tui.tui.transcript.document import Document
from ragforge_tui.tui.transcript.failure_block import FailureBlock
from ragforge_tui.tui.widgets.list_screen import Picker
from ragforge_tui.tui.widgets.status_bar import StatusLine
from tests.support.fake_engine import FakeEngine
from tests.tui.conftest import Chat, ChatRunner
from tests.tui.transcript.samples import reply, said
from tests.tui.transcript.test_document import drawn, resumed, text_of

LONG = "Your plan allows 3 requests a minute. " * 12


class _RefusedError(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status_code, self.message = status, message


def failed(error: str) -> Document:
    """Return a conversation whose second turn failed."""
    first = Turn(turn_index=1, messages=[said("hi"), reply("hello")])
    second = Turn(turn_index=2, messages=[said("why?", 2), reply("", 2, state="failed", error=error)])
    return resumed(first, second)


@pytest.mark.parametrize(
    ("status", "message", "cause", "keys"),
    [
        (401, "Incorrect API key. See platform.openai.com.", "refused the API key.", "arms"),
        (429, LONG, "is limiting requests.", "rms"),
        (400, "What is that?", "refused the request.", "rms"),
        (503, "Overloaded (“busy”)", "failed (503).", "rms"),
    ],
)
def test_a_refusal_takes_three_lines(status: int, message: str, cause: str, keys: str) -> None:
    error = to_model_error(_RefusedError(status, message), model="openai/x", destination="the server on this machine")
    document = failed(str(error))
    block = document.blocks[-1]
    assert isinstance(block, FailureBlock)
    lines = text_of(drawn(document))[-4:] if status == 429 else text_of(drawn(document))[-3:]
    assert lines[0].strip() == f"✗ The server on this machine {cause} ▸"
    words = " ".join(line.strip() for line in lines[1:-1])
    assert words.startswith(f"“{message[:40]}") and len(lines[1:-1]) <= 2
    assert "".join(one.key for one in block.remedies) == keys and "r retry · m other model" in lines[-1]
    block.toggle()
    whole = " ".join(line.strip() for line in text_of(drawn(document)))
    assert error.info.todo in whole and message[:200].strip() in whole


def test_an_error_without_foreign_words_shows_what_to_do() -> None:
    assert told("The disk is full: /x. Free some space.") == Told("The disk is full: /x.", "", "Free some space.")
    assert told("no sentence") == Told("no sentence")
    assert told("It broke. It said: “a. b” c”. Try.") == Told("It broke.", "a. b” c", "Try.")
    lines = text_of(drawn(failed("The disk is full: /x. Free some space.")))
    assert [line.strip() for line in lines[-3:-1]] == ["✗ The disk is full: /x. ▸", "Free some space."]


def test_only_the_newest_turn_offers_keys() -> None:
    document = failed("It broke. Try again.")
    document.apply(TurnStarted(conversation_id="c", turn_index=3, message=said("again")))
    assert "retry" not in "\n".join(text_of(drawn(document)))


async def refusing(engine: FakeEngine, owner: Conversation, index: int, text: str) -> AsyncIterator[Event]:
    """Fail each turn; the first one waits to be sent again before that."""
    where: dict[str, Any] = {"conversation_id": owner.uuid, "turn_index": index}
    if text == "wait":
        yield ModelRetry(attempt=1, attempts=2, wait_seconds=20, reason="Too many.", limited=True, **where)
        await asyncio.Event().wait()
    yield TurnFailed(error=ErrorInfo(kind="provider", what="It failed (500).", todo="Retry."), **where)


def status(chat: Chat) -> str:
    return chat.app.query_one(StatusLine).render().plain


async def test_keys_act_from_the_chat_and_stay_letters_in_the_prompt(run_chat: ChatRunner) -> None:
    async with run_chat(FakeEngine(script=refusing)) as chat:
        await chat.ready()
        for key, happened in (
            ("r", lambda: chat.engine.asked(RetryTurn)),
            ("m", lambda: isinstance(chat.app.screen, Picker)),
        ):
            await chat.type("go")
            await chat.until(lambda: isinstance(chat.events[-1:] and chat.events[-1], TurnFailed))
            await chat.press(key)
            assert chat.app.chat.prompt.text == key
            await chat.press("backspace", "tab")
            await chat.until(lambda: chat.app.chat.transcript.has_focus and "r retry" in status(chat))
            await chat.press(key)
            await chat.until(happened, key)
            await chat.until(lambda: not chat.app.chat.session.state.busy)
            chat.app.chat.prompt.focus()


async def test_the_wait_for_a_limited_request_is_counted_down(run_chat: ChatRunner) -> None:
    async with run_chat(FakeEngine(script=refusing)) as chat:
        now = [100.0]
        chat.app.chat.clock = lambda: now[0]
        await chat.type("wait")
        await chat.until(lambda: "rate limited, 20 s" in status(chat))
        now[0] += 8
        chat.app.chat.state_changed()
        assert "rate limited, 12 s" in status(chat)
        now[0] += 12
        chat.app.chat.state_changed()
        assert "rate limited" not in status(chat) and "thinking" in status(chat)
