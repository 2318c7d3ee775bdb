"""The transcript as a widget: scrolling, following, folding, paging, selecting, streaming."""

from __future__ import annotations

import asyncio

import pytest
from textual.geometry import Offset
from textual.selection import SELECT_ALL, Selection
from textual.widgets import Static

from ragforge_tui.shared.events import MessageFinished, MessageStarted, TextDelta, TurnCompleted, TurnStarted
from ragforge_tui.shared.records import Turn
from ragforge_tui.tui.transcript.markdown import fences_of
from ragforge_tui.tui.transcript.viewport import LINES_PER_BLOCK
from tests.support.waiting import stirred, until
from tests.tui.transcript.app import TranscriptApp
from tests.tui.transcript.samples import ANSWER, lines_made, plain_turns, reply, said, working_turn
from tests.tui.transcript.test_document import WHERE, chunks


async def test_a_loaded_conversation_shows_its_end_and_draws_only_that() -> None:
    app = TranscriptApp(plain_turns(300))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert app.screen_text()[-1] == "    • two"
        assert "answer 300" in "\n".join(app.screen_text())
        drawn = [block for block in app.transcript.document.blocks if block.height]
        assert len(drawn) < 40


async def test_scrolling_up_reads_every_line_in_order_and_lets_go_of_the_end() -> None:
    app = TranscriptApp(plain_turns(12))
    async with app.run_test(size=(80, 10)) as pilot:
        await pilot.pause()
        view = app.transcript
        assert view.follow
        seen: list[str] = []
        while view.scroll_y > 0:
            before = app.screen_text()
            await pilot.press("up")
            await pilot.pause()
            assert app.screen_text()[1:] == before[:-1]
            seen.append(app.screen_text()[0])
        assert not view.follow
        assert [line for line in reversed(seen) if "question" in line][:2] == ["  question 1", "  question 2"]
        await pilot.press("end")
        await pilot.pause()
        assert view.follow
        await pilot.press("home")
        await pilot.pause()
        assert app.screen_text()[2] == "  question 1"


async def test_the_end_stays_in_view_when_textual_sends_no_resize() -> None:
    app = TranscriptApp(plain_turns(12))
    async with app.run_test(size=(80, 12)) as pilot:
        await pilot.pause()
        view, compositor = app.transcript, app.screen._compositor
        end = app.screen_text()[-7:]
        view.styles.height = 7
        # A dirty widget that was not shown before makes Textual look up the new places before it lays them out.
        app.screen._clear_arrangement_cache()
        compositor.update_widgets({Static()})
        assert compositor.full_map[view].region.height == 7
        view.settle()  # For the new place, while the old size still limits scrolling.
        await until(lambda: view.size.height == 7 and app.screen_text() == end, pause=stirred)


async def test_keys_of_pagers() -> None:
    app = TranscriptApp(plain_turns(20))
    async with app.run_test(size=(80, 12)) as pilot:
        await pilot.pause()
        view = app.transcript
        await pilot.press("g", "g")
        await pilot.pause()
        assert view.scroll_y == 0
        await pilot.press("ctrl+d")
        await pilot.pause()
        assert view.scroll_y == 6
        await pilot.press("ctrl+u")
        await pilot.pause()
        assert view.scroll_y == 0
        await pilot.press("G")
        await pilot.pause()
        assert view.follow


async def test_earlier_turns_are_asked_for_once_and_keep_the_place() -> None:
    app = TranscriptApp(plain_turns(10, first=31))
    async with app.run_test(size=(80, 12)) as pilot:
        await pilot.pause()
        await pilot.press("home")
        await pilot.pause()
        assert app.wanted == [1]
        app.transcript.scroll_to(y=0)
        await pilot.pause()
        before = app.screen_text()
        assert app.asked == [(1, 31)]
        app.transcript.insert(plain_turns(30), start=1, end=31)
        await pilot.pause()
        assert app.screen_text() == before
        await pilot.press("up")
        await pilot.pause()
        assert app.screen_text()[1:] == before[:-1]
        assert app.asked == [(1, 31)]


async def test_any_turn_can_be_opened_and_what_is_between_is_asked_for() -> None:
    app = TranscriptApp(plain_turns(10, first=91))
    async with app.run_test(size=(80, 12)) as pilot:
        await pilot.pause()
        view = app.transcript
        assert not view.scroll_to_turn(40)
        view.insert(plain_turns(10, first=36), start=36, end=46)
        assert view.scroll_to_turn(40, 41)
        await pilot.pause()
        assert "question 40" in app.screen_text()[2]
        assert "▎" in app.screen_text()[1]
        assert view.turn_in_view == 40
        while not any("turns 46 to 90" in line for line in app.screen_text()):
            await pilot.press("pagedown")
        before = app.screen_text()
        assert app.asked == [(46, 76)]
        view.insert(plain_turns(30, first=46), start=46, end=76)
        await pilot.pause()
        after = app.screen_text()
        gap = next(row for row, line in enumerate(before) if "turns 46" in line)
        assert after[:gap] == before[:gap]
        # From below: what stands under the gap stays in its place.
        assert view.scroll_to_turn(91)
        await pilot.pause()
        while not any("turns 76 to 90" in line for line in app.screen_text()):
            await pilot.press("up")
        before = app.screen_text()
        assert app.asked[-1] == (76, 91)
        view.insert(plain_turns(15, first=76), start=76, end=91)
        await pilot.pause()
        gap = next(row for row, line in enumerate(before) if "turns 76" in line)
        assert app.screen_text()[gap + 1 :] == before[gap + 1 :]
        assert not view.document.gaps


async def test_blocks_opened_by_key_scroll_into_view() -> None:
    turns = plain_turns(8)
    thought = reply("answer 8", 8, reasoning="\n".join(f"thought {n}" for n in range(30)))
    app = TranscriptApp([*turns[:7], Turn(turn_index=8, messages=[said("question 8", 8), thought])])
    async with app.run_test(size=(80, 12)) as pilot:
        await pilot.pause()
        view = app.transcript
        head = next(block for block in reversed(view.document.blocks) if block.kind == "head")
        view.scroll_to(y=view.viewport.start(head) - 10)
        await pilot.pause()
        view.cursor.block = head
        await pilot.press("enter")
        await pilot.pause()
        assert any("thought 8" in line for line in app.screen_text())


async def test_streaming_follows_the_end_and_ends_like_the_record() -> None:
    app = TranscriptApp(plain_turns(20))
    async with app.run_test(size=(80, 24)) as pilot:
        view = app.transcript
        where = {**WHERE, "turn_index": 21}
        view.apply(TurnStarted(message=said("why?", 21), **where))
        view.apply(MessageStarted(message_id="a21", persona="Ragnarök", **where))
        for piece in chunks(ANSWER, 40):
            view.apply(TextDelta(message_id="a21", text=piece, **where))
            await pilot.pause(0.01)
        await until(lambda: "the rest of the code" in app.screen_text()[-1], pause=stirred)
        view.apply(MessageFinished(message=reply(ANSWER, 21), **where))
        view.apply(TurnCompleted(text=ANSWER, **where))
        await pilot.pause()
        live = app.screen_text()
        assert view.follow
        turns = [*plain_turns(20), Turn(turn_index=21, messages=[said("why?", 21), reply(ANSWER, 21)])]
        view.load(turns, first=1, last=21)
        await pilot.pause()
        assert app.screen_text() == live


async def test_the_reading_position_stays_while_text_streams() -> None:
    app = TranscriptApp(plain_turns(20))
    async with app.run_test(size=(80, 24)) as pilot:
        view = app.transcript
        where = {**WHERE, "turn_index": 21}
        view.apply(TurnStarted(message=said("why?", 21), **where))
        await pilot.pause()
        await pilot.press("pageup")
        await pilot.pause()
        before, total = app.screen_text(), view.virtual_size.height
        for piece in chunks(ANSWER, 40):
            view.apply(TextDelta(message_id="a21", text=piece, **where))
        await until(lambda: view.virtual_size.height > total + 15, pause=stirred)
        assert app.screen_text() == before
        assert not view.follow


async def test_a_resize_keeps_the_line_that_is_read() -> None:
    app = TranscriptApp([working_turn(), *plain_turns(20, first=2)])
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("home", "down", "down")
        await pilot.pause()
        top = app.screen_text()[0]
        assert top
        await pilot.resize_terminal(60, 20)
        await pilot.pause()
        assert app.screen_text()[0] == top


async def test_a_tool_opens_by_click_and_by_key() -> None:
    app = TranscriptApp([working_turn()])
    async with app.run_test(size=(80, 60)) as pilot:
        await pilot.pause()
        line = next(y for y, text in enumerate(app.screen_text()) if "● Search" in text)
        await pilot.click("Transcript", offset=(6, line))
        await pilot.pause()
        assert "│ pattern: next_turn" in app.screen_text()[line + 1]
        await pilot.click("Transcript", offset=(6, line))
        await pilot.pause()
        assert "pattern" not in "\n".join(app.screen_text())
        assert "First the index, then the retry." in "\n".join(app.screen_text()), "little reasoning is not folded"
        await pilot.press("home", "j", "j", "j", "j", "enter")
        await pilot.pause()
        assert "│ pattern: next_turn" in "\n".join(app.screen_text())


async def test_copying_gives_the_text_without_decoration() -> None:
    app = TranscriptApp([working_turn()])
    async with app.run_test(size=(50, 24)) as pilot:
        await pilot.pause()
        view = app.transcript
        text, _ = view.get_selection(SELECT_ALL) or ("", "")
        assert "The managed transaction is retried inside append_turn, but the turn's uuid is made in it:" in text
        assert "async def work(tx):\n    uuid = uuid4().hex          # a new one on every retry\n" in text
        assert "│ async" not in text
        block = view.document.blocks[1]
        at = block.serial * LINES_PER_BLOCK + block.gap
        app.screen.selections = {view: Selection(Offset(4, at), Offset(12, at))}
        await pilot.pause()
        assert view.selected_text == "Ragnarök"
        assert app.screen.get_selected_text() == "Ragnarök"
        await pilot.press("c")
        await pilot.pause()
        assert app.copied == [fences_of(ANSWER)[0].code]


PIECES = "One:\n\n```python\nx = 1\ny = 2\n```\n\n- Two:\n\n  ```\n  two\n  ```\n\nThree:\n\n    three\n"


async def test_every_piece_of_code_can_be_copied_by_key_and_by_click() -> None:
    app = TranscriptApp([*plain_turns(1), Turn(turn_index=2, messages=[said("code?", 2), reply(PIECES, 2)])])
    async with app.run_test(size=(70, 30)) as pilot:
        await pilot.pause()
        for _ in range(4):
            await pilot.press("c")
        await pilot.pause()
        assert app.copied == ["x = 1\ny = 2\n", "two\n", "three\n", "x = 1\ny = 2\n"]
        assert app.hints[0] == "code 1 of 3 · python · 2 lines copied" and app.hints[1] == "code 2 of 3 · 1 line copied"
        await pilot.press("C")
        await pilot.pause()
        assert app.copied[-1] == "x = 1\ny = 2\n\ntwo\n\nthree\n"
        line = next(y for y, text in enumerate(app.screen_text()) if "three" in text and "copy" in text)
        await pilot.click("Transcript", offset=(app.screen_text()[line].index("copy"), line))
        await pilot.pause()
        assert app.copied[-1] == "three\n" and app.hints[-1] == "code 3 of 3 · 1 line copied"


async def test_the_line_with_the_name_is_no_stop_and_code_is_found_from_the_whole_turn() -> None:
    app = TranscriptApp([Turn(turn_index=1, messages=[said("code?"), reply(PIECES, 1)])])
    async with app.run_test(size=(70, 30)) as pilot:
        await pilot.pause()
        await pilot.press("k", "k")
        await pilot.pause()
        assert app.transcript.cursor.block is app.transcript.document.blocks[0], "from the answer to the question"
        await pilot.press("c", "k", "j")
        await pilot.pause()
        assert app.copied == ["x = 1\ny = 2\n"]
        assert app.transcript.cursor.block is app.transcript.document.blocks[2]


async def test_dragging_selects() -> None:
    app = TranscriptApp(plain_turns(1))
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        line = next(y for y, text in enumerate(app.screen_text()) if text == "  question 1")
        await pilot.mouse_down("Transcript", offset=(2, line))
        await pilot.hover("Transcript", offset=(11, line))
        await pilot.mouse_up("Transcript", offset=(11, line))
        await pilot.pause()
        assert app.transcript.selected_text == "question 1"


async def test_a_place_in_a_long_text_is_found_without_making_its_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    made = lines_made(monkeypatch)
    text = "".join(f"line {number} of many words\n" for number in range(3_000))
    app = TranscriptApp([Turn(turn_index=1, messages=[said(text)])])
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        view = app.transcript
        view.toggle_fold(view.document.blocks[0])
        spots = view.finder.spots(1, "LINE 2500 of")
        assert view.finder.show_spot(spots[0], "line 2500 of") == spots[0]
        await pilot.pause()
        assert "▎ line 2500 of many words" in app.screen_text()
        assert len(made) < 1_000


async def test_the_reading_position_stays_when_a_turn_is_replaced() -> None:
    turns = plain_turns(20)
    app = TranscriptApp(turns)
    async with app.run_test(size=(80, 10)) as pilot:
        await pilot.pause()
        view = app.transcript
        view.notice("The last answer was interrupted.", passing=True)
        last = Turn(turn_index=21, messages=[said("go on"), reply("\n\n".join(f"word {n}" for n in range(40)))])
        view.show_turn(last)
        await pilot.pause()
        bring_to_top(app, "answer 15")
        await pilot.pause()
        before = app.screen_text()
        view.action_move_cursor(1)
        here = view.cursor.block
        assert here is not None and (here.turn_index, here.kind) == (15, "text")
        view.show_turn(turns[14])
        await pilot.pause()
        assert [line[2:] for line in app.screen_text()] == [line[2:] for line in before]
        assert view.cursor.block is not here, "it was put anew"
        assert view.cursor.block is not None and view.cursor.block.source == here.source
        bring_to_top(app, "interrupted")
        await pilot.pause()
        assert not view.follow
        view.apply(TurnCompleted(text="", conversation_id="c", turn_index=21))
        await pilot.pause()
        assert app.screen_text()[1] == "  go on"


def bring_to_top(app: TranscriptApp, words: str) -> None:
    """Scroll until the first line that has these words is the window's first."""
    app.transcript.scroll_to(y=0, immediate=True)
    while words not in app.screen_text()[0]:
        assert app.transcript.scroll_y < app.transcript.max_scroll_y
        app.transcript.scroll_to(y=app.transcript.scroll_y + 1, immediate=True)


async def test_notices_and_clearing() -> None:
    app = TranscriptApp(plain_turns(2))
    async with app.run_test(size=(60, 20)) as pilot:
        app.transcript.notice("The graph is away: [/x]", "warning")
        await pilot.pause()
        assert "! The graph is away: [/x]" in "\n".join(app.screen_text())
        app.transcript.clear()
        await pilot.pause()
        assert set(app.screen_text()) == {""}


async def test_a_change_of_theme_draws_again() -> None:
    app = TranscriptApp(plain_turns(2))
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        dark = app.transcript.render_line(1)
        app.theme = "textual-light"
        await pilot.pause()
        await asyncio.sleep(0)
        assert app.transcript.render_line(1).text == dark.text
        assert app.transcript.render_line(1) != dark
