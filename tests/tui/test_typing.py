"""The prompt in the chat: typing, pasting, history, drafts, the slash menu."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual._xterm_parser import XTermParser

from ragforge_tui.shared.events import (
    TurnCompleted,
)
from ragforge_tui.shared.formatting import size_text
from ragforge_tui.shared.requests.turns import SendMessage
from ragforge_tui.tui.dialogs.help_screen import HelpScreen
from ragforge_tui.tui.prompt.completion import SlashMenu
from ragforge_tui.tui.prompt.draft import Draft
from ragforge_tui.tui.prompt.history import Entry
from tests.support.fake_engine import FakeEngine, conversation
from tests.tui.conftest import ChatRunner


async def test_slash_menu(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        menu = chat.app.query_one(SlashMenu)
        await chat.press("/")
        await chat.until(lambda: menu.chosen)
        first = menu.chosen
        await chat.press("down")
        assert menu.chosen is not first
        await chat.press("up")
        assert menu.chosen is first
        await chat.press("m", "o", "d", "l")
        await chat.until(lambda: menu.chosen and menu.chosen.text == "/model ")
        await chat.press("tab")
        await chat.until(lambda: chat.app.chat.prompt.text == "/model ")
        await chat.until(lambda: menu.chosen and menu.chosen.text in chat.engine.models)
        await chat.press("backspace", "escape")
        assert menu.chosen is None
        chat.app.chat.prompt.empty()
        await chat.press("/", "h", "e", "l")
        await chat.until(lambda: menu.chosen and menu.chosen.text == "/help")
        await chat.press("enter")
        await chat.until(lambda: isinstance(chat.app.screen, HelpScreen))
        await chat.press("escape")
        assert not isinstance(chat.app.screen, HelpScreen)


async def test_enter_right_after_typing_runs_what_was_typed(run_chat: ChatRunner) -> None:
    """The menu is one message behind the text; Enter must not run the entry an earlier text had highlighted."""
    async with run_chat() as chat:
        await chat.ready()
        menu = chat.app.query_one(SlashMenu)
        await chat.press("/")
        await chat.until(lambda: menu.chosen and menu.chosen.text == "/help")
        chat.app.chat.prompt.insert("sessions")
        chat.app.chat.prompt._enter()
        await chat.until(lambda: len(chat.app.screen_stack) > 1)
        assert not isinstance(chat.app.screen, HelpScreen)


async def test_unknown_command_is_not_sent(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.type("/modle x")
        await chat.until(lambda: chat.noticed("There is no command /modle. Did you mean /model?"))
        assert chat.app.chat.prompt.text == "/modle x", "what was typed is not lost"
        await chat.until(lambda: chat.app.chat.prompt.selected_text == "/modle x")
        await chat.press(*"/model")
        assert chat.app.chat.prompt.text == "/model", "what is typed next takes its place"
        assert not chat.engine.asked(SendMessage)


async def test_a_paste_of_a_megabyte(run_chat: ChatRunner) -> None:
    text = "\n".join(f"line {number} of a long log" for number in range(45_000))
    assert len(text) > 1_000_000
    async with run_chat() as chat:
        await chat.ready()
        chat.app.chat.prompt.insert("look: ")
        chat.app.chat.prompt.post_message(events.Paste(text))
        await chat.until(lambda: chat.app.chat.prompt.text == f"look: [pasted 45 000 lines, {size_text(len(text))}]")
        await chat.press("enter")
        await chat.until(lambda: chat.engine.asked(SendMessage))
        [sent] = chat.engine.asked(SendMessage)
        assert sent.text == f"look: {text}" and list(sent.materials) == [text], "it is not the user's word"
        await chat.until(lambda: chat.happened(TurnCompleted))
        chat.app.chat.prompt.post_message(events.Paste(text))
        await chat.until(lambda: chat.app.chat.prompt.text)
        await chat.press("backspace")
        assert chat.app.chat.prompt.text == "", "a label goes as a whole"


async def test_pasted_escapes_and_surrogates_are_cleaned(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        chat.app.chat.prompt.post_message(events.Paste("a\x1b[31mred\x00\ud800b\r\nc"))
        await chat.until(lambda: chat.app.chat.prompt.text)
        assert chat.app.chat.prompt.text == "ared␀\ufffdb\nc"


@pytest.mark.parametrize("key", ["ctrl+j", "alt+enter", "shift+enter"])
async def test_new_line_and_growth(run_chat: ChatRunner, key: str) -> None:
    async with run_chat() as chat:
        await chat.press("a", key, "b")
        assert chat.app.chat.prompt.text == "a\nb"
        await chat.until(lambda: chat.app.chat.prompt.size.height == 2)
        chat.app.chat.prompt.insert("\n" * 50)
        await chat.until(lambda: chat.app.chat.prompt.size.height == 24 // 3)


async def test_history(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        for text in ("one", "two\nlines"):
            await chat.type(text)
            await chat.until(lambda: not chat.app.chat.session.message_queue.items)
        await chat.press("d", "up")
        assert chat.app.chat.prompt.text == "two\nlines"
        await chat.press("up", "up")
        assert chat.app.chat.prompt.text == "one"
        await chat.press("down", "down", "down")
        assert chat.app.chat.prompt.text == "d"


async def test_a_draft_survives_a_crash(run_chat: ChatRunner, tmp_path: Path) -> None:
    Draft(tmp_path, "/w", 4_194_305).save(Entry("half a thought"))
    async with run_chat() as chat:
        await chat.until(lambda: chat.app.chat.prompt.text == "half a thought")
        chat.app.chat.prompt.insert(" more")
        (kept,) = await _files(chat, tmp_path)
        assert b"half a thought more" in kept.read_bytes()


async def test_a_private_draft_waits_for_its_conversation(run_chat: ChatRunner, tmp_path: Path) -> None:
    engine = FakeEngine()
    private = engine.store(conversation(1, private=True))
    gone = Draft(tmp_path, "/w", 4_194_305)
    gone.open(private.uuid, private=True)
    gone.save(Entry("a secret"))
    async with run_chat(engine) as chat:
        await chat.ready()
        prompt = chat.app.chat.prompt
        await chat.type("hello")
        await chat.until(lambda: chat.app.chat.session.state.conversation_id)
        assert prompt.blank
        chat.app.chat.session.spawn(chat.app.chat.session.open(private.uuid), group="open")
        await chat.until(lambda: prompt.text == "a secret")
        prompt.insert(", still")
        prompt.save_draft()
        (kept,) = await _files(chat, tmp_path)
        assert private.uuid.encode() in kept.read_bytes()


async def _files(chat: Any, folder: Path) -> list[Path]:
    await chat.until(lambda: list((folder / "drafts").glob("*.json")))
    return list((folder / "drafts").glob("*.json"))


async def test_alt_enter_of_a_legacy_terminal(run_chat: ChatRunner) -> None:
    """It sends ESC CR."""
    async with run_chat() as chat:
        for event in XTermParser().feed("a\x1b\rb"):
            if isinstance(event, events.Key):
                await chat.press(event.key)
        assert chat.app.chat.prompt.text == "a\nb"


async def test_keys_that_come_at_once_keep_their_order(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        for key, character in (("a", "a"), ("ctrl+j", "\n"), ("b", "b")):
            chat.app.post_message(events.Key(key, character))
        await chat.until(lambda: chat.app.chat.prompt.text == "a\nb")
