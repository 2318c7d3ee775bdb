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


async def test_work_waits_after_a_key_and_each_key_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        nonlocal now
        waits.append(seconds)
        if len(waits) == 1:
            pace.typed()
        now += seconds

    monkeypatch.setattr(pace_module.time, "monotonic", lambda: now)
    monkeypatch.setattr(pace_module.asyncio, "sleep", sleep)
    pace = Pace()
    pace.typed()
    now += 0.25
    await pace.clear()
    assert waits == [pytest.approx(0.75), pytest.approx(0.25)]


async def test_a_turn_leaves_one_worker() -> None:
    pace = Pace(workers=3)
    assert pace.workers == 3
    with pace.turn():
        assert pace.workers == 1
    assert pace.workers == 3
