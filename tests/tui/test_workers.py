"""Work that is never begun leaves no warning, work that is begun runs as it would."""

from __future__ import annotations

import asyncio
import gc

import pytest

from tests.tui.conftest import ChatRunner


async def answer() -> int:
    await asyncio.sleep(0)
    return 42


async def test_work_replaced_before_it_began_warns_of_nothing(
    run_chat: ChatRunner, recwarn: pytest.WarningsRecorder
) -> None:
    async def work() -> None:
        await answer()

    async with run_chat() as chat:
        await chat.ready()
        for _ in range(5):
            chat.app.chat.session.spawn(work(), group="same", exclusive=True)
        await chat.pilot.pause()
        chat.app.chat.session.spawn(work(), group="same", exclusive=True)
    gc.collect()
    assert not [one for one in recwarn if "never awaited" in str(one.message)]
