"""What is remembered, by its keys: listed by kind, filtered, pinned, edited, forgotten, confirmed, taken back."""

from __future__ import annotations

import pytest

from ragforge_tui.shared.requests.findings import ActOnFinding, ListRemembered
from ragforge_tui.tui.dialogs.text_viewer import DetailScreen
from ragforge_tui.tui.memory.remembered_screen import RememberedScreen
from tests.support.calls_scene import calls_engine
from tests.support.fake_engine import FakeEngine
from tests.support.fake_remembered import SECOND
from tests.tui.conftest import Chat, ChatRunner


@pytest.fixture
def engine() -> FakeEngine:
    """Twelve turns."""
    return calls_engine()


async def opened(chat: Chat, command: str = "/memory") -> RememberedScreen:
    """The screen, filled."""
    await chat.until(lambda: chat.app.chat.session.state.conversation)
    await chat.type(command)
    await chat.until(lambda: isinstance(chat.app.screen, RememberedScreen) and chat.app.screen.model.loaded)
    screen = chat.app.screen
    assert isinstance(screen, RememberedScreen)
    await chat.until(lambda: screen.rows.has_focus and screen.rows.chosen)
    return screen


def shown(screen: RememberedScreen) -> list[str]:
    """The lines, without the cursor and the facts at their right edge."""
    lines = (screen.rows.render_line(y).text for y in range(screen.rows.size.height))
    return [line.lstrip("▸ ").partition("  ")[0].strip() for line in lines if line.strip()]


def note(screen: RememberedScreen) -> str:
    return screen._keys.render().plain


def acts(engine: FakeEngine) -> list[tuple[str, str, str]]:
    return [(asked.ref, asked.act, asked.text) for asked in engine.asked(ActOnFinding)]


async def test_kinds_with_what_was_replaced_and_filtered_by_words(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001", size=(140, 40)) as chat:
        screen = await opened(chat)
        whole = "\n".join(screen.rows.render_line(y).text for y in range(20))
        assert "\x1b" not in whole and "everywhere · t1" in whole and "harbour · t2" in whole
        assert shown(screen) == [
            "▾ Wishes 2",
            "· Run the tests with -x.",
            "↳ Run the tests with -q.",
            "· Answer in German.",
            "▾ Decisions 1",
            "· Sqlite it is [bold]red[/bold]",
            "▾ Open points 1",
            "· Write the docs.",
        ]
        struck = [segment.style for segment in screen.rows.render_line(2) if "-q" in segment.text]
        assert struck and all(style is not None and style.strike for style in struck)
        await chat.press("1")
        assert "↳ t3: edited naturalsize" in shown(screen)
        await chat.press("slash", *"german")
        await chat.until(lambda: shown(screen) == ["▾ Wishes 1", "· Answer in German."])
        await chat.press("escape", "w")
        await chat.until(lambda: [r.workspace for r in engine.asked(ListRemembered)][1:] == [None])


async def test_acts_by_key_and_the_way_back(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001", size=(140, 40)) as chat:
        screen = await opened(chat)
        await chat.press("p")
        await chat.until(lambda: "Choose one of the sentences" in note(screen))
        await chat.press("down", "down", "p")
        await chat.until(lambda: "Pinned. u takes it back." in note(screen))
        assert shown(screen)[1] == "◆ Answer in German.", "the pinned ones come first"
        await chat.press("u")
        await chat.until(lambda: "Taken back: pinned “Answer in German.”" in note(screen))
        await chat.press("d")
        await chat.until(lambda: "the words of t1 stay in their conversation" in note(screen))
        assert "· Answer in German." not in shown(screen)
        screen.rows.choose("w2")
        await chat.press("f")
        await chat.until(lambda: "Only an open point can be confirmed" in note(screen))
        screen.rows.choose("o1")
        await chat.press("f")
        await chat.until(lambda: "Confirmed as done" in note(screen))
        screen.rows.choose("w2")
        await chat.press("e", "end", *" Now", "enter")
        await chat.until(lambda: "· Run the tests with -x. Now" in shown(screen))
        await chat.press("e", "escape")
        assert isinstance(chat.app.screen, RememberedScreen), "Escape leaves the line first"
        assert acts(engine) == [
            ("w3", "pin", ""),
            ("w3", "forget", ""),
            ("w2", "confirm", ""),
            ("o1", "confirm", ""),
            ("w2", "edit", "Run the tests with -x. Now"),
        ]
        await chat.press("U")
        await chat.until(lambda: isinstance(chat.app.screen, DetailScreen) and chat.app.screen.sections)
        assert isinstance(chat.app.screen, DetailScreen)
        log = chat.app.screen.sections[0].text.splitlines()
        assert [line.partition(" ")[2][6:] for line in log] == [
            "edited: Run the tests with -x.",
            "confirmed as done: Write the docs.",
            "forgotten: Answer in German.",
        ]


async def test_enter_goes_to_the_turn_also_of_another_conversation(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001", size=(140, 40)) as chat:
        await opened(chat)
        await chat.press("down", "enter")
        await chat.until(lambda: list(chat.app.chat.transcript.cursor.turns) == [2])
        await opened(chat, "/memory german")
        await chat.press("down", "r")
        await chat.until(lambda: isinstance(chat.app.screen, DetailScreen) and chat.app.screen.sections)
        assert isinstance(chat.app.screen, DetailScreen)
        assert [section.title for section in chat.app.screen.sections] == ["Wish", "State", "Said", "Noted by"]
        await chat.press("escape", "enter")
        await chat.until(lambda: chat.app.chat.session.state.conversation_id == SECOND)
