"""The screen that imports what other agents left, and the line of the first screen that leads to it."""

from __future__ import annotations

from ragforge_tui.shared.found_sessions import FoundSession, ListedSession
from ragforge_tui.shared.requests.imports import ImportFoundSession, ListFoundSessions
from tests.support.fake_engine import FakeEngine
from tests.tui.conftest import Chat, ChatRunner

FOLDERS = ("/work/parser", "/work/other")


def screen_text(chat: Chat) -> str:
    return "\n".join(strip.text for strip in chat.app.screen._compositor.render_strips())


def left(agent: str, folder: str, count: int) -> list[ListedSession]:
    return [
        ListedSession(
            session=FoundSession(agent=agent, id=f"{agent}{folder}{n}", folder=folder, path="/p", bytes=1_000),
            imported=False,
        )
        for n in range(count)
    ]


def engine_with(*listed: ListedSession) -> FakeEngine:
    engine = FakeEngine()
    engine.found_sessions = list(listed)
    return engine


async def test_two_keys_of_the_first_screen_import_everything(run_chat: ChatRunner) -> None:
    engine = engine_with(*left("codex", FOLDERS[0], 2), *left("claude-code", FOLDERS[1], 3))
    async with run_chat(engine) as chat:
        await chat.until(lambda: "F9  imports 5 earlier sessions of codex, claude-code" in screen_text(chat))
        await chat.press("f9")
        await chat.until(lambda: "5 sessions · 5 kB · 5 new" in screen_text(chat))
        await chat.press("enter")
        await chat.until(lambda: "5 sessions with 10 turns imported" in screen_text(chat))
        assert len(engine.asked(ImportFoundSession)) == 5
        await chat.until(lambda: "5 sessions · 5 kB · imported" in screen_text(chat))


async def test_a_row_imports_its_folder_alone(run_chat: ChatRunner) -> None:
    engine = engine_with(*left("codex", FOLDERS[0], 2), *left("claude-code", FOLDERS[1], 3))
    async with run_chat(engine) as chat:
        await chat.ready()
        await chat.type("/import")
        await chat.until(lambda: "/work/other" in screen_text(chat))
        await chat.press(*"other", "enter")
        await chat.until(lambda: len(engine.asked(ImportFoundSession)) == 3)
        assert {request.session.folder for request in engine.asked(ImportFoundSession)} == {FOLDERS[1]}


async def test_without_sessions_nothing_is_offered(run_chat: ChatRunner) -> None:
    engine = engine_with()
    async with run_chat(engine) as chat:
        await chat.until(lambda: engine.asked(ListFoundSessions))
        await chat.press("f9")
        await chat.until(lambda: "no other agent left sessions here" in screen_text(chat))
        assert "imports" not in screen_text(chat)
