"""A search that starts before its result is needed: used once, and only while it still holds."""

from __future__ import annotations

import asyncio

import pytest

from ragforge_tui.shared import look_ahead
from ragforge_tui.shared.look_ahead import LookAhead


class Searches:
    """Searches that end when the test says so; what they find is their number, odd ones lack something."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.end = asyncio.Event()
        self.ahead: LookAhead[str, int] = LookAhead(self._search, lambda found: found % 2 == 0)

    async def _search(self, key: str) -> int:
        self.keys.append(key)
        number = len(self.keys)
        await self.end.wait()
        if key == "failing":
            raise ValueError(key)
        return number


async def begun(searches: Searches, *keys: str) -> None:
    for key in keys:
        searches.ahead.start(key)
        await asyncio.sleep(0)


async def test_a_search_under_way_is_waited_for() -> None:
    searches = Searches()
    await begun(searches, "tide", "tide")
    waiting = asyncio.create_task(searches.ahead.result("tide"))
    await asyncio.sleep(0)
    searches.end.set()
    assert await waiting == 1
    assert searches.keys == ["tide"]


async def test_what_was_found_is_used_once() -> None:
    searches = Searches()
    searches.end.set()
    await begun(searches, "tide")
    assert [await searches.ahead.result("tide"), await searches.ahead.result("tide")] == [1, 2]


async def test_another_question_is_searched_for_itself() -> None:
    searches = Searches()
    searches.end.set()
    await begun(searches, "tide")
    assert await searches.ahead.result("tides") == 2


async def test_what_lacks_something_is_searched_again_only_by_a_new_start() -> None:
    searches = Searches()
    searches.end.set()
    await begun(searches, "tide", "wind")
    assert await searches.ahead.result("wind") == 2
    await begun(searches, "gust")
    assert await searches.ahead.result("gust") == 3
    await begun(searches, "calm", "calm", "haze", "haze")
    assert searches.keys[3:] == ["calm", "haze", "haze"]


async def test_an_old_result_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    searches = Searches()
    searches.end.set()
    await begun(searches, "tide")
    monkeypatch.setattr(look_ahead, "FRESH_SECONDS", 0.0)
    assert await searches.ahead.result("tide") == 2


async def test_a_failure_is_raised_where_the_result_is_needed() -> None:
    searches = Searches()
    searches.end.set()
    await begun(searches, "failing", "failing")
    assert len(searches.keys) == 2
    with pytest.raises(ValueError, match="failing"):
        await searches.ahead.result("failing")


async def test_a_caller_that_gives_up_does_not_end_the_search() -> None:
    searches = Searches()
    await begun(searches, "tide")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await searches.ahead.result("tide")
    searches.end.set()
    assert await searches.ahead.result("tide") == 2
