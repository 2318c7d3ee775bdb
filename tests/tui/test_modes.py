"""shift+tab and /mode: always shown, sent to the engine before anything else, kept when the engine ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from textual.content import Content

from ragforge_tui.shared.events import Event, TurnCompleted
from ragforge_tui.shared.records import Conversation
from ragforge_tui.shared.requests.turns import SendMessage
from ragforge_tui.shared.requests.work import SetMode
from ragforge_tui.tui.limits import SCREEN
from tests.support.fake_engine import FakeEngine, echo
from tests.tui.conftest import Chat, ChatRunner
from tests.tui.test_chat import endless
from tests.tui.test_questions import approval


def shown(chat: Chat) -> str:
    content = chat.app.query_one("#status").render()
    assert isinstance(content, Content)
    return content.plain


async def test_shift_tab_goes_round(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.type("hello")
        await chat.until(lambda: chat.happened(TurnCompleted))
        assert " ask" in shown(chat)
        for mode, word in (("edits", " accept edits"), ("auto", " auto"), ("plan", " plan"), ("ask", " ask")):
            await chat.press("shift+tab")
            await chat.until(
                lambda mode=mode: chat.engine.work.modes[chat.app.chat.session.state.conversation_id] == mode
            )
            assert word in shown(chat)
            assert chat.app.chat.prompt.has_focus


@pytest.mark.parametrize(("presses", "sent"), [(1, ["edits"]), (2, ["auto"]), (3, ["plan"]), (4, ["plan", "ask"])])
async def test_accepted_edits_that_are_only_passed_let_nothing_through(
    run_chat: ChatRunner, presses: int, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SCREEN, "mode", 1.0)
    async with run_chat(FakeEngine(script=endless)) as chat:
        await chat.ready()
        await chat.type("hello")
        await chat.until(lambda: chat.app.chat.session.state.busy)
        chat.engine.emit(approval("a"))
        await chat.until(lambda: chat.app.chat.questions.waiting)
        await chat.press(*["shift+tab"] * presses)
        await chat.until(lambda: [one.mode for one in chat.engine.asked(SetMode)] == sent)
        await chat.pilot.pause(0.5)
        assert [one.mode for one in chat.engine.asked(SetMode)] == sent


async def test_the_mode_is_sent_before_the_first_message(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.type("/mode plan")
        await chat.until(lambda: chat.app.chat.session.state.mode == "plan")
        await chat.type("hello")
        await chat.until(lambda: chat.happened(TurnCompleted))
        order = [type(request) for request in chat.engine.requests if isinstance(request, SetMode | SendMessage)]
        assert order == [SetMode, SendMessage]
        assert not chat.app.chat.questions.waiting, "the answer is no plan"
        await chat.type("/new")
        await chat.until(lambda: chat.app.chat.session.state.mode == "ask")


async def test_the_mode_outlives_the_engine(run_chat: ChatRunner) -> None:
    first = FakeEngine()
    gate = asyncio.Event()
    gate.set()
    async with run_chat(first, heir := first.heir(), gate=gate) as chat:
        await chat.ready()
        await chat.type("hello")
        await chat.until(lambda: chat.happened(TurnCompleted))
        await chat.type("/mode edits")
        await chat.until(lambda: "edits" in first.work.modes.values())
        first.crash()
        await chat.until(lambda: chat.noticed("was restarted"))
        assert " accept edits" in shown(chat)
        await chat.type("more")
        await chat.until(lambda: heir.asked(SendMessage))
        assert list(heir.work.modes.values()) == ["edits"]


async def test_a_mode_that_is_none(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.type("/mode bold")
        await chat.until(lambda: chat.noticed("There is no mode"))


async def test_shift_tab_over_the_chat_moves_the_focus(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.press("f1")
        await chat.until(lambda: len(chat.app.screen_stack) > 1)
        await chat.press("shift+tab")
        assert chat.app.chat.session.state.mode == "ask"
        await chat.press("escape", "shift+tab")
        await chat.until(lambda: chat.app.chat.session.state.mode == "edits")


PLAN = "\n\n1. Change `retry.py`: wait twice as long.\n2. Run its tests.\n"


async def with_a_plan(engine: FakeEngine, owner: Conversation, index: int, _: str) -> AsyncIterator[Event]:
    async for event in echo(engine, owner, index, PLAN):
        yield event


@pytest.fixture
async def planned(run_chat: ChatRunner) -> AsyncIterator[Chat]:
    """A chat with an answer in planning mode, and the question how to go on."""
    async with run_chat(FakeEngine(script=with_a_plan)) as chat:
        await chat.ready()
        await chat.type("/mode plan")
        await chat.until(lambda: chat.app.chat.session.state.mode == "plan")
        await chat.type("hello")
        await chat.until(lambda: chat.app.chat.questions.has_focus)
        yield chat


async def test_the_frame_of_the_prompt_shows_planning(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        assert not chat.app.chat.prompt_row.has_class("-plan")
        await chat.type("/mode plan")
        await chat.until(lambda: chat.app.chat.prompt_row.has_class("-plan"))


def sent(chat: Chat) -> list[str]:
    return [request.text for request in chat.engine.asked(SendMessage)]


@pytest.mark.parametrize(("key", "mode"), [("1", "ask"), ("2", "edits"), ("enter", "ask")])
async def test_a_plan_is_carried_out_in_the_chosen_mode(planned: Chat, key: str, mode: str) -> None:
    await planned.press(key)
    await planned.until(lambda: len(sent(planned)) == 2)
    order = [request for request in planned.engine.requests if isinstance(request, SetMode | SendMessage)]
    assert [one.mode if isinstance(one, SetMode) else one.text for one in order] == [
        "plan",
        "hello",
        mode,
        "Carry out the plan.",
    ]


@pytest.mark.parametrize("key", ["3", "escape"])
async def test_planning_may_go_on(planned: Chat, key: str) -> None:
    await planned.until(lambda: "esc keep planning" in shown(planned))
    await planned.press(key)
    await planned.until(lambda: not planned.app.chat.questions.waiting)
    assert planned.app.chat.session.state.mode == "plan"
    assert sent(planned) == ["hello"]
    assert planned.app.chat.prompt.has_focus


async def test_a_message_takes_the_place_of_the_answer(planned: Chat) -> None:
    await planned.press(*"also", "space", *"1", "enter")
    await planned.until(lambda: sent(planned) == ["hello", "also 1"])
    assert planned.app.chat.session.state.mode == "plan"


async def test_another_mode_ends_the_question(planned: Chat) -> None:
    await planned.press("shift+tab")
    await planned.until(lambda: not planned.app.chat.questions.waiting)
    assert sent(planned) == ["hello"]


async def test_another_conversation_ends_the_question(planned: Chat) -> None:
    planned.app.chat.run_command("new")
    await planned.until(lambda: not planned.app.chat.questions.waiting)


async def test_a_stopped_answer_offers_next_steps(run_chat: ChatRunner) -> None:
    async with run_chat(FakeEngine(script=endless)) as chat:
        await chat.ready()
        await chat.type("hello")
        await chat.until(lambda: chat.app.chat.session.state.busy)
        await chat.press("escape")
        await chat.until(lambda: chat.noticed("/retry asks again"))
