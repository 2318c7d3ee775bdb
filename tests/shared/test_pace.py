"""When background work may run: not while something urgent is prepared, nor right after a key."""

from __future__ import annotations

import asyncio

import pytest

from ragforge_tui.shared import pace as pace_module
from ragforge_tui.shared.pace import Pace


async def test_work_waits_while_a_request_is_prepared() -> None:
    pace = Pace()
    await pace.clear()
    with pace.urgent():
        with pace.urgent():
            waiting = asyncio.create_task(pace.clear())
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        assert not waiting.done()
    await asyncio.wait_for(waiting, 10)


async def test_work_waits_after_a_key_and_each_key_restarts_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace_module, "TYPING_SECONDS", 0.3)
    pace = Pace()
    began = asyncio.get_running_loop().time()
    pace.typed()
    waiting = asyncio.create_task(pace.clear())
    await asyncio.sleep(0.1)
    pace.typed()
    await asyncio.wait_for(waiting, 10)
    assert asyncio.get_running_loop().time() - began >= 0.39


async def test_work_that_is_waited_for_continues() -> None:
    pace = Pace()
    pace.typed()
    with pace.urgent():
        waiting = asyncio.create_task(pace.clear())
        await asyncio.sleep(0.01)
        assert not waiting.done()
        with pace.awaited():
            await asyncio.wait_for(waiting, 10)
            await asyncio.wait_for(pace.clear(), 10)
        held = asyncio.create_task(pace.clear())
        await asyncio.sleep(0.01)
        assert not held.done()
    held.cancel()


async def test_work_that_waits_for_a_pause_in_typing_continues_when_waited_for() -> None:
    pace = Pace()
    pace.typed()
    waiting = asyncio.create_task(pace.clear())
    await asyncio.sleep(0.01)
    assert not waiting.done()
    began = asyncio.get_running_loop().time()
    with pace.awaited():
        await asyncio.wait_for(waiting, 10)
    assert asyncio.get_running_loop().time() - began < pace_module.TYPING_SECONDS / 2


async def test_a_turn_leaves_one_worker() -> None:
    pace = Pace(workers=3)
    assert pace.workers == 3
    with pace.turn():
        assert pace.workers == 1
    assert pace.workers == 3
