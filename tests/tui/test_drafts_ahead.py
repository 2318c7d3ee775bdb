"""A pause in a message lets the engine prepare for it; what is no message for a model does not."""

from __future__ import annotations

import pytest

from ragforge_tui.shared.requests.turns import NoteDraft, NoteTyping, SendMessage
from ragforge_tui.tui.prompt import prompt
from ragforge_tui.tui.session import engine_session
from tests.support.calls_scene import calls_engine
from tests.tui.conftest import Chat, ChatRunner

RESUMED = "00000001"


def drafts(chat: Chat) -> list[str]:
    return [request.text for request in chat.engine.asked(NoteDraft)]


async def resumed(chat: Chat) -> None:
    await chat.until(lambda: chat.app.session.state.ready and chat.app.session.state.conversation is not None)


async def test_the_engine_learns_twice_a_second_that_the_user_types(
    run_chat: ChatRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with run_chat(calls_engine(), resume=RESUMED) as chat:
        await resumed(chat)
        monkeypatch.setattr(engine_session, "TYPING_SECONDS", 60.0)
        await chat.press(*"why")
        await chat.until(lambda: drafts(chat)[-1:] == ["why"])
        conversation_id = chat.app.session.state.conversation_id
        assert chat.engine.asked(NoteTyping) == [NoteTyping(conversation_id=conversation_id)]
        monkeypatch.setattr(engine_session, "TYPING_SECONDS", 0.0)
        await chat.press("s")
        await chat.until(lambda: len(chat.engine.asked(NoteTyping)) == 2)
        await chat.press("enter")
        await chat.until(lambda: [sent.text for sent in chat.engine.asked(SendMessage)] == ["whys"])
        assert len(chat.engine.asked(NoteTyping)) == 2, "Enter is not typing"


async def test_the_engine_learns_a_message_once_typing_pauses(
    run_chat: ChatRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with run_chat(calls_engine(), resume=RESUMED) as chat:
        await resumed(chat)
        await chat.press(*"why")
        await chat.until(lambda: drafts(chat)[-1:] == ["why"])
        monkeypatch.setattr(prompt, "PAUSE_SECONDS", 60.0)
        await chat.press("s", "enter")
        await chat.until(lambda: [sent.text for sent in chat.engine.asked(SendMessage)] == ["whys"])
        assert "whys" not in drafts(chat)


async def test_the_end_of_a_sentence_needs_no_pause(run_chat: ChatRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompt, "PAUSE_SECONDS", 60.0)
    async with run_chat(calls_engine(), resume=RESUMED) as chat:
        await resumed(chat)
        await chat.press(*"why")
        await chat.press("?")
        await chat.until(lambda: drafts(chat) == ["why?"])


async def test_a_slow_typist_is_not_prepared_for_after_each_letter(
    run_chat: ChatRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompt, "PAUSES_APART", 60.0)
    async with run_chat(calls_engine(), resume=RESUMED) as chat:
        await resumed(chat)
        await chat.press("w")
        await chat.until(lambda: drafts(chat) == ["w"])
        for letter in "hy":
            await chat.press(letter)
            await chat.pilot.pause(prompt.PAUSE_SECONDS * 2)
        await chat.press("?")
        await chat.until(lambda: drafts(chat) == ["w", "why?"])


@pytest.mark.parametrize("text", ["!make", "/help", " ", "x" * 30])
async def test_commands_and_long_pastes_are_not_prepared_for(
    run_chat: ChatRunner, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(engine_session, "LONGEST_DRAFT", 20)
    async with run_chat(calls_engine(), resume=RESUMED) as chat:
        await resumed(chat)
        chat.app.prompt.put_whole(text)
        await chat.pilot.pause(prompt.PAUSE_SECONDS * 2)
        chat.app.prompt.put_whole("hello")
        await chat.until(lambda: drafts(chat))
        assert drafts(chat) == ["hello"]
