"""Text of all scripts keeps lines in their columns, in every place it can stand."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color

from ragforge_tui.tui.terminal import AgreedWidths, agreed
from ragforge_tui.tui.widgets.choice_list import Choice, ChoiceList
from tests.support.fake_engine import FakeEngine, conversation, turn
from tests.tui.conftest import ChatRunner

HOSTILE = "[b]x[/] \x1b[31mred\x1b]0;t\x07 مرحبا \u202eabc\u202c e\u0301 日本語 👍🏽 👩‍👩‍👧 ❤️ 1️⃣ a\u200bb \x00 \ud800"


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("plain é 日本", "plain é 日本"),
        ("👍🏽!", "👍!"),
        ("👩‍👩‍👧!", "👩!"),
        ("❤️!", "❤ !"),
        ("1️⃣!", "1 !"),
        ("🇫🇷!", "🇫🇷!"),
        ("e\u0301", "e\u0301"),
    ],
)
def test_drawn_as_wide_as_it_was_counted(text: str, drawn: str) -> None:
    assert agreed(text) == drawn
    assert cell_len(drawn) == cell_len(text)
    if "🇫🇷" not in drawn:
        assert sum(cell_len(sign) for sign in drawn) == cell_len(drawn)
    assert AgreedWidths().apply([Segment(text)], Color.parse("black"))[0].text == drawn


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 40)])
async def test_no_line_is_too_wide_or_too_narrow(run_chat: ChatRunner, size: tuple[int, int]) -> None:
    engine = FakeEngine()
    text = HOSTILE.encode("utf-8", "replace").decode()
    owner = engine.store(conversation(1, text), *(turn(conversation(1), index, text, text * 9) for index in (1, 2)))
    async with run_chat(engine, size=size, continue_last=True) as chat:
        await chat.until(lambda: chat.app.chat.session.state.conversation_id == owner.uuid)
        chat.app.chat.prompt.insert(f"{text} {text}")
        await chat.pilot.pause()
        for strip in chat.app.screen._compositor.render_strips():
            drawn = "".join(segment.text for segment in strip)
            assert cell_len(drawn) == size[0]
            assert not {"\x1b", "\x00", "\x07", "\u202e"} & set(drawn)


async def test_rows_of_a_list_are_as_wide_as_the_list(run_chat: ChatRunner) -> None:
    text = HOSTILE.encode("utf-8", "replace").decode()
    async with run_chat() as chat:
        rows = ChoiceList(detail_right=True)
        await chat.app.mount(rows)
        rows.show([Choice("a", text, text, heading=text), Choice("b", "plain", "detail")])
        await chat.pilot.pause()
        for line in rows.render().plain.split("\n")[1:]:
            assert cell_len(line) <= rows.size.width
