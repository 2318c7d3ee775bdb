"""What was sent: its lines without a screen, and the screen by its keys."""

from __future__ import annotations

import msgspec
import pytest

from ragforge_tui.shared.context_choices import compared
from ragforge_tui.shared.records import ContextItem, ContextRecord, ContextSection
from ragforge_tui.shared.requests.memory import ChooseContext, FetchNext, FetchSent, SentRequest
from ragforge_tui.tui.dialogs.text_viewer import DetailScreen
from ragforge_tui.tui.memory.context_screen import (
    CHANGED,
    ContextScreen,
    bar,
    headline,
    lines_of,
    percent,
    source_of,
    warnings,
)
from ragforge_tui.tui.memory.memory_pane import MemoryPane
from tests.support.calls_scene import calls_engine
from tests.support.fake_engine import CLOCK, FakeEngine
from tests.tui.conftest import Chat, ChatRunner


def record(**changes: object) -> ContextRecord:
    sections = [
        ContextSection(name="system", title="Instructions", tokens=500, items=[ContextItem(kind="system", text="Be.")]),
        ContextSection(name="code", title="Code"),
        ContextSection(name="queries", title="Questions", budget=100, tokens=0, left_out=3),
    ]
    values: dict[str, object] = {"conversation_id": "c", "turn_index": 3, "model": "m", "created_at": CLOCK}
    return ContextRecord(**{**values, "tokens": 500, "budget": 1000, "sections": sections, **changes})  # type: ignore[arg-type]


def test_sections_have_their_share_of_what_was_sent() -> None:
    lines = lines_of(record(), set())
    assert [(line.key, line.share, line.open) for line in lines] == [
        ("s0", 1.0, True),
        ("s0.0", 0.0, None),
        ("s2", 0.0, None),
    ]
    assert [line.key for line in lines_of(record(), {"s0"})] == ["s0", "s2"]
    half = ContextSection(name="tools", title="Tools", tokens=500)
    half.items = [ContextItem(kind="tools", text="{}")]
    shared = lines_of(record(sections=[*record().sections, half]), {"s0", "s3"})
    assert [line.share for line in shared] == [0.5, 0.0, 0.5]


def test_warnings_on_a_request() -> None:
    late = "Code was not searched: that took longer than 150 ms."
    assert warnings(record()) == ""
    assert warnings(record(missing=[late])) == late
    assert warnings(record(missing=[late], verified=False)) == f"{CHANGED} {late}"


@pytest.mark.parametrize(("share", "filled"), [(0.0, 0), (0.001, 1), (0.5, 4), (1.0, 8), (500.0, 8)])
def test_a_bar(share: float, filled: int) -> None:
    assert bar(share) == ("▰" * filled, "▱" * (8 - filled))


def test_percents() -> None:
    assert [percent(share) for share in (0.0, 0.001, 0.126)] == ["0%", "<1%", "13%"]


def test_headlines() -> None:
    assert headline(SentRequest(record=record(), number=1, count=1, last_turn=9)) == (
        "Turn 3 of 9 · 500 tokens, 500 of 1k for the past · hybrid · m"
    )
    assert "request 2 of 3" in headline(SentRequest(record=record(whole=True), number=2, count=3, replies=2))


def test_sources_of_an_item() -> None:
    assert source_of(ContextItem(kind="turn", turn_index=4), "own") == ("own", 4, 4)
    assert source_of(ContextItem(kind="summary", turn_index=4, last_turn=9, conversation_id="x"), "own") == ("x", 4, 9)
    assert source_of(ContextItem(kind="file"), "own") is None


@pytest.fixture
def engine() -> FakeEngine:
    """Twelve turns."""
    return calls_engine()


async def opened(chat: Chat, command: str = "/context 7") -> ContextScreen:
    """The screen, filled."""
    await chat.until(lambda: chat.app.chat.session.state.conversation)
    await chat.type(command)
    await chat.until(lambda: isinstance(chat.app.screen, ContextScreen))
    screen = chat.app.screen
    assert isinstance(screen, ContextScreen)
    await chat.until(lambda: screen.rows.has_focus and screen._keys._hints)
    return screen


def shown(screen: ContextScreen) -> str:
    return "\n".join(screen.rows.render_line(y).text.rstrip() for y in range(screen.rows.size.height))


async def test_every_item_with_its_source(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        screen = await opened(chat)
        text = shown(screen)
        assert "Earlier turns that may matter" in text
        assert "1.2k of 3k" in text
        assert "recalled turn t9 · Index allocation · 2026-11-03" in text
        assert "120 chars cut" in text
        assert "\x1b" not in text
        assert str(screen._title.content).startswith("Turn 7 of 12 · 1.2k tokens, 1.2k of 25k for the past")
        await chat.press("escape")
        await chat.until(lambda: chat.app.chat.prompt.has_focus)


async def test_an_item_is_read_as_it_was_sent(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001") as chat:
        screen = await opened(chat)
        await chat.press("down", "enter")
        await chat.until(lambda: isinstance(chat.app.screen, DetailScreen) and chat.app.screen.sections)
        assert isinstance(chat.app.screen, DetailScreen)
        assert chat.app.screen.sections[0].text == "Be ✶."
        await chat.press("escape")
        await chat.until(lambda: chat.app.screen is screen and screen.rows.has_focus)
        await chat.press("down", "down", "enter")
        await chat.until(lambda: isinstance(chat.app.screen, DetailScreen) and chat.app.screen.sections)
        await chat.press("g")
        await chat.until(lambda: list(chat.app.chat.transcript.cursor.turns) == [2])


async def test_the_source_may_be_another_conversation(run_chat: ChatRunner, engine: FakeEngine) -> None:
    elsewhere = engine.conversations["00000002-0000-4000-8000-000000000000"]
    async with run_chat(engine, resume="00000001") as chat:
        screen = await opened(chat)
        await chat.press("g")
        await chat.until(lambda: "does not come from a turn" in screen._keys.render().plain)
        await chat.press("end", "g")
        await chat.until(lambda: chat.app.chat.session.state.conversation_id == elsewhere.uuid)


async def test_turn_by_turn(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001") as chat:
        screen = await opened(chat, "/context")
        assert [(r.turn_index, r.number) for r in engine.asked(FetchSent)] == [(0, 0)]
        assert "turn 13" not in screen._keys.render().plain
        await chat.press("N")
        await chat.until(lambda: "Turn 11 of 12" in str(screen._title.content))
        await chat.press("n")
        await chat.until(lambda: "Turn 12 of 12" in str(screen._title.content))
        await chat.press("n")
        await chat.until(lambda: "Next request, not sent yet" in str(screen._title.content))
        await chat.press("n", "N")
        await chat.until(lambda: "Turn 12 of 12" in str(screen._title.content))


async def test_items_are_left_out_and_pinned(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        screen = await opened(chat)
        await chat.press("p")
        await chat.until(lambda: "Choose one of the items" in screen._keys.render().plain)
        await chat.press("end", "p")
        await chat.until(lambda: "◆ recalled turn t9" in shown(screen))
        await chat.press("x")
        await chat.until(lambda: "× recalled turn t9" in shown(screen))
        await chat.press("x")
        await chat.until(lambda: "×" not in shown(screen))
        assert [(asked.item.turn_index, asked.choice) for asked in engine.asked(ChooseContext)] == [
            (9, "pin"),
            (9, "exclude"),
            (9, "usual"),
        ]


async def test_a_request_is_compared_with_the_one_before(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        screen = await opened(chat, "/context next And the harbour?")
        await chat.until(lambda: "Next request" in str(screen._title.content))
        assert [asked.text for asked in engine.asked(FetchNext)] == ["And the harbour?"]
        await chat.press("equals_sign")
        await chat.until(lambda: "tokens since turn 12" in str(screen._title.content))
        assert "nothing came in or went out" in shown(screen)
        await chat.press("equals_sign")
        await chat.until(lambda: "recalled turn t9" in shown(screen))


def test_what_came_in_and_what_went_out() -> None:
    def with_items(*items: ContextItem) -> ContextRecord:
        section = ContextSection(name="recalled", title="Recalled", tokens=0, items=list(items))
        return record(sections=[section])

    kept = ContextItem(kind="turn", turn_index=3, tokens=9, text="harbour")
    gone = ContextItem(kind="finding", turn_index=2, tokens=5, text="[t2] decision: Sqlite it is")
    longer = msgspec.structs.replace(kept, tokens=12)
    come = ContextItem(kind="summary", source="s1", tokens=7)
    found = compared(with_items(kept, gone), with_items(longer, come))
    assert [(section.title, section.tokens, section.items) for section in found.sections] == [
        ("Came in", 7, [come]),
        ("Went out", 5, [gone]),
        ("Sent in another length", 12, [longer]),
    ]


async def test_request_by_request(run_chat: ChatRunner, engine: FakeEngine) -> None:
    engine.memory.requests = 3
    async with run_chat(engine, resume="00000001") as chat:
        screen = await opened(chat)
        assert "request 3 of 3" in str(screen._title.content)
        for key, which in (("right_square_bracket", 1), ("left_square_bracket", 3), ("left_square_bracket", 2)):
            await chat.press(key)
            await chat.until(lambda which=which: f"request {which} of 3" in str(screen._title.content))


async def test_sections_fold(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001") as chat:
        screen = await opened(chat)
        await chat.press("enter")
        assert "persona" not in shown(screen)
        await chat.press("right", "down")
        assert "persona" in shown(screen)
        await chat.press("left", "left")
        assert "persona" not in shown(screen)


async def test_a_turn_nothing_was_kept_of_is_reported_and_passed_by(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001") as chat:
        screen = await opened(chat, "/context 99")
        assert "has no turn 99" in shown(screen)
        await chat.press("N")
        await chat.until(lambda: "Turn 12 of 12" in str(screen._title.content))


async def test_a_source_that_changed_is_reported(run_chat: ChatRunner, engine: FakeEngine) -> None:
    engine.memory.verified = False
    async with run_chat(engine, resume="00000001") as chat:
        screen = await opened(chat)
        assert str(screen._note.content) == CHANGED


async def test_it_opens_from_the_memory_pane(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000001", size=(120, 40)) as chat:
        await chat.until(lambda: chat.app.chat.session.state.conversation)
        await chat.press("f3")
        await chat.until(lambda: (pane := chat.app.chat.sidebar.pane("memory")) is not None and pane.has_focus_within)
        pane = chat.app.chat.sidebar.pane("memory")
        assert isinstance(pane, MemoryPane)
        await chat.until(lambda: pane.tree_rows.chosen)
        await chat.press("v")
        await chat.until(lambda: isinstance(chat.app.screen, ContextScreen))
        await chat.until(lambda: [r.turn_index for r in engine.asked(FetchSent)] == [5])
