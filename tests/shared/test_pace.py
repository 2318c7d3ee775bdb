"""When background work may run: not while something urgent is prepared."""

from __future__ import annotations

import asyncio

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


async def test_work_that_is_waited_for_continues() -> None:
    pace = Pace()
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


async def test_a_turn_leaves_one_worker() -> None:
    pace = Pace(workers=3)
    assert pace.workers == 3
    with pace.turn():
        assert pace.workers == 1
    assert pace.workers == 3
