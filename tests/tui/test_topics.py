"""The topics screen by its keys: words, turns, merging and taking apart, and that undone."""

from __future__ import annotations

import pytest

from ragforge_tui.shared.errors import NotFoundError, RagforgeError
from ragforge_tui.shared.events import TopicsChanged
from ragforge_tui.shared.requests.memory import FetchTopicPlaces, ListTopics, MergeTopics, UnmergeTopic
from ragforge_tui.tui.dialogs.text_viewer import DetailScreen
from ragforge_tui.tui.memory.memory_pane import MemoryPane
from ragforge_tui.tui.memory.topics_screen import TopicsScreen
from tests.support.calls_scene import calls_engine
from tests.support.fake_engine import FakeEngine, conversation
from tests.tui.conftest import Chat, ChatRunner


@pytest.fixture
def engine() -> FakeEngine:
    """Two topics."""
    return calls_engine()


async def opened(chat: Chat, command: str = "/topics") -> TopicsScreen:
    """The screen, filled."""
    await chat.until(lambda: chat.app.chat.session.state.conversation)
    await chat.type(command)
    await chat.until(lambda: isinstance(chat.app.screen, TopicsScreen))
    screen = chat.app.screen
    assert isinstance(screen, TopicsScreen)
    await chat.until(lambda: screen.topics.loaded and screen.rows.has_focus)
    return screen


def names(screen: TopicsScreen) -> list[str]:
    return [line.text.partition(" ")[0] for line in screen.topics.lines("") if line.kind in ("topic", "merged")]


def note(screen: TopicsScreen) -> str:
    return screen._keys.render().plain


async def test_topics_by_their_words(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001") as chat:
        screen = await opened(chat, "/topics retr")
        asked = engine.asked(ListTopics)[-1]
        assert (asked.query, asked.workspace) == ("retr", "/w")
        assert names(screen) == ["retries"]
        await chat.press("slash", "backspace", "backspace", "backspace", "backspace")
        await chat.until(lambda: names(screen) == ["retries", "locks"])
        await chat.press("z")
        await chat.until(lambda: "no topic matches" in screen.rows.render_line(0).text)
        await chat.press("escape")
        await chat.until(lambda: screen.rows.has_focus)
        await chat.press("escape")
        await chat.until(lambda: chat.app.chat.prompt.has_focus)


async def test_a_topic_leads_to_its_turns(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001") as chat:
        screen = await opened(chat)
        await chat.press("enter")
        await chat.until(lambda: screen.topics.place("t1|place|1") is not None)
        assert engine.asked(FetchTopicPlaces)[0].conversation_id == conversation(1).uuid
        await chat.press("down", "left", "down", "enter")
        await chat.until(lambda: list(chat.app.chat.transcript.cursor.turns) == [1, 2, 3])


async def test_a_topic_is_read(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001") as chat:
        await opened(chat)
        await chat.press("r")
        await chat.until(lambda: isinstance(chat.app.screen, DetailScreen) and chat.app.screen.sections)
        assert isinstance(chat.app.screen, DetailScreen)
        assert [section.title for section in chat.app.screen.sections] == ["Related", "Found in"]


async def test_topics_of_a_new_summary_appear_by_themselves(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001") as chat:
        screen = await opened(chat)
        asked = len(engine.asked(ListTopics))
        engine.emit(TopicsChanged(conversation_id=conversation(1).uuid, topics=[]))
        await chat.until(lambda: len(engine.asked(ListTopics)) == asked + 1 and screen.topics.loaded)


async def test_two_are_made_one_and_that_is_undone(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        screen = await opened(chat)
        await chat.press("down", "M")
        assert screen.rows.marked == "t2"
        await chat.press("escape")
        assert screen.rows.marked == ""
        await chat.press("M", "up", "M")
        await chat.until(lambda: names(screen) == ["retries"])
        assert [(r.a, r.b) for r in engine.asked(MergeTopics)] == [("t2", "t1")]
        await chat.until(lambda: "is merged into retries" in note(screen))
        await chat.press("u")
        await chat.until(lambda: names(screen) == ["retries", "locks"])
        assert [r.ref for r in engine.asked(UnmergeTopic)] == ["t2"]
        await chat.press("u")
        assert len(engine.asked(UnmergeTopic)) == 1


async def test_a_name_is_taken_out_and_that_is_undone(run_chat: ChatRunner, engine: FakeEngine) -> None:
    engine.memory.merges = [("t2", "t1")]
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        screen = await opened(chat)
        await chat.press("enter")
        await chat.until(lambda: names(screen) == ["retries", "locks"])
        await chat.press("down", "x")
        await chat.until(lambda: "is a separate topic again" in note(screen))
        assert screen.rows.chosen == "t2"
        await chat.press("u")
        await chat.until(lambda: engine.memory.merges == [("t2", "t1")])
        await chat.until(lambda: "are merged again" in note(screen))


async def test_where_there_is_nothing_to_take_out_it_is_reported(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        screen = await opened(chat)
        await chat.press("x")
        assert "Nothing was merged into retries" in note(screen)


async def test_failures_are_reported(run_chat: ChatRunner, engine: FakeEngine) -> None:
    engine.failures[MergeTopics] = NotFoundError("There is no topic 'locks'.")
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        screen = await opened(chat)
        await chat.press("M", "down", "M")
        await chat.until(lambda: "There is no topic 'locks'." in note(screen))
        engine.failures[ListTopics] = RagforgeError("The graph is away.")
        await chat.press("slash", "a")
        await chat.until(lambda: "The graph is away." in note(screen))


async def test_it_opens_from_the_memory_pane(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        await chat.until(lambda: chat.app.chat.session.state.conversation)
        await chat.press("f3")
        await chat.until(lambda: (pane := chat.app.chat.sidebar.pane("memory")) is not None and pane.has_focus_within)
        pane = chat.app.chat.sidebar.pane("memory")
        assert isinstance(pane, MemoryPane)
        await chat.press("2")
        await chat.until(lambda: pane.topic_rows.has_focus)
        await chat.press("M")
        await chat.until(lambda: isinstance(chat.app.screen, TopicsScreen))
