"""The screens of all past conversations by their keys: insights made and read, a question, the work of some days."""

from __future__ import annotations

import asyncio

import pytest

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.past_records import PastChoice
from ragforge_tui.shared.requests.past import CancelInsights, ListInsights, MakeInsights, RecallPast, Standup
from ragforge_tui.shared.requests.turns import FetchTurns, OpenConversation
from ragforge_tui.tui.dialogs.text_viewer import DetailScreen
from ragforge_tui.tui.past.insight_list import InsightList, insight_sections, parse_choice
from ragforge_tui.tui.past.insights_screen import InsightsScreen
from ragforge_tui.tui.past.recall_screen import RecallScreen, as_hit
from tests.support.calls_scene import calls_engine
from tests.support.chat_scene import scene_engine
from tests.support.fake_engine import FakeEngine
from tests.support.fake_past import FIRST, FRESH, KEPT, QUOTES, SECOND, STORED
from tests.tui.conftest import NOON, Chat, ChatRunner


@pytest.fixture
def engine() -> FakeEngine:
    """Some sessions, the first one with an insight."""
    return scene_engine()


async def insights(chat: Chat, command: str = "/insights") -> InsightsScreen:
    """The screen, with what is stored."""
    await chat.until(lambda: chat.app.chat.session.state.conversation)
    await chat.type(command)
    await chat.until(lambda: isinstance(chat.app.screen, InsightsScreen) and chat.app.screen.insights.loaded)
    screen = chat.app.screen
    assert isinstance(screen, InsightsScreen)
    return screen


def topics(screen: InsightsScreen) -> list[str]:
    lines = screen.insights.lines(screen._words.value, NOON, 100)
    return [line.text.partition(" ")[0] for line in lines if line.kind == "insight"]


def note(screen: InsightsScreen) -> str:
    """What is asked, and the keys or the note below it."""
    question = f"{screen._question.render()} {screen._answers.render().plain}" if screen._question.display else ""
    return f"{question} {screen._keys.render().plain}"


async def test_a_finding_leads_to_its_turn(run_chat: ChatRunner) -> None:
    engine = calls_engine()
    async with run_chat(engine, resume="00000001") as chat:
        screen = await insights(chat)
        assert engine.asked(ListInsights)[0].choice == PastChoice(workspace="/w", current=FIRST)
        await chat.until(lambda: topics(screen) == ["Why"])
        await chat.press("enter")
        await chat.until(lambda: len(screen.insights.lines("", NOON, 100)) > 1)
        await chat.press("down", "down", "enter")
        await chat.until(lambda: list(chat.app.chat.transcript.cursor.turns) == [2])
        assert not engine.asked(MakeInsights)


async def test_the_sums_come_first_and_lead_to_their_turns(run_chat: ChatRunner) -> None:
    engine = calls_engine()
    engine.past.kept = KEPT
    async with run_chat(engine, resume="00000001") as chat:
        screen = await insights(chat)

        def shown() -> list[str]:
            return [line.text for line in screen.insights.lines(screen._words.value, NOON, 100) if line.key]

        assert shown()[:3] == ["Open 2", "Wishes 2", "Decisions 1"]
        assert "\x1b" not in "".join(screen.rows.render_line(y).text for y in range(6))
        await chat.press("enter")
        await chat.until(lambda: len(shown()) == 6)
        assert shown()[1].startswith("naturaltime still raises OverflowError.")
        assert shown()[2] == "The backup is missing. [t1, 2 Nov]"
        await chat.press("down", "enter")
        await chat.until(lambda: list(chat.app.chat.transcript.cursor.turns) == [2])


async def test_an_insight_of_another_conversation_opens_it(run_chat: ChatRunner, engine: FakeEngine) -> None:
    engine.past.stored = [FRESH]
    async with run_chat(engine, resume="00000001") as chat:
        await insights(chat)
        await chat.press("g")
        await chat.until(lambda: chat.app.chat.session.state.conversation_id == SECOND)


async def test_a_model_is_asked_after_a_yes_only(run_chat: ChatRunner, engine: FakeEngine) -> None:
    engine.past.missing = [FRESH]
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        screen = await insights(chat)
        await chat.until(lambda: "Ask openai/gpt-5 (api.openai.com) about 1 conversation, 2 400 tokens" in note(screen))
        await chat.press("n")
        assert "make missing" in note(screen)
        await chat.press("y")
        assert not engine.asked(MakeInsights)
        await chat.press("m")
        await chat.until(lambda: "y yes" in note(screen))
        await chat.press("y")
        await chat.until(lambda: topics(screen) == ["Why", "How"])
        await chat.until(lambda: "1 insight made" in note(screen))
        await chat.press("m")
        await chat.until(lambda: "Every conversation has its insight." in note(screen))
        assert len(engine.asked(MakeInsights)) == 1


async def test_without_a_model_they_are_made_at_once(run_chat: ChatRunner, engine: FakeEngine) -> None:
    engine.past.missing, engine.past.model = [FRESH], ""
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        screen = await insights(chat)
        await chat.until(lambda: topics(screen) == ["Why", "How"])


async def test_escape_leaves_a_run_and_keeps_what_is_done(run_chat: ChatRunner, engine: FakeEngine) -> None:
    engine.past.missing, engine.past.gate = [FRESH, STORED], asyncio.Event()
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        screen = await insights(chat)
        await chat.until(lambda: "y yes" in note(screen))
        await chat.press("y")
        await chat.until(lambda: "1 of 2 · esc stops" in note(screen))
        # The one that is made is shown while the rest is still being made.
        assert topics(screen) == ["How", "Why"]
        await chat.press("escape")
        await chat.until(lambda: chat.app.chat.prompt.has_focus and engine.asked(CancelInsights))
        assert engine.past.missing == [STORED]


async def test_a_failed_run_is_reported(run_chat: ChatRunner, engine: FakeEngine) -> None:
    engine.past.missing, engine.past.problem = [FRESH], "The server is away."
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        screen = await insights(chat)
        await chat.until(lambda: "y yes" in note(screen))
        await chat.press("y")
        await chat.until(lambda: "The server is away. 1 made and kept" in note(screen))
        engine.failures[MakeInsights] = RagforgeError("The graph is away.")
        engine.past.missing = [FRESH]
        await chat.press("m")
        await chat.until(lambda: "y yes" in note(screen))
        await chat.press("y")
        await chat.until(lambda: "The graph is away." in note(screen))


async def test_words_filter_and_r_reads(run_chat: ChatRunner, engine: FakeEngine) -> None:
    engine.past.stored = [FRESH, STORED]
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        screen = await insights(chat, "/insights leases")
        await chat.until(lambda: topics(screen) == ["Why"])
        await chat.press("slash", "z", "z")
        await chat.until(lambda: "no insight has these words" in screen.rows.render_line(0).text)
        await chat.press("backspace", "backspace")
        await chat.until(lambda: topics(screen) == ["How", "Why"])
        await chat.press("escape", "end", "r")
        await chat.until(lambda: isinstance(chat.app.screen, DetailScreen) and chat.app.screen.sections)
        assert isinstance(chat.app.screen, DetailScreen)
        assert [one.title for one in chat.app.screen.sections] == ["Main topic", "Findings", "To do", "Made by"]


async def test_a_command_narrows_the_choice(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001") as chat:
        await insights(chat, "/insights all #db since:2026-11-02")
        choice = engine.asked(ListInsights)[0].choice
        assert (choice.workspace, choice.tags) == (None, ["db"])
        assert choice.since is not None and f"{choice.since:%Y-%m-%d}" == "2026-11-02"
        await chat.press("escape")
        await chat.type("/insights since:never")
        await chat.until(lambda: chat.noticed("'never' is not a time"))


def test_topics_named_by_a_command() -> None:
    choice, words = parse_choice("lock topic:db until:2026-11-02 # why?", PastChoice(workspace="/w"), NOON)
    assert (choice.topic, choice.workspace, words) == ("db", "/w", "lock # why?")
    assert choice.until is not None and f"{choice.until:%Y-%m-%d}" == "2026-11-03"


def test_lines_wrap_and_lead_where_their_first_one_does() -> None:
    listed = InsightList()
    listed.load([STORED])
    assert listed.toggle(FIRST)
    lines = listed.lines("", NOON, 40)
    assert [line.kind for line in lines].count("more") >= 2
    assert listed.place(f"{FIRST}|0") == (FIRST, 2)
    assert listed.place(f"{FIRST}|1") == (FIRST, 0)
    assert listed.place(f"{FIRST}|2") == (FIRST, 3)
    assert listed.place(f"{FIRST}|where") == (FIRST, 0)
    assert listed.place("nobody") is None
    assert not listed.toggle("nobody")
    assert "extracted" in insight_sections(FRESH)[-1].text


# -- a question


async def recall(chat: Chat, command: str = "/recall how long do leases last?") -> RecallScreen:
    await chat.until(lambda: chat.app.chat.session.state.conversation)
    await chat.type(command)
    await chat.until(lambda: isinstance(chat.app.screen, RecallScreen))
    screen = chat.app.screen
    assert isinstance(screen, RecallScreen)
    return screen


def keys(screen: RecallScreen) -> str:
    return str(screen._keys.render())


async def test_a_quote_opens_its_turn_in_its_session(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        screen = await recall(chat)
        await chat.until(lambda: "2 quotes" in keys(screen))
        asked = engine.asked(RecallPast)[0]
        assert (asked.question, asked.choice.workspace, asked.choice.current, asked.answer) == (
            "how long do leases last?",
            "/w",
            FIRST,
            False,
        )
        assert screen.chosen == QUOTES[0]
        await chat.until(lambda: any(one.conversation_id == SECOND for one in engine.asked(FetchTurns)), "a preview")
        await chat.press("enter")
        await chat.until(lambda: chat.app.chat.session.state.conversation_id == SECOND)
        assert engine.asked(OpenConversation)[-1].ref == SECOND


async def test_another_question_the_scope_and_an_answer(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        screen = await recall(chat, "/recall")
        assert not engine.asked(RecallPast)
        await chat.press("enter", *"zebra", "enter")
        await chat.until(lambda: "nothing here answers that · alt+w all folders" in keys(screen))
        assert screen.chosen is None
        await chat.press("alt+w")
        await chat.until(lambda: engine.asked(RecallPast)[-1].choice.workspace is None)
        for _ in range(5):
            await chat.press("backspace")
        await chat.press(*"leases", "enter")
        await chat.until(lambda: "2 quotes" in keys(screen))
        await chat.press("alt+m")
        await chat.until(lambda: "30 seconds" in str(screen._answer.render()))
        assert engine.asked(RecallPast)[-1].answer
        await chat.press("down", "down")
        await chat.until(lambda: screen.chosen == QUOTES[1])
        await chat.press("escape")
        await chat.until(lambda: chat.app.chat.prompt.has_focus)


async def test_an_error_of_a_question_is_shown(run_chat: ChatRunner, engine: FakeEngine) -> None:
    engine.failures[RecallPast] = RagforgeError("'it' has no word to search for.")
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        screen = await recall(chat, "/recall it")
        await chat.until(lambda: "no word to search for" in keys(screen))


def test_a_quote_as_a_hit() -> None:
    hit = as_hit(QUOTES[1])
    assert hit.snippet.startswith("decision: Leases")
    assert [hit.snippet[start:end] for start, end in hit.highlights] == ["Leases"]
    assert as_hit(QUOTES[0]).snippet.startswith("We decided")


# -- work of some days


async def test_the_standup_is_copied_as_markdown(
    run_chat: ChatRunner, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        copied: list[str] = []
        monkeypatch.setattr(chat.app, "copy_to_clipboard", copied.append)
        await chat.until(lambda: chat.app.chat.session.state.conversation)
        await chat.type("/standup")
        await chat.until(lambda: isinstance(chat.app.screen, DetailScreen) and chat.app.screen.sections)
        # The clock stands at Tuesday: the last working day is Monday.
        asked = engine.asked(Standup)[0]
        assert (f"{asked.since:%Y-%m-%d %H:%M}", asked.current) == ("2026-11-02 00:00", FIRST)
        await chat.press("y")
        assert copied[0].startswith("# Since Monday, 2026-11-02\n\n## /w\n\n2 turns in 1 conversation: ")
        assert "- [ ] Measure it. (t3)" in copied[0]
        await chat.press("escape")
        await chat.type("/standup someday")
        await chat.until(lambda: chat.noticed("'someday' is not a time"))
