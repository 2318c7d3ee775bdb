"""A block of the chat read whole in a window, and copying without choosing one."""

from __future__ import annotations

import msgspec
import pytest

from ragforge_tui.shared.events import ToolCallFinished
from ragforge_tui.shared.records import Turn
from ragforge_tui.tui.dialogs.answer_screen import AnswerScreen
from ragforge_tui.tui.dialogs.text_viewer import DetailScreen, Viewer
from tests.support.chat_scene import tool_call
from tests.support.fake_engine import FakeEngine, conversation, message
from tests.tui.conftest import ChatRunner

LONG = "x" * 60_000


@pytest.fixture
def asked() -> FakeEngine:
    """A conversation with a call of a tool whose result is long."""
    engine = FakeEngine()
    owner = conversation(1)
    call = tool_call(owner, 1, "read_file", {"path": "notes.md"}, LONG, 12)
    thinking = message(owner, 1, "assistant", "", 1, tool_calls=[call], reasoning="First a look.")
    said = message(owner, 1, "assistant", "It is *long*.", 2)
    engine.conversations[owner.uuid] = owner
    engine.turns[owner.uuid] = [Turn(turn_index=1, messages=[message(owner, 1, "user", "how long?"), thinking, said])]
    return engine


@pytest.mark.parametrize(
    ("kind", "title", "sections"),
    [
        ("user", "you · turn 1", [("9 characters", "how long?")]),
        ("head", "Reasoning · turn 1", [("13 characters", "First a look.")]),
        ("tool", "Read · turn 1 · done · 12 ms", [("Arguments", "path: notes.md"), ("Result", LONG)]),
        ("text", "Answer · turn 1", [("13 characters", "It is *long*.")]),
    ],
)
async def test_v_shows_a_block_whole(
    run_chat: ChatRunner, asked: FakeEngine, kind: str, title: str, sections: list[tuple[str, str]]
) -> None:
    async with run_chat(asked, continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        view = chat.app.chat.transcript
        await chat.press("tab")
        while view.cursor.block is None or view.cursor.block.kind != kind:
            await chat.press("k" if kind == "text" else "j")
        await chat.press("v")
        await chat.until(lambda: isinstance(chat.app.screen, DetailScreen) and bool(chat.app.screen.sections))
        screen = chat.app.screen
        assert isinstance(screen, DetailScreen)
        assert [(section.title, section.text) for section in screen.sections] == sections
        await chat.until(lambda: str(screen._title.content).startswith(title))
        await chat.press("escape")
        await chat.until(lambda: chat.app.screen is not screen)
        assert view.has_focus and view.cursor.block is not None and view.cursor.block.kind == kind


WIDE = "Prose of some length. " * 8 + "\n\n```python\n" + "call(argument, " * 9 + ")\n```\n\n```\nsecond\n```\n"


async def test_an_answer_is_rendered_at_full_width_and_shown_as_written_on_request(run_chat: ChatRunner) -> None:
    engine = FakeEngine()
    owner = conversation(1)
    engine.conversations[owner.uuid] = owner
    said = message(owner, 1, "assistant", WIDE, 1)
    engine.turns[owner.uuid] = [Turn(turn_index=1, messages=[message(owner, 1, "user", "show me"), said])]
    async with run_chat(engine, continue_last=True, size=(180, 40)) as chat:
        await chat.until(lambda: chat.loaded)
        await chat.press("tab", "k", "v")
        await chat.until(lambda: isinstance(chat.app.screen, AnswerScreen) and bool(chat.app.screen.sections))
        screen = chat.app.screen
        assert isinstance(screen, AnswerScreen)
        viewer = screen.query_one(Viewer)
        rows = lambda: [viewer.render_line(y).text.rstrip() for y in range(viewer.size.height)]  # noqa: E731
        await chat.until(lambda: any("call(argument, " * 8 in row for row in rows()))
        assert not any("```" in row for row in rows())
        assert all(len(row) < 115 for row in rows() if row.strip().startswith("Prose")), "sentences stay readable"
        await chat.press("c")
        await chat.until(lambda: chat.app.clipboard.startswith("call(argument, "))
        await chat.press("c")
        await chat.until(lambda: chat.app.clipboard == "second\n")
        await chat.press("v")
        await chat.until(lambda: any("```python" in row for row in rows()))
        await chat.press("v", "y")
        await chat.until(lambda: not any("```" in row for row in rows()) and chat.app.clipboard == WIDE)


async def test_y_without_a_block_copies_the_last_answer(run_chat: ChatRunner, asked: FakeEngine) -> None:
    async with run_chat(asked, continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        await chat.press("tab", "y")
        await chat.until(lambda: chat.app.clipboard == "It is *long*.")


async def test_a_call_that_is_looked_at_is_shown_on_when_its_turn_was_rendered_again(
    run_chat: ChatRunner, asked: FakeEngine
) -> None:
    """As when another terminal answers the turn."""
    [owner] = asked.conversations.values()
    [turn] = asked.turns[owner.uuid]
    done = turn.messages[1].tool_calls[0]
    begun = msgspec.structs.replace(done, result=None, success=None, duration_ms=None)
    turn.messages[1].tool_calls = [begun]
    async with run_chat(asked, continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        view = chat.app.chat.transcript
        await chat.press("tab")
        while view.cursor.block is None or view.cursor.block.kind != "tool":
            await chat.press("j")
        await chat.press("v")
        await chat.until(lambda: isinstance(chat.app.screen, DetailScreen) and bool(chat.app.screen.sections))
        screen = chat.app.screen
        assert isinstance(screen, DetailScreen)
        view.show_turn(turn)
        asked.emit(ToolCallFinished(conversation_id=owner.uuid, turn_index=1, call=done))
        await chat.until(lambda: [section.title for section in screen.sections] == ["Arguments", "Result"])
        await chat.until(lambda: str(screen._title.content).startswith("Read · turn 1 · done"))
