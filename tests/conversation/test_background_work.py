"""Background work and its model: one run at a time, deadlines that count requests only, pauses after failures."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ragforge_tui.conversation import background_model
from ragforge_tui.conversation.background_model import ActiveTurns, BackgroundModel, Backoff
from ragforge_tui.conversation.background_work import BackgroundWork
from ragforge_tui.conversation.limits import CONVERSATION
from ragforge_tui.shared.errors import ModelError
from ragforge_tui.shared.records import Usage
from tests.support.summaries import WritingModel


class Slow(WritingModel):
    """Answers when it is let go on."""

    def __init__(self) -> None:
        super().__init__(lambda messages: "done")
        self.gate = asyncio.Event()

    async def complete(self, messages: Any, *, max_tokens: int | None = None) -> tuple[str, Usage]:
        self.requests.append(messages)
        await self.gate.wait()
        return self.write(messages), Usage()


async def test_waiting_for_a_turn_to_end_is_not_counted() -> None:
    active_turns, backoff = ActiveTurns(), Backoff()
    slow = Slow()
    slow.gate.set()
    model = BackgroundModel(slow, backoff, active_turns, seconds=0.05)
    with active_turns.running():
        asking = asyncio.create_task(model.complete([]))
        await asyncio.sleep(0.2)
        assert not asking.done()
        assert slow.requests == []
    assert (await asking)[0] == "done"
    assert backoff.failures == 0


async def test_a_request_given_up_for_a_turn_gets_its_whole_time_again() -> None:
    active_turns, slow = ActiveTurns(), Slow()
    model = BackgroundModel(slow, Backoff(), active_turns, seconds=60.0)
    asking = asyncio.create_task(model.complete([]))
    while not slow.requests:
        await asyncio.sleep(0)
    with active_turns.running():
        await asyncio.sleep(0.01)
    slow.gate.set()
    assert (await asking)[0] == "done"
    assert len(slow.requests) == 2


async def test_a_request_that_turns_cut_off_waits_for_a_longer_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who writes faster than a slow model summarises cuts off a few requests, not one with each message."""
    monkeypatch.setattr(CONVERSATION, "first_patience", 0.05)
    monkeypatch.setattr(CONVERSATION, "longest_patience", 3_600.0)
    active_turns, slow = ActiveTurns(), Slow()
    asking = asyncio.create_task(BackgroundModel(slow, Backoff(), active_turns, seconds=60.0).complete([]))
    for _ in range(30):
        await asyncio.sleep(0.1)  # the user reads
        with active_turns.running():
            await asyncio.sleep(0)
    # Before: one request for each of the thirty messages.
    assert 1 <= len(slow.requests) <= 4
    # Nobody writes any more, so nothing waits.
    slow.gate.set()
    active_turns.end()
    assert (await asking)[0] == "done"


async def test_a_request_that_is_out_too_long_ends_and_the_pauses_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 0.0
    monkeypatch.setattr(background_model.time, "monotonic", lambda: clock)
    backoff = Backoff()
    for pause in (60.0, 120.0, 240.0):
        with pytest.raises(TimeoutError):
            await BackgroundModel(Slow(), backoff, seconds=0.0).complete([])
        assert backoff.seconds_left == pause
    assert backoff.given_up
    clock = 100.0
    assert backoff.seconds_left == 140.0
    for _ in range(2_000):
        backoff.failed()
    assert backoff.seconds_left == 1_800.0

    def fail(messages: Any) -> str:
        raise ModelError("away", kind="provider")

    with pytest.raises(ModelError):
        await BackgroundModel(WritingModel(fail), backoff).complete([])
    assert backoff.failures == 2_004
    await BackgroundModel(WritingModel(lambda messages: "here"), backoff).complete([])
    assert (backoff.failures, backoff.seconds_left, backoff.given_up) == (0, 0.0, False)


async def test_work_asked_for_while_it_runs_runs_once_more() -> None:
    gate, runs = asyncio.Event(), 0

    async def work() -> None:
        nonlocal runs
        runs += 1
        await gate.wait()

    background = BackgroundWork("test", work)
    for _ in range(3):
        background.ask()
        await asyncio.sleep(0)
    assert (runs, background.running) == (1, True)
    gate.set()
    await background.settle()
    assert (runs, background.running) == (2, False)
    background.ask_in(0.0)
    assert not background.running
    while runs < 3:
        await asyncio.sleep(0)
    await background.settle()
    gate.clear()
    background.ask()
    background.ask_in(0.0)
    await background.stop()
    await asyncio.sleep(0.01)
    assert (runs, background.running) == (3, False)
