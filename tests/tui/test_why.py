"""/why: which recalled items an answer used, and the way to their turns."""

from __future__ import annotations

from ragforge_tui.shared.requests.memory import FetchWhy, RecalledUse
from ragforge_tui.tui.widgets.key_bar import KeyBar
from ragforge_tui.tui.widgets.list_screen import Picker
from tests.support.fake_engine import FakeEngine, conversation, turn
from tests.support.hostile import HOSTILE
from tests.tui.conftest import ChatRunner


def engine() -> FakeEngine:
    fake = FakeEngine()
    here, there = conversation(1, "Here"), conversation(2, "Labels")
    fake.store(there, *(turn(there, n, f"asked {n}", f"label {n}") for n in (1, 2, 3)))
    fake.store(here, turn(here, 1, "first?", "the beginning"), turn(here, 2, "wide?", "88."))
    fake.memory.uses = [
        RecalledUse(kind="turn", text="hello", turn_index=1, tokens=7),
        RecalledUse(kind="finding", text="- Answer briefly.", turn_index=1, tokens=5, always=True),
        RecalledUse(
            kind="summary",
            text=f"88 columns {HOSTILE}",
            conversation_id=there.uuid,
            title="Labels",
            turn_index=2,
            last_turn=3,
            used=True,
            reason="shares 88",
        ),
    ]
    return fake


async def test_used_items_come_first_and_lead_to_their_turns(run_chat: ChatRunner) -> None:
    fake = engine()
    async with run_chat(fake, continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        await chat.type("/why 2")
        await chat.until(lambda: isinstance(chat.app.screen, Picker) and chat.app.screen._rows)
        assert isinstance(chat.app.screen, Picker)
        rows = chat.app.screen._rows
        assert [(row.lead, row.heading, row.detail) for row in rows] == [
            ("● ", "Used by the answer of t2 (1)", "Labels · t2-t3 · shares 88"),
            ("○ ", "Your wishes, sent with every session (1)", "t1 · 5 tokens"),
            ("○ ", "Sent for nothing (1)", "t1 · 7 tokens"),
        ]
        assert [request.turn_index for request in fake.asked(FetchWhy)] == [2]
        await chat.press("enter")
        await chat.until(lambda: chat.app.chat.session.state.conversation_id.startswith("00000002"))


async def test_nothing_recalled_and_no_such_turn(run_chat: ChatRunner) -> None:
    fake = engine()
    fake.memory.uses = []
    async with run_chat(fake, continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        await chat.type("/why")
        await chat.until(lambda: isinstance(chat.app.screen, Picker))
        await chat.until(lambda: "nothing was recalled" in str(chat.app.screen.query_one(KeyBar).render()))
        await chat.press("escape")
        await chat.type("/why 99")
        await chat.until(lambda: isinstance(chat.app.screen, Picker))
        await chat.until(lambda: "of turn 99 is stored" in str(chat.app.screen.query_one(KeyBar).render()))
