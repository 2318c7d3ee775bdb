"""Search over all sessions: hits as one types, where is searched, opening at the turn."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ragforge_tui.shared.errors import GraphUnavailableError
from ragforge_tui.shared.requests.sessions import Search
from ragforge_tui.tui.limits import SCREEN
from ragforge_tui.tui.sessions.search_screen import HitList, SearchScreen
from ragforge_tui.tui.sessions.turn_pane import TurnPane
from ragforge_tui.tui.widgets.list_screen import Picker
from tests.support.fake_engine import FakeEngine, conversation, turn
from tests.tui.conftest import Chat, ChatRunner


@pytest.fixture
def engine() -> FakeEngine:
    """A long session, a short one, one of another folder."""
    fake = FakeEngine()
    long = conversation(1, "Zoo")
    fake.store(long, *[turn(long, n, f"question {n}", "an okapi" if n in (3, 90) else "-") for n in range(1, 101)])
    for number, title, folder in ((2, "Café", "/w"), (3, "Farm", "/else")):
        owner = conversation(number, title, workspace=folder)
        fake.store(owner, turn(owner, 1, "okapi?", "No."))
    return fake


def where(chat: Chat) -> list[tuple[str, int]]:
    """Titles and turns of the hits."""
    return [(hit.title, hit.turn_index) for hit in chat.app.screen.query_one(HitList).hits]


def line_of(chat: Chat, line: str = "keys") -> str:
    return str(chat.app.screen.query_one(f"#search-{line}").render())


async def opened(chat: Chat) -> None:
    await chat.ready()
    await chat.press("ctrl+t")
    await chat.until(lambda: isinstance(chat.app.screen, SearchScreen))


async def test_a_hit_is_opened_at_its_turn(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine) as chat:
        await opened(chat)
        await chat.press(*"okapi")
        await chat.until(lambda: where(chat) == [("Zoo", 3), ("Zoo", 90), ("Café", 1)])
        assert "3 hits in this folder" in line_of(chat)
        await chat.press("enter")
        await chat.until(lambda: chat.app.chat.transcript.turn_in_view == 3)
        assert chat.app.chat.session.state.conversation_id == conversation(1).uuid
        assert chat.app.chat.prompt.has_focus


async def test_the_way_back_from_another_conversation_is_told(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000002") as chat:
        await chat.until(lambda: chat.app.chat.session.state.conversation_id)
        await chat.type("/search okapi")
        await chat.until(lambda: isinstance(chat.app.screen, SearchScreen) and len(where(chat)) == 3)
        await chat.press("enter")
        told = "This is another conversation. /resume 00000002 returns."
        await chat.until(lambda: chat.noticed(told))
        assert chat.app.chat.session.state.conversation_id == conversation(1).uuid


async def test_the_turn_of_a_hit_is_shown_with_its_speakers(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine) as chat:
        await opened(chat)
        pane = chat.app.screen.query_one(TurnPane)
        assert not pane.display
        await chat.press(*"okapi")
        await chat.until(lambda: where(chat) and pane.display and pane.text.startswith("you\n"))
        before = pane.text
        await chat.press("down", "down")
        await chat.until(lambda: pane.text != before)
        await chat.press(*" zebra")
        await chat.until(lambda: not pane.display)


async def test_where_is_searched(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000002") as chat:
        await chat.until(lambda: chat.app.chat.session.state.conversation_id)
        await chat.type("/search okapi")
        await chat.until(lambda: isinstance(chat.app.screen, SearchScreen) and len(where(chat)) == 3)
        await chat.press("alt+w")
        await chat.until(lambda: ("Farm", 1) in where(chat))
        assert "all folders" in line_of(chat, "title")
        await chat.press("alt+w")
        await chat.until(lambda: where(chat) == [("Café", 1)])
        assert "this conversation" in line_of(chat, "title")
        await chat.press("alt+w", "down", "down", "down", "up", "pagedown")
        await chat.until(lambda: len(where(chat)) == 3)
        await chat.press("escape")
        assert not isinstance(chat.app.screen, SearchScreen)
        assert chat.app.chat.prompt.has_focus


async def test_topics(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine) as chat:
        await opened(chat)
        await chat.press("alt+g")
        await chat.until(lambda: isinstance(chat.app.screen, Picker) and chat.app.screen._list.rows)
        await chat.press("down", "enter")
        await chat.until(lambda: "topic retries" in line_of(chat, "title"))
        assert "add words" in line_of(chat)
        await chat.press(*"okapi")
        await chat.until(lambda: [asked.query for asked in engine.asked(Search)][-1:] == ["okapi"])
        await chat.until(lambda: len(where(chat)) == 3)
        asked = engine.asked(Search)[-1]
        assert (asked.query, asked.topic, asked.workspace) == ("okapi", "retries", "/w")
        chat.app.screen.query_one("Input").value = "topic:nonsense okapi"  # type: ignore[attr-defined]  # an Input
        await chat.until(lambda: "There is no topic 'nonsense'" in line_of(chat))
        assert not where(chat)


async def test_nothing_found_and_errors(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine) as chat:
        await opened(chat)
        await chat.press(*"zebra")
        await chat.until(lambda: "no match in this folder" in line_of(chat))
        engine.failures[Search] = GraphUnavailableError("The [graph] is away.")
        await chat.press("s")
        await chat.until(lambda: "The [graph] is away." in line_of(chat))
        await chat.press("enter")
        assert isinstance(chat.app.screen, SearchScreen)


async def test_only_the_last_words_are_waited_for(
    run_chat: ChatRunner, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SCREEN, "settle", 0.0)
    answer: Any = engine.request
    first = asyncio.Event()

    async def slow(request: Any) -> Any:
        if isinstance(request, Search) and request.query == "o":
            first.set()
            await asyncio.Event().wait()
        return await answer(request)

    monkeypatch.setattr(engine, "request", slow)
    async with run_chat(engine) as chat:
        await opened(chat)
        await chat.press("o")
        await chat.until(first.is_set)
        assert "searching" in line_of(chat)
        await chat.press(*"kapi")
        await chat.until(lambda: len(where(chat)) == 3)


async def test_a_click_opens(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine) as chat:
        await opened(chat)
        await chat.press(*"okapi")
        await chat.until(lambda: len(where(chat)) == 3)
        await chat.pilot.click(HitList, offset=(5, 4))
        await chat.until(lambda: chat.app.chat.transcript.turn_in_view == 90)
