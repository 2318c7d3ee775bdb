"""The memory pane by its keys: the tree, what is read of it, the turns it leads to, topics, what is under way."""

from __future__ import annotations

import msgspec
import pytest

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.events import (
    MemoryProgress,
    MessageStarted,
    SummaryCreated,
    SummaryFailed,
    SummaryStarted,
    TopicsChanged,
)
from ragforge_tui.shared.finding_records import ShownFinding
from ragforge_tui.shared.records import Finding, RecalledPlace
from ragforge_tui.shared.requests.memory import (
    FetchDue,
    FetchSent,
    FetchTopicPlaces,
    FetchTree,
    FetchTurnLines,
    MemoryDue,
)
from ragforge_tui.tui.dialogs.text_viewer import DetailScreen
from ragforge_tui.tui.limits import SCREEN
from ragforge_tui.tui.memory import memory_pane
from ragforge_tui.tui.memory.memory_pane import Foot, MemoryPane
from ragforge_tui.tui.sidebar.pane import PaneTitle
from ragforge_tui.tui.widgets.key_bar import KeyBar
from ragforge_tui.tui.widgets.status_bar import StatusLine
from tests.support.calls_scene import calls_engine
from tests.support.fake_engine import FakeEngine, conversation, turn
from tests.support.fake_memory import HOSTILE, summary
from tests.tui.conftest import Chat, ChatRunner
from tests.tui.test_questions import screen_text

UUID = conversation(1).uuid


@pytest.fixture
def engine() -> FakeEngine:
    """Twelve turns, five of them summarised."""
    return calls_engine()


async def opened(chat: Chat) -> MemoryPane:
    """The pane, filled, with the focus."""
    await chat.until(lambda: chat.app.chat.session.state.conversation)
    await chat.press("f3")
    await chat.until(lambda: chat.app.chat.sidebar.pane("memory") is not None)
    pane = chat.app.chat.sidebar.pane("memory")
    assert isinstance(pane, MemoryPane)
    await chat.until(lambda: pane.memory.loaded and pane.rows.has_focus)
    return pane


def rows(pane: MemoryPane) -> list[str]:
    """What is listed, as it is drawn."""
    return [pane.rows.render_line(y).text.strip() for y in range(pane.rows.size.height)]


def listed(pane: MemoryPane, text: str) -> bool:
    return any(text in row for row in rows(pane))


async def test_the_tree_opens_down_to_its_turns(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        pane = await opened(chat)
        assert pane.note == "12 turns · 3 summaries"
        first, second = rows(pane)[:2]
        assert (first.split(" 1–5")[0].rstrip(), first.split()[-2:]) == ("▸ ▸ Retries were studied and me…", ["3", "h"])
        assert second.split("  ")[0] == "▸ not summarised yet"
        assert second.endswith("turns 6–12")
        await chat.press("enter", "down", "space")
        await chat.until(lambda: listed(pane, "2 Question 2"))
        assert [(r.first, r.last) for r in engine.asked(FetchTurnLines)] == [(1, 12)]
        await chat.press("left", "left", "left")
        assert rows(pane)[1].startswith("▸ not summarised")
        await chat.press("right")
        await chat.until(lambda: listed(pane, "1–3"))


async def test_a_turn_is_brought_into_view_and_marked(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        pane = await opened(chat)
        await chat.press("enter", "down", "right", "down", "down", "enter")
        await chat.until(lambda: 2 in chat.app.chat.transcript.cursor.turns)
        assert list(chat.app.chat.transcript.cursor.turns) == [2]
        await chat.press("left", "g")
        await chat.until(lambda: list(chat.app.chat.transcript.cursor.turns) == [1, 2, 3])
        assert pane.rows.has_focus


async def test_over_the_chat_the_sidebar_makes_room_for_the_turn(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001") as chat:
        await opened(chat)
        await chat.press("g")
        await chat.until(lambda: list(chat.app.chat.transcript.cursor.turns) == [1, 2, 3, 4, 5])
        assert not chat.app.chat.sidebar.display


async def test_a_summary_is_read_and_a_finding_leads_to_its_turn(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        await opened(chat)
        await chat.press("enter", "down", "r")
        await chat.until(lambda: isinstance(chat.app.screen, DetailScreen))
        screen = chat.app.screen
        assert isinstance(screen, DetailScreen)
        await chat.until(lambda: screen.sections)
        assert [section.title for section in screen.sections] == ["Conversation", "Key findings"]
        assert screen.sections[1].text == "1. Decision: The second retry began before the first had ended. [t2, t3]"
        await chat.press("1")
        await chat.until(lambda: list(chat.app.chat.transcript.cursor.turns) == [2])


async def test_summaries_come_into_the_tree_as_they_are_made(run_chat: ChatRunner, engine: FakeEngine) -> None:
    engine.memory.due = MemoryDue(next_turns=2, next_chars=4_000)
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        pane = await opened(chat)
        status = chat.app.query_one(StatusLine)
        assert "L1" not in str(status.render())
        asked = len(engine.asked(FetchDue))
        where = {"conversation_id": UUID, "level": 1, "start_turn_index": 6, "end_turn_index": 10}
        engine.emit(SummaryStarted(**where))
        await chat.until(lambda: listed(pane, "◐ summarising turns 6–10 …"))
        engine.emit(SummaryFailed(**where, reason=f"no {HOSTILE}"))
        await chat.until(lambda: listed(pane, "✕ turns 6–10: no [bold]red"))
        engine.memory.due = MemoryDue(behind="the graph is full")
        engine.emit(SummaryCreated(conversation_id=UUID, summary=summary(UUID, 1, 6, 10, "Then it was mended.")))
        await chat.until(lambda: listed(pane, "▸ Then it was mended."))
        await chat.until(lambda: pane._foot.render().plain == "behind: the graph is full")
        assert "memory behind" in str(status.render())
        assert len(engine.asked(FetchDue)) == asked + 2
        assert rows(pane)[2].endswith("turns 11–12")
        engine.memory.due = MemoryDue(behind="the embedding model has no key", words_only=True)
        engine.emit(SummaryCreated(conversation_id=UUID, summary=summary(UUID, 1, 11, 12, "Then it was tested.")))
        await chat.until(lambda: "no vectors" in str(status.render()))


async def test_nothing_is_being_made_without_an_engine(run_chat: ChatRunner, engine: FakeEngine) -> None:
    heir = engine.heir()
    async with run_chat(engine, heir, resume="00000001", size=(120, 40)) as chat:
        pane = await opened(chat)
        engine.emit(SummaryStarted(conversation_id=UUID, level=1, start_turn_index=6, end_turn_index=8))
        await chat.until(lambda: listed(pane, "summarising"))
        engine.crash()
        await chat.until(lambda: chat.noticed("It is restarting"))
        await chat.until(lambda: not listed(pane, "summarising"))
        assert not pane.memory.working


async def test_a_failure_is_read(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        pane = await opened(chat)
        engine.emit(
            SummaryFailed(conversation_id=UUID, level=1, start_turn_index=6, end_turn_index=10, reason="no room")
        )
        await chat.until(lambda: listed(pane, "✕ turns 6–10"))
        await chat.press("down", "enter")
        await chat.until(lambda: isinstance(chat.app.screen, DetailScreen) and chat.app.screen.sections)
        assert isinstance(chat.app.screen, DetailScreen)
        assert chat.app.screen.sections[0].text == "no room"


async def test_the_conversations_own_summary_is_on_top(run_chat: ChatRunner, engine: FakeEngine) -> None:
    engine.conversations[UUID].summary = "Retries were looked at. " * 30 + HOSTILE
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        pane = await opened(chat)
        # The summary is wrapped once the pane has its width.
        await chat.until(lambda: listed(pane, "Retries were looked at.") and listed(pane, "1–5"))
        assert rows(pane)[0].removeprefix("▸ ").startswith("Retries were looked at.")
        assert rows(pane)[2].endswith("…")
        assert "1–5" in rows(pane)[3]
        await chat.press("home", "r")
        await chat.until(lambda: isinstance(chat.app.screen, DetailScreen) and chat.app.screen.sections)
        assert isinstance(chat.app.screen, DetailScreen)
        assert chat.app.screen.sections[0].text.endswith("[bold]red[/bold]")


async def test_topics_are_a_second_grouping(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        pane = await opened(chat)
        await chat.press("2")
        await chat.until(lambda: pane.topic_rows.has_focus)
        assert "retries" in rows(pane)[0]
        title = next(one for one in chat.app.query(PaneTitle) if one.pane is pane)
        assert title.render().plain.startswith(" ▾ MEMORY · topics ")
        await chat.press("enter")
        await chat.until(lambda: listed(pane, "t1–3 Doubled turns"))
        assert engine.asked(FetchTopicPlaces)[0].ref == "t1"
        await chat.press("r")
        await chat.until(lambda: isinstance(chat.app.screen, DetailScreen) and chat.app.screen.sections)
        await chat.press("escape")
        await chat.until(lambda: pane.topic_rows.has_focus)
        await chat.press("down", "enter")
        await chat.until(lambda: list(chat.app.chat.transcript.cursor.turns) == [1, 2, 3])
        await chat.press("down", "g")
        await chat.until(lambda: chat.app.chat.session.state.conversation_id != UUID)
        await chat.press("2")
        await chat.until(lambda: pane.tree_rows.display)


async def test_an_outline_that_does_not_come_is_reported_and_asked_for_again(
    run_chat: ChatRunner, engine: FakeEngine
) -> None:
    engine.failures[FetchTree] = RagforgeError("The graph is away.")
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        await chat.until(lambda: chat.app.chat.session.state.conversation)
        await chat.press("f3")
        await chat.until(lambda: engine.asked(FetchTree))
        pane = chat.app.chat.sidebar.pane("memory")
        assert isinstance(pane, MemoryPane)
        await chat.until(lambda: listed(pane, "The graph is away."))
        await chat.press("f3", "f3")
        await chat.until(lambda: pane.memory.loaded)


async def test_a_long_conversation_fetches_what_is_seen(run_chat: ChatRunner, engine: FakeEngine) -> None:
    owner = engine.conversations[UUID]
    engine.store(owner, *(turn(owner, index, f"Question {index}", "So.") for index in range(1, 2001)))
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        pane = await opened(chat)
        await chat.press("down", "enter", "end")
        await chat.until(lambda: listed(pane, "2000 Question 2000"))
        assert all(request.last - request.first <= 300 for request in engine.asked(FetchTurnLines))
        assert len(engine.asked(FetchTurnLines)) <= 3


async def test_progress_of_the_memory_is_shown(run_chat: ChatRunner) -> None:
    engine = calls_engine()
    engine.memory.due = MemoryDue(next_turns=2, next_chars=4_000)
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        pane = await opened(chat)
        status = chat.app.query_one(StatusLine)
        left = "Vectors of 4 200 of 5 000 turns are still being made: found by words."
        engine.emit(MemoryProgress(conversation_id="another", left=left, percent=3))
        engine.emit(MemoryProgress(conversation_id=UUID, left=left, percent=16))
        await chat.until(lambda: pane._foot.render().plain.startswith("Vectors of 4 200"))
        await chat.until(lambda: "memory 16 %" in str(status.render()))
        engine.emit(MemoryProgress(conversation_id=UUID))
        await chat.until(lambda: "Vectors of" not in pane._foot.render().plain)
        assert "memory 16 %" not in str(status.render())


async def test_findings_are_listed_by_kind_and_lead_to_their_turns(run_chat: ChatRunner, engine: FakeEngine) -> None:
    open_point = Finding(text=f"Tests are missing. {HOSTILE}", turns=[5], kind="open")
    fact = Finding(text="The lock is taken once.")
    engine.memory.summaries[UUID] = [summary(UUID, 1, 1, 5, "So.", title="Locks", key_findings=[fact, open_point])]
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        pane = await opened(chat)
        await chat.press("1")
        await chat.until(lambda: pane.finding_rows.has_focus and listed(pane, "Open 1"))
        assert listed(pane, "t5   Tests are missing. [bold]red")
        assert rows(pane)[0] == "Open 1"
        assert listed(pane, "Findings 1")
        await chat.press("home", "enter")
        await chat.until(lambda: list(chat.app.chat.transcript.cursor.turns) == [5])
        await chat.press("r")
        await chat.until(lambda: isinstance(chat.app.screen, DetailScreen) and chat.app.screen.sections)
        await chat.press("escape", "1")
        await chat.until(lambda: pane.tree_rows.has_focus)


async def test_what_no_longer_holds_is_struck_through_and_leads_to_what_replaced_it(
    run_chat: ChatRunner, engine: FakeEngine
) -> None:
    engine.memory.findings = [
        ShownFinding(text="It waits 60 s.", turns=[5], kind="decision"),
        ShownFinding(
            text="It waits 30 s.", turns=[2], kind="decision", became=f"replaced by “60” {HOSTILE}", leads_turn=5
        ),
    ]
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        pane = await opened(chat)
        await chat.press("1")
        await chat.until(lambda: pane.finding_rows.has_focus and listed(pane, "Decisions 1"))
        assert listed(pane, "→ t5 replaced by “60” [bold]red")
        palette = chat.app.chat.transcript.palette
        drawn = {line.text: pane.finding_rows.draw(line, 40, palette)[-1][1] for line in pane.findings.lines(40)}
        assert drawn["It waits 30 s."].strike and not drawn["It waits 60 s."].strike
        pane.finding_rows.choose("finding:1")
        await chat.press("enter")
        await chat.until(lambda: list(chat.app.chat.transcript.cursor.turns) == [5])


async def test_findings_follow_new_summaries(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        pane = await opened(chat)
        await chat.press("1")
        await chat.until(lambda: listed(pane, "Decisions 1"))
        made = summary(UUID, 1, 6, 10, "More.", key_findings=[Finding(text="Two retries.", turns=[7], kind="fact")])
        engine.memory.summaries[UUID] = [made]
        engine.emit(SummaryCreated(conversation_id=UUID, summary=made))
        await chat.until(lambda: listed(pane, "t7   Two retries."))


async def test_new_and_recalled_summaries_light_up_briefly(
    run_chat: ChatRunner, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SCREEN, "lit", 0.3)
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        pane = await opened(chat)
        assert not pane.tree_rows.lit and pane._lit_timer is None
        engine.emit(SummaryCreated(conversation_id=UUID, summary=summary(UUID, 1, 6, 10, "Then.", title="New one")))
        await chat.until(lambda: pane.tree_rows.lit == {"s1-6"})
        await chat.until(lambda: not pane.tree_rows.lit and pane._lit_timer is None)
        engine.emit(MessageStarted(conversation_id=UUID, turn_index=7, message_id="m"))
        await chat.until(lambda: pane.tree_rows.lit == {"s1-1", "s2-1"}, "the summaries over the recalled turn 2")
        engine.emit(MessageStarted(conversation_id=UUID, turn_index=7, message_id="n"))
        await chat.until(lambda: not pane.tree_rows.lit)
        assert len(engine.asked(FetchSent)) == 1


async def test_one_line_explains_the_pane_until_it_was_used(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        pane = await opened(chat)
        assert pane._foot.render().plain == memory_pane.EXPLANATION
        await chat.press("enter")
        await chat.until(lambda: not pane._foot.display)
    async with run_chat(calls_engine(), resume="00000001", size=(120, 40)) as chat:
        pane = await opened(chat)
        assert not pane._foot.display


async def test_the_state_of_the_memory_is_read(run_chat: ChatRunner, engine: FakeEngine) -> None:
    engine.memory.due = MemoryDue(next_turns=2, next_chars=4_000)
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        await opened(chat)
        await chat.press("i")
        await chat.until(lambda: isinstance(chat.app.screen, DetailScreen) and chat.app.screen.sections)
        assert isinstance(chat.app.screen, DetailScreen)
        found = {section.title: section.text for section in chat.app.screen.sections}
        assert found["Next"] == "next L1 in 2 turns or 4k characters"
        assert "L2: 1" in found["Levels"]


async def test_the_newest_is_in_view_and_followed_while_an_opened_line_stays(
    run_chat: ChatRunner, engine: FakeEngine
) -> None:
    many = [summary(UUID, 1, n, n, "So.", title=f"Summary {n}") for n in range(1, 61)]
    engine.memory.summaries[UUID] = many
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        pane = await opened(chat)
        await chat.until(lambda: listed(pane, "Summary 60") and not listed(pane, "Summary 1 "))
        made = summary(UUID, 1, 61, 61, "So.", title="Summary 61")
        engine.emit(SummaryCreated(conversation_id=UUID, summary=made))
        await chat.until(lambda: listed(pane, "Summary 61"))
        top = pane.tree_rows.scroll_y
        await chat.press("up", "enter")
        await chat.until(lambda: pane.tree_rows.virtual_size.height > 61)
        assert pane.tree_rows.scroll_y == top
        await chat.press("end")
        await chat.until(lambda: listed(pane, "Summary 61"))


async def test_merged_topics_light_up_for_a_moment(
    run_chat: ChatRunner, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SCREEN, "lit", 0.3)
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        pane = await opened(chat)
        winner, loser = pane.topics.topics[:2]
        engine.emit(TopicsChanged(conversation_id=UUID, topics=[]))
        await chat.until(lambda: pane.topics.loaded)
        assert not pane.topic_rows.lit, "nothing was merged"
        engine.memory.merges.append((loser.uuid, winner.uuid))
        engine.emit(TopicsChanged(conversation_id=UUID, topics=[winner]))
        await chat.until(lambda: f"topics merged into {winner.name}" in str(pane.query_one(Foot).render()))
        assert pane.topic_rows.lit == {winner.uuid}
        await chat.until(lambda: not pane.topic_rows.lit and "merged" not in str(pane.query_one(Foot).render()))


async def test_the_pane_with_the_keyboard_shows_it_and_the_way_back(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        pane = await opened(chat)
        title = next(one for one in chat.app.query(PaneTitle) if one.pane is pane)
        other = next(one for one in chat.app.query(PaneTitle) if one.pane is not pane)
        assert title.render().plain.endswith(" esc back ")
        assert title.render().cell_length == title.size.width
        assert all("reverse" in str(span.style) for span in title.render().spans)
        assert "esc" not in other.render().plain and other.render().plain.endswith("──")
        await chat.until(lambda: chat.app.query_one(StatusLine).render().plain.endswith("esc back to prompt"))
        await chat.press("escape")
        assert chat.app.chat.prompt.has_focus
        await chat.until(lambda: "/ commands" in chat.app.query_one(StatusLine).render().plain)
        assert "esc" not in title.render().plain


@pytest.mark.parametrize(("columns", "last"), [(160, "v sent"), (120, "[2] topics")])
async def test_all_keys_are_named_where_there_is_room(
    run_chat: ChatRunner, engine: FakeEngine, columns: int, last: str
) -> None:
    async with run_chat(engine, resume="00000001", size=(columns, 40)) as chat:
        pane = await opened(chat)
        await chat.until(lambda: pane.query_one(KeyBar).render().plain.endswith(last))


async def test_enter_shows_what_was_recalled_in_place(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        await chat.until(lambda: chat.loaded)
        places = [RecalledPlace(turn_index=2, turns=1)]
        event = MessageStarted(
            conversation_id=UUID, turn_index=12, message_id="m", recalled=msgspec.json.encode(places).decode()
        )
        engine.emit(event)
        await chat.until(lambda: "recalled 1 turn of this conversation" in screen_text(chat))
        transcript = chat.app.chat.transcript
        transcript.cursor.block = next(block for block in transcript.document.blocks if block.kind == "recall")
        transcript.focus()
        await chat.press("enter")
        await chat.until(lambda: "▎ turn 2" in screen_text(chat))
        assert [request.turn_index for request in engine.asked(FetchSent)][-1] == 12
