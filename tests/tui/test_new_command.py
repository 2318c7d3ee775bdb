"""A slash command with a request of its own, added from outside the package: request, handler and command."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from ragforge_tui.engine import registry
from ragforge_tui.engine.registry import EngineContext, answer, handles, request_decoder
from ragforge_tui.shared.wire import R, Request, RequestLine, response_type
from ragforge_tui.tui.commands import chat_commands
from ragforge_tui.tui.dialogs.help_screen import HelpScreen, help_text
from ragforge_tui.tui.host import Host
from tests.support.fake_engine import FakeEngine
from tests.tui.conftest import ChatRunner


class Reverse(Request[str]):
    """A toy request."""

    text: str


async def reverse(host: Host, argument: str) -> None:
    host.transcript.notice(await host.session.ask(Reverse(text=argument)), "info")


class WithHandlers(FakeEngine):
    """A fake engine that answers toy requests with their handler, coded as on the pipe."""

    async def request(self, request: Request[R]) -> R:
        if not isinstance(request, Reverse):
            return await super().request(request)
        line = request_decoder().decode(msgspec.json.encode(RequestLine(id=1, request=request)))
        context: Any = None
        result = msgspec.json.encode(await answer(context, line.request))
        decoded: R = msgspec.json.decode(result, type=response_type(request))
        return decoded


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    """Register the handler and list the command, all that their author would do."""

    @handles(Reverse)
    async def handler(_: EngineContext, request: Reverse) -> str:
        return request.text[::-1]

    chat_commands.COMMANDS.add("reverse", "Write a text backwards", arguments="TEXT")(reverse)
    yield
    chat_commands.COMMANDS.pop()
    del registry._HANDLERS[Reverse]


async def test_the_command_asks_the_engine_and_is_in_help(run_chat: ChatRunner) -> None:
    async with run_chat(WithHandlers(), size=(130, 40)) as chat:
        await chat.ready()
        await chat.type("/reverse drawer")
        await chat.until(lambda: chat.noticed("reward"))
        await chat.type("/help")
        await chat.until(lambda: isinstance(chat.app.screen, HelpScreen))
        lines = help_text(chat.app.chat.registry, {}).plain.splitlines()
        assert any("/reverse TEXT" in line and "Write a text backwards" in line for line in lines)
