"""The first screen: its rows at every size, what it leads to, and when it gives way to the chat."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from rich.cells import cell_len

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.events import GraphChanged, ModelChanged
from ragforge_tui.shared.past_records import PastChoice
from ragforge_tui.shared.requests.past import ListKept
from ragforge_tui.shared.requests.sessions import ListConversations
from ragforge_tui.shared.requests.turns import OpenConversation
from ragforge_tui.tui.drawing.palette import palette_of
from ragforge_tui.tui.features import Features
from ragforge_tui.tui.folder import folder_text, short_folder
from ragforge_tui.tui.memory.remembered_screen import RememberedScreen
from ragforge_tui.tui.welcome.welcome import WelcomeContents, welcome_rows
from tests.support.fake_engine import CLOCK, FakeEngine, conversation, turn
from tests.support.fake_memory import HOSTILE
from tests.support.fake_past import KEPT
from tests.tui.conftest import Chat, ChatRunner

DARK = palette_of({}, dark=True, ansi=False)
PLAIN = palette_of({"plain": "yes"}, dark=True, ansi=False)
LOCAL = ModelChanged(phase="ready", name="qwen3", destination="this machine")
TIPS = (("@name", "points at a file", ""), ("F3", "shows the memory", "tree")) * 2
FULL = WelcomeContents(
    version="0.1.0",
    glyph="✶",
    greeting="✶ The graph is awake.",
    folder="/home/ada/work/tabulate",
    branch="main",
    model=LOCAL,
    sessions=tuple(
        conversation(n, f"Session {n} {'long ' * n * 9}", next_turn=n + 1, updated_at=CLOCK - timedelta(hours=n * 20))
        for n in (1, 2, 3)
    ),
    tips=TIPS,
    continue_key="Ctrl+L",
    now=CLOCK,
)


def texts(shown: WelcomeContents, width: int = 76, height: int = 30) -> list[str]:
    return ["".join(text for text, _ in row.runs) for row in welcome_rows(shown, width, height, DARK)]


def sessions_engine(count: int = 4) -> FakeEngine:
    """Sessions of the folder, the newest first, and one of another folder."""
    engine = FakeEngine()
    for number in range(1, count + 1):
        owner = conversation(number, f"Session {number}", updated_at=CLOCK - timedelta(days=number))
        engine.store(owner, turn(owner, 1, f"question {number}", "answer"))
        engine.conversations[owner.uuid].updated_at = CLOCK - timedelta(days=number)
    away = conversation(9, "Elsewhere", workspace="/elsewhere")
    engine.store(away, turn(away, 1, "away", "answer"))
    engine.conversations[away.uuid].updated_at = CLOCK - timedelta(hours=30)
    return engine


def screen(chat: Chat) -> str:
    return "\n".join(strip.text for strip in chat.app.screen._compositor.render_strips())


# -- rows


def test_everything_is_on_it() -> None:
    rows = texts(FULL)
    assert rows[0].startswith("·∙•● ragforge") and rows[0].endswith("0.1.0")
    assert rows[2] == "✶ The graph is awake."
    assert rows[4:6] == ["folder  /home/ada/work/tabulate (main)", "model   qwen3 · nothing leaves this machine"]
    assert rows[7] == "continue  Ctrl+L the newest · 1, 2 or 3, then Enter, for one of these"
    assert rows[8].startswith("1  Session 1 long") and rows[8].split()[-4:] == ["1", "turn", "20", "h"]
    assert rows[9].split()[-4:] == ["2", "turns", "1", "d"]
    assert rows[-1] == "F3     shows the memory"


@pytest.mark.parametrize("width", [8, 20, 40, 76])
@pytest.mark.parametrize("height", [0, 1, 5, 9, 12, 15, 18, 30])
@pytest.mark.parametrize("palette", [DARK, PLAIN])
def test_it_fits_every_size(width: int, height: int, palette: object) -> None:
    rows = welcome_rows(FULL, width, height, PLAIN if palette is PLAIN else DARK)
    assert len(rows) <= height
    assert max((cell_len("".join(text for text, _ in row.runs)) for row in rows), default=0) <= width
    if height >= 6 and width >= 20:
        assert any("Session 1" in "".join(text for text, _ in row.runs) for row in rows)


def test_less_height_costs_tips_before_gaps_and_tips_before_sessions() -> None:
    tips = [sum("F3" in row or "@name" in row for row in texts(FULL, height=height)) for height in (16, 14, 11, 8)]
    assert tips == [4, 2, 2, 0]
    assert "" in texts(FULL, height=14)
    assert sum("Session" in row for row in texts(FULL, height=7)) == 2


@pytest.mark.parametrize("width", [76, 40])
def test_a_branch_is_told_from_its_conversation(width: int) -> None:
    own = conversation(1, "Retries double turns", next_turn=4, updated_at=CLOCK)
    branches = [
        msgspec.structs.replace(own, uuid=f"{turn}", branch_of=own.uuid, branch_turn=turn or None) for turn in (2, 0)
    ]
    rows = texts(msgspec.structs.replace(FULL, sessions=(own, *branches)), width)
    of_it, from_the_start, plain = (next(row for row in rows if row.startswith(f"{n}  ")) for n in (2, 3, 1))
    assert "Retries" in of_it and "branch from turn 2" in of_it
    assert "branch from the start" in from_the_start and "branch" not in plain
    assert max(map(len, rows)) <= width


def test_nothing_moves_when_the_engine_answers() -> None:
    early = msgspec.structs.replace(FULL, greeting="", branch="", model=None, sessions=None)
    none = msgspec.structs.replace(FULL, sessions=())
    assert len(texts(early)) == len(texts(FULL)) == len(texts(none))
    assert texts(early)[-4:] == texts(FULL)[-4:]
    assert texts(early)[5] == "model   waiting for the engine …"
    assert "your first message starts one" in "".join(texts(none))


def test_without_a_model_it_tells_how_to_get_one() -> None:
    offline = ModelChanged(phase="ready", name="offline", destination="this machine", offline=True)
    rows = texts(msgspec.structs.replace(FULL, model=offline))
    assert rows[5] == "model   offline: answers by fixed rules from memory and code"
    assert "/connect" in rows[6] and "ANTHROPIC_API_KEY" in rows[7]
    failed = ModelChanged(phase="failed", name="gpt-9")
    assert "gpt-9 cannot be used · /model" in texts(msgspec.structs.replace(FULL, model=failed))[5]


def test_foreign_text_stays_text() -> None:
    hostile = msgspec.structs.replace(
        FULL,
        greeting=HOSTILE,
        branch=HOSTILE,
        folder=f"/w/{HOSTILE}",
        model=ModelChanged(phase="ready", name=HOSTILE, destination=HOSTILE),
        sessions=(conversation(1, HOSTILE),),
    )
    assert "\x1b" not in "".join(texts(hostile)) and "\x07" not in "".join(texts(hostile))


# -- the folder


def test_a_folder_is_short_and_its_name_stays_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert [short_folder(path) for path in ("/home/ada", "/home/ada/x", "/home/adam")] == ["~", "~/x", "/home/adam"]
    path = "/home/ada/work/tabulate"
    assert [folder_text(path, "feature/bytes", width) for width in (40, 30, 24, 18, 8, 5)] == [
        "~/work/tabulate (feature/bytes)",
        "…/tabulate (feature/bytes)",
        "tabulate (feature/bytes)",
        "tabulate (feature…",
        "tabulate",
        "tabu…",
    ]


async def test_the_folder_is_always_visible(run_chat: ChatRunner) -> None:
    engine = sessions_engine()
    async with run_chat(engine, continue_last=True) as chat:
        await chat.until(lambda: chat.app.chat.session.state.conversation)
        state = chat.app.chat.session.state
        state.folder, state.branch = "/home/ada/work/tabulate", "main"
        assert state.conversation is not None
        state.conversation.title = "How tabulate decides the type of a column, and what follows from it"
        chat.app.chat.session.changed()
        await chat.until(lambda: "tabulate (main)" in screen(chat).splitlines()[0])
        assert "How tabulate decid" in screen(chat).splitlines()[0]
        await chat.pilot.resize_terminal(60, 20)
        await chat.until(lambda: "tabulate" in screen(chat).splitlines()[0].split("How tabulate")[1])


async def test_branch_and_path_give_way_before_persona_and_model(run_chat: ChatRunner) -> None:
    async with run_chat(sessions_engine()) as chat:
        await chat.ready()
        state = chat.app.chat.session.state
        state.folder, state.branch = "/home/ada/scratch", "master"
        state.model = ModelChanged(phase="ready", name="ada/small")
        chat.app.chat.session.changed()
        for width, shown in (
            (90, "/home/ada/scratch (master) · ✶ Ragnarök · ada/small"),
            (60, "scratch (ma… · ✶ Ragnarök · ada/small"),
            (56, "scratch · ✶ Ragnarök · ada/small"),
            (44, "scratch · ✶ Ragnarök"),
        ):
            await chat.pilot.resize_terminal(width, 20)
            await chat.until(lambda: f" {shown} ● " in screen(chat).splitlines()[0])  # noqa: B023


def test_what_the_folder_keeps_comes_last_and_moves_nothing() -> None:
    without, shown = texts(FULL), texts(msgspec.structs.replace(FULL, kept=tuple(KEPT)))
    assert shown[: len(without)] == without
    assert [row[:14].rstrip() for row in shown[len(without) + 1 :]] == [
        "open    4  nat",
        "        5  The",
        "keeps   2 wish",
    ]
    assert shown[-2].endswith("t1 · 2 Nov")
    assert shown[-1] == "keeps   2 wishes · 1 decision  /memory"
    assert "\x1b" not in "".join(shown)
    many = tuple(msgspec.structs.replace(KEPT[0], uuid=str(n)) for n in range(9))
    rows = texts(msgspec.structs.replace(FULL, kept=many))
    assert rows[-1].startswith("keeps   6 more open points")
    assert len(texts(msgspec.structs.replace(FULL, kept=many), height=12)) <= 12


# -- in the chat


async def test_the_newest_session_continues_with_one_key(run_chat: ChatRunner) -> None:
    engine = sessions_engine()
    async with run_chat(engine) as chat:
        await chat.until(lambda: "Session 3" in screen(chat))
        assert "Session 4" not in screen(chat) and "Elsewhere" not in screen(chat)
        chat.app.chat.prompt.insert("half a thought")
        await chat.press("ctrl+l")
        await chat.until(lambda: chat.app.chat.session.state.conversation_id == conversation(1).uuid)
        await chat.until(lambda: not chat.app.chat.welcome.display)
        assert chat.app.chat.prompt.text == "half a thought"
        await chat.press("ctrl+l")
        await chat.until(lambda: chat.app.chat.status_line.hint == "this is the newest conversation already")
        assert len(engine.asked(OpenConversation)) == 1


async def test_the_key_waits_for_the_graph(run_chat: ChatRunner) -> None:
    engine = sessions_engine()
    engine.graph = GraphChanged(phase="starting", name="embedded")
    async with run_chat(engine) as chat:
        await chat.until(lambda: chat.app.chat.session.state.connection == "up")
        await chat.press("ctrl+l")
        await chat.until(lambda: chat.app.chat.session.state.opening)
        engine.emit(GraphChanged(phase="ready", name="embedded"))
        await chat.until(lambda: chat.app.chat.session.state.conversation_id == conversation(1).uuid)


@pytest.mark.parametrize(("typed", "number"), [("2", 2), (" 3 ", 3)])
async def test_a_number_continues_another(run_chat: ChatRunner, typed: str, number: int) -> None:
    async with run_chat(sessions_engine()) as chat:
        await chat.until(lambda: "Session 3" in screen(chat))
        await chat.type(typed)
        await chat.until(lambda: chat.app.chat.session.state.conversation_id == conversation(number).uuid)
        await chat.type("2")
        await chat.until(lambda: "You said: 2" in screen(chat))


async def test_a_number_opens_an_open_point_at_its_turn(run_chat: ChatRunner) -> None:
    engine = sessions_engine(2)
    engine.past.kept = KEPT
    async with run_chat(engine, size=(100, 40)) as chat:
        await chat.until(lambda: "naturaltime still raises" in screen(chat))
        assert engine.asked(ListKept)[0].choice == PastChoice(workspace="/w", status="any")
        await chat.type("4")
        await chat.until(lambda: chat.app.chat.session.state.conversation_id == conversation(2).uuid)
        await chat.until(lambda: list(chat.app.chat.transcript.cursor.turns) == [1])


async def test_the_line_of_what_is_kept_opens_its_list(run_chat: ChatRunner) -> None:
    engine = sessions_engine(2)
    engine.past.kept = KEPT
    async with run_chat(engine, size=(100, 40)) as chat:
        await chat.until(lambda: "2 wishes" in screen(chat))
        row = next(y for y, line in enumerate(screen(chat).splitlines()) if "2 wishes" in line)
        await chat.pilot.click(offset=(24, row))
        await chat.until(lambda: isinstance(chat.app.screen, RememberedScreen))


async def test_another_number_is_a_message(run_chat: ChatRunner) -> None:
    engine = sessions_engine(1)
    async with run_chat(engine) as chat:
        await chat.until(lambda: "Session 1" in screen(chat))
        await chat.type("2")
        await chat.until(lambda: chat.app.chat.session.state.conversation)
        assert not engine.asked(OpenConversation)


async def test_a_click_continues_one(run_chat: ChatRunner) -> None:
    async with run_chat(sessions_engine()) as chat:
        await chat.until(lambda: "Session 3" in screen(chat))
        row = next(y for y, line in enumerate(screen(chat).splitlines()) if "Session 2" in line)
        await chat.pilot.click(offset=(10, row))
        await chat.until(lambda: chat.app.chat.session.state.conversation_id == conversation(2).uuid)


async def test_continue_by_number_has_an_end(run_chat: ChatRunner) -> None:
    async with run_chat(sessions_engine(2)) as chat:
        await chat.ready()
        await chat.type("/continue 7")
        await chat.until(lambda: chat.noticed("This folder has 2 conversations."))


async def test_it_gives_way_to_the_first_message_and_returns_with_a_new_conversation(run_chat: ChatRunner) -> None:
    engine = sessions_engine()
    async with run_chat(engine) as chat:
        await chat.ready()
        assert chat.app.chat.welcome.display
        await chat.type("hello")
        await chat.until(lambda: chat.app.chat.session.state.conversation and not chat.app.chat.welcome.display)
        await chat.until(lambda: "You said: hello" in screen(chat))
        asked = len(engine.asked(ListConversations))
        await chat.press("ctrl+n")
        await chat.until(lambda: chat.app.chat.welcome.display and len(engine.asked(ListConversations)) > asked)


async def test_notices_stand_below_it(run_chat: ChatRunner) -> None:
    async with run_chat(sessions_engine()) as chat:
        await chat.ready()
        chat.app.chat.session.notice("The disk is full.", "warning")
        await chat.until(lambda: "The disk is full." in screen(chat))
        assert "ragforge  the chat that remembers" in screen(chat)


async def test_sessions_that_do_not_come_are_no_notice(run_chat: ChatRunner) -> None:
    engine = sessions_engine()
    engine.failures[ListConversations] = RagforgeError("The graph is away.")
    async with run_chat(engine) as chat:
        await chat.until(lambda: engine.asked(ListConversations))
        await chat.pilot.pause()
        assert chat.notices == []
        assert chat.app.chat.welcome.contents.sessions is None


async def test_used_features_are_noted(run_chat: ChatRunner, tmp_path: Path) -> None:
    async with run_chat(sessions_engine(), size=(120, 40)) as chat:
        await chat.ready()
        await chat.press("f3")
        await chat.until(lambda: "tree" in chat.app.chat.features.used)
        await chat.press("escape")
        await chat.type("look at @calc.py")
        await chat.until(lambda: "@" in chat.app.chat.features.used)
    assert {"tree", "@"} <= Features(tmp_path).used
    assert Features(tmp_path).starts == 1
