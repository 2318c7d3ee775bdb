"""The screens of code by their keys and the mouse: searching, one scope, its references, the turns about it."""

from __future__ import annotations

import pytest

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.requests.code import FetchScope, ListTouchedCode, SearchCode
from ragforge_tui.tui.code.code_screen import CodeScreen, Words, in_file, parse_words
from ragforge_tui.tui.code.scope_screen import ScopeScreen
from ragforge_tui.tui.dialogs.text_viewer import DetailScreen
from ragforge_tui.tui.widgets.choice_list import Choice, ChoiceList
from tests.support.calls_scene import calls_engine
from tests.support.fake_code import talk
from tests.support.fake_engine import FakeEngine, conversation
from tests.tui.conftest import Chat, ChatRunner


@pytest.fixture
def engine() -> FakeEngine:
    """Twelve turns, one of them about a method."""
    engine = calls_engine()
    engine.code.talks = [talk(conversation(1).uuid, 3, "Why twice?", "Retries double turns")]
    return engine


async def opened(chat: Chat, command: str) -> CodeScreen:
    """The search, once its rows are known."""
    await chat.until(lambda: chat.app.chat.session.state.conversation)
    await chat.type(command)
    await chat.until(lambda: isinstance(chat.app.screen, CodeScreen) and chat.app.screen._list.rows)
    screen = chat.app.screen
    assert isinstance(screen, CodeScreen)
    return screen


async def scope_of(chat: Chat, name: str) -> ScopeScreen:
    """The screen of a scope, once it is filled."""

    def there() -> bool:
        screen = chat.app.screen
        return isinstance(screen, ScopeScreen) and screen.view is not None and screen.view.scope.name == name

    await chat.until(there, name)
    assert isinstance(chat.app.screen, ScopeScreen)
    return chat.app.screen


def names(screen: CodeScreen) -> list[str]:
    return [row.label for row in screen._list.rows]


def test_a_path_is_told_from_the_words() -> None:
    assert parse_words("retry  twice") == Words("retry twice")
    assert parse_words("path:src/a.py ") == Words("", "src/a.py")
    assert parse_words('send path:"a folder/b.py" now') == Words("send now", "a folder/b.py")
    assert parse_words("xpath:y") == Words("xpath:y")
    assert parse_words(in_file("a folder/b.py")).path == "a folder/b.py"


async def test_words_find_scopes_and_enter_opens_one(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001") as chat:
        screen = await opened(chat, "/code session")
        assert engine.asked(SearchCode)[-1].query == "session"
        assert names(screen) == ["Session.send", "Session", "Session.open"]
        await chat.press("enter")
        scope = await scope_of(chat, "send")
        assert [row.text for row in scope.rows._lines if row.key] == ["main", "Session.open", "Why twice?"]
        await chat.press("escape")
        await chat.until(lambda: chat.app.screen is screen)
        await chat.press("escape")
        await chat.until(lambda: chat.app.chat.prompt.has_focus)


async def test_a_reference_opens_its_scope_and_escape_goes_back(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001") as chat:
        await opened(chat, "/code send")
        await chat.press("enter")
        await scope_of(chat, "send")
        await chat.press("enter")
        await scope_of(chat, "main")
        await chat.press("escape")
        await scope_of(chat, "send")
        assert [one.uuid for one in engine.asked(FetchScope)][-3:] == ["c1", "c3", "c1"]


async def test_a_turn_about_it_is_brought_into_view(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001") as chat:
        await opened(chat, "/code send")
        await chat.press("enter")
        await scope_of(chat, "send")
        await chat.press("end", "enter")
        await chat.until(lambda: list(chat.app.chat.transcript.cursor.turns) == [3])


async def test_without_words_it_lists_what_the_conversation_touched(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001") as chat:
        screen = await opened(chat, "/code")
        assert engine.asked(ListTouchedCode)[0].conversation_id == conversation(1).uuid
        assert [(row.label, f"{row.detail}  {row.path}") for row in screen._list.rows] == [
            ("Session.send", "t9  src/session.py:41-48"),
            ("main", "t4  src/app.py:5-30"),
        ]


async def test_a_click_chooses_and_a_second_one_opens(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001") as chat:
        screen = await opened(chat, "/code session")
        await chat.pilot.click(screen._list, offset=(5, 1))
        await chat.until(lambda: screen._list.chosen is not None and screen._list.chosen.label == "Session")
        assert chat.app.screen is screen
        await chat.pilot.click(screen._list, offset=(5, 1))
        await scope_of(chat, "Session")


async def test_a_failure_is_shown_in_the_screen(run_chat: ChatRunner, engine: FakeEngine) -> None:
    engine.failures[SearchCode] = RagforgeError("Code is not indexed.", todo="Set code.enabled.")
    async with run_chat(engine, resume="00000001") as chat:
        await chat.until(lambda: chat.app.chat.session.state.conversation)
        await chat.type("/code send")
        await chat.until(lambda: isinstance(chat.app.screen, CodeScreen))
        screen = chat.app.screen
        assert isinstance(screen, CodeScreen)
        await chat.until(lambda: "Code is not indexed." in str(screen._keys.render()))


async def test_a_file_of_the_pane_opens_its_scopes(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001") as chat:
        await chat.until(lambda: chat.app.chat.session.state.conversation)
        await chat.press("f5")
        await chat.until(lambda: chat.app.chat.sidebar.has_focus_within)
        await chat.press("v")
        await chat.until(lambda: isinstance(chat.app.screen, CodeScreen))
        await chat.until(lambda: engine.asked(SearchCode))
        assert (engine.asked(SearchCode)[0].query, engine.asked(SearchCode)[0].path) == (
            "",
            "ragforge_tui/graph/schema.py",
        )


async def test_a_call_opens_the_code_it_was_about(run_chat: ChatRunner, engine: FakeEngine) -> None:
    last = engine.turns[conversation(1).uuid][-1].messages[1].tool_calls[-2]
    assert last.result is not None
    last.result.result = '{"text": "code", "scopes": ["c3"]}'
    async with run_chat(engine, resume="00000001") as chat:
        await chat.until(lambda: chat.app.chat.session.state.conversation)
        await chat.press("f4")
        await chat.until(lambda: chat.app.chat.sidebar.has_focus_within)
        await chat.press("up", "enter")
        await chat.until(lambda: isinstance(chat.app.screen, DetailScreen) and chat.app.screen.sections)
        await chat.press("v")
        await scope_of(chat, "main")


@pytest.mark.parametrize(
    ("width", "row"),
    [
        (70, "▸ method    Session.rebuild_proxies          src/requests/sessions.py:673"),
        (54, "▸ method    Session.rebuild_proxies …/sessions.py:673"),
        (45, "▸ method    Session.rebuild_pro… sessions.py…"),
    ],
)
def test_a_name_is_cut_after_its_path(width: int, row: str) -> None:
    rows = ChoiceList(detail_right=True)
    choice = Choice("c", "Session.rebuild_proxies", lead="method    ", path="src/requests/sessions.py:673")
    assert rows._draw(choice, True, width).plain.split() == row.split()
