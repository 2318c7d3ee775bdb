"""The list of sessions: filters, actions on the one under the cursor, preview, what other terminals do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.requests.sessions import (
    ArchiveConversation,
    DeleteConversation,
    ExportConversation,
    FollowConversations,
    ListConversations,
    PeekConversation,
    RestoreConversation,
    UpdateConversation,
)
from ragforge_tui.tui.limits import SCREEN
from ragforge_tui.tui.sessions import session_service
from ragforge_tui.tui.sessions.session_picker import SessionPicker
from ragforge_tui.tui.transcript.excerpt import Excerpt
from tests.support.fake_engine import CLOCK, FakeEngine, conversation, sessions, turn
from tests.tui.conftest import Chat, ChatRunner


@pytest.fixture
def engine() -> FakeEngine:
    """With three sessions of this folder, a branch of one, and one of another folder."""
    fake = FakeEngine()
    list(sessions(fake))
    fake.conversations[conversation(2).uuid].tags = ["db"]
    parent = conversation(3).uuid
    day = CLOCK.replace(day=1)
    fake.store(conversation(4, "Menu, shorter", updated_at=day, branch_of=parent, branch_turn=1), turn_of(4))
    fake.store(conversation(5, "Elsewhere", workspace="/else", updated_at=day), turn_of(5))
    return fake


def turn_of(number: int) -> Any:
    return turn(conversation(number), 1, "First words", "Last words")


class Picking:
    """The picker of a running chat."""

    def __init__(self, chat: Chat) -> None:
        self.chat = chat

    @property
    def screen(self) -> SessionPicker:
        assert isinstance(self.chat.app.screen, SessionPicker)
        return self.chat.app.screen

    @property
    def titles(self) -> list[str]:
        return [row.label for row in self.screen._list.rows]

    def line(self, where: str) -> str:
        """A line of the screen."""
        return str(self.screen.query_one(f"#session-{where}").render())

    @property
    def messages(self) -> str:
        """The messages in the preview."""
        return self.screen.query_one(Excerpt).text

    async def until(self, holds: Callable[[], object]) -> None:
        await self.chat.until(holds)

    async def lists(self, *titles: str) -> None:
        await self.chat.until(lambda: self.titles == list(titles), f"{titles}, but {self.titles}")


async def opened(chat: Chat) -> Picking:
    await chat.ready()
    await chat.press("ctrl+o")
    await chat.until(lambda: isinstance(chat.app.screen, SessionPicker))
    picking = Picking(chat)
    await chat.until(lambda: picking.screen._loader.loaded)
    return picking


ALL = ("Retries double turns", "Index allocation", "Café menu, in French", "Menu, shorter")


async def test_filters_and_orders(run_chat: ChatRunner, engine: FakeEngine) -> None:
    engine.conversations[conversation(1).uuid].status = "archived"
    async with run_chat(engine) as chat:
        picking = await opened(chat)
        await picking.lists(*ALL[1:])
        assert picking.screen._list.rows[2].lead == "└ from turn 1 · ✶ "
        await chat.press("alt+w")
        await picking.lists("Index allocation", "Café menu, in French", "Menu, shorter", "Elsewhere")
        assert "all folders" in picking.line("filters")
        await chat.press("alt+g")
        await picking.lists("Index allocation")
        assert "#db" in picking.line("filters")
        await chat.press("alt+g", "alt+w", "alt+o", "alt+o")
        await picking.lists("Café menu, in French", "Menu, shorter", "Index allocation")
        await chat.press("alt+s")
        await picking.lists("Retries double turns")
        assert "unarchive" in picking.line("keys")
        await chat.press("alt+s")
        await picking.lists()
        assert "no match; without the filters 3 active, 1 archived · " in picking.line("keys")
        await chat.press("alt+s", "alt+s", *"retries")
        await picking.lists()
        assert "no match; without the filters 1 archived · " in picking.line("keys")
        await chat.press(*"zzz")
        await picking.until(lambda: "no match in this folder · " in picking.line("keys"))
        await chat.press("ctrl+u", "alt+s", "alt+s")
        await picking.lists()
        await chat.press("alt+s")
        await picking.until(lambda: len(picking.titles) == 4)


async def test_rename_and_tag_in_place(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, continue_last=True) as chat:
        await chat.until(lambda: chat.app.chat.session.state.conversation_id)
        picking = await opened(chat)
        assert picking.screen._list.rows[0].badge == "(open now)"
        await chat.press("alt+r")
        line = picking.screen.query_one("#session-line", Input)
        assert line.value == "Retries double turns" and line.has_focus
        await chat.press("space", *"again", "enter")
        await picking.until(lambda: picking.titles[0] == "Retries double turns again")
        opened_one = chat.app.chat.session.state.conversation
        assert opened_one is not None and opened_one.title == "Retries double turns again"
        await chat.press("down", "alt+t")
        assert line.value == "db"
        await chat.press("space", *"ui", "alt+s", "enter")
        await picking.until(lambda: "Tags: db, ui" in picking.line("note"))
        assert engine.asked(UpdateConversation)[-1].tags == ["db", "ui"]
        await chat.press("alt+r", *"not", "escape")
        assert picking.titles[1] == "Index allocation"
        assert not line.has_focus
        await chat.press("escape")
        assert not isinstance(chat.app.screen, SessionPicker)


async def test_delete_undo_restore(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, continue_last=True) as chat:
        await chat.until(lambda: chat.app.chat.session.state.conversation_id)
        picking = await opened(chat)
        await chat.press("alt+d")
        await picking.lists(*ALL[1:])
        assert not chat.app.chat.session.state.conversation_id
        assert "alt+u undo" in picking.line("keys") and "alt+u restores it" in picking.line("note")
        await chat.press("alt+u")
        await picking.lists(*ALL)
        assert "alt+u undo" not in picking.line("keys")
        await chat.press("alt+d", "alt+s", "alt+s")
        await picking.lists(ALL[0])
        await chat.press("enter")
        assert "alt+d restores it" in picking.line("note")
        await chat.press("alt+d")
        await picking.lists()
        assert len(engine.asked(RestoreConversation)) == 2
        await chat.press("alt+s", "alt+s")
        await picking.until(lambda: len(picking.titles) == 4)
        await chat.press("alt+d", "escape")
        await chat.until(lambda: len(engine.asked(DeleteConversation)) == 3)
        await chat.type("/undo-delete")
        await chat.until(lambda: len(engine.asked(RestoreConversation)) == 3)


async def test_archive_and_private(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine) as chat:
        picking = await opened(chat)
        await chat.press("alt+p")
        await picking.until(lambda: picking.screen._list.rows[0].badge == "(private)")
        await chat.press("alt+p")
        await picking.until(lambda: picking.screen._list.rows[0].badge == "")
        await chat.press("alt+a")
        await picking.lists(*ALL[1:])
        await chat.press("alt+s", "alt+a")
        await picking.until(lambda: [one.archived for one in engine.asked(ArchiveConversation)] == [True, False])


async def test_export(run_chat: ChatRunner, engine: FakeEngine, tmp_path: Path) -> None:
    async with run_chat(engine) as chat:
        picking = await opened(chat)
        line = picking.screen.query_one("#session-line", Input)
        for name, word in (("a.md", b"# Retries"), ("a.json", b'"format"')):
            await chat.press("alt+x")
            assert line.value == "/exports/Retries-double-turns-00000001.md"
            line.value = str(tmp_path / name)
            await chat.press("enter")
            await picking.until((tmp_path / name).exists)
            await picking.until(lambda name=name: name in picking.line("note"))
            assert word in (tmp_path / name).read_bytes()
        await chat.press("alt+x")
        line.value = str(tmp_path / "a.md")
        await chat.press("enter")
        await picking.until(lambda: "already exists; it was not overwritten" in picking.line("note"))
        assert len(engine.asked(ExportConversation)) == 3


async def test_preview(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine) as chat:
        picking = await opened(chat)
        await picking.until(lambda: "first   > About Retries double turns" in picking.line("preview"))
        await chat.press("down", "down", "down")
        await picking.until(lambda: "turn 1 of Café menu" in picking.line("preview"))
        await picking.until(lambda: "last    Last words" in picking.line("preview"))
        await chat.press("tab")
        assert not picking.screen._pane.display
        asked = len(engine.asked(PeekConversation))
        await chat.press("up")
        await chat.pilot.resize_terminal(120, 40)
        await chat.pilot.pause(0.2)
        assert len(engine.asked(PeekConversation)) == asked, "hidden, it asks for nothing"
        await chat.press("tab")
        await picking.until(lambda: "you\nAbout Café" in picking.messages)
        await chat.press("down")
        await picking.until(lambda: "✶ Ragnarök\nLast words" in picking.messages)


@pytest.mark.parametrize(("size", "shown"), [((60, 20), False), ((80, 24), True), ((120, 40), True)])
async def test_room(run_chat: ChatRunner, engine: FakeEngine, size: tuple[int, int], shown: bool) -> None:
    async with run_chat(engine, size=size) as chat:
        picking = await opened(chat)
        pane, rows = picking.screen._pane, picking.screen._list
        assert pane.display is shown
        assert rows.size.height >= 7
        if shown:
            beside = pane.region.x > rows.region.x
            assert beside is (size[0] >= 110)


async def test_changes_in_other_terminals_appear(
    run_chat: ChatRunner, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SCREEN, "follow", 0.3)
    async with run_chat(engine) as chat:
        picking = await opened(chat)
        await chat.press("down")
        drawn: list[object] = []
        show = picking.screen._list.show
        monkeypatch.setattr(picking.screen._list, "show", lambda *a, **k: (drawn.append(a), show(*a, **k)))
        await picking.until(lambda: len(engine.asked(FollowConversations)) > 3)
        assert not drawn, "nothing changed, nothing is drawn"
        engine.store(conversation(6, "From there", updated_at=CLOCK.replace(hour=15)), turn_of(6))
        await picking.lists("From there", *ALL)
        chosen = picking.screen._list.chosen
        assert chosen is not None and chosen.label == "Index allocation"
        engine.failures[FollowConversations] = RagforgeError("The graph is away.")
        del engine.conversations[conversation(6).uuid]
        await picking.lists(*ALL)


async def test_many_come_in_two_steps(run_chat: ChatRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_service, "FIRST", 3)
    engine = FakeEngine()
    for number in range(1, 9):
        engine.store(conversation(number, f"Session {number}"), turn_of(number))
    async with run_chat(engine) as chat:
        picking = await opened(chat)
        await picking.until(lambda: len(picking.titles) == 8)
        # The first screen has asked too.
        assert [one.filter.limit for one in engine.asked(ListConversations)[-2:]] == [3, session_service.MOST]


async def test_by_mouse(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, size=(120, 40)) as chat:
        picking = await opened(chat)
        rows = picking.screen._list
        await chat.pilot.click(rows, offset=(6, 3))
        assert rows.chosen is not None and rows.chosen.label == "Index allocation"
        at = picking.line("filters").index("alt+s")
        await chat.pilot.click("#session-filters", offset=(at + 1, 0))
        await picking.lists()
        for _ in range(3):
            await chat.pilot.click("#session-filters", offset=(at + 1, 0))
        await picking.until(lambda: len(picking.titles) == 4)
        at = picking.line("keys").index("alt+p")
        await chat.pilot.click("#session-keys", offset=(at + 1, 0))
        await picking.until(lambda: engine.asked(UpdateConversation))
        await chat.pilot.click(rows, offset=(6, 3))
        await chat.pilot.click(rows, offset=(6, 3))
        await chat.until(lambda: not isinstance(chat.app.screen, SessionPicker))


async def test_an_error_is_reported_in_it(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine) as chat:
        picking = await opened(chat)
        engine.failures[ArchiveConversation] = RagforgeError("The [graph] is away.")
        await chat.press("alt+a")
        await picking.until(lambda: "The [graph] is away." in picking.line("note"))
        assert picking.titles == list(ALL)


async def test_a_graph_that_comes_late(
    run_chat: ChatRunner, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SCREEN, "follow", 0.1)
    notes: list[str] = []
    say = SessionPicker._show_message
    monkeypatch.setattr(SessionPicker, "_show_message", lambda self, text: (notes.append(str(text)), say(self, text)))
    async with run_chat(engine) as chat:
        await chat.ready()
        engine.failures[ListConversations] = RagforgeError("The graph is away.")
        await chat.press("ctrl+o")
        await chat.until(lambda: isinstance(chat.app.screen, SessionPicker))
        picking = Picking(chat)
        await picking.lists(*ALL)
        await picking.until(lambda: notes == ["The graph is away.", ""])
        engine.failures[FollowConversations] = RagforgeError("It went.")
        await picking.until(lambda: notes[2:] == ["It went.", ""])
        assert not picking.screen.query_one("#session-note").display
        await picking.lists(*ALL)
