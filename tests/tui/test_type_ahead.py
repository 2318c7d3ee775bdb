"""Keys typed in one go: those behind a key that moves the focus go where it takes them."""

from __future__ import annotations

import pytest
from textual import events
from textual.keys import _character_to_key
from textual.widgets import Input

from ragforge_tui.shared.requests.turns import SendMessage
from ragforge_tui.tui.dialogs.find_bar import FindBar
from ragforge_tui.tui.limits import SCREEN
from ragforge_tui.tui.sessions.search_screen import SearchScreen
from tests.support.calls_scene import calls_engine
from tests.support.fake_engine import conversation, turn
from tests.tui.conftest import Chat, ChatRunner


def type_at_once(chat: Chat, *keys: str) -> None:
    """As a terminal sends them: all are there before the first is dealt with."""
    for key in keys:
        chat.app.post_message(events.Key(key, key if len(key) == 1 else None))


async def opened(chat: Chat) -> None:
    owner = conversation(1, "Retries")
    chat.engine.store(owner, turn(owner, 1, "why", "because"))
    await chat.ready()
    await chat.app.chat.session.open(owner.uuid)


async def test_the_text_behind_ctrl_f_is_what_is_looked_for(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await opened(chat)
        type_at_once(chat, "x", "ctrl+f", "a", "b", "c")
        await chat.until(lambda: chat.app.query(FindBar) and chat.app.query_one(FindBar)._field.value == "abc")
        assert chat.app.chat.prompt.text == "x"


async def test_keys_behind_tab_work_in_the_chat_and_return_with_it(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await opened(chat)
        type_at_once(chat, "h", "i", "tab", "j", "k")
        await chat.until(lambda: chat.app.chat.transcript.cursor.block is not None)
        assert chat.app.chat.prompt.text == "hi"
        assert chat.app.focused is chat.app.chat.transcript


async def test_a_word_typed_in_the_chat_is_typed_into_the_prompt_whole(run_chat: ChatRunner) -> None:
    """Its later letters mean something to the chat, once a block is chosen there."""
    async with run_chat() as chat:
        await opened(chat)
        type_at_once(chat, "tab", "k", "f", "r", "o", "e", "b", "j")
        await chat.until(lambda: chat.app.chat.prompt.text == "froebj")
        assert chat.app.chat.transcript.cursor.block is not None and len(chat.app.screen_stack) == 1


@pytest.mark.parametrize("text", ["/copy", "@jo", "!jk"])
async def test_a_command_typed_in_the_chat_is_typed_into_the_prompt_whole(run_chat: ChatRunner, text: str) -> None:
    """Its sign is no letter to a terminal, but takes the keyboard all the same."""
    async with run_chat() as chat:
        await opened(chat)
        type_at_once(chat, "tab", "k")
        await chat.until(lambda: chat.app.chat.transcript.cursor.block is not None)
        for character in text:
            chat.app.post_message(events.Key(_character_to_key(character), character))
        await chat.until(lambda: chat.app.chat.prompt.text == text)


async def test_the_words_behind_ctrl_t_are_searched_for(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await opened(chat)
        type_at_once(chat, "ctrl+t", "a", "b")
        await chat.until(lambda: isinstance(chat.app.screen, SearchScreen))
        await chat.until(lambda: getattr(chat.app.focused, "value", "") == "ab")
        assert chat.app.chat.prompt.text == ""


@pytest.mark.parametrize("key", ["f3", "f4", "f5"])
async def test_letters_behind_the_key_of_a_pane_are_not_typed(run_chat: ChatRunner, key: str) -> None:
    async with run_chat() as chat:
        await opened(chat)
        type_at_once(chat, key, "j", "k")
        await chat.until(lambda: chat.app.chat.sidebar.has_focus_within)
        await chat.until(lambda: not chat.app._held)
        assert chat.app.chat.prompt.text == ""


@pytest.fixture
def endless_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is held is given away for its own reason, never because time is up."""
    monkeypatch.setattr(SCREEN, "type_ahead", 3600.0)


@pytest.mark.usefixtures("endless_hold")
async def test_ctrl_f_in_the_line_that_finds_holds_nothing(run_chat: ChatRunner) -> None:
    """The line has the keyboard already, and the key is one of its own: it takes the keyboard nowhere."""
    async with run_chat() as chat:
        await opened(chat)
        type_at_once(chat, "ctrl+f", "ctrl+f", "a", "b")
        await chat.until(lambda: chat.app.query(FindBar) and chat.app.query_one(FindBar)._field.value == "ab")
        assert chat.app.chat.prompt.text == ""


@pytest.mark.usefixtures("endless_hold")
async def test_a_key_that_opens_nothing_holds_nothing_for_long(run_chat: ChatRunner) -> None:
    """Without a conversation there is nothing to find in: what was typed is not lost."""
    async with run_chat() as chat:
        await chat.ready()
        type_at_once(chat, "ctrl+f", "a", "b")
        await chat.until(lambda: chat.app.chat.prompt.text == "ab")


async def test_keys_after_enter_are_the_next_message(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await opened(chat)
        type_at_once(chat, "o", "n", "e", "enter", "t", "w", "o", "enter", "x")
        await chat.until(lambda: len(chat.engine.asked(SendMessage)) == 2)
        assert [sent.text for sent in chat.engine.asked(SendMessage)] == ["one", "two"]
        await chat.until(lambda: chat.app.chat.prompt.text == "x")


async def test_keys_after_a_command_go_to_the_screen_it_opens(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await opened(chat)
        type_at_once(chat, *"/find", "enter", "a", "b")
        await chat.until(lambda: chat.app.query(FindBar) and chat.app.query_one(FindBar)._field.value == "ab")
        assert chat.app.chat.prompt.text == ""


@pytest.mark.parametrize(
    ("key", "walked", "why"),
    [
        ("o", False, "choose a block first"),
        ("e", False, "choose a block first"),
        ("b", False, "choose a block first"),
        ("v", False, "choose a block first"),
        ("space", False, "choose a block first"),
        ("n", False, "no search text yet"),
        ("N", True, "no search text yet"),
        ("o", True, "no link here"),
        ("c", True, "no code here"),
    ],
)
async def test_a_key_of_the_chat_that_has_nothing_to_do_reports_it_and_types_nothing(
    run_chat: ChatRunner, key: str, walked: bool, why: str
) -> None:
    async with run_chat() as chat:
        await opened(chat)
        await chat.press("tab", *(["k"] if walked else []))
        await chat.until(lambda: (chat.app.chat.transcript.cursor.block is not None) == walked)
        await chat.press(key)
        await chat.until(lambda: why in chat.app.chat.status_line.hint)
        assert chat.app.focused is chat.app.chat.transcript and chat.app.chat.prompt.text == ""


@pytest.mark.parametrize("key", ["f3", "f4", "f5"])
async def test_a_letter_that_is_no_key_of_a_pane_goes_to_the_prompt_with_the_rest(
    run_chat: ChatRunner, key: str
) -> None:
    async with run_chat(size=(140, 40)) as chat:
        await opened(chat)
        await chat.press(key)
        await chat.until(lambda: chat.app.chat.sidebar.has_focus_within)
        type_at_once(chat, *"jwhy gj")
        await chat.until(lambda: chat.app.chat.prompt.text == "why gj")
        assert chat.app.chat.prompt.has_focus and chat.app.chat.sidebar.display


async def test_words_to_filter_by_stay_in_their_field(run_chat: ChatRunner) -> None:
    async with run_chat(calls_engine(), size=(140, 40), continue_last=True) as chat:
        await chat.until(lambda: chat.app.chat.session.state.conversation)
        await chat.press("f4")
        await chat.until(lambda: chat.app.chat.sidebar.has_focus_within)
        chat.app.post_message(events.Key("slash", "/"))
        type_at_once(chat, *"why")
        await chat.until(lambda: isinstance(chat.app.focused, Input) and chat.app.focused.value == "why")
        assert chat.app.chat.prompt.text == ""


@pytest.mark.parametrize(
    ("keys", "left"),
    [
        ([*"hello world", *["backspace"] * 5, *"there"], "hello there"),
        ([*"hello world", *["left"] * 3, "X"], "hello woXrld"),
        ([*"wrong words", "ctrl+w", *"right"], "wrong right"),
        ([*"ab", "ctrl+a", *"c", "ctrl+e", *"d"], "cabd"),
    ],
)
async def test_letters_do_not_overtake_the_keys_before_them(run_chat: ChatRunner, keys: list[str], left: str) -> None:
    async with run_chat() as chat:
        await chat.ready()
        type_at_once(chat, *keys)
        await chat.until(lambda: chat.app.chat.prompt.text == left)


async def test_nor_in_a_field_of_one_line(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await opened(chat)
        type_at_once(chat, "ctrl+o")
        await chat.until(lambda: isinstance(chat.app.focused, Input))
        type_at_once(chat, *"abc", *["backspace"] * 3, *"plain")
        await chat.until(lambda: getattr(chat.app.focused, "value", "") == "plain")
