"""What the screen shows of the memory: what was sent, the tree, topics, similar conversations, summaries under way."""

from __future__ import annotations

import pytest

from ragforge_tui.shared.events import SummaryCreated, SummaryFailed, SummaryStarted
from ragforge_tui.tui.dialogs.text_viewer import DetailScreen
from ragforge_tui.tui.widgets.list_screen import Picker
from ragforge_tui.tui.widgets.status_bar import StatusLine
from tests.support.fake_engine import FakeEngine, sessions
from tests.support.fake_memory import summary
from tests.tui.conftest import ChatRunner


@pytest.fixture
def engine() -> FakeEngine:
    """With three conversations."""
    fake = FakeEngine()
    list(sessions(fake))
    return fake


@pytest.mark.parametrize("command", ["/context twelve", "/context -1"])
async def test_a_turn_is_a_number(run_chat: ChatRunner, engine: FakeEngine, command: str) -> None:
    async with run_chat(engine, resume="00000001") as chat:
        await chat.until(lambda: chat.app.chat.session.state.conversation)
        await chat.type(command)
        await chat.until(lambda: chat.noticed("is not the number of a turn"))


@pytest.mark.parametrize("command", ["/context", "/summary", "/similar"])
async def test_without_a_conversation_there_is_nothing_to_show(
    run_chat: ChatRunner, engine: FakeEngine, command: str
) -> None:
    async with run_chat(engine) as chat:
        await chat.ready()
        await chat.type(command)
        await chat.until(lambda: chat.noticed("This conversation has no messages yet"))


async def test_a_summary_is_written_on_demand(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001") as chat:
        await chat.until(lambda: chat.app.chat.session.state.conversation)
        await chat.type("/summary")
        await chat.until(lambda: isinstance(chat.app.screen, DetailScreen) and chat.app.screen.sections)
        assert isinstance(chat.app.screen, DetailScreen)
        assert "the lock was missing" in chat.app.screen.sections[0].text


async def test_a_similar_conversation_is_opened(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001") as chat:
        await chat.until(lambda: chat.app.chat.session.state.conversation)
        await chat.type("/similar")
        await chat.until(lambda: isinstance(chat.app.screen, Picker))
        screen = chat.app.screen
        assert isinstance(screen, Picker)
        await chat.until(lambda: screen._list.rows)
        await chat.press("enter")
        await chat.until(lambda: chat.app.chat.session.state.conversation_id.startswith("00000002"))


async def test_summaries_running_are_in_the_status_line(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001") as chat:
        await chat.until(lambda: chat.app.chat.session.state.conversation)
        uuid = chat.app.chat.session.state.conversation_id
        status = chat.app.query_one(StatusLine)
        for level, first in ((1, 1), (2, 1)):
            engine.emit(SummaryStarted(conversation_id=uuid, level=level, start_turn_index=first, end_turn_index=3))
        engine.emit(SummaryStarted(conversation_id="other", level=3, start_turn_index=1, end_turn_index=3))
        await chat.until(lambda: "summarising" in str(status.render()))
        engine.emit(SummaryCreated(conversation_id=uuid, summary=summary(uuid, 1, 1, 3, "Done.")))
        engine.emit(
            SummaryFailed(conversation_id=uuid, level=2, start_turn_index=1, end_turn_index=3, reason="no room")
        )
        await chat.until(lambda: "summarising" not in str(status.render()))
